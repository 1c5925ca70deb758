"""The JARs that the JVM needs: pinned and hashed in a lock, fetched by the Ivy inside pyspark, kept in one cache.

A lock maps Maven coordinates (``group:artifact:version``) to the SHA-256 of the JAR, in class path order. It is flat:
nothing is resolved transitively, so what runs is what was tested. No repository is named here: Ivy uses its default, or
the mirror in the variable DEFAULT_ARTIFACT_REPOSITORY, as for any ``spark-submit --packages``.
"""

from __future__ import annotations

import importlib.resources
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING

from replicator import environment, names
from replicator.errors import JarsMissing, JavaUnsuitable
from replicator.jvm import sparkline
from replicator.jvm.jar_store import JarStore, size_of
from replicator.jvm.java import java_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from importlib.abc import Traversable

_MIRROR_HINT = "Check the network, or set DEFAULT_ARTIFACT_REPOSITORY to a repository that has it."
_FETCH_HINT = "Check that the disk has room and the network works, then run again."
_LOCKS = importlib.resources.files("replicator") / "locks"


@dataclass(frozen=True)
class FetchProgress:
    """The progress of a fetch: *jars* of *total* are in the cache; *size* bytes have arrived in this call."""

    jars: int
    total: int
    size: int


def load_lock(line: str = sparkline.DEFAULT.name, formats: Iterable[str] = ()) -> dict[str, str]:
    """Return the packaged lock of a Spark line: coordinate -> SHA-256, in class path order, including what the table
    formats need in addition to Delta. Raises ConfigError for an unknown line, and for a format that the line does not
    support.
    """
    known = sparkline.of(line)
    more = {name: _LOCKS / f"{name}-{line}.json" for name in formats}
    sparkline.refuse_formats(known, [name for name, lock in more.items() if not lock.is_file()])
    locks = [_LOCKS / f"spark-{line}.json", *(lock for lock in more.values() if lock.is_file())]
    return {each: sha256 for lock in locks for each, sha256 in _read_lock(lock).items()}


def _read_lock(lock: Traversable) -> dict[str, str]:
    found: dict[str, str] = json.loads(lock.read_text(encoding="utf-8"))
    return found


def locate(lock: Mapping[str, str], cache: Path) -> list[Path]:
    """Return the paths of all JARs of *lock*, in its order, each verified against its SHA-256. Fetches nothing.

    A file is hashed once, and again only when its size or its times changed. Raises JarsMissing, naming the JARs that
    are absent and those that differ from the lock.
    """
    store = JarStore(cache)
    absent, differing = store.find_missing(lock)
    if differing or absent:
        what, which = ("do not match their lock", differing) if differing else ("are not in the cache", absent)
        message = f"JARs {what}: {names.shorten_list(which, 3)}."
        raise JarsMissing(message, where=str(store.folder), fix=_fetch_hint([*differing, *absent]))
    return store.paths(lock)


def _fetch_hint(missing: Sequence[str]) -> str:
    """The command that fetches these; JARs that a format needs in addition to Delta are fetched only by its name."""
    locks = ((name, _LOCKS / f"{name}-{line.name}.json") for line in sparkline.LINES for name in line.formats)
    formats = {name for name, lock in locks if lock.is_file() and not _read_lock(lock).keys().isdisjoint(missing)}
    command = " ".join(["replicator jars --fetch", *(f"--format {name}" for name in sorted(formats))])
    return f"Run `{command}`."


def fetch(
    lock: Mapping[str, str],
    cache: Path,
    report: Callable[[FetchProgress], None] | None = None,
    java: Path | None = None,
) -> list[Path]:
    """Fetch what *cache* lacks of *lock*; return the paths of all its JARs in the order of the lock.

    Existing, unchanged files are not fetched again; a damaged file is replaced. A JAR appears in the cache complete and
    verified or not at all, even after an interruption; a second process that fetches into the same cache waits.

    *report* is called at least twice a second; without one, progress goes to stderr. *java* is the home of the JVM that
    fetches (default: ``java_home()``); that JVM has ended when this returns.

    Raises JarsMissing, naming a coordinate that no repository has, or whose file differs from the lock.
    """
    store = JarStore(cache)
    if any(store.find_missing(lock)):  # a complete cache may be another user's, and read-only
        with store.exclusive():
            _complete(store, lock, report, java)
    return locate(lock, cache)


