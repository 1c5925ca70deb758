"""A clean process proves what a static graph cannot see: deferred imports stay deferred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from replicator.cli import verbs

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


EVERY_HELP = """
from typer.testing import CliRunner
from replicator.cli import app, verbs
for name in verbs.VERBS:
    command = verbs.loaded(name)
    for words in [[name], *([name, inner] for inner in getattr(command, 'commands', ()))]:
        done = CliRunner().invoke(app, [*words, '--help'], catch_exceptions=False)
        own = words != ['demo-source', 'load']  # what does it tells of itself, in a process of its own
        assert not own or 'Usage: replicator' in done.stdout or 'Usage: root' in done.stdout, (words, done.stdout)
"""
COMPLETE = "import os\nos.environ['_REPLICATOR_COMPLETE'] = 'complete_bash'\n"
COMPLETE += "os.environ |= {'COMP_WORDS': 'replicator st', 'COMP_CWORD': '1'}\n"
TELL_OURS = """
import sys
print(sorted({'replicator.settings', 'replicator.spec', 'replicator.cli.run'} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "code",
    [
        "import replicator\n",
        VERB.format(arguments=["--help"]),
        EVERY_HELP,
        VERB.format(arguments=["sql", "--list", "--conf", "conf"]),
        VERB.format(arguments=["aws", "render", "worker", "--conf", "conf/aws", "--env", "aws"]),
        VERB.format(arguments=["validate", "--conf", "conf", "--env", "demo"]),
        VERB.format(arguments=["config", "show", "--conf", "conf", "--env", "demo"]),
    ],
    ids=["import", "help", "every-help", "sql-list", "aws-render", "validate", "config-show"],
)
def test_nothing_heavy_is_loaded(code):
    """Importing the package, asking for help and checking a configuration load neither Spark nor a driver."""
    done = subprocess.run(
        [sys.executable, "-c", code + TELL], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (VERB.format(arguments=["--help"]), "Where every table stands"),
        (VERB.format(arguments=["--version"]), "."),
        (COMPLETE + VERB.format(arguments=[]), "status"),
    ],
    ids=["help", "version", "completion"],
)
def test_names_of_verbs_need_no_verb(code, said):
    """Help, version and completion come at once: they load no verb and no configuration."""
    done = subprocess.run(
        [sys.executable, "-c", code + TELL_OURS], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert done.stderr.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", verbs.VERBS)
def test_a_verb_is_told_of_as_it_tells_of_itself(name):
    """Its line in ``replicator --help`` is how its own help begins."""
    command = verbs.loaded(name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == verbs.VERBS[name][1]
