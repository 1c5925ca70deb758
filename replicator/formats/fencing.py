"""Fencing: tables and control rows that can be written only while a lease is held (reliability.md F-W1, F-W2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from replicator.protocols import Control, Fence, TableFormat
    from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail


class FencedFormat:
    """A ``TableFormat`` around another one: writes raise LeaseLost, before any work, if the lease is lost. A format
    constructed with the same fence checks it once more right before it commits.
    """

    def __init__(self, inner: TableFormat, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """As the format does."""
        return self._inner.read(spark, table, version)

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """As the format does."""
        return self._inner.version(spark, table)

    def version_at(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
        """As the format does."""
        return self._inner.version_at(spark, table, when)

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """As the format does."""
        return self._inner.tables(spark, folder)

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """As the format does."""
        return self._inner.identity(spark, table)

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """As the format does."""
        return self._inner.commit_id(spark, table, version)

    def detail(self, spark: SparkSession, table: Table) -> TableDetail:
        """As the format does."""
        return self._inner.detail(spark, table)

    def size(self, spark: SparkSession, table: Table) -> int:
        """As the format does."""
        return self._inner.size(spark, table)

    def count(self, spark: SparkSession, table: Table) -> int:
        """As the format does."""
        return self._inner.count(spark, table)

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """As the format does."""
        return self._inner.arrivals(spark, table, after, upto)

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:
        """As the format does."""
        return self._inner.append_only_since(spark, table, after, upto)

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """As the format does."""
        return self._inner.added(spark, table, after, upto)

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """As the format does."""
        return self._inner.changed_keys(spark, table, after, upto)

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """As the format does."""
        return self._inner.progress(spark, table, input)

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """As the format does."""
        return self._inner.inputs(spark, table)

    def changed_rows(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """As the format does."""
        return self._inner.changed_rows(spark, table, after, upto)

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """As the format does. Raises LeaseLost."""
        self._fence.check()
        return self._inner.append(rows, table, progress)

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """As the format does. Raises LeaseLost."""
        self._fence.check()
        return self._inner.apply(changes, table, progress)

    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
        """As the format does. Raises LeaseLost."""
        self._fence.check()
        return self._inner.put(difference, table, progress, repeats=repeats)

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """As the format does. Raises LeaseLost."""
        self._fence.check()
        return self._inner.replace(rows, table, progress)

    def drop(self, spark: SparkSession, table: Table) -> None:
        """As the format does. Raises LeaseLost."""
        self._fence.check()
        self._inner.drop(spark, table)

    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """As the format does. Raises LeaseLost."""
        self._fence.check()
        self._inner.evolve(spark, table, evolution)

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
        """As the format does. Raises LeaseLost."""
        self._fence.check()
        return self._inner.maintain(spark, table, keep_hours)


class FencedControl:
    """A ``Control`` around another one: writes raise LeaseLost if the lease is lost."""

    def __init__(self, inner: Control, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    def get(self, path: str) -> dict[str, Any] | None:
        """As the other does."""
        return self._inner.get(path)

    def put(self, path: str, value: Mapping[str, Any]) -> None:
        """As the other does. Raises LeaseLost."""
        self._fence.check()
        self._inner.put(path, value)

    def under(self, folder: str) -> tuple[str, ...]:
        """As the other does."""
        return self._inner.under(folder)

    def remove(self, path: str) -> None:
        """As the other does. Raises LeaseLost."""
        self._fence.check()
        self._inner.remove(path)
