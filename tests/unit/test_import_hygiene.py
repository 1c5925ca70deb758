"""A clean process proves what a static graph cannot see: deferred imports stay deferred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERB = """
import sys
sys.argv = ['replicator', *{arguments!r}]
from replicator.cli import main
try:
    main()
except SystemExit as end:
    assert end.code in (0, None), end.code
"""
TELL = """
import sys
loaded = {m.split('.')[0] for m in sys.modules}
heavy = {'pyspark', 'py4j', 'delta', 'boto3', 'psycopg2', 'pyarrow', 'duckdb', 'deltalake', 'hudi', 'sqlglot', 'plotly'}
heavy |= {'jinja2'}
print(sorted(loaded & heavy), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "code",
    [
        "import replicator\n",
        VERB.format(arguments=["--help"]),
        VERB.format(arguments=["sql", "--help"]),
        VERB.format(arguments=["sql", "--list", "--conf", "conf"]),
        VERB.format(arguments=["catalog", "sync", "--help"]),
        VERB.format(arguments=["aws", "render", "worker", "--conf", "conf/aws", "--env", "aws"]),
        VERB.format(arguments=["validate", "--conf", "conf", "--env", "demo"]),
        VERB.format(arguments=["config", "show", "--conf", "conf", "--env", "demo"]),
    ],
    ids=["import", "help", "sql-help", "sql-list", "catalog-help", "aws-render", "validate", "config-show"],
)
def test_nothing_heavy_is_loaded(code):
    """Importing the package, asking for help and checking a configuration load neither Spark nor a driver."""
    done = subprocess.run(
        [sys.executable, "-c", code + TELL], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "[]"
