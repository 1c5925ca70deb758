"""A source as its file describes it: its topics, their order, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from replicator.spec.connectors import PLACEHOLDER, Connector, Login
from replicator.spec.declarations import Declaration, Transform

BY_POSITION, BY_GTID, BY_TIME = "position", "gtid", "source.ts_ms"
"""What orders the changes of a table: unless another kind of position does (debezium.md Q4), MariaDB's transactions
where servers take turns, the source's clock (Q9).
"""


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
