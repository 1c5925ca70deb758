"""What a source's file declares about its tables, and what becomes of their rows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """A declared source column. ``type`` is a logical type in the short form of types.md section 2
    (``int``, ``decimal(10,2)``, ``date``, ``micro_timestamp``, ``bytes`` ...). ``generated``: the database computes
    it, so that a record without it does not know its value (debezium.md E8).
    """

    name: str
    type: str
    unsigned: bool = False
    generated: bool = False


CHANGE = "_change"
"""The key column of a table that is declared append-only: which change inserted the row."""

EVENT_ID, AGGREGATE_ID = "id", "aggregate_id"
"""Columns of a table of outbox events, of which one is its key."""


@dataclass(frozen=True)
class Outbox:
    """A table of outbox events (debezium.md section I).

    ``mode``: ``router`` reads what Debezium's event router sends; ``log`` a captured outbox table as a log of its
    inserts; ``current`` a captured outbox table as any other. Of the router's table ``key`` is EVENT_ID (a row per
    event) or AGGREGATE_ID (the newest event per aggregate); ``null_deletes`` says that an event without payload deletes
    its aggregate's row; ``binary`` that payloads are bytes; ``topic`` where the events come from, None for the topic
    ``<source>.<table>``.
    """

    mode: str
    key: str = EVENT_ID
    null_deletes: bool = False
    binary: bool = False
    topic: str | None = None


@dataclass(frozen=True)
class Transform:
    """What is done with a table's changes between bronze and silver, in this order; columns by their source names.

    ``cast`` gives columns other Spark types; ``function`` is ``module:function``; ``derive`` columns are SQL
    expressions; rows for which ``where`` does not hold leave the table; ``hashed`` and ``masked`` columns rest as such;
    with ``column_list`` only those stay, with ``except_column_list`` all but those; ``rename`` gives other names.
    ``shard`` is a further column of the key: which of several source tables a row is from. ``as_deletes`` is a SQL
    condition over the columns before all steps: changes whose row satisfies it are deletes (`apply_as_deletes`).
    ``free`` are names of formats that the table is not kept in: new columns may have them.
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
    as_deletes: str = field(default="", repr=False)  # lakes keep a hash of the text that this class had before it
    free: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Declaration:
    """What the user declares about one source table (types.md Y13); all of it optional.

    ``sequence_by`` is ``position`` or ``source.ts_ms`` (debezium.md Q9), None where the source's own holds.
    ``shape`` (``envelope``, ``flattened``) and ``deletes`` (a ``delete.tombstone.handling.mode``) take the place of
    what its records show by themselves.
    ``schema_changes``: ``evolve`` follows every change, ``freeze`` none, ``fail`` those that need no second column.
    ``stored_as_scd_type``: with 2 a table with every state of every row is kept beside silver's.
    ``purge_after``: seconds after which ``replicator purge`` removes deleted rows; None: never.
    ``compacted_topic``: Kafka keeps the newest record of each key only, so that a tombstone may be all that tells of a
    delete (debezium.md B5).
    ``format``, ``merge_on_read`` and ``partition_by`` (source columns) say how the table is kept, see ``Table``;
    ``twins`` are further formats that a copy of it is kept in. ``transform`` is done with its changes first.
    ``shards`` is a Java regex of source tables whose rows it takes. ``append_only``: no columns identify its rows, of
    which it has one per change that inserted one, known by CHANGE (debezium.md C1).
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
        """Every format that is declared for it; none where it is kept in the lake's own."""
        return (self.format, *self.twins) if self.format else ()

    @property
    def has_history(self) -> bool:
        """Whether every state of every row is kept."""
        return self.stored_as_scd_type == 2

    @property
    def generated(self) -> tuple[str, ...]:
        """Columns that the database computes."""
        return tuple(column.name for column in self.columns if column.generated)
