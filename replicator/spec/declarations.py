"""What a source's file declares about its tables, and how their rows are transformed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """A declared source column. ``type`` is a logical type in the short form of types.md section 2 (``int``,
    ``decimal(10,2)``, ``date``, ``micro_timestamp``, ``bytes`` ...). ``generated``: the database computes it, so that
    its value is unknown where a record lacks it (debezium.md E8).
    """

    name: str
    type: str
    unsigned: bool = False
    generated: bool = False


CHANGE = "_change"
"""The key column of an append-only table: it identifies the change that inserted the row."""

EVENT_ID, AGGREGATE_ID = "id", "aggregate_id"
"""Columns of a table of outbox events; one of them is its key."""


@dataclass(frozen=True)
class Outbox:
    """A table of outbox events (debezium.md section I).

    ``mode``: ``router`` reads the output of Debezium's event router; ``log`` reads a captured outbox table as a log of
    its inserts; ``current`` reads a captured outbox table like any other. For the router, ``key`` is EVENT_ID (a row
    per event) or AGGREGATE_ID (the newest event per aggregate); ``null_deletes``: an event without payload deletes its
    aggregate's row; ``binary``: payloads are bytes; ``topic`` has the events, None for the topic ``<source>.<table>``.
    """

    mode: str
    key: str = EVENT_ID
    null_deletes: bool = False
    binary: bool = False
    topic: str | None = None


@dataclass(frozen=True)
class Transform:
    """The steps applied to a table's changes between bronze and silver, in this order; columns by their source names.

    ``cast`` converts columns to other Spark types; ``function`` is ``module:function``; ``derive`` columns are SQL
    expressions; rows for which ``where`` is not true are removed from the table; ``hashed`` and ``masked`` columns are
    stored so; ``column_list`` keeps only those columns, ``except_column_list`` all but those; ``rename`` changes names.
    ``shard`` is an additional key column: the source table that a row is from. ``as_deletes`` is a SQL condition over
    the columns before all steps: changes whose row satisfies it are deletes (`apply_as_deletes`). ``free`` are names of
    formats that the table is not stored in: new columns may have these names.
    """

    cast: tuple[tuple[str, str], ...] = ()
    function: str = ""
    derive: tuple[tuple[str, str], ...] = ()
    where: str = ""
    hashed: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    column_list: tuple[str, ...] = ()
    except_column_list: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    shard: str = ""
    as_deletes: str = field(default="", repr=False)  # lakes store a hash of the repr without it
    free: tuple[str, ...] = field(default=(), repr=False)

    def hides(self, column: str) -> bool:
        """Return whether a column of the source is hashed, masked or left out; case is ignored, since the source may
        change it.
        """
        name, kept = column.casefold(), {*map(str.casefold, self.column_list)}
        listed = (*self.hashed, *self.masked, *self.except_column_list)
        return (bool(kept) and name not in kept) or name in map(str.casefold, listed)


@dataclass(frozen=True)
class Declaration:
    """What the user declares about one source table (types.md Y13); all of it is optional.

    ``sequence_by`` is ``position`` or ``source.ts_ms`` (debezium.md Q9), None for that of the source. ``shape``
    (``envelope``, ``flattened``) and ``deletes`` (a ``delete.tombstone.handling.mode``) override what is inferred from
    the records. ``schema_changes``: ``evolve`` applies every change, ``freeze`` none, ``fail`` those that need no
    second column. ``stored_as_scd_type``: 2 keeps a table with every state of every row beside silver's.
    ``purge_after``: seconds after which ``replicator purge`` removes deleted rows; None: never. ``compacted_topic``:
    Kafka keeps only the newest record of each key, so that a tombstone may be the only record of a delete (debezium.md
    B5). ``format``, ``merge_on_read`` and ``partition_by`` (source columns) are how the table is stored, see ``Table``;
    ``twins`` are additional formats that a copy of it is stored in. ``transform`` is applied to its changes first.
    ``shards`` is a Java regex of the source tables whose rows it takes. ``append_only``: no columns identify its rows;
    it has one row per inserting change, identified by CHANGE (debezium.md C1).
    """

    table: str
    columns: tuple[Column, ...] = ()
    keys: tuple[str, ...] = ()
    truncate: str = "apply"
    unavailable: bool = True
    sequence_by: str | None = None
    outbox: Outbox | None = None
    shape: str | None = None
    deletes: str | None = None
    schema_changes: str = "evolve"
    stored_as_scd_type: int = 1
    purge_after: int | None = None
    compacted_topic: bool = False
    format: str = ""
    twins: tuple[str, ...] = ()
    merge_on_read: bool = False
    partition_by: tuple[str, ...] = ()
    transform: Transform | None = None
    shards: str = ""
    append_only: bool = False

    @property
    def formats(self) -> tuple[str, ...]:
        """Every declared format of the table; none where it uses the lake's default."""
        return (self.format, *self.twins) if self.format else ()

    @property
    def has_history(self) -> bool:
        """Whether every state of every row is kept."""
        return self.stored_as_scd_type == 2

    @property
    def generated(self) -> tuple[str, ...]:
        """The columns that the database computes."""
        return tuple(column.name for column in self.columns if column.generated)
