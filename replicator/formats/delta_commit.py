"""Commits through Delta's own transaction: files and progress at once.

A writer's ``txnAppId`` does the same, but first has Delta add up the whole log for the progress so far, by a Spark job
that costs four times what a small append does (docs/decisions/0009). Our callers know the progress
(``delta_state.State``). Delta still finds a writer that came between: the transaction is told that it read this
progress.
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
"""Without it Delta 4 makes no MERGE; rows of a batch that change nothing are not counted."""


def append(rows: DataFrame, snapshot: Any, progress: Progress, fence: Fence = UNFENCED) -> None:
    """Add rows of the columns of the table at this snapshot."""
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
    """Put ``images`` (see ``delta_merge.images``) in the place of the files ``replaced``, Delta's ``AddFile`` actions
    of this snapshot. History has it as a MERGE with these metrics; where they count nothing, only the progress moves.
    The new version.
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
    """Commit what a merge has written, over all that the table holds: whoever else has changed it is found. History has
    a MERGE with these metrics. The new version.
    """
    transaction.readWholeTable()
    failpoints.hit("delta.rewrite_written")
    told = {**metrics, _SOURCE_ROWS: sum(metrics.values())}
    transaction.registerSQLMetrics(spark._jsparkSession, _metrics(spark, told))  # noqa: SLF001
    with delta_fencing.fenced_commit(spark, fence, _location(transaction)):
        return _commit(spark, transaction, actions, progress, _merge_operation(spark))


def commit_progress(spark: SparkSession, snapshot: Any, progress: Mapping[str, int], fence: Fence = UNFENCED) -> None:
    """Commit how far these inputs are, at least one, and nothing else."""
    *others, last = (Progress(name, version) for name, version in progress.items())
    with begin(spark, snapshot, last) as transaction:
        transaction.readWholeTable()
        with delta_fencing.fenced_commit(spark, fence, _location(snapshot)):
            _commit(
                spark, transaction, [_set_transaction(spark, each) for each in others], last, _append_operation(spark)
            )


@contextmanager
def begin(spark: SparkSession, snapshot: Any, progress: Progress) -> Iterator[Any]:
    """A transaction over this snapshot that has read the progress of its input; its jobs run in this session."""
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
    """Where the table of a snapshot or transaction lies."""
    return str(of.deltaLog().dataPath().toString())


def _append_operation(spark: SparkSession) -> Any:
    jvm = gateway.of(spark)
    nothing = jvm.scala.Option.apply(None)
    write = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
    unsaid = [nothing] * sparkline.of(spark.version).write_options
    return write(jvm.org.apache.spark.sql.SaveMode.Append, *unsaid)


def _merge_operation(spark: SparkSession) -> Any:
    jvm = gateway.of(spark)
    nothing, no_clauses = jvm.scala.Option.apply(None), jvm.PythonUtils.toSeq([])
    merge = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Merge")
    return merge(nothing, nothing, nothing, nothing, no_clauses, no_clauses, no_clauses)


def _metrics(spark: SparkSession, counts: Mapping[str, int]) -> Any:
    jvm = gateway.of(spark)
    made = {}
    for name, count in counts.items():
        made[name] = jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
            spark._jsparkSession.sparkContext(),  # noqa: SLF001
            name,
        )
        made[name].set(count)
    return jvm.PythonUtils.toScalaMap(made)
