"""Commits of files and progress together, through Delta's own transaction.

The writer option ``txnAppId`` does the same, but makes Delta replay the whole log for the progress so far, in a Spark
job that costs four times as much as a small append (docs/decisions/0009). Our callers know the progress
(``delta_state.State``). Delta still detects a concurrent writer: the transaction declares that it read this progress.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from replicator import failpoints
from replicator.formats import delta_fencing
from replicator.jvm import gateway, sparkline
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Progress

_SOURCE_ROWS = "operationNumSourceRows"
"""Delta 4 commits no MERGE without this metric; rows of a batch that change nothing are not counted."""


def append(rows: DataFrame, snapshot: Any, progress: Progress, fence: Fence = UNFENCED) -> None:
    """Append rows that have the columns of the table at this snapshot."""
    spark = rows.sparkSession
    with begin(spark, snapshot, progress) as transaction:
        files = list(gateway.iterate(transaction.writeFiles(rows._jdf)))  # noqa: SLF001
        failpoints.hit("delta.append_written")
        with delta_fencing.fenced_commit(spark, fence, _location(snapshot)):
            _commit(spark, transaction, files, progress, _append_operation(spark))


def rewrite(
    images: DataFrame,
    replaced: Sequence[Any],
    snapshot: Any,
    progress: Progress,
    metrics: Mapping[str, int],
    fence: Fence = UNFENCED,
) -> int:
    """Replace the files ``replaced`` (Delta's ``AddFile`` actions of this snapshot) with ``images`` (see
    ``delta_merge.images``), and return the new version. The table's history shows a MERGE with these metrics; if all of
    them are zero, only the progress is committed.
    """
    spark = images.sparkSession
    with begin(spark, snapshot, progress) as transaction:
        actions: list[Any] = []
        if any(metrics.values()):
            written = list(gateway.iterate(transaction.writeFiles(images._jdf)))  # noqa: SLF001
            actions = [file.remove() for file in replaced] + written
        return commit_merge(spark, transaction, actions, progress, metrics, fence)


def commit_merge(
    spark: SparkSession,
    transaction: Any,
    actions: Sequence[Any],
    progress: Progress,
    metrics: Mapping[str, int],
    fence: Fence = UNFENCED,
) -> int:
    """Commit the actions of a merge and return the new version. The transaction reads the whole table, so any
    concurrent change conflicts. The table's history shows a MERGE with these metrics.
    """
    transaction.readWholeTable()
    failpoints.hit("delta.rewrite_written")
    reported = {**metrics, _SOURCE_ROWS: sum(metrics.values())}
    transaction.registerSQLMetrics(spark._jsparkSession, _metrics(spark, reported))  # noqa: SLF001
    with delta_fencing.fenced_commit(spark, fence, _location(transaction)):
        return _commit(spark, transaction, actions, progress, _merge_operation(spark))


def commit_progress(spark: SparkSession, snapshot: Any, progress: Mapping[str, int], fence: Fence = UNFENCED) -> None:
    """Commit only the progress of these inputs, at least one."""
    *others, last = (Progress(name, version) for name, version in progress.items())
    with begin(spark, snapshot, last) as transaction:
        transaction.readWholeTable()
        with delta_fencing.fenced_commit(spark, fence, _location(snapshot)):
            _commit(
                spark, transaction, [_set_transaction(spark, each) for each in others], last, _append_operation(spark)
            )


@contextmanager
def begin(spark: SparkSession, snapshot: Any, progress: Progress) -> Iterator[Any]:
    """Start a transaction over this snapshot that has read the progress of its input; its jobs run in this session."""
    jvm = gateway.of(spark)
    sessions, before = jvm.SparkSession, jvm.SparkSession.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        option = jvm.scala.Option
        transaction = snapshot.deltaLog().startTransaction(option.apply(None), option.apply(snapshot))
        getattr(transaction.readTxn(), "$plus$eq")(progress.input)
        yield transaction
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())


def _commit(spark: SparkSession, transaction: Any, actions: Sequence[Any], progress: Progress, operation: Any) -> int:
    every = gateway.of(spark).PythonUtils.toSeq([*actions, _set_transaction(spark, progress)])
    return int(transaction.commit(every, operation))


def _set_transaction(spark: SparkSession, progress: Progress) -> Any:
    jvm = gateway.of(spark)
    now = jvm.scala.Option.apply(int(time.time() * 1000))
    return jvm.org.apache.spark.sql.delta.actions.SetTransaction(progress.input, progress.version, now)


def _location(of: Any) -> str:
    """The location of the table of a snapshot or transaction."""
    return str(of.deltaLog().dataPath().toString())


def _append_operation(spark: SparkSession) -> Any:
    jvm = gateway.of(spark)
    nothing = jvm.scala.Option.apply(None)
    write = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
    unset = [nothing] * sparkline.of(spark.version).write_options
    return write(jvm.org.apache.spark.sql.SaveMode.Append, *unset)


def _merge_operation(spark: SparkSession) -> Any:
    jvm = gateway.of(spark)
    nothing, no_clauses = jvm.scala.Option.apply(None), jvm.PythonUtils.toSeq([])
    merge = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Merge")
    return merge(nothing, nothing, nothing, nothing, no_clauses, no_clauses, no_clauses)


def _metrics(spark: SparkSession, counts: Mapping[str, int]) -> Any:
    jvm = gateway.of(spark)
    metrics = {}
    for name, count in counts.items():
        metrics[name] = jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
            spark._jsparkSession.sparkContext(),  # noqa: SLF001
            name,
        )
        metrics[name].set(count)
    return jvm.PythonUtils.toScalaMap(metrics)
