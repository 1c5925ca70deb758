"""The cache's folder of JARs: what lies there, whether it is what the lock says, and how a file gets in."""

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
    """The cache's folder of JARs, and what is remembered of the files that were hashed."""

    def __init__(self, cache: Path) -> None:
        self.folder = cache.resolve() / "jars"
        self._memory = self.folder / "verified.json"

    def path(self, coordinate: str) -> Path:
        """Where the JAR of a coordinate lies, if it is there."""
        group, artifact, version = coordinate.split(":")
        return self.folder / f"{group}_{artifact}-{version}.jar"

    def paths(self, lock: Mapping[str, str]) -> list[Path]:
        """Where those of a lock lie, in its order."""
        return [self.path(coordinate) for coordinate in lock]

    def find_missing(self, lock: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """The coordinates that are absent, and those whose file is not the lock's."""
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
        """Move a fetched file into place if it is the lock's; JarsMissing if not."""
        if (found := _sha256(fetched)) != sha256:
            raise JarsMissing(
                f"The repository's file for {coordinate} has SHA-256 {found}, the lock says {sha256}.",
                mend="Do not use it: find out which mirror served it.",
            )
        fetched.replace(self.path(coordinate))

    def size(self, lock: Mapping[str, str]) -> int:
        """Bytes of those JARs that are in place."""
        return sum(size_of(path) for path in self.paths(lock))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One fetching process per cache; the kernel lets go of the lock whatever happens to us."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder on the cache's own disk, gone afterwards; what a killed fetch left goes first."""
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
        with suppress(OSError):  # a cache that is read-only is hashed each time
            handle, name = tempfile.mkstemp(prefix=".verified-", dir=self.folder)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(marks, file, indent=1)
            Path(name).replace(self._memory)


def size_of(path: Path) -> int:
    """Bytes of a file, 0 if it is gone."""
    with suppress(OSError):  # renamed meanwhile
        return path.stat().st_size
    return 0


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _fingerprint(path: Path, sha256: str) -> list[Any]:
    """What tells that a file is the one that was hashed; the change time cannot be set back by hand."""
    stat = path.stat()
    return [sha256, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
