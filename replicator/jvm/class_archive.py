"""A class data sharing archive of Spark's classes: a driver that maps it starts and answers a third sooner (decision
0027).

The archive belongs to one Java and one installation of Spark; it is in the Python environment and is removed with it. A
JVM for which it does not fit silently loads its classes as usual.
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

from replicator.jvm import jvm_options, spark_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_AGENTS = re.compile(r"-(?:javaagent|agentlib|agentpath)\b|FlightRecord|-Xrun|-Xdebug")
"""Options of tools that observe each class while it is loaded: with them a JVM that maps an archive crashes with a
signal.
"""

_TIMEOUT_SECONDS = 300
_EVENTS = 8
"""Enough records to cause every kind of work of bronze and silver."""


def archive_path(java: Path) -> Path:
    """Return the path of the archive for this Java, whether it exists or not."""
    release = java / "release"
    identity = release.read_bytes() if release.is_file() else str(java).encode()
    key = hashlib.sha256(b"\0".join([identity, str(spark_home.bundled()).encode(), version("pyspark").encode()]))
    return Path(sys.prefix).resolve() / "share" / "replicator" / f"classes-{key.hexdigest()[:16]}.jsa"


def java_options(given: str, archive: Path) -> str:
    """Return Java options with which a JVM maps the archive, in addition to the *given* ones; none if it does not
    exist, if *given* has an archive of its own, or if an agent or a recorder observes the JVM.
    """
    if not archive.is_file() or "Archive" in given or _AGENTS.search(given):
        return ""
    return f'"-XX:SharedArchiveFile={archive}" {_QUIET}'


def ensure(java: Path, tell: Callable[[str], None]) -> bool:
    """Create the archive unless it exists: a driver does a little of everything, and dumps at its end the classes that
    it had loaded. Returns False if that fails, which only costs time at later starts.

    The file appears complete or not at all: a truncated one would crash every JVM.
    """
    archive = archive_path(java)
    if archive.is_file():
        return True
    tell("creating an archive of Spark's classes, so that drivers start faster (once, about half a minute)")
    with suppress(OSError, subprocess.TimeoutExpired), tempfile.TemporaryDirectory(prefix="replicator-") as work:
        archive.parent.mkdir(parents=True, exist_ok=True)
        for leftover in archive.parent.glob("*.jsa-*"):
            leftover.unlink()
        temporary = archive.with_name(f"{archive.name}-{os.getpid()}")
        if _record_classes(Path(work), temporary) and temporary.is_file():
            temporary.replace(archive)
            return True
    tell("the class archive could not be created; drivers start without it")
    return False


def _record_classes(work: Path, archive: Path) -> bool:
    """Run over a few events in a separate lake; return whether that succeeded. Its JVM has ended."""
    (work / "events.jsonl").write_text("".join(f"{json.dumps(_event(n))}\n" for n in range(_EVENTS)), encoding="utf-8")
    options = [*jvm_options.smallest_collector(), _QUIET, f'"-XX:ArchiveClassesAtExit={archive}"']
    variable = f"SPARK_SUBMIT_OPTS={' '.join(options)}"
    run = ["run", "--recorded", str(work / "events.jsonl"), "--lake", str(work / "lake")]
    command = ["env", variable, sys.executable, "-c", "from replicator.cli import main; main()", *run]
    # the JVM outlives Python and shares its standard output: reading that to the end waits for both
    done = subprocess.run(command, cwd=work, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    return done.returncode == 0


def _event(number: int) -> Mapping[str, object]:
    """A record as kcat prints it: an insert, or an update of the previous row."""
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
