"""Our command line in the process of the tests, sharing their JVM."""

from __future__ import annotations

from typer.testing import CliRunner

from replicator.cli import app


def said(*arguments: str, code: int = 0) -> str:
    """What ``replicator`` prints on stdout when it ends with that exit code; raises what else stopped it."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    if done.exception is not None and (code == 0 or done.exit_code != code):
        raise done.exception
    assert done.exit_code == code
    return done.stdout
