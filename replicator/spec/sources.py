"""What a source's file declares: where it is captured, what its tables are, what becomes of their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property


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


PLACEHOLDER = "__debezium_unavailable_value"
"""What connectors write for a value that was not sent, unless told otherwise (debezium.md E1)."""

DECIMALS, BINARY, TIMES = "decimal.handling.mode", "binary.handling.mode", "time.precision.mode"
"""The connector's settings by which it writes values of some types (types.md section 2)."""

BY_POSITION, BY_TIME = "position", "source.ts_ms"
"""What orders the changes of a table unless another kind of position does (debezium.md Q4, Q9)."""


@dataclass(frozen=True)
class Reading:
    """What a source's file says that its records cannot show: topics in ``flattened`` hold rows, whatever their columns
    are called; ``binlog`` (``file_pos``, ``file_pos_row``, ``gtid``) places a change of MySQL's or MariaDB's (Q4). Rows
    of tables that the first of a pair of ``shards`` names, a Java regex, go into the second. ``placeholder`` stands for
    a value that was not sent (E1). ``append_only``: some table has to know which change is which.
    """

    flattened: tuple[str, ...] = ()
    binlog: str = "file_pos"
    shards: tuple[tuple[str, str], ...] = ()
    placeholder: str = PLACEHOLDER
    append_only: bool = False


@dataclass(frozen=True)
class Login:
    """Where a source itself can be asked: ``kind`` is ``postgresql``, ``mariadb``, ``mysql``, ``sqlserver`` or
    ``oracle``; ``sslmode`` libpq's.

    The password is in no text form of this value.
    """

    kind: str
    host: str
    port: int
    user: str
    password: str = field(default="", repr=False)
    dbname: str = ""
    sslmode: str = "verify-full"


@dataclass(frozen=True)
class Connector:
    """The Debezium connector that a source's file describes.

    ``kind`` is one of ``Login``'s; ``prefix`` the ``topic.prefix``. ``password`` is a reference that Kafka Connect
    resolves. ``tables`` and ``except_tables`` are regular expressions of ``<database or schema>.<table>``, columns of
    those with ``.<column>``; none: all. ``form`` is ``envelope``, ``flattened`` (``deletes`` says how deletes come) or
    ``outbox``. ``schemas``: every record carries its schema. ``heartbeat``: seconds, 0 for none. ``slot`` and
    ``publication`` are PostgreSQL's, ``server_id`` MySQL's and MariaDB's. ``bootstrap_servers`` are Kafka's as Connect
    reaches them. ``signals`` is the ``signal.data.collection``, ``signal_topic`` and ``notifications`` are topics that
    it reads signals from and writes notifications to. ``config`` holds further keys, which win.
    """

    name: str
    kind: str
    prefix: str
    host: str
    port: int
    user: str
    password: str
    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    except_tables: tuple[str, ...] = ()
    column_list: tuple[str, ...] = ()
    except_column_list: tuple[str, ...] = ()
    form: str = "envelope"
    deletes: str = "rewrite-with-tombstone"
    schemas: bool = True
    snapshot: str = "initial"
    heartbeat: int = 10
    slot: str = ""
    publication: str = ""
    server_id: int | None = None
    bootstrap_servers: str = ""
    signals: str = ""
    signal_topic: str = ""
    notifications: str = ""
    placeholder: str = ""
    transactions: bool = False
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def modes(self) -> Mapping[str, str]:
        """The settings by which it writes decimals, bytes, dates and times, by key (types.md Y13): exact decimals, as
        texts where records carry no schema (debezium-measured.md Z1.1), else what is Debezium's default.
        """
        in_binlog = self.kind in ("mysql", "mariadb")
        made = {
            DECIMALS: "precise" if self.schemas else "string",
            BINARY: "bytes",
            TIMES: "adaptive_time_microseconds" if in_binlog else "adaptive",
        }
        return {key: self.config.get(key, usual).strip().lower() for key, usual in made.items()}


@dataclass(frozen=True)
class Mask:
    """Columns of a table, by their source names, that bronze keeps as hashes only, or not at all."""

    table: str
    hashed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def hashes(self, column: str) -> bool:
        """Whether it is hashed, in whichever case the source spells it now."""
        return column.casefold() in self._hashed

    def drops(self, column: str) -> bool:
        """The same of one that is left out."""
        return column.casefold() in self._dropped

    @cached_property
    def _hashed(self) -> frozenset[str]:
        return frozenset(map(str.casefold, self.hashed))

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(map(str.casefold, self.dropped))


