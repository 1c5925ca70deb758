"""How far the rows of a table are that a RESTORE took back to an older version.

Delta's own snapshot does not say: it keeps the ``txn`` actions of what the rows had got to before. As behind an older
copy of the table, its progress goes back with its rows here; the next commit that tells progress tells it of all inputs
(``delta_commit.tell``), so that whoever asks Delta gets the same answer from then on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replicator import gateway
from replicator.hadoop import is_absent

NOWHERE = -1
"""The progress of an input of which the rows have nothing, or nobody knows what: it is read from its beginning."""

OPERATION = "RESTORE"
"""By which a commit that takes its table back says so."""


def version(parameters: Mapping[str, Any]) -> int:
    """The version to which such a commit took the table back; NOWHERE where it names a time instead."""
    told = str(parameters.get("version")).strip('"')  # delta-rs has it as a text
    return int(told) if told.isdigit() else NOWHERE


def progress(
    spark: SparkSession, log: Any, location: str, upto: int, transactions: Mapping[str, int]
) -> dict[str, int] | None:
    """How far each of these inputs is by the rows of version ``upto``, where a RESTORE took them back and no commit has
    told progress since; else None. Commits are looked at from the newest on, mostly one.
    """
    for number in range(upto, -1, -1) if transactions else ():
        actions = _actions(spark, log, number)
        if actions is None or any("txn" in action for action in actions):
            return None
        for info in (action.get("commitInfo", {}) for action in actions):
            if info.get("operation") == OPERATION:
                return back(spark, log, location, version(info.get("operationParameters") or {}), transactions)
    return None


def back(
    spark: SparkSession, log: Any, location: str, restored: int, transactions: Mapping[str, int]
) -> dict[str, int]:
    """How far each of these inputs is by the rows of the version that was ``restored``."""
    there = {} if restored == NOWHERE else _at(spark, location, restored)
    there = progress(spark, log, location, restored, there) or there
    return {each: there.get(each, NOWHERE) for each in transactions}


def _at(spark: SparkSession, location: str, number: int) -> dict[str, int]:
    """What Delta says of a version; nothing where its log does not reach back to it any more."""
    try:
        rows = spark.read.format("delta").option("versionAsOf", number).load(location)
        snapshot = rows._jdf.queryExecution().analyzed().collectLeaves().head().relation().location().getSnapshot()  # noqa: SLF001
        told = (gateway.pair(each) for each in gateway.each(snapshot.transactions()))
        return {str(app): int(done) for app, done in told}
    except (PySparkException, Py4JJavaError):
        return {}


def _actions(spark: SparkSession, log: Any, number: int) -> list[dict[str, Any]] | None:
    """What a commit says of itself and of progress; None where it has left the log."""
    path = gateway.of(spark).org.apache.hadoop.fs.Path(log.logPath(), f"{number:020}.json")
    try:
        lines = str(log.store().read(path, log.newDeltaHadoopConf()).mkString("\n"))
    except Py4JJavaError as error:
        if is_absent(error):
            return None
        raise
    return [json.loads(line) for line in lines.splitlines() if line.startswith(('{"commitInfo"', '{"txn"'))]
