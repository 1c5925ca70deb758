"""Several table formats in one lake: each table is accessed in the format found at its location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from replicator.errors import TableStopped

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from replicator.protocols import TableFormat
    from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail


class MixedFormat:
    """A ``TableFormat`` that dispatches by location: an existing table keeps its format; a new one is created in its
    declared format, or in the first of the formats.
    """

    def __init__(self, formats: Mapping[str, TableFormat]) -> None:
        self._formats = dict(formats)
        self._found: dict[str, str] = {}

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """As the table's format does."""
        return self._of(spark, table).read(spark, table, version)

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table exists in none of the formats. If a known table is gone, its location
        is looked up again.
        """
        newest = self._of(spark, table).version(spark, table)
        if newest is None and self._found.pop(table.location, None) is not None:
            return self._of(spark, table).version(spark, table)
        return newest

    def version_at(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
        """As the table's format does."""
        return self._of(spark, table).version_at(spark, table, when)

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Sub-folders that hold a table of any format."""
        return tuple(sorted({name for each in self._formats.values() for name in each.tables(spark, folder)}))

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """As the table's format does."""
        return self._of(spark, table).identity(spark, table)

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """As the table's format does."""
        return self._of(spark, table).commit_id(spark, table, version)

    def detail(self, spark: SparkSession, table: Table) -> TableDetail:
        """As the table's format does."""
        return self._of(spark, table).detail(spark, table)

    def size(self, spark: SparkSession, table: Table) -> int:
        """As the table's format does."""
        return self._of(spark, table).size(spark, table)

    def count(self, spark: SparkSession, table: Table) -> int:
        """As the table's format does."""
        return self._of(spark, table).count(spark, table)

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """As the table's format does."""
        return self._of(spark, table).arrivals(spark, table, after, upto)

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:
        """As the table's format does."""
        return self._of(spark, table).append_only_since(spark, table, after, upto)

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """As the table's format does."""
        return self._of(spark, table).added(spark, table, after, upto)

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """As the table's format does."""
        return self._of(spark, table).changed_keys(spark, table, after, upto)

    def changed_rows(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """As the table's format does."""
        return self._of(spark, table).changed_rows(spark, table, after, upto)

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """As the table's format does."""
        return self._of(rows.sparkSession, table).append(rows, table, progress)

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """As the table's format does. Raises TableStopped if the declared format is not the table's."""
        format_ = self._of(changes.sparkSession, table)
        there = self._found.get(table.location)
        if table.format and there not in (None, table.format):
            raise TableStopped(
                f"the table is stored as {there}, but {table.format} is declared",
                where=table.name,
                fix="Revert the format, or delete the table's folder in silver: the next run builds it in the other "
                "format.",
            )
        return format_.apply(changes, table, progress)

    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
        """As the table's format does."""
        return self._of(difference.sparkSession, table).put(difference, table, progress, repeats=repeats)

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """As the table's format does."""
        return self._of(rows.sparkSession, table).replace(rows, table, progress)

    def drop(self, spark: SparkSession, table: Table) -> None:
        """As the table's format does; a new table at this location may have another format."""
        self._of(spark, table).drop(spark, table)
        self._found.pop(table.location, None)

    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """As the table's format does."""
        self._of(spark, table).evolve(spark, table, evolution)

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """As the table's format does."""
        return self._of(spark, table).progress(spark, table, input)

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """As the table's format does."""
        return self._of(spark, table).inputs(spark, table)

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
        """As the table's format does."""
        return self._of(spark, table).maintain(spark, table, keep_hours)

    def _of(self, spark: SparkSession, table: Table) -> TableFormat:
        if table.location in self._found:
            return self._formats[self._found[table.location]]
        for name, each in self._formats.items():
            if each.version(spark, table) is not None:
                self._found[table.location] = name
                return each
        return self._formats[table.format or next(iter(self._formats))]
