"""Our command line in the process of the tests, sharing their JVM."""

from __future__ import annotations

from typer.testing import CliRunner

from replicator.cli import app


def said(*arguments: str) -> str:
    """What ``replicator`` prints on stdout; raises what stopped it."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout
