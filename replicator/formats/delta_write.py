"""Writing a Delta table: each function one commit, with the progress in it, told as what it did.

All of a small table is written anew; rows of a larger one are marked and added (``delta_marks``), where it has deletion
vectors, else the files that they are in are written anew (``delta_rewrite``); the rest is left to Delta's MERGE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.errors import StaleWriter, TableStopped
from replicator.formats import (
    control,
    delta_commit,
    delta_files,
    delta_marks,
    delta_merge,
    delta_rewrite,
    delta_token,
    refusals,
)
from replicator.formats.delta_log import Log, partitions
from replicator.formats.delta_merge import Merging
from replicator.formats.delta_state import AddedFile
from replicator.jvm import gateway
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Applied, Progress, Table

_TXN_APP, _TXN_VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_FILE_ROWS, _ROWS_IN_FILE = "spark.sql.files.maxRecordsPerFile", 500_000
_TASKS_THAT_JOIN = "spark.sql.shuffle.partitions"
_LOCAL_TIME = "timestampNtz"


@dataclass(frozen=True)
class Ways:
    """By which way a merge goes: a table of up to ``rewritten_bytes`` is written anew; one that has deletion vectors
    only if its rows, too, are no more than ``rewritten_rows``, else they are marked, in up to ``marked_files``.
    """

    rewritten_bytes: int
    rewritten_rows: int
    marked_files: int


def by_key(rows: DataFrame, table: Table) -> DataFrame:
    """Rows in the order of the key, if the table has one: a file then holds a range of keys, and a batch of recent ones
    finds them in few files (performance.md A3).
    """
    keys = [names.spark(key) for key in table.keys if key in rows.columns]
    return rows.repartitionByRange(*keys).sortWithinPartitions(*keys) if keys else rows


def insert(
    rows: DataFrame,
    table: Table,
    log: Log,
    progress: Progress | None,
    properties: Mapping[str, str],
    fence: Fence = UNFENCED,
) -> Applied:
    """Add rows, making a table that is not there with these properties. Raises TableStopped where it cannot be."""
    spark = rows.sparkSession
    snapshot = log.snapshot(spark)
    before = None if snapshot is None else int(snapshot.version())
    if snapshot is None:
        _refuse(rows, table)
    if snapshot is not None and progress is not None and _same(rows.schema, delta_files.schema(snapshot)):
        delta_commit.append(rows, snapshot, progress, fence)
    else:
        options = dict(properties)
        if spark.conf.get(_FILE_ROWS, "0") == "0" and not table.partition_by:
            options["maxRecordsPerFile"] = str(_ROWS_IN_FILE)
        if progress is not None:
            options |= {"txnAppId": progress.input, "txnVersion": str(progress.version)}
        writer = rows.write.format("delta").mode("append").options(**options)
        with delta_token.committing(spark, fence, table.location):
            (writer.partitionBy(*table.partition_by) if table.partition_by else writer).save(table.location)
    version, metrics = _committed(spark, table, log, before)
    return Applied(metrics.get("numOutputRows", 0), 0, 0, version)


def overwrite(rows: DataFrame, table: Table, before: int, progress: Progress, fence: Fence = UNFENCED) -> Applied:
    """All rows, columns and partitions of a table anew, behind the version ``before``."""
    spark = rows.sparkSession
    refusals.keys_in_parts(rows, table.keys, table.partition_by, table.name)
    options = {"overwriteSchema": "true", "txnAppId": progress.input, "txnVersion": str(progress.version)}
    writer = rows.write.format("delta").mode("overwrite").options(**options)
    with delta_token.committing(spark, fence, table.location):
        writer.partitionBy(*table.partition_by).save(table.location)
    version, metrics = _committed(spark, table, Log(table.location), before)
    return Applied(metrics.get("numOutputRows", 0), 0, 0, version)


def merge(
    table: Table,
    log: Log,
    snapshot: Any,
    merging: Merging,
    progress: Progress,
    ways: Ways,
    fence: Fence = UNFENCED,
) -> Applied:
    """What ``delta_merge`` says, to the newest snapshot."""
    spark = merging.changes.sparkSession
    refusals.keys_in_parts(merging.changes, merging.keys, log.partition_by(spark), table.name)
    anew = _rewritable(spark, log, snapshot, ways)
    live = _markable(spark, log, snapshot, ways.marked_files) if anew is None else None
    plain = _replaceable(spark, log, snapshot, ways.marked_files) if anew is None else None
    if anew is not None:
        stored = rows_of(spark, table, log, snapshot, anew)
        version, metrics = _rewrite(stored, anew, snapshot, merging, progress, fence)
    elif live is not None:
        version, metrics = delta_marks.merged(delta_marks.Target(snapshot, live), merging, progress, fence)
    elif plain is not None:
        target = delta_rewrite.Target(table.location, snapshot, plain)
        version, metrics = delta_rewrite.merged(target, merging, progress, fence)
    else:
        with _transaction(spark, progress), delta_token.committing(spark, fence, table.location):
            delta_merge.statement(DeltaTable.forPath(spark, table.location), merging).execute()
        version, metrics = _committed(spark, table, log, int(snapshot.version()))
    inserted, updated, deleted = (metrics.get(f"numTargetRows{w}", 0) for w in ("Inserted", "Updated", "Deleted"))
    return Applied(inserted, updated, deleted, version)


def has_vectors(snapshot: Any) -> bool:
    """Whether rows of the table may be marked as gone: silver's, and those of models that ask for it."""
    return _property(snapshot, "delta.enableDeletionVectors") == "true"


