"""Tables of the lake, and the metadata of their commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Progress:
    """How much of its input a table has processed: written in the same commit as the rows that it covers.

    ``input`` is the id of the input (the Delta table id of bronze; the name of a model for gold); ``version`` is that
    input's version, or for gold the number of a control row. Targets also record the ``commit`` that made that version
    of gold (``TableFormat.commit_id``); None where it is unknown.
    """

    input: str
    version: int
    commit: str | None = None

    def covers(self, wanted: Progress) -> bool:
        """Return whether this progress includes ``wanted``. The same version made by another commit does not
        (reliability.md F-C5).
        """
        if (self.input, self.version) == (wanted.input, wanted.version):
            return self.commit in (None, wanted.commit)
        return self.input == wanted.input and self.version > wanted.version


@dataclass(frozen=True)
class Applied:
    """The result of one commit. Counts are rows; ``version`` is the table's version afterwards."""

    inserted: int
    updated: int
    deleted: int
    version: int

    @property
    def written(self) -> int:
        """The number of rows that the commit inserted, updated or deleted."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class Token:
    """The fencing token of a writer of a lake: a later writer has a greater ``number``. ``lake`` is a random id of the
    lake; only numbers of the same lake are comparable.
    """

    lake: str
    number: int


@dataclass(frozen=True)
class Maintained:
    """The result of maintenance of a table: data files in its folder and their bytes, before and after. Readers see the
    same rows.
    """

    files_before: int
    bytes_before: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Table:
    """A table: its location and its key.

    ``name`` is for people (``dbserver1/classicmodels.orders``), ``location`` for the format, ``keys`` are column names
    as stored (encoded); ``partition_by`` is used when the table is created. ``complete`` guarantees that no row of a
    silver table, and no change for it, has a ``_column_seq``, which permits a simpler merge. ``properties`` are facts
    for other readers, stored with the table where the format supports it. ``format`` is the format that the table is
    created in ('': the lake's default); ``merge_on_read`` is a table type of Hudi. ``deletion_vectors``: whether rows
    of a Delta table may be deleted by marking them; None: the default of its layer.
    """

    name: str
    location: str
    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    complete: bool = False
    properties: tuple[tuple[str, str], ...] = ()
    format: str = ""
    merge_on_read: bool = False
    deletion_vectors: bool | None = None


@dataclass(frozen=True)
class Arrival:
    """Rows that one commit added to one partition of a table: the partition's values, the version, bytes on disk."""

    partition: tuple[str, ...]
    version: int
    size: int


@dataclass(frozen=True)
class CommittedVersion:
    """A version of a table, and when it was committed (with a time zone)."""

    version: int
    at: datetime


@dataclass(frozen=True)
class TableDetail:
    """The storage of a table, for other readers: its ``format``, the ``protocol`` version that they must support
    (Delta's reader version, Hudi's table version), whether it is a merge-on-read table of Hudi, and its partition
    columns.

    ``folders`` are the paths of its partitions below its location, hive-style and escaped (``customer=a%2Fb``), where
    readers need them registered; none where they find them in the table's own log.
    """

    format: str
    protocol: int = 1
    merge_on_read: bool = False
    partition_by: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evolution:
    """The schema changes that a table needs before the rows of a batch fit: columns to add and to widen, as (name,
    Spark DDL type).

    ``moved`` columns transfer their values to another name, all in one step: (name, new name, type there). A name that
    is not the target of a move is empty afterwards, with the type that ``added`` gives it.
    """

    added: tuple[tuple[str, str], ...] = ()
    widened: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.moved)
