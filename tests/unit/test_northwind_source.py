"""Filling Northwind where it cannot work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_without_a_stack_it_says_how_to_start_one(tmp_path: Path) -> None:
    """Exit code 3, one sentence on stderr, no traceback."""
    command = [sys.executable, "-m", "infra.northwind_source", "--home", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("error: connection to server at")
    assert line.endswith("Start PostgreSQL with `make stack`.")