def is_in_order(snapshot: Any) -> bool:
    """Whether files of the table hold a range of keys each: silver's and gold's, or it is as good as that for those who
    read it. Bronze's are by topic.
    """
    return has_vectors(snapshot) or not partitions(snapshot)


def describe(
    spark: SparkSession, table: Table, properties: Mapping[str, str], log: Log, fence: Fence = UNFENCED
) -> None:
    """Set those properties that the table lacks: a writer's options can name none but Delta's own."""
    snapshot = log.snapshot(spark) if properties else None
    if snapshot is None:
        return
    missing = {name: value for name, value in properties.items() if _property(snapshot, name) != value}
    if missing:
        _set(spark, table, missing, fence)


def allow(spark: SparkSession, table: Table, wanted: StructType, snapshot: Any, fence: Fence = UNFENCED) -> bool:
    """Let the table have these columns; whether that took a commit: the first time without a zone is a feature of its
    protocol, which Delta gives to a new table by itself, and to one that is there when it is told to.
    """
    if not refusals.has_local_time(wanted) or _LOCAL_TIME in delta_files.features(snapshot):
        return False
    _set(spark, table, {f"delta.feature.{_LOCAL_TIME}": "supported"}, fence)
    return True


def _set(spark: SparkSession, table: Table, properties: Mapping[str, str], fence: Fence) -> None:
    told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    with delta_token.committing(spark, fence, table.location):
        spark.sql(f"ALTER TABLE delta.{names.spark(table.location)} SET TBLPROPERTIES ({told})")


def rows_of(spark: SparkSession, table: Table, log: Log, snapshot: Any, files: Sequence[AddedFile]) -> DataFrame:
    """The rows of files that alone are the table. Spark puts the columns of partitions behind all others, without what
    is noted about them, such as their place in the key.
    """
    columns = delta_files.schema(snapshot)
    rows = delta_files.read(spark, table.location, [file.path for file in files], columns)
    if not log.partition_by(spark):
        return rows
    return rows.select(*[F.col(names.spark(each.name)).alias(each.name, metadata=each.metadata) for each in columns])


def _refuse(rows: DataFrame, table: Table) -> None:
    """Raise TableStopped where no table can be made of these rows, or not there."""
    if control.exists(rows.sparkSession, f"{table.location}/.hoodie"):
        raise TableStopped(
            "a table in Hudi lies there, and it is to be one in Delta",
            where=table.name,
            mend="Put `format: hudi` and `formats: [delta, hudi]` back, or remove the table's folder: the next run "
            "builds it in Delta.",
        )
    refusals.in_delta(rows.schema, table.partition_by, table.name)
    refusals.keys_in_parts(rows, table.keys, table.partition_by, table.name)


