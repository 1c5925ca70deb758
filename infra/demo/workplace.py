"""A folder of its own for each demo, so that two can run at once; what an earlier one left is cleared away."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@contextmanager
def workplace() -> Iterator[Path]:
    """``.demo``, or ``.demo/copy-<pid>`` while another demo is using it."""
    first = REPOSITORY / ".demo"
    first.mkdir(exist_ok=True)
    with (first / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = first
        except BlockingIOError:
            folder = first / f"copy-{os.getpid()}"
        folder.mkdir(exist_ok=True)
        shutil.rmtree(folder / "lake", ignore_errors=True)
        yield folder
