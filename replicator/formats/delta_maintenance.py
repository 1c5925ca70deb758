"""Maintenance of a Delta table: compaction of small files, and removal of files that no retained version needs.

Delta takes a dozen Spark jobs to find out that a table needs neither. For most tables the log and a listing tell it
first.

Silver and gold tables are clustered by key, so that a batch of recent keys finds them in few files (0044, 0050). Delta
compacts files by size only: a table compacted into one file would lose that order, and every batch would read it all.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from replicator import names, time_travel
from replicator.formats import control, delta_fencing, delta_log
from replicator.formats.delta_state import State
from replicator.jvm import gateway
from replicator.protocols import Fence

Files = Sequence[tuple[str, int]]
"""Relative paths below a table's location and their modification times in epoch milliseconds
(``control.list_files``).
"""

_LOG = "_delta_log/"

_VACUUM_CONF = {
    # Delta refuses to remove files younger than a week, since unknown readers may use them. Here the user configures
    # how long versions are read
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # except on S3, Delta commits a version before and after a VACUUM, in which readers of the table would look for
    # changes
    "spark.databricks.delta.vacuum.logging.enabled": "false",
}


_SMALL_BYTES, _SMALL_ROWS = 16 << 20, 250_000
"""A file of a table clustered by key is small up to this many bytes, and up to what this many rows take: four million
narrow rows are 64 MiB, and a batch would read or write all of them for one.
"""

_COMPACTED_FACTOR = 4
"""Small files are compacted into files of up to this multiple of the limit, about the size of the first batch's files.
"""

_OPTIMIZE = "spark.databricks.delta.optimize"
_PURGE_CONF = {f"{_OPTIMIZE}.maxFileSize": "1"}
"""A file whose marked rows are purged stays a file of its own, with its key range."""

_LOG_KEPT = "delta.logRetentionDuration"
_MARGIN = 600_000
"""A safety margin in milliseconds for clock skew and the duration of a call."""

_MARKED_SHARE = 0.05
"""The largest share of a table's rows that may be marked as deleted (performance.md A4)."""


def needs_optimize(state: State | None) -> bool:
    """Whether OPTIMIZE may find something to do: two files in a partition, a file with a deletion vector, or too many
    files to be tracked.
    """
    if state is None or state.files is None:
        return True
    in_each = Counter(file.partition for file in state.files.values())
    return any(count > 1 for count in in_each.values()) or any(file.has_vector for file in state.files.values())


def has_small_files(state: State | None) -> bool:
    """Whether a table clustered by key has small files to compact, or too many files to be tracked."""
    if state is None or state.files is None:
        return True
    most = _small_file_bytes(state)
    in_each = Counter(file.partition for file in state.files.values() if file.size < most)
    return any(count > 1 for count in in_each.values())