def _rewrite(
    stored: DataFrame,
    files: Sequence[AddedFile],
    snapshot: Any,
    merging: Merging,
    progress: Progress,
    fence: Fence,
) -> tuple[int, dict[str, int]]:
    if stored.sparkSession.conf.get(_TASKS_THAT_JOIN) == "1":
        stored = stored.coalesce(1)  # read where they are joined, instead of sent there
    with gateway.counted(delta_merge.settled(stored, merging), delta_merge.tally()) as (settled, metrics):
        replaced = [file.action for file in files]
        images = delta_merge.images(settled)
        return delta_commit.rewrite(images, replaced, snapshot, progress, metrics, fence), metrics


def _rewritable(spark: SparkSession, log: Log, snapshot: Any, ways: Ways) -> Sequence[AddedFile] | None:
    """The files of a table that is small enough to be written anew, and whose change feed can be. Rows that nobody has
    counted cannot be marked either.
    """
    if not _has_own_feed(spark, log, snapshot):
        return None
    files = log.plain_files(spark, snapshot)
    if files is None or sum(file.size for file in files) > ways.rewritten_bytes:
        return None
    return None if has_vectors(snapshot) and sum(file.rows for file in files) > ways.rewritten_rows else files


def _markable(spark: SparkSession, log: Log, snapshot: Any, most: int) -> Sequence[AddedFile] | None:
    """The files of a table whose rows can be marked one by one: Delta must know how many a file has."""
    if not _has_own_feed(spark, log, snapshot) or not has_vectors(snapshot):
        return None
    files = log.live_files(spark, snapshot)
    hides = delta_marks.TAKEN & set(delta_files.schema(snapshot).names)
    if files is None or len(files) > most or hides:
        return None
    return files if all(file.is_counted for file in files) else None


def _replaceable(spark: SparkSession, log: Log, snapshot: Any, most: int) -> Sequence[AddedFile] | None:
    """The files of a table without deletion vectors, any of which can be written anew."""
    if not _has_own_feed(spark, log, snapshot) or has_vectors(snapshot):
        return None
    files = log.live_files(spark, snapshot)
    if not files or len(files) > most or any(file.has_vector for file in files):
        return None
    return None if delta_rewrite.TAKEN & set(delta_files.schema(snapshot).names) else files


def _has_own_feed(spark: SparkSession, log: Log, snapshot: Any) -> bool:
    """Whether a table keeps a change feed that can be written beside its rows."""
    return not log.partition_by(spark) and _property(snapshot, "delta.enableChangeDataFeed") == "true"


def _committed(spark: SparkSession, table: Table, log: Log, before: int | None) -> tuple[int, dict[str, int]]:
    """The version and metrics of the commit just made. Delta skips a write it takes for a repetition: that must never
    pass for success (reliability.md section 3, 6).
    """
    snapshot = log.snapshot(spark)
    version = None if snapshot is None else int(snapshot.version())
    if version is None or (before is not None and version <= before):
        raise StaleWriter(f"the commit to {table.name} left no new version", where=table.location)
    commits = Log(table.location).commits(spark, version - 1, version)
    return version, commits[0].metrics if commits else {}


def _property(snapshot: Any, name: str) -> str | None:
    found = snapshot.metadata().configuration().get(name)
    return str(found.get()) if found.isDefined() else None


def _same(rows: StructType, stored: StructType) -> bool:
    """Whether rows have the table's columns, in any order."""
    return {f.name: f.dataType.simpleString() for f in rows} == {f.name: f.dataType.simpleString() for f in stored}


@contextmanager
def _transaction(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """MERGE takes its ``txn`` from the session only: set it for one statement and take it back whatever happens."""
    spark.conf.set(_TXN_APP, progress.input)
    spark.conf.set(_TXN_VERSION, progress.version)
    try:
        yield
    finally:
        spark.conf.unset(_TXN_APP)
        spark.conf.unset(_TXN_VERSION)
