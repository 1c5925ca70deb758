"""A register on a local disk: a file that is moved into place, under a lock held only for that moment."""

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
"""Errors that persist until somebody acts; a full disk, or one that a network no longer reaches, may recover."""


class FileRegister:
    """``Register`` in a file; its text is its tag. The kernel releases the lock beside it when a process is killed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def read(self) -> Stored | None:
        """Return the file's text."""
        with self._translated():
            return self._read()

    def replace(self, text: str, expected: str | None) -> str | None:
        """Compare and move, under the lock."""
        with self._translated():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._alone():
                stored = self._read()
                current = None if stored is None else stored.tag
                if current == expected:
                    self._write(text)
                return text if current in (expected, text) else None

    def _read(self) -> Stored | None:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        return Stored(text, text)

    def _write(self, text: str) -> None:
        """Write atomically: after a power failure, too, the file is either the old or the new one, complete."""
        temporary = self._path.with_suffix(".new")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock. Raises Unreachable if another process holds it for seconds, because it was suspended at that
        moment.
        """
        with self._lock() as file:
            give_up = time.monotonic() + _PATIENCE
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > give_up:
                        fix = "A suspended driver holds it: resume it or end it."
                        raise Unreachable("the lease is locked", where=self.where, fix=fix) from None
                    time.sleep(_PAUSE)
            yield

    def _lock(self) -> TextIO:
        """Open the lock file. One created by another user can be locked, too, since that requires no
        right to write it.
        """
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
            what = f"cannot write a lease to the lake: {error.strerror or error}"
            raise kind(what, where=self.where, fix="Check the disk and its permissions.") from error
