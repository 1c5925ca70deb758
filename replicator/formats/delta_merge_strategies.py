"""The choice of a merge strategy. A small table is rewritten as a whole. A larger one is merged by deletion vectors
(``delta_deletion_vectors``) if it has them, otherwise by rewriting the touched files (``delta_rewrite``). Everything
else is left to Delta's MERGE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from replicator.formats import (
    delta_commit,
    delta_deletion_vectors,
    delta_fencing,
    delta_files,
    delta_merge,
    delta_properties,
    delta_rewrite,
    delta_write,
    validation,
)
from replicator.formats.delta_log import Log
from replicator.formats.delta_merge import MergeSpec
from replicator.formats.delta_state import AddedFile
from replicator.jvm import gateway
from replicator.protocols import Fence
from replicator.spec import Applied, Progress, Table

_TXN_APP, _TXN_VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class MergeThresholds:
    """Table sizes up to which each strategy is used.

    A table of up to ``rewritten_bytes`` is rewritten: it then has no deletion vectors, which cost every reader. A table
    that may have them is not rewritten beyond ``rewritten_rows``, however few bytes its narrow rows take: joining and
    writing all of them costs more than finding those of a batch (decision 0044).

    For a table of up to ``marked_files`` files, the rows are marked or their files rewritten here; for one with more,
    Delta itself must find them.
    """

    rewritten_bytes: int = 8 << 20
    rewritten_rows: int = 30_000
    marked_files: int = 256


DEFAULT_THRESHOLDS = MergeThresholds()
"""The thresholds from our measurements."""


def merge(
    table: Table,
    log: Log,
    snapshot: Any,
    merging: MergeSpec,
    progress: Progress,
    thresholds: MergeThresholds,
    fence: Fence,
) -> Applied:
    """Merge into the newest snapshot, in one commit with the progress."""
    spark = merging.changes.sparkSession
    validation.refuse_partition_keys(merging.changes, merging.keys, log.partition_by(spark), table.name)
    if (files := _files_of_small_table(spark, log, snapshot, thresholds)) is not None:
        parted = bool(log.partition_by(spark))
        stored = delta_files.read_table(spark, table.location, snapshot, [file.path for file in files], parted=parted)
        version, metrics = _rewrite(stored, files, snapshot, merging, progress, fence)
    elif (files := _files_for_deletion_vectors(spark, log, snapshot, thresholds.marked_files)) is not None:
        version, metrics = delta_deletion_vectors.execute(
            delta_deletion_vectors.Target(snapshot, files), merging, progress, fence
        )
    elif (files := _files_for_rewrite(spark, log, snapshot, thresholds.marked_files)) is not None:
        target = delta_rewrite.Target(table.location, snapshot, files)
        version, metrics = delta_rewrite.execute(target, merging, progress, fence)
    else:
        with _transaction(spark, progress), delta_fencing.fenced_commit(spark, fence, table.location):
            delta_merge.statement(DeltaTable.forPath(spark, table.location), merging).execute()
        version, metrics = delta_write.read_commit(spark, table, log, int(snapshot.version()))
    inserted, updated, deleted = (metrics.get(f"numTargetRows{w}", 0) for w in ("Inserted", "Updated", "Deleted"))
    return Applied(inserted, updated, deleted, version)


def _rewrite(
    stored: DataFrame,
    files: Sequence[AddedFile],
    snapshot: Any,
    merging: MergeSpec,
    progress: Progress,
    fence: Fence,
) -> tuple[int, dict[str, int]]:
    if stored.sparkSession.conf.get(_SHUFFLE_PARTITIONS) == "1":
        stored = stored.coalesce(1)  # join them where they are read, without a shuffle
    with gateway.checkpoint_and_count(delta_merge.resolve_actions(stored, merging), delta_merge.action_counts()) as (
        settled,
        metrics,
    ):
        replaced = [file.action for file in files]
        images = delta_merge.images(settled)
        return delta_commit.rewrite(images, replaced, snapshot, progress, metrics, fence), metrics


def _files_of_small_table(
    spark: SparkSession, log: Log, snapshot: Any, thresholds: MergeThresholds
) -> Sequence[AddedFile] | None:
    """The files of a table that is small enough to be rewritten and whose change feed can be written; otherwise None.
    Rows without a count in the log cannot be marked either, so they are taken as few.
    """
    if not _can_write_feed(spark, log, snapshot):
        return None
    files = log.plain_files(spark, snapshot)
    if files is None or sum(file.size for file in files) > thresholds.rewritten_bytes:
        return None
    return (
        None
        if delta_properties.has_vectors(snapshot) and sum(file.rows for file in files) > thresholds.rewritten_rows
        else files
    )


def _files_for_deletion_vectors(spark: SparkSession, log: Log, snapshot: Any, limit: int) -> Sequence[AddedFile] | None:
    """The files of a table whose rows can be marked as deleted: the log has the row count of each. Otherwise None."""
    if not _can_write_feed(spark, log, snapshot) or not delta_properties.has_vectors(snapshot):
        return None
    files = log.live_files(spark, snapshot)
    hides = delta_deletion_vectors.RESERVED_COLUMNS & _names(snapshot)
    if files is None or len(files) > limit or hides:
        return None
    return files if all(file.has_row_count for file in files) else None


def _files_for_rewrite(spark: SparkSession, log: Log, snapshot: Any, limit: int) -> Sequence[AddedFile] | None:
    """The files of a table without deletion vectors, any of which can be rewritten; otherwise None."""
    if not _can_write_feed(spark, log, snapshot) or delta_properties.has_vectors(snapshot):
        return None
    files = log.live_files(spark, snapshot)
    if not files or len(files) > limit or any(file.has_vector for file in files):
        return None
    return None if delta_rewrite.RESERVED_COLUMNS & _names(snapshot) else files


def _names(snapshot: Any) -> set[str]:
    """The names of a table's columns, without their case: most sessions do not tell names by it."""
    return {name.casefold() for name in delta_files.schema(snapshot).names}


def _can_write_feed(spark: SparkSession, log: Log, snapshot: Any) -> bool:
    """Whether a table has a change feed that can be written together with its rows."""
    return not log.partition_by(spark) and delta_properties.has_feed(snapshot)


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
