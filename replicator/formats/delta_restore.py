"""The progress of a table after a RESTORE to an older version.

Delta's own snapshot keeps the ``txn`` actions from before the RESTORE. Here the progress goes back with the rows, as if
the table had been replaced by an older copy; before the next write the restored progress of all inputs is committed
(``delta_commit.commit_progress``), so that Delta gives the same answer from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from replicator import restores
from replicator.jvm import gateway
from replicator.jvm.failures import FAILURES
from replicator.jvm.hadoop import is_absent


def progress(
    spark: SparkSession, log: Any, location: str, upto: int, transactions: Mapping[str, int]
) -> dict[str, int] | None:
    """The progress of each of these inputs as of the rows of version ``upto``, if a RESTORE took them back and no
    commit has recorded progress since; otherwise None. Commits are read from the newest backwards, usually only one.
    """
    if not transactions:
        return None
    restored = restores.find_pending_restore(_read_commit(spark, log, number) for number in range(upto, -1, -1))
    return None if restored is None else progress_at(spark, log, location, restored, transactions)


def progress_at(
    spark: SparkSession, log: Any, location: str, restored: int, transactions: Mapping[str, int]
) -> dict[str, int]:
    """The progress of each of these inputs as of the rows of the version that was ``restored``;
    ``restores.UNKNOWN_VERSION`` if the rows have nothing of the input, or that is unknown: it is then read from its
    beginning.
    """
    there = {} if restored == restores.UNKNOWN_VERSION else _transactions_at(spark, location, restored)
    there = progress(spark, log, location, restored, there) or there
    return {each: there.get(each, restores.UNKNOWN_VERSION) for each in transactions}


def _transactions_at(spark: SparkSession, location: str, number: int) -> dict[str, int]:
    """The progress in Delta's snapshot of a version; empty if the log no longer reaches back to it."""
    try:
        rows = spark.read.format("delta").option("versionAsOf", number).load(location)
        snapshot = rows._jdf.queryExecution().analyzed().collectLeaves().head().relation().location().getSnapshot()  # noqa: SLF001
        recorded = (gateway.to_tuple(each) for each in gateway.iterate(snapshot.transactions()))
        return {str(app): int(done) for app, done in recorded}
    except FAILURES:
        return {}


def _read_commit(spark: SparkSession, log: Any, number: int) -> list[str] | None:
    """The actions of a commit as JSON lines; None if it is no longer in the log."""
    path = gateway.of(spark).org.apache.hadoop.fs.Path(log.logPath(), f"{number:020}.json")
    try:
        return str(log.store().read(path, log.newDeltaHadoopConf()).mkString("\n")).split("\n")
    except Py4JJavaError as error:
        if is_absent(error):
            return None
        raise
