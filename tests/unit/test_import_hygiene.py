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
from replicator.cli import main

def ends(*arguments):
    sys.argv = ['replicator', *arguments]
    try:
        main()
    except SystemExit as end:
        assert end.code in (0, None), end.code
"""
TELL = """
HEAVY = {'pyspark', 'py4j', 'delta', 'boto3', 'psycopg2', 'pyarrow', 'duckdb', 'deltalake', 'hudi', 'sqlglot', 'plotly'}
HEAVY |= {'jinja2'}
OURS = {'replicator.settings', 'replicator.spec', 'replicator.cli.run'}

def tell(what, unwanted=HEAVY):
    loaded = {m.split('.')[0] for m in sys.modules} | set(sys.modules)
    print(what, sorted(loaded & unwanted), file=sys.stderr)
"""
EVERY_HELP = """
from typer.testing import CliRunner
from replicator.cli import app, verbs
for name in verbs.VERBS:
    command = verbs.load(name)
    for words in [[name], *([name, inner] for inner in getattr(command, 'commands', ()))]:
        done = CliRunner().invoke(app, [*words, '--help'], catch_exceptions=False)
        own = words != ['demo-source', 'load']  # what does it tells of itself, in a process of its own
        assert not own or 'Usage: replicator' in done.stdout or 'Usage: root' in done.stdout, (words, done.stdout)
tell('every-help')
"""
EVERY_ANSWER = """
for what, *rest in [
    ('sql', '--list', '--conf', 'conf'),
    ('aws', 'render', 'worker', '--conf', 'conf/aws', '--env', 'aws'),
    ('config', 'show', '--conf', 'conf', '--env', 'demo'),
    ('validate', '--conf', 'conf', '--env', 'demo'),
]:
    ends(what, *rest)
    tell(what)
"""
COMPLETE = """
import os
os.environ |= {'_REPLICATOR_COMPLETE': 'complete_bash', 'COMP_WORDS': 'replicator st', 'COMP_CWORD': '1'}
ends()
"""


def told(code: str) -> tuple[str, list[str]]:
    """What a process that has only done this prints, and what it said was loaded."""
    code = VERB + TELL + code
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.strip().splitlines()


def test_nothing_heavy_is_loaded() -> None:
    """Importing the package, asking for help and checking a configuration do not load Spark, nor anything else that is
    slow, in a process that did them all; only the kind of a target is asked whether it takes its keys, with its driver.
    """
    _, lines = told(EVERY_HELP + EVERY_ANSWER)
    light = [f"{what} []" for what in ("every-help", "sql", "aws", "config")]
    assert [line for line in lines if line.endswith("]")] == [*light, "validate ['psycopg2']"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("ends('--version')\nends('--help')\n", "Show the progress of each table"),
        (COMPLETE, "status"),
    ],
    ids=["version and help", "completion"],
)
def test_names_of_verbs_need_no_verb(code: str, said: str) -> None:
    """Help, version and completion come at once: they load no verb and no configuration."""
    out, lines = told(code + "tell('ours', OURS | HEAVY)\n")
    assert said in out
    assert lines[-1] == "ours []"


@pytest.mark.parametrize("name", verbs.VERBS)
def test_a_verb_is_told_of_as_it_tells_of_itself(name: str) -> None:
    """Its line in ``replicator --help`` is how its own help begins."""
    command = verbs.load(name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == verbs.VERBS[name][1]
