"""Tables of the lake, and what one commit of them tells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Progress:
    """How far a table has got into its input: written in the same commit as the rows it covers.

    ``input`` names the input by its own id (bronze's Delta table id; a model's name for gold);
    ``version`` is that input's version, or for gold the number of a control row. Targets also record which ``commit``
    made that version of gold (``TableFormat.commit_id``); None where nothing told it.
    """

    input: str
    version: int
    commit: str | None = None

    def covers(self, wanted: Progress) -> bool:
        """Whether this includes what is wanted: the same version made by another commit is not it (reliability.md
        F-C5).
        """
        if (self.input, self.version) == (wanted.input, wanted.version):
            return self.commit in (None, wanted.commit)
        return self.input == wanted.input and self.version > wanted.version


@dataclass(frozen=True)
class Applied:
    """What one commit did. Counts are rows; ``version`` is the table's version afterwards."""

    inserted: int
    updated: int
    deleted: int
    version: int

    @property
    def written(self) -> int:
        """Rows that the commit touched."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class Token:
    """The number that a writer of a lake has drawn: who came later has a greater one. ``lake`` is a random id of the
    lake, of which alone numbers are compared.
    """

    lake: str
    number: int


@dataclass(frozen=True)
class Maintained:
    """What upkeep made of a table's folder: data files and their bytes there, before and after. What readers see is the
    same.
    """

    files_before: int
    bytes_before: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Table:
    """A table at rest: where it lies and what makes a row unique.

    ``name`` is for people (``dbserver1/classicmodels.orders``), ``location`` for the format,
    ``keys`` are column names as stored (encoded); ``partition_by`` is used when the table is created. ``complete``
    promises that no row of a silver table, and no change for it, has a ``_column_seq``: the merge is simpler then.
    ``properties`` are facts for other readers, kept with the table where the format has a place for them. ``format``
    names the format that the table is made in ('': the lake's own); ``merge_on_read`` is a kind of Hudi's tables.
    ``deletion_vectors``: whether rows of a table in Delta may be marked as gone; None: as its layer has it.
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
    """A version of a table, and when it was committed (with a zone)."""

    version: int
    at: datetime


@dataclass(frozen=True)
class TableDetail:
    """How a table lies at its place, for readers that are not ours: its ``format``, which ``protocol`` of it they must
    understand (Delta's reader version, Hudi's table version), whether it is one of Hudi's that are merged on read, and
    the columns whose values part it.

    ``folders`` are the paths of its partitions below its location, hive-style and escaped (``customer=a%2Fb``), where
    readers have to be told of them; none where they find them in the table's own log.
    """

    format: str
    protocol: int = 1
    merge_on_read: bool = False
    partition_by: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evolution:
    """What must change in a table before rows of a batch fit: columns to add and to widen, as (name, Spark DDL
    type).

    ``moved`` columns give their values to another name, all at once: (name, new name, type there). A name that none
    moves to is empty afterwards, with the type that ``added`` gives it.
    """

    added: tuple[tuple[str, str], ...] = ()
    widened: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.moved)
