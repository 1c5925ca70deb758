"""A register on a local disk: a file that is moved into place, under a lock that lasts for that moment."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from replicator.errors import ConfigError, Unreachable
from replicator.leases.register import Stored

_PATIENCE, _PAUSE = 5.0, 0.01
_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""What is so until somebody changes it; a disk that is full, or that a network no longer reaches, may be well again."""


class FileRegister:
    """``Register`` in a file; its text is its tag. The kernel frees the lock beside it when a process is killed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """The file."""
        return str(self._path)

    def read(self) -> Stored | None:
        """The file's text."""
        with self._translated():
            return self._read()

    def replace(self, text: str, expected: str | None) -> str | None:
        """Look and move, while all others wait."""
        with self._translated():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._alone():
                stored = self._read()
                there = None if stored is None else stored.tag
                if there == expected:
                    self._write(text)
                return text if there in (expected, text) else None

    def _read(self) -> Stored | None:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        return Stored(text, text)

    def _write(self, text: str) -> None:
        """Also after a power cut the file is the old or the new one, whole."""
        beside = self._path.with_suffix(".new")
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raises Unreachable where another process holds the lock for seconds: it was stopped in that very moment."""
        with self._lock() as file:
            give_up = time.monotonic() + _PATIENCE
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > give_up:
                        mend = "A driver that was stopped holds it: let it go on, or end it."
                        raise Unreachable("the lease is locked", where=self.where, mend=mend) from None
                    time.sleep(_PAUSE)
            yield

    def _lock(self) -> TextIO:
        """One that another user has made can be locked, too, which needs no right to write it."""
        path = self._path.with_suffix(".lock")
        try:
            return path.open("a")
        except PermissionError:
            if not path.exists():
                raise
            return path.open()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = ConfigError if error.errno in _REFUSALS else Unreachable
            what = f"the lake does not take a lease: {error.strerror or error}"
            raise kind(what, where=self.where, mend="Check the disk and who may write there.") from error
