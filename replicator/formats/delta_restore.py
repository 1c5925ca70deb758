"""How far the rows of a table are that a RESTORE took back to an older version.

Delta's own snapshot does not say: it keeps the ``txn`` actions of what the rows had got to before. As behind an older
copy of the table, its progress goes back with its rows here; the next commit that tells progress tells it of all inputs
(``delta_commit.tell``), so that whoever asks Delta gets the same answer from then on.
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
    """How far each of these inputs is by the rows of version ``upto``, where a RESTORE took them back and no commit has
    told progress since; else None. Commits are looked at from the newest on, mostly one.
    """
    if not transactions:
        return None
    restored = restores.find_pending_restore(_read_commit(spark, log, number) for number in range(upto, -1, -1))
    return None if restored is None else progress_at(spark, log, location, restored, transactions)


def progress_at(
    spark: SparkSession, log: Any, location: str, restored: int, transactions: Mapping[str, int]
) -> dict[str, int]:
    """How far each of these inputs is by the rows of the version that was ``restored``; ``restores.UNKNOWN_VERSION``:
    they have nothing of it, or nobody knows what, and it is read from its beginning.
    """
    there = {} if restored == restores.UNKNOWN_VERSION else _transactions_at(spark, location, restored)
    there = progress(spark, log, location, restored, there) or there
    return {each: there.get(each, restores.UNKNOWN_VERSION) for each in transactions}


def _transactions_at(spark: SparkSession, location: str, number: int) -> dict[str, int]:
    """What Delta says of a version; nothing where its log does not reach back to it any more."""
    try:
        rows = spark.read.format("delta").option("versionAsOf", number).load(location)
        snapshot = rows._jdf.queryExecution().analyzed().collectLeaves().head().relation().location().getSnapshot()  # noqa: SLF001
        told = (gateway.to_tuple(each) for each in gateway.iterate(snapshot.transactions()))
        return {str(app): int(done) for app, done in told}
    except FAILURES:
        return {}


def _read_commit(spark: SparkSession, log: Any, number: int) -> list[str] | None:
    """The actions of a commit; None where it has left the log."""
    path = gateway.of(spark).org.apache.hadoop.fs.Path(log.logPath(), f"{number:020}.json")
    try:
        return str(log.store().read(path, log.newDeltaHadoopConf()).mkString("\n")).split("\n")
    except Py4JJavaError as error:
        if is_absent(error):
            return None
        raise