@dataclass(frozen=True)
class SourceSpec:
    """One Debezium connector's output. ``name`` is its ``topic.prefix``; ``topics`` a regex that Java and Python know.

    ``default`` holds what is declared for all tables that are not in ``tables``. ``signals`` is the table that
    ``signal.data.collection`` names; ``latin1_bytes`` says how JSON made from Avro writes bytes (debezium.md A5).
    ``binlog_position``: see ``Reading.binlog``. ``objects`` is the folder where a sink has put its records; '': they
    are read from Kafka. ``whole_transactions``: what has arrived in part only waits (``consistency: transaction``).
    ``database`` is where the source itself can be asked, ``connector`` what captures it, where its file says so.
    ``hash_key`` is the secret of hashed columns; it is in no text form of this value. ``masks`` say what is
    kept out of bronze. ``modes`` are settings of the connector by which values are written, by their key, as far as
    they are known.
    """

    name: str
    topics: str
    bootstrap_servers: str = ""
    tables: tuple[Declaration, ...] = ()
    placeholder: str = PLACEHOLDER
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    sequence_by: str = BY_POSITION
    default: Declaration = field(default=Declaration(""))
    signals: str | None = None
    latin1_bytes: bool = False
    binlog_position: str = "file_pos"
    objects: str = ""
    whole_transactions: bool = False
    database: Login | None = None
    connector: Connector | None = None
    hash_key: str = field(default="", repr=False)
    masks: tuple[Mask, ...] = ()
    modes: Mapping[str, str] = field(default_factory=dict)

    def by_time(self, table: str) -> bool:
        """Whether ``source.ts_ms`` orders the table's changes, and not their positions."""
        return self.order(table) == BY_TIME

    def order(self, table: str) -> str:
        """What orders the table's changes: ``source.ts_ms``, or positions: ``position``, ``gtid``, ``file_pos_row``."""
        sequence_by = self.declaration(table).sequence_by or self.sequence_by
        is_other = sequence_by == BY_POSITION and self.binlog_position != "file_pos"
        return self.binlog_position if is_other else sequence_by

    def keeping_history(self, tables: Iterable[str]) -> SourceSpec:
        """The same, where these tables keep every state of every row."""
        kept = {table: replace(self.declaration(table), stored_as_scd_type=2) for table in tables}
        return replace(self, tables=(*(each for each in self.tables if each.table not in kept), *kept.values()))

    @property
    def reading(self) -> Reading:
        """How its records are read."""
        shards = tuple((declared.shards, declared.table) for declared in self.tables if declared.shards)
        appended = any(declared.append_only for declared in self.tables)
        return Reading(self._topics_of_shape("flattened"), self.binlog_position, shards, self.placeholder, appended)

    @property
    def named(self) -> tuple[str, ...]:
        """Tables that something is said of and whose records must bear these names: not those of shards and of an
        outbox router.
        """
        if self.default.outbox is not None:
            return ()
        plain = [declared.table for declared in self.tables if not declared.shards and declared.outbox is None]
        return tuple(dict.fromkeys([*plain, *(mask.table for mask in self.masks)]))

    def missing(self, known: Iterable[str]) -> list[str]:
        """Tables that something is said of, and that are not among the known ones: misspelled, mostly."""
        there = {*known}
        return [table for table in self.named if there.isdisjoint((table, self.home(table)))]

    def home(self, table: str) -> str:
        """The table that takes the rows of a source's table: that of its shards, else its own."""
        return next((into for shards, into in self.reading.shards if re.fullmatch(shards, table)), table)

    @property
    def is_nowhere(self) -> bool:
        """Whether nobody said where its records are."""
        return not (self.bootstrap_servers or self.objects)

    @property
    def has_compacted_topics(self) -> bool:
        """Whether some topic is compacted, by declaration."""
        return any(table.compacted_topic for table in (*self.tables, self.default))

    @property
    def enveloped(self) -> tuple[str, ...]:
        """Topics whose records are envelopes by declaration."""
        return self._topics_of_shape("envelope")

    def _topics_of_shape(self, shape: str) -> tuple[str, ...]:
        return tuple(f"{self.name}.{declared.table}" for declared in self.tables if declared.shape == shape)

    def hides(self, table: str, column: str) -> bool:
        """Whether the values of a source table's column are nobody's to see: its file has them hashed, masked or left
        out, in silver or in bronze already, in whichever case the source spells it now.
        """
        home, name = self.home(table), column.casefold()
        told = self.declaration(home).transform or Transform()
        left_out = bool(told.column_list) and name not in map(str.casefold, told.column_list)
        is_masked = any(each.hashes(column) or each.drops(column) for each in self.masks if each.table in (table, home))
        named = (*told.hashed, *told.masked, *told.except_column_list)
        return left_out or is_masked or name in map(str.casefold, named)

    @property
    def hides_some(self) -> bool:
        """Whether that may be so of some column."""
        transforms = [declared.transform for declared in (*self.tables, self.default) if declared.transform is not None]
        kept = [(*t.hashed, *t.masked, *t.except_column_list, *t.column_list) for t in transforms]
        return bool(self.masks) or any(kept)

    def matches(self, topic: str) -> bool:
        """Whether it reads a topic of that name."""
        return not self.objects and re.fullmatch(self.topics, topic) is not None

    def declaration(self, table: str) -> Declaration:
        """What is declared about ``<database or schema>.<table>``; the source's default if nothing is."""
        return next((d for d in self.tables if d.table == table), replace(self.default, table=table))