def _small_file_bytes(state: State | None) -> int:
    """Bytes below which a file of the table is small, by the average size of its rows if that is known."""
    files = () if state is None or state.files is None else state.files.values()
    rows = sum(file.rows for file in files)
    return min(_SMALL_BYTES, sum(file.size for file in files) * _SMALL_ROWS // rows) if rows else _SMALL_BYTES


def _small_file_conf(limit: int) -> Mapping[str, str]:
    return {
        f"{_OPTIMIZE}.minFileSize": str(limit),
        f"{_OPTIMIZE}.maxFileSize": str(_COMPACTED_FACTOR * limit),
        f"{_OPTIMIZE}.maxDeletedRowsRatio": "1.0",
    }


def needs_purge(state: State | None) -> bool:
    """Whether too many rows of a table are marked as deleted, or its files are not tracked."""
    if state is None or state.files is None:
        return True
    marked = sum(file.marked for file in state.files.values())
    return marked > _MARKED_SHARE * sum(file.rows for file in state.files.values())


def needs_vacuum(files: Files, location: str, state: State | None, keep_hours: int) -> bool:
    """Whether VACUUM may find something to remove: a file older than ``keep_hours`` that is not live. Younger files
    always stay.
    """
    if state is None or state.files is None:
        return True
    before = (time.time() - keep_hours * 3600) * 1000
    old = (path for path, changed in files if changed <= before)
    return any(f"{location}/{path}" not in state.files for path in old if not path.startswith(_LOG))


def compact(spark: SparkSession, location: str, state: State | None, fence: Fence, *, in_order: bool) -> None:
    """Compact small files and purge marked rows, if a table in this state may have any."""
    if in_order:
        with delta_fencing.fenced_commit(spark, fence, location):
            optimize_in_order(spark, location, state)
    elif needs_optimize(state):
        with delta_fencing.fenced_commit(spark, fence, location):
            optimize(spark, location)


def clean(spark: SparkSession, location: str, snapshot: Any, state: State | None, keep_hours: int) -> None:
    """Remove files and log entries that no version younger than ``keep_hours`` needs."""
    files = control.list_files(spark, location)
    if needs_vacuum(files, location, state, keep_hours):
        vacuum(spark, location, keep_hours)
    clean_log(spark, files, snapshot, keep_hours)


def optimize(spark: SparkSession, location: str) -> None:
    """Compact the small files of each partition; commits nothing if there are none."""
    DeltaTable.forPath(spark, location).optimize().executeCompaction()


def optimize_in_order(spark: SparkSession, location: str, state: State | None) -> None:
    """Compact small files and purge marked rows of a table clustered by key, each only if this state needs it."""
    if has_small_files(state):
        with _with_conf(spark, _small_file_conf(_small_file_bytes(state))):
            optimize(spark, location)
    if needs_purge(state):
        with _with_conf(spark, _PURGE_CONF):
            spark.sql(f"REORG TABLE delta.{names.quote_spark(location)} APPLY (PURGE)")


def vacuum(spark: SparkSession, location: str, keep_hours: int) -> None:
    """Remove files that only versions older than ``keep_hours`` need. The line that Delta prints about it is
    suppressed: it would mix with the command's own output.
    """
    with _with_conf(spark, _VACUUM_CONF), _silence_console(spark):
        DeltaTable.forPath(spark, location).vacuum(keep_hours)


def clean_log(spark: SparkSession, files: Files, snapshot: Any, keep_hours: int) -> None:
    """Remove log entries that only versions older than ``keep_hours`` need, unless the table sets its own log
    retention. Otherwise Delta keeps them for 30 days, a file and its checksum per commit, and lists them often.
    """
    metadata, log = snapshot.metadata(), snapshot.deltaLog()
    if metadata.configuration().contains(_LOG_KEPT) or not log.enableExpiredLogCleanup(metadata):
        return
    now = int(time.time() * 1000)
    first = _first_needed(files, now - keep_hours * 3_600_000)
    if first is not None:
        minute = gateway.of(spark).org.apache.spark.sql.delta.TruncationGranularity.MINUTE()
        retention = _some_long(spark, now - first + _MARGIN)
        log.cleanUpExpiredLogs(snapshot, *delta_log.empty_options(spark), retention, minute)


def _first_needed(files: Files, before: int) -> int | None:
    """The write time of the checkpoint from which the oldest version not older than ``before`` is built: nothing older
    in the log is needed. None if there is nothing older.
    """
    log = [(path.removeprefix(_LOG), changed) for path, changed in files if path.startswith(_LOG)]
    bases = [changed for name, changed in log if changed <= before and time_travel.CHECKPOINT.fullmatch(name)]
    first = max(bases, default=None)
    return first if first is not None and min(changed for _, changed in log) < first - _MARGIN else None


def _some_long(spark: SparkSession, number: int) -> Any:
    """Scala's ``Some`` of a ``Long``: Python's small numbers come to the JVM as ``Integer``."""
    py4j: Any = spark.sparkContext._gateway  # noqa: SLF001
    numbers = py4j.new_array(py4j.jvm.long, 1)
    numbers[0] = number
    return gateway.of(spark).scala.Predef.wrapLongArray(numbers).headOption()


@contextmanager
def _silence_console(spark: SparkSession) -> Iterator[None]:
    """Discard what this thread prints in the JVM inside the block."""
    jvm = gateway.of(spark)
    console = getattr(getattr(jvm.scala, "Console$"), "MODULE$")
    before = console.out()
    console.setOutDirect(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
    try:
        yield
    finally:
        console.setOutDirect(before)


@contextmanager
def _with_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, found in before.items():
            if found is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, found)
