"""Delta's transaction log as values: what commits added, read by the driver alone, without a Spark job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class AddedFile:
    """A data file of one commit: absolute path, partition values, bytes."""

    version: int
    path: str
    partition: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Commit:
    """One commit: its files and its operation's metrics (only whole numbers)."""

    version: int
    files: tuple[AddedFile, ...]
    metrics: dict[str, int]


class Log:
    """The log of the table at one location. Commits never change, so those read once are kept."""

    def __init__(self, location: str, partition_by: tuple[str, ...]) -> None:
        self._location = location
        self._partition_by = partition_by
        self._known: dict[int, Commit] = {}

    def snapshot(self, spark: SparkSession) -> Any | None:
        """Delta's newest snapshot object, None if there is no table."""
        nothing = _jvm(spark).scala.Option.apply(None)
        snapshot = self._log(spark).update(False, nothing, nothing)
        return snapshot if snapshot.version() >= 0 else None

    def commits(self, spark: SparkSession, after: int, upto: int) -> list[Commit] | None:
        """The commits of (after, upto] in order; None when some of them have left the log.

        What is not after ``after`` is forgotten: callers move forward.
        """
        self._known = {version: commit for version, commit in self._known.items() if version > after}
        missing = [version for version in range(after + 1, upto + 1) if version not in self._known]
        if missing:
            try:
                self._known |= {commit.version: commit for commit in self._read(spark, missing[0], upto)}
            except Py4JJavaError:
                return None
        found = [self._known[version] for version in range(after + 1, upto + 1) if version in self._known]
        return found if len(found) == upto - after else None

    def _read(self, spark: SparkSession, start: int, end: int) -> Iterator[Commit]:
        changes = self._log(spark).getChanges(start, end, True)
        while changes.hasNext():
            pair = changes.next()
            yield self._commit(spark, int(pair._1()), pair._2().iterator())  # noqa: SLF001 - Scala's tuple

    def _commit(self, spark: SparkSession, version: int, actions: Any) -> Commit:
        files, metrics = [], {}
        while actions.hasNext():
            action = actions.next()
            kind = action.getClass().getSimpleName()
            if kind == "AddFile":
                files.append(self._file(spark, version, action))
            elif kind == "CommitInfo" and action.operationMetrics().isDefined():
                metrics = _whole_numbers(action.operationMetrics().get())
        return Commit(version, tuple(files), metrics)

    def _file(self, spark: SparkSession, version: int, action: Any) -> AddedFile:
        files = _jvm(spark).org.apache.spark.sql.delta.util.DeltaFileOperations
        values = action.partitionValues()
        partition = tuple(str(values.apply(column)) for column in self._partition_by)
        return AddedFile(
            version, files.absolutePath(self._location, action.path()).toString(), partition, action.size()
        )

    def _log(self, spark: SparkSession) -> Any:
        return _jvm(spark).org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, self._location)  # noqa: SLF001


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # noqa: SLF001 - py4j is the only way to the log


def _whole_numbers(metrics: Any) -> dict[str, int]:
    found, pairs = {}, metrics.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        if str(pair._2()).isdigit():  # noqa: SLF001 - Scala's tuple
            found[str(pair._1())] = int(pair._2())  # noqa: SLF001
    return found
