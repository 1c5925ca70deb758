"""Spark's classes as a JVM once had them in memory: a driver that maps them starts and answers a third sooner
(decision 0027).

The archive is of one Java and one installation of Spark, lies in the Python environment and goes with it. A JVM that
finds it unfit says nothing and loads its classes as ever.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.jvm import spark_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_AGENTS = re.compile(r"-(?:javaagent|agentlib|agentpath)\b|FlightRecord|-Xrun|-Xdebug")
"""What wants to see each class as it is loaded: a JVM that has not got it from a file ends at once, by a signal."""

_TIMEOUT_SECONDS = 300
_EVENTS = 8
"""So many records bring every kind of work of bronze and silver along."""


def archive_path(java: Path) -> Path:
    """Where the archive for this Java is, or would be."""
    release = java / "release"
    told = release.read_bytes() if release.is_file() else str(java).encode()
    key = hashlib.sha256(b"\0".join([told, str(spark_home.bundled()).encode(), version("pyspark").encode()]))
    return Path(sys.prefix).resolve() / "share" / "replicator" / f"classes-{key.hexdigest()[:16]}.jsa"


def java_options(given: str, archive: Path) -> str:
    """Java options with which a JVM maps the archive, beside the *given* ones; none where it is absent, where these
    have an archive of their own, or where an agent or a recorder is to watch the JVM.
    """
    if not archive.is_file() or "Archive" in given or _AGENTS.search(given):
        return ""
    return f'"-XX:SharedArchiveFile={archive}" {_QUIET}'


def ensure(java: Path, tell: Callable[[str], None]) -> bool:
    """Make the archive if there is none: a driver does a little of everything, and writes down at its end what it had
    loaded. False where this does not work out, which costs nobody more than time.

    The file appears whole or not at all: half of one would end every JVM.
    """
    archive = archive_path(java)
    if archive.is_file():
        return True
    tell("laying out Spark's classes, so that drivers start sooner (once, about half a minute)")
    with suppress(OSError, subprocess.TimeoutExpired), tempfile.TemporaryDirectory(prefix="replicator-") as work:
        archive.parent.mkdir(parents=True, exist_ok=True)
        for left in archive.parent.glob("*.jsa-*"):
            left.unlink()
        beside = archive.with_name(f"{archive.name}-{os.getpid()}")
        if _record_classes(Path(work), beside) and beside.is_file():
            beside.replace(archive)
            return True
    tell("that did not work out; drivers start as they would without")
    return False


def _record_classes(work: Path, archive: Path) -> bool:
    """Whether a run over a few events in a lake of its own went well and its JVM has ended."""
    (work / "events.jsonl").write_text("".join(f"{json.dumps(_event(n))}\n" for n in range(_EVENTS)), encoding="utf-8")
    told = f'SPARK_SUBMIT_OPTS=-XX:+UseSerialGC {_QUIET} "-XX:ArchiveClassesAtExit={archive}"'
    run = ["run", "--recorded", str(work / "events.jsonl"), "--lake", str(work / "lake")]
    command = ["env", told, sys.executable, "-c", "from replicator.cli import main; main()", *run]
    # the JVM outlives Python, and has its standard output: reading that to the end waits for both
    done = subprocess.run(command, cwd=work, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    return done.returncode == 0


def _event(number: int) -> Mapping[str, object]:
    """A record as kcat prints it: an insert, or an update of the row before."""
    key, new = {"id": number // 2}, {"id": number // 2, "name": f"name {number}", "price": "1.50"}
    source = {"connector": "mariadb", "name": "s", "db": "d", "table": "t", "file": "b.000001", "pos": number, "row": 0}
    value = {"before": None, "after": new, "op": "cu"[number % 2], "ts_ms": number, "source": {**source, "ts_ms": 0}}
    return {
        "topic": "s.d.t",
        "partition": 0,
        "offset": number,
        "ts": number,
        "key": json.dumps(key),
        "payload": json.dumps(value),
    }
