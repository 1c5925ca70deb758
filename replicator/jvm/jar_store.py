"""The cache's folder of JARs: its files, their verification against the lock, and how files are added."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicator.errors import JarsMissing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class JarStore:
    """The cache's folder of JARs, with a record of the files that were already hashed."""

    def __init__(self, cache: Path) -> None:
        self.folder = cache.resolve() / "jars"
        self._memory = self.folder / "verified.json"

    def path(self, coordinate: str) -> Path:
        """The path of a coordinate's JAR, whether it exists or not."""
        group, artifact, version = coordinate.split(":")
        return self.folder / f"{group}_{artifact}-{version}.jar"

    def paths(self, lock: Mapping[str, str]) -> list[Path]:
        """The paths of a lock's JARs, in its order."""
        return [self.path(coordinate) for coordinate in lock]

    def find_missing(self, lock: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return the coordinates that are absent, and those whose file differs from the lock."""
        remembered = self._remembered()
        absent, differing, now = [], [], dict(remembered)
        for coordinate, sha256 in lock.items():
            path = self.path(coordinate)
            if not path.is_file():
                absent.append(coordinate)
                continue
            if (mark := _fingerprint(path, sha256)) == remembered.get(path.name):
                continue
            if _sha256(path) == sha256:
                now[path.name] = mark
            else:
                differing.append(coordinate)
        if now != remembered:
            self._remember(now)
        return absent, differing

    def accept(self, coordinate: str, sha256: str, fetched: Path) -> None:
        """Move a fetched file into place if it matches the lock; raise JarsMissing if not."""
        if (found := _sha256(fetched)) != sha256:
            raise JarsMissing(
                f"The repository's file for {coordinate} has SHA-256 {found}, the lock says {sha256}.",
                fix="Do not use it: find out which mirror served it.",
            )
        fetched.replace(self.path(coordinate))

    def size(self, lock: Mapping[str, str]) -> int:
        """The size in bytes of those JARs that are in place."""
        return sum(size_of(path) for path in self.paths(lock))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the cache against other fetching processes; the kernel releases the lock even if this process dies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder on the cache's own disk, deleted afterwards; remains of a killed fetch are deleted first."""
        for left in self.folder.glob(".fetch-*"):
            shutil.rmtree(left, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix=".fetch-", dir=self.folder))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _remembered(self) -> dict[str, list[Any]]:
        with suppress(OSError, ValueError):
            return dict(json.loads(self._memory.read_text(encoding="utf-8")))
        return {}

    def _remember(self, marks: dict[str, list[Any]]) -> None:
        with suppress(OSError):  # a read-only cache is hashed each time
            handle, name = tempfile.mkstemp(prefix=".verified-", dir=self.folder)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(marks, file, indent=1)
            Path(name).replace(self._memory)


def size_of(path: Path) -> int:
    """The size of a file in bytes, 0 if it does not exist."""
    with suppress(OSError):  # it may have been renamed meanwhile
        return path.stat().st_size
    return 0


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _fingerprint(path: Path, sha256: str) -> list[Any]:
    """What identifies a file that was hashed; the change time cannot be set back by hand."""
    stat = path.stat()
    return [sha256, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
