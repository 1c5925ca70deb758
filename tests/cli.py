"""Our command line in the process of the tests, sharing their JVM."""

from __future__ import annotations

import io
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from replicator import cli

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Ended:
    """What is left of a program."""

    returncode: int
    stdout: str
    stderr: str


def said(*arguments: str, code: int = 0) -> str:
    """What ``replicator`` prints on stdout when it ends with that exit code; raises what else stopped it."""
    done = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    if done.exception is not None and (code == 0 or done.exit_code != code):
        raise done.exception
    assert done.exit_code == code
    return done.stdout


def ended(*arguments: str, **environment: str) -> Ended:
    """How ``replicator`` ends, errors and all, with these variables and little else; what a process has to itself is
    as before behind it.
    """
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding, write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace", write_through=True)
    variables, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        for name, value in (("argv", ["replicator", *arguments]), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, value)
        os.environ.clear()
        os.environ.update({"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment})
        try:
            with pytest.raises(SystemExit) as end:
                cli.main()
        finally:
            os.environ.clear()
            os.environ.update(variables)
            signal.signal(signal.SIGTERM, handler)
        out_, err_ = (bytes(each.buffer.getvalue()).decode() for each in (out, err))
    return Ended(int(end.value.code or 0), out_, err_)
