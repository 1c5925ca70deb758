"""The JARs that the JVM needs: named and hashed in a lock, fetched by the Ivy inside pyspark, kept in one cache.

A lock maps Maven coordinates (``group:artifact:version``) to the SHA-256 of the JAR, in class path order. It is flat:
nothing is resolved transitively, so what runs is what was tested. No repository is named here: Ivy asks its default,
or the mirror that the variable DEFAULT_ARTIFACT_REPOSITORY names, as for any ``spark-submit --packages``.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.resources
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

from replicator.errors import ConfigError, JarsMissing, JavaUnsuitable
from replicator.java import java_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_MIRROR = "Check the network, or name a repository that has it in DEFAULT_ARTIFACT_REPOSITORY."
_FETCH = "Run `replicator jars --fetch`."


@dataclass(frozen=True)
class Fetched:
    """How far a fetch is: *jars* of *total* are in the cache, *size* bytes have arrived in this call."""

    jars: int
    total: int
    size: int


def locked(line: str = "3.5", formats: Iterable[str] = ()) -> dict[str, str]:
    """The packaged lock of a Spark line: coordinate -> SHA-256, in class path order, with what table formats need
    beside Delta. ConfigError if there is none.
    """
    folder = importlib.resources.files("replicator") / "locks"
    lock = folder / f"spark-{line}.json"
    if not lock.is_file():
        locks = [file.name for file in folder.iterdir() if file.name.startswith("spark-")]
        known = sorted(name.removeprefix("spark-").removesuffix(".json") for name in locks)
        raise ConfigError(f"There are no JARs for Spark {line!r}.", mend=f"Known lines: {', '.join(known)}.")
    found = dict(json.loads(lock.read_text(encoding="utf-8")))
    for name in formats:
        more = folder / f"{name}-{line}.json"
        if more.is_file():
            found |= json.loads(more.read_text(encoding="utf-8"))
    return found


def present(lock: Mapping[str, str], cache: Path) -> list[Path]:
    """The paths of all JARs of *lock*, in its order, each checked against its SHA-256. Fetches nothing.

    A file is hashed once and again only when its size or its times changed. Raises JarsMissing naming the JARs that
    are absent and those that differ from the lock.
    """
    store = _Store(cache)
    absent, differing = store.sort_out(lock)
    if differing:
        raise JarsMissing(f"JARs differ from their lock: {_names(differing)}.", where=str(store.folder), mend=_FETCH)
    if absent:
        raise JarsMissing(f"JARs are not in the cache: {_names(absent)}.", where=str(store.folder), mend=_FETCH)
    return store.paths(lock)


def fetch(
    lock: Mapping[str, str],
    cache: Path,
    report: Callable[[Fetched], None] | None = None,
    java: Path | None = None,
) -> list[Path]:
    """Bring what *lock* misses into *cache*; return the paths of all its JARs in the order of the lock.

    What is there and unchanged is not fetched again; a damaged file is replaced. A JAR appears in the cache whole and
    verified or not at all, whatever is interrupted; a second process that fetches into the same cache waits.

    *report* is called at least twice a second; without one, progress goes to stderr. *java* is the home of the JVM
    that fetches (default: ``java_home()``); it has ended when this returns.

    Raises JarsMissing naming a coordinate that no repository has, or whose file is not the lock's.
    """
    store = _Store(cache)
    with store.alone():
        missing = [coordinate for group in store.sort_out(lock) for coordinate in group]
        if missing:
            wanted = {coordinate: lock[coordinate] for coordinate in missing}
            telling = nullcontext(report) if report is not None else _narrated()
            with store.staging() as staging, telling as tell:
                _fetch_missing(wanted, staging, store, tell, java or java_home())
    return present(lock, cache)


class _Store:
    """The cache's folder of JARs, and what is remembered of the files that were hashed."""

    def __init__(self, cache: Path) -> None:
        self.folder = cache.resolve() / "jars"
        self._memory = self.folder / "verified.json"

    def path(self, coordinate: str) -> Path:
        group, artifact, version = coordinate.split(":")
        return self.folder / f"{group}_{artifact}-{version}.jar"

    def paths(self, lock: Mapping[str, str]) -> list[Path]:
        return [self.path(coordinate) for coordinate in lock]

    def sort_out(self, lock: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """The coordinates that are absent, and those whose file is not the lock's."""
        remembered = self._remembered()
        absent, differing, now = [], [], dict(remembered)
        for coordinate, sha256 in lock.items():
            path = self.path(coordinate)
            if not path.is_file():
                absent.append(coordinate)
                continue
            if (mark := _mark(path, sha256)) == remembered.get(path.name):
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
        return sum(_size(path) for path in self.paths(lock))

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


def _fetch_missing(
    wanted: Mapping[str, str],
    staging: Path,
    store: _Store,
    report: Callable[[Fetched], None],
    java: Path,
) -> None:
    fetched = 0
    report(Fetched(0, len(wanted), 0))
    for answer in _answers(wanted, staging, java):
        if answer is not None:
            coordinate = answer["coordinate"]
            if "path" not in answer:
                raise JarsMissing(f"No repository within reach has {coordinate}.", mend=_MIRROR)
            store.accept(coordinate, wanted[coordinate], Path(answer["path"]))
            fetched += 1
        report(Fetched(fetched, len(wanted), store.size(wanted) + _arriving(staging)))


def _answers(wanted: Mapping[str, str], staging: Path, java: Path) -> Iterator[dict[str, str] | None]:
    """What ``replicator.ivy`` says of each coordinate, as it says it; None twice a second while it is silent.

    The process and its JVM end when this does. Raises JavaUnsuitable when it falls silent before it has answered all.
    """
    lines: SimpleQueue[str] = SimpleQueue()
    with (staging / "ivy.log").open("w+", encoding="utf-8") as log:
        command = [sys.executable, "-m", "replicator.ivy", str(java), str(staging)]
        ivy = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        assert ivy.stdin is not None  # noqa: S101 - told to mypy
        reader = Thread(target=_read, args=(ivy, lines), daemon=True)
        try:
            ivy.stdin.write("".join(f"{coordinate}\n" for coordinate in [*wanted, ""]))
            ivy.stdin.flush()
            reader.start()
            left = len(wanted)
            while left:
                try:
                    line = lines.get(timeout=0.5)
                except Empty:
                    yield None
                    continue
                if not line:
                    log.seek(0)
                    raise JavaUnsuitable(f"The resolver's JVM ended early: {_last_line(log.read())}", where=str(java))
                yield json.loads(line)
                left -= 1
        finally:
            os.killpg(ivy.pid, signal.SIGKILL)  # with its JVM; both only ever write to the staging folder
            ivy.wait()


def _read(ivy: subprocess.Popen[str], lines: SimpleQueue[str]) -> None:
    """Pass on the lines of a process, then an empty one for its end."""
    assert ivy.stdout is not None  # noqa: S101 - told to mypy
    for line in ivy.stdout:
        lines.put(line)
    lines.put("")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _arriving(staging: Path) -> int:
    """The bytes of files that Ivy has, whole or in part, and that are not yet in the cache."""
    return sum(_size(file) for file in staging.glob("*/cache/**/*.jar*"))


@contextmanager
def _narrated() -> Iterator[Callable[[Fetched], None]]:
    """Progress on stderr: a bar on a terminal, elsewhere a line now and then."""
    from rich.console import Console  # noqa: PLC0415 - not for readers of a cache
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if console.is_terminal:
        jars = TextColumn("{task.completed:.0f} of {task.total:.0f}")
        size = TextColumn("{task.fields[size]:.0f} MB")
        with Progress(TextColumn("JARs"), BarColumn(), jars, size, console=console) as bar:
            task = bar.add_task("JARs", total=None, size=0)
            yield lambda now: bar.update(task, completed=now.jars, total=now.total, size=now.size / 1e6)
        return
    yield _Lines(console.file)


class _Lines:
    """Progress as plain lines: the start, the end, and at most one every five seconds between them."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._next = 0.0

    def __call__(self, now: Fetched) -> None:
        if now.jars < now.total and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 5
        self._out.write(f"JARs: {now.jars} of {now.total} fetched, {now.size / 1e6:.0f} MB\n")
        self._out.flush()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _mark(path: Path, sha256: str) -> list[Any]:
    """What tells that a file is the one that was hashed; the change time cannot be set back by hand."""
    stat = path.stat()
    return [sha256, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _size(path: Path) -> int:
    with suppress(OSError):  # renamed meanwhile
        return path.stat().st_size
    return 0


def _names(coordinates: list[str]) -> str:
    first = ", ".join(coordinates[:3])
    return first if len(coordinates) <= 3 else f"{first} and {len(coordinates) - 3} more"
