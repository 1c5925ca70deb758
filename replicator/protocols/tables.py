"""The contract of table formats: how rows of a table are stored, read back and maintained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession


class TableFormat(Protocol):
    """How a table is stored. Every method is safe to repeat, and a crash leaves the old table readable."""

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or now. Raises TableMissing."""

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""

    def version_at(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
        """The version of that number, or the newest one committed at or before that time (with a zone): :meth:`read`
        can read it.

        Versions are committed one after the other, at increasing times. Raises TableMissing, and VersionMissing if the
        version does not exist yet or is no longer kept.
        """

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Names of the folders below ``folder`` that hold a table of ours, sorted; none if the folder is missing. A
        folder whose name is not an encoded name is not ours, but a copy for example.
        """

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """An id that changes when the table is dropped and recreated; None if the table is missing."""

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """An id that no other commit of a version with this number ever had: a table that is restored from a copy keeps
        its identity and reuses version numbers (reliability.md F-C5). Cached for the newest version.

        None if the version does not exist, or has no such id.
        """

    def detail(self, spark: SparkSession, table: Table) -> TableDetail:
        """The layout of the newest version, for a catalog. Raises TableMissing."""

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes of the newest version, 0 if the table is missing: how heavy work on it will be."""

    def count(self, spark: SparkSession, table: Table) -> int:
        """Rows of the newest version, deleted ones included. Raises TableMissing."""

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """What the commits of (after, upto] appended, by partition; cheap. None when that history is gone."""

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:
        """The oldest version, not before ``after``, since which no file was removed up to ``upto``: rows of each
        version from there on can be read from ``upto``. ``upto`` itself if unknown. Cheap.
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
        """The rows of version ``upto`` under those keys, taken from what was written since ``after``: for tables with
        one row per key.

        None if that is not possible without reading the table.
        """

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows, creating the table. With a progress: at most once per (input, version or higher)."""

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """Merge changes into silver by the rule of ``transforms/merge.py``, progress in the same commit.

        At most one change per key: columns of the table, ``_seq``, ``_deleted``, ``_column_seq``, ``_source_ts_ms``.
        Older changes change nothing; deleted keys stay as rows; a progress already recorded makes it a no-op.
        """

    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
        """Write a difference as decided by the caller: rows with ``_op`` ``upsert`` or ``delete``, one per key.

        Only the keys of the difference appear in ``changed_keys`` afterwards; an empty difference still
        commits the progress. A delete of a missing key is ignored. With ``repeats`` some rows may equal stored ones: a
        format that compares them anyway skips them, and does not count them.
        """

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """Replace all rows of the table with these, including columns and their metadata, partitioned as
        ``table.partition_by`` says. One commit: readers see the old rows or the new ones, never none.

        One row per key. The table keeps its identity, its version numbers and the progress of other inputs; a missing
        one is created. ``inserted`` counts all rows. :meth:`changed_keys` across it returns every key or None; a
        progress already recorded makes it a no-op. Raises SchemaRefused if the format cannot change a table's key or
        its partitions.
        """

    def drop(self, spark: SparkSession, table: Table) -> None:
        """Remove the table with all its versions; a no-op if it is missing."""

    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """Add columns (after the table's own, before the system columns), widen types and rename columns, in
        ``_column_seq`` too. Existing rows keep their values and have NULL in new columns; columns keep the metadata
        about their source. Repeating it changes nothing.
        """

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """What the table's own commits record about this input; None if nothing."""

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """The version of each input that the table's own commits record; empty if the table is missing."""

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
        """Compact small files, and remove files that no version younger than ``keep_hours`` needs.

        Rows, progress and what :meth:`changed_keys` returns for younger versions stay. A writer of the same process may
        work on the table at the same time: one of the two waits. If it is killed half-way, readers see no change, and
        the next write or maintenance completes it or rolls it back. Raises TableMissing.
        """
