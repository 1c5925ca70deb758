"""How a table is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession


class TableFormat(Protocol):
    """How a table is kept: every method is safe to repeat, and a crash leaves the old table readable."""

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or now. Raises TableMissing."""

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""

    def moment(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
        """The version of that number, or the newest one committed at or before that time (with a zone): :meth:`read`
        can read it.

        Versions are committed one after the other, at times that rise with them. Raises TableMissing, and
        VersionMissing where it is not there yet, or not any more.
        """

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Names of the folders below ``folder`` that hold a table of ours, sorted; none if the folder is missing. One
        that is called as no name is encoded is somebody else's, such as a copy.
        """

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """An id that changes when the table is dropped and made again; None if the table is missing."""

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """What no other commit has that ever made a version of this number: a table that is copied back, identity and
        all, goes on with numbers that it had (reliability.md F-C5). Of the newest version it costs nothing again.

        None where the version is not there, or where nothing tells.
        """

    def kept(self, spark: SparkSession, table: Table) -> TableDetail:
        """How the newest version lies there, for a catalog. Raises TableMissing."""

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes of the newest version, 0 if the table is missing: how heavy work on it will be."""

    def count(self, spark: SparkSession, table: Table) -> int:
        """Rows of the newest version, deleted ones included. Raises TableMissing."""

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """What the commits of (after, upto] appended, by partition; cheap. None when that history is gone."""

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:
        """The oldest version, not before ``after``, behind which nothing was taken out of the table's files up to
        ``upto``: each version from there on can be read as ``upto`` can. ``upto`` itself where nobody knows. Cheap.
        """

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """Rows that commits after a partition's version and up to ``upto`` appended to the partitions of ``after``.

        None when that history is gone. For tables that are only ever appended to.
        """

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """Distinct ``table.keys`` of rows that differ between two versions (a superset is allowed).

        None when the history no longer reaches back to ``after``: the caller then compares everything.
        """

    def changed_rows(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """The rows that the version ``upto`` has under those keys, as far as they are the newest of their key in what
        was written since ``after``: for tables of one row per key.

        None where that is not to be had without reading the table.
        """

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows, creating the table. With a progress: at most once per (input, version or higher)."""

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """Join changes into silver by the rule of ``transforms/merge.py``, progress in the same commit.

        At most one change per key: columns of the table, ``_seq``, ``_deleted``, ``_column_seq``, ``_source_ts_ms``.
        Older changes change nothing; deleted keys stay as rows; a progress already recorded makes it a no-op.
        """

    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
        """Write a difference as decided by the caller: rows with ``_op`` ``upsert`` or ``delete``, one per key.

        Only the keys of the difference appear in ``changed_keys`` afterwards; an empty difference still
        commits the progress. A delete of a key that is not there is none. With ``repeats`` there may be rows that the
        table has as they are: a format that looks at those anyway passes them over, and does not count them.
        """

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """Put these rows, with their columns and what is noted about them, in the place of all that the table has, and
        part it as ``table.partition_by`` says. One commit: readers see the old rows or the new ones, never none.

        One row per key. The table keeps its identity, its versions go on, and what it records of other inputs stays; a
        missing one is made. ``inserted`` counts all rows. :meth:`changed_keys` over it tells every key or None; a
        progress already recorded makes it a no-op. Raises SchemaRefused where a table of the format keeps its key or
        its partitions.
        """

    def drop(self, spark: SparkSession, table: Table) -> None:
        """Remove the table with all its versions; nothing happens if it is not there."""

    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """Add columns (behind the table's own, before the system columns), widen types and move columns to other
        names, in ``_column_seq`` too; existing rows keep their values, new columns are NULL there, columns what is
        known of their source. Repeating it changes nothing.
        """

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """What the table's own commits record about this input; None if nothing."""

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """How far each input is that the table's own commits record; none if the table is missing."""

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
        """Write small files together, and remove files that no version younger than ``keep_hours`` needs.

        Rows, progress and what :meth:`changed_keys` tells of younger versions stay. A writer of the same process may
        be at work on the table meanwhile: one of the two waits. Killed half-way, it has changed nothing that a reader
        sees, and is gone on with or taken back by the next write or maintenance. Raises TableMissing.
        """
