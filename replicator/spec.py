"""The nouns of the product as frozen values. Standard library only: everything may import them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """How far a table has got into its input: written in the same commit as the rows it covers.

    ``input`` names the input by its own id (bronze's Delta table id; a model's name for gold);
    ``version`` is that input's version, or for gold the number of a control row.
    """

    input: str
    version: int


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
class Table:
    """A table at rest: where it lies and what makes a row unique.

    ``name`` is for people (``dbserver1/classicmodels.orders``), ``location`` for the format,
    ``keys`` are column names as stored (encoded); ``partition_by`` is used when the table is created. ``complete``
    promises that no row of a silver table, and no change for it, has a ``_column_seq``: the merge is simpler then.
    """

    name: str
    location: str
    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    complete: bool = False


@dataclass(frozen=True)
class Arrival:
    """Rows that one commit added to one partition of a table: the partition's values, the version, bytes on disk."""

    partition: tuple[str, ...]
    version: int
    size: int


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


@dataclass(frozen=True)
class Column:
    """A declared source column. ``type`` is a logical type in the short form of types.md section 2
    (``int``, ``decimal(10,2)``, ``date``, ``micro_timestamp``, ``bytes`` ...).
    """

    name: str
    type: str
    unsigned: bool = False


@dataclass(frozen=True)
class Declaration:
    """What the user declares about one source table (types.md Y13); all of it optional.

    ``schema_changes``: ``evolve`` follows every change, ``freeze`` none, ``fail`` those that need no second column.
    """

    table: str
    columns: tuple[Column, ...] = ()
    keys: tuple[str, ...] = ()
    truncate: str = "apply"
    unavailable: bool = True
    schema_changes: str = "evolve"


@dataclass(frozen=True)
class SourceSpec:
    """One Debezium connector's output. ``name`` is its ``topic.prefix``; ``topics`` a Java regex."""

    name: str
    topics: str
    bootstrap_servers: str = ""
    tables: tuple[Declaration, ...] = ()
    placeholder: str = "__debezium_unavailable_value"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def declaration(self, table: str) -> Declaration:
        """What is declared about ``<database or schema>.<table>``; an empty declaration if nothing is."""
        return next((d for d in self.tables if d.table == table), Declaration(table))


@dataclass(frozen=True)
class ModelColumn:
    """A column of a gold model: its Postgres type, whether it may be NULL, and what it means."""

    name: str
    type: str
    nullable: bool = True
    description: str = ""


@dataclass(frozen=True)
class Target:
    """A table of the serving database. ``connection`` names an entry of ``targets`` in the configuration."""

    connection: str
    schema: str
    table: str


@dataclass(frozen=True)
class Model:
    """A gold table: one SELECT over silver tables and other models, and what must hold for its rows.

    ``inputs`` maps a placeholder of the SQL to ``<source>/<database or schema>.<table>`` or a model's name;
    ``references`` names the models that must be upserted before and deleted after this one.
    """

    name: str
    sql: str
    inputs: Mapping[str, str]
    key: tuple[str, ...]
    columns: tuple[ModelColumn, ...]
    description: str = ""
    references: tuple[str, ...] = ()
    target: Target | None = None
