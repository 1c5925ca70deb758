"""Writes to a Delta table: each function makes one commit with the progress in it, and returns what it applied."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from replicator import names
from replicator.errors import StaleWriter, TableStopped
from replicator.formats import (
    control,
    delta_commit,
    delta_fencing,
    delta_files,
    validation,
)
from replicator.formats.delta_log import Log
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Applied, Progress, Table

_FILE_ROWS, _ROWS_IN_FILE = "spark.sql.files.maxRecordsPerFile", 500_000


def sort_by_key(rows: DataFrame, table: Table) -> DataFrame:
    """Sort rows by key, if the table has one: each file then holds a key range, and a batch of recent keys finds them
    in few files (performance.md A3).
    """
    keys = [names.quote_spark(key) for key in table.keys if key in rows.columns]
    return rows.repartitionByRange(*keys).sortWithinPartitions(*keys) if keys else rows


def insert(
    rows: DataFrame,
    table: Table,
    log: Log,
    progress: Progress | None,
    properties: Mapping[str, str],
    fence: Fence = UNFENCED,
) -> Applied:
    """Append rows, creating a missing table with these properties. Raises TableStopped if it cannot be created."""
    spark = rows.sparkSession
    snapshot = log.snapshot(spark)
    before = None if snapshot is None else int(snapshot.version())
    if snapshot is None:
        _refuse_new_table(rows, table)
    if snapshot is not None and progress is not None and _same(rows.schema, delta_files.schema(snapshot)):
        delta_commit.append(rows, snapshot, progress, fence)
    else:
        options = dict(properties)
        if spark.conf.get(_FILE_ROWS, "0") == "0" and not table.partition_by:
            options["maxRecordsPerFile"] = str(_ROWS_IN_FILE)
        if progress is not None:
            options |= {"txnAppId": progress.input, "txnVersion": str(progress.version)}
        writer = rows.write.format("delta").mode("append").options(**options)
        with delta_fencing.fenced_commit(spark, fence, table.location):
            (writer.partitionBy(*table.partition_by) if table.partition_by else writer).save(table.location)
    version, metrics = read_commit(spark, table, log, before)
    return Applied(metrics.get("numOutputRows", 0), 0, 0, version)


def overwrite(rows: DataFrame, table: Table, before: int, progress: Progress, fence: Fence = UNFENCED) -> Applied:
    """Overwrite rows, columns and partitioning of a table whose newest version is ``before``."""
    spark = rows.sparkSession
    validation.refuse_partition_keys(rows, table.keys, table.partition_by, table.name)
    options = {"overwriteSchema": "true", "txnAppId": progress.input, "txnVersion": str(progress.version)}
    writer = rows.write.format("delta").mode("overwrite").options(**options)
    with delta_fencing.fenced_commit(spark, fence, table.location):
        writer.partitionBy(*table.partition_by).save(table.location)
    version, metrics = read_commit(spark, table, Log(table.location), before)
    return Applied(metrics.get("numOutputRows", 0), 0, 0, version)


def _refuse_new_table(rows: DataFrame, table: Table) -> None:
    """Raise TableStopped if no table can be created of these rows, or not at this location."""
    if control.exists(rows.sparkSession, f"{table.location}/.hoodie"):
        raise TableStopped(
            "the existing table is in Hudi, but its declared format is Delta",
            where=table.name,
            fix="Restore `format: hudi` and `formats: [delta, hudi]`, or delete the table's folder: the next run "
            "builds it in Delta.",
        )
    validation.refuse_delta_columns(rows.schema, table.partition_by, table.name)
    validation.refuse_partition_keys(rows, table.keys, table.partition_by, table.name)


def read_commit(spark: SparkSession, table: Table, log: Log, before: int | None) -> tuple[int, dict[str, int]]:
    """The version and metrics of the commit just made. Delta skips a write that it takes for a repetition, which must
    not count as success (reliability.md section 3, 6): raises StaleWriter if there is no version after ``before``.
    """
    snapshot = log.snapshot(spark)
    version = None if snapshot is None else int(snapshot.version())
    if version is None or (before is not None and version <= before):
        raise StaleWriter(f"the commit to {table.name} created no new version", where=table.location)
    commits = Log(table.location).commits(spark, version - 1, version)
    return version, commits[0].metrics if commits else {}


def _same(rows: StructType, stored: StructType) -> bool:
    """Whether rows have the table's columns, in any order."""
    return {f.name: f.dataType.simpleString() for f in rows} == {f.name: f.dataType.simpleString() for f in stored}
