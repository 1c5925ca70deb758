"""Writing a Delta table: each function one commit, with the progress in it, told as what it did.

All of a small table is written anew, a large one is left to Delta's MERGE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import gateway, names
from replicator.errors import StaleWriter
from replicator.formats import delta_commit, delta_files, delta_merge, delta_token
from replicator.formats.delta_log import AddedFile, Log
from replicator.formats.delta_merge import Merging
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Applied, Progress, Table

_TXN_APP, _TXN_VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"


def insert(
    rows: DataFrame,
    table: Table,
    log: Log,
    progress: Progress | None,
    properties: Mapping[str, str],
    fence: Fence = UNFENCED,
) -> Applied:
    """Add rows, making a table that is not there with these properties."""
    spark = rows.sparkSession
    snapshot = log.snapshot(spark)
    before = None if snapshot is None else int(snapshot.version())
    if snapshot is not None and progress is not None and _same(rows.schema, delta_files.schema(snapshot)):
        delta_commit.append(rows, snapshot, progress, fence)
    else:
        options = dict(properties)
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
    rewritten_bytes: int,
    fence: Fence = UNFENCED,
) -> Applied:
    """What ``delta_merge`` says, to the newest snapshot; a table of up to ``rewritten_bytes`` is written anew."""
    spark = merging.changes.sparkSession
    before = int(snapshot.version())
    files = _rewritable(spark, log, snapshot, rewritten_bytes)
    if files is None:
        with _transaction(spark, progress), delta_token.committing(spark, fence, table.location):
            delta_merge.statement(DeltaTable.forPath(spark, table.location), merging).execute()
    else:
        _rewrite(rows_of(spark, table, log, snapshot, files), files, snapshot, merging, progress, fence)
    version, metrics = _committed(spark, table, log, before)
    inserted, updated, deleted = (metrics.get(f"numTargetRows{w}", 0) for w in ("Inserted", "Updated", "Deleted"))
    return Applied(inserted, updated, deleted, version)


def describe(spark: SparkSession, table: Table, log: Log, fence: Fence = UNFENCED) -> None:
    """Set the properties that the table lacks: a writer's options can name none but Delta's own."""
    snapshot = log.snapshot(spark) if table.properties else None
    if snapshot is None:
        return
    missing = {name: value for name, value in table.properties if _property(snapshot, name) != value}
    if missing:
        told = ", ".join(f"'{name}' = '{value}'" for name, value in missing.items())
        with delta_token.committing(spark, fence, table.location):
            spark.sql(f"ALTER TABLE delta.{names.spark(table.location)} SET TBLPROPERTIES ({told})")


def rows_of(spark: SparkSession, table: Table, log: Log, snapshot: Any, files: Sequence[AddedFile]) -> DataFrame:
    """The rows of files that alone are the table; Spark puts the columns of partitions behind all others."""
    columns = delta_files.schema(snapshot)
    rows = delta_files.read(spark, table.location, [file.path for file in files], columns)
    return rows.select(*map(names.spark, columns.names)) if log.partition_by(spark) else rows


def _rewrite(
    stored: DataFrame,
    files: Sequence[AddedFile],
    snapshot: Any,
    merging: Merging,
    progress: Progress,
    fence: Fence,
) -> None:
    actions = {metric: F.col("action") == action for action, metric in delta_merge.METRICS.items()}
    with gateway.counted(delta_merge.settled(stored, merging), actions) as (settled, metrics):
        replaced = [file.action for file in files]
        delta_commit.rewrite(delta_merge.images(settled), replaced, snapshot, progress, metrics, fence)


def _rewritable(spark: SparkSession, log: Log, snapshot: Any, most: int) -> Sequence[AddedFile] | None:
    """The files of a table that is small enough to be written anew, and whose change feed can be."""
    if log.partition_by(spark) or _property(snapshot, "delta.enableChangeDataFeed") != "true":
        return None
    files = log.plain_files(spark, snapshot)
    return None if files is None or sum(file.size for file in files) > most else files


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