def _complete(
    store: JarStore, lock: Mapping[str, str], report: Callable[[FetchProgress], None] | None, java: Path | None
) -> None:
    """Fetch what is missing now: another process may have fetched some of it."""
    missing = [coordinate for group in store.find_missing(lock) for coordinate in group]
    if missing:
        wanted = {coordinate: lock[coordinate] for coordinate in missing}
        reporting = nullcontext(report) if report is not None else _progress_reporter()
        with store.staging() as staging, reporting as progress:
            _fetch_missing(wanted, staging, store, progress, java or java_home())


def _fetch_missing(
    wanted: Mapping[str, str],
    staging: Path,
    store: JarStore,
    report: Callable[[FetchProgress], None],
    java: Path,
) -> None:
    fetched = 0
    report(FetchProgress(0, len(wanted), 0))
    for answer in _resolve(wanted, staging, java):
        if answer is not None:
            coordinate = answer["coordinate"]
            if "path" not in answer:
                if answer["error"]:
                    message = f"{coordinate} could not be fetched: {answer['error']}."
                    raise JarsMissing(message, where=str(store.folder), fix=_FETCH_HINT)
                raise JarsMissing(f"No reachable repository has {coordinate}.", fix=_MIRROR_HINT)
            store.accept(coordinate, wanted[coordinate], Path(answer["path"]))
            fetched += 1
        report(FetchProgress(fetched, len(wanted), store.size(wanted) + _staged_bytes(staging)))


def _resolve(wanted: Mapping[str, str], staging: Path, java: Path) -> Iterator[dict[str, str] | None]:
    """Yield the answer of ``replicator.jvm.ivy`` for each coordinate as it arrives; None twice a second while there is
    none.

    The process and its JVM end with this generator. Raises JavaUnsuitable if the process ends before it has answered
    for all coordinates.
    """
    environment.ensure_utf8_locale()
    lines: SimpleQueue[str] = SimpleQueue()
    with (staging / "ivy.log").open("w+", encoding="utf-8") as log:
        command = [sys.executable, "-m", "replicator.jvm.ivy", str(java), str(staging)]
        ivy = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        assert ivy.stdin is not None  # noqa: S101 - for mypy
        reader = Thread(target=_forward_lines, args=(ivy, lines), daemon=True)
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
                    raise JavaUnsuitable(f"The resolver's JVM exited early: {_last_line(log.read())}", where=str(java))
                yield json.loads(line)
                left -= 1
        finally:
            os.killpg(ivy.pid, signal.SIGKILL)  # with its JVM; both only ever write to the staging folder
            ivy.wait()


def _forward_lines(ivy: subprocess.Popen[str], lines: SimpleQueue[str]) -> None:
    """Pass on the lines of a process, then an empty one for its end."""
    assert ivy.stdout is not None  # noqa: S101 - for mypy
    for line in ivy.stdout:
        lines.put(line)
    lines.put("")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def _staged_bytes(staging: Path) -> int:
    """The size of the files that Ivy has fetched, fully or partly, and that are not in the cache yet."""
    return sum(size_of(file) for file in staging.glob("*/cache/**/*.jar*"))


@contextmanager
def _progress_reporter() -> Iterator[Callable[[FetchProgress], None]]:
    """Progress on stderr: a bar on a terminal, elsewhere an occasional line."""
    from rich.console import Console  # noqa: PLC0415 - not needed to read a cache
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if console.is_terminal:
        jars = TextColumn("{task.completed:.0f} of {task.total:.0f}")
        size = TextColumn("{task.fields[size]:.0f} MB")
        with Progress(TextColumn("JARs"), BarColumn(), jars, size, console=console) as bar:
            task = bar.add_task("JARs", total=None, size=0)
            yield lambda now: bar.update(task, completed=now.jars, total=now.total, size=now.size / 1e6)
        return
    yield _LineReporter(console.file)


class _LineReporter:
    """Progress as plain lines: the start, the end, and at most one line every five seconds between them."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._next = 0.0

    def __call__(self, now: FetchProgress) -> None:
        if now.jars < now.total and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 5
        self._out.write(f"JARs: {now.jars} of {now.total} fetched, {now.size / 1e6:.0f} MB\n")
        self._out.flush()
