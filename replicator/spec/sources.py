"""A source as its file describes it: its topics, the order of its changes, and how its records are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from replicator.spec.connectors import PLACEHOLDER, Connector, Login
from replicator.spec.declarations import Declaration

BY_POSITION, BY_GTID, BY_TIME = "position", "gtid", "source.ts_ms"
"""What orders the changes of a table: the position in the source's log unless the source uses another kind (debezium.md
Q4), the GTID of MariaDB's transactions where its servers fail over, or the source's clock (Q9).
"""


def sanitize_for_topic(name: str) -> str:
    """Return a table's name as Debezium writes it in a topic's: ``_`` for every character that is invalid there."""
    return re.sub(r"[^a-zA-Z0-9._-]", "_", name)


@dataclass(frozen=True)
class Reading:
    """The declared facts about a source's records that the records themselves do not show. Topics in ``flattened`` hold
    rows, whatever their columns are called. ``binlog`` (``file_pos``, ``file_pos_row``, ``gtid``) is the position of a
    change of MySQL or MariaDB (Q4). Each pair of ``shards`` is a Java regex of source tables and the table that takes
    their rows. ``placeholder`` is written for a value that was not sent (E1). ``append_only``: some table is
    append-only and needs an identifier of each change.
    """

    flattened: tuple[str, ...] = ()
    binlog: str = "file_pos"
    shards: tuple[tuple[str, str], ...] = ()
    placeholder: str = PLACEHOLDER
    append_only: bool = False


@dataclass(frozen=True)
class Mask:
    """The columns of a table, by their source names, that bronze stores only as hashes (``hashed``) or not at all."""

    table: str
    hashed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def hashes(self, column: str) -> bool:
        """Return whether the column is hashed; case is ignored, since the source may change it."""
        return column.casefold() in self._hashed

    def drops(self, column: str) -> bool:
        """Return whether the column is left out; case is ignored likewise."""
        return column.casefold() in self._dropped

    @cached_property
    def _hashed(self) -> frozenset[str]:
        return frozenset(map(str.casefold, self.hashed))

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(map(str.casefold, self.dropped))


@dataclass(frozen=True)
class SourceSpec:
    """The output of one Debezium connector. ``name`` is its ``topic.prefix``; ``topics`` is a regex that Java and
    Python both understand.

    ``default`` is the declaration of all tables that are not in ``tables``. ``signals`` is the table that
    ``signal.data.collection`` names; ``latin1_bytes`` is how JSON converted from Avro represents bytes (debezium.md
    A5). ``binlog_position``: see ``Reading.binlog``. ``objects`` is the folder where a sink connector writes the
    records; '': they are read from Kafka. ``whole_transactions``: incomplete transactions wait, as in
    ``consistency: transaction``. ``database`` is the login for queries of the source itself, ``connector`` captures it;
    None where its file has none. ``hash_key`` is the secret of hashed columns; it is excluded from the ``repr``.
    ``masks`` are the columns that bronze does not store in clear. ``modes`` are the known settings of the connector
    that determine how values are written, by key.
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
        """Return whether the table's changes are ordered by ``source.ts_ms`` and not by their positions."""
        return self.order(table) == BY_TIME

    def order(self, table: str) -> str:
        """Return what orders the table's changes: ``source.ts_ms``, or positions: ``position``, ``gtid``,
        ``file_pos_row``.
        """
        sequence_by = self.declaration(table).sequence_by or self.sequence_by
        is_other = sequence_by == BY_POSITION and self.binlog_position != "file_pos"
        return self.binlog_position if is_other else sequence_by

    def with_history(self, tables: Iterable[str]) -> SourceSpec:
        """Return a copy in which these tables keep every state of every row."""
        declarations = {table: replace(self.declaration(table), stored_as_scd_type=2) for table in tables}
        return replace(
            self, tables=(*(each for each in self.tables if each.table not in declarations), *declarations.values())
        )

    @property
    def reading(self) -> Reading:
        """How its records are read."""
        shards = tuple((declared.shards, declared.table) for declared in self.tables if declared.shards)
        appended = any(declared.append_only for declared in self.tables)
        return Reading(self._topics_of_shape("flattened"), self.binlog_position, shards, self.placeholder, appended)

    @property
    def named(self) -> tuple[str, ...]:
        """The declared or masked tables whose names must occur in records: not those of shards or of an
        outbox router.
        """
        if self.default.outbox is not None:
            return ()
        plain = [declared.table for declared in self.tables if not declared.shards and declared.outbox is None]
        return tuple(dict.fromkeys([*plain, *(mask.table for mask in self.masks)]))

    def missing(self, known: Iterable[str]) -> list[str]:
        """Return the declared or masked tables that are not among the known ones; most are misspelled."""
        tables = {*known}
        return [table for table in self.named if tables.isdisjoint((table, self.home(table)))]

    def home(self, table: str) -> str:
        """Return the table that takes the rows of a source table: that of its shards, else the table itself."""
        return next((into for shards, into in self.reading.shards if re.fullmatch(shards, table)), table)

    @property
    def has_no_origin(self) -> bool:
        """Whether neither servers nor objects are configured."""
        return not (self.bootstrap_servers or self.objects)

    @property
    def has_compacted_topics(self) -> bool:
        """Whether some topic is declared to be compacted."""
        return any(table.compacted_topic for table in (*self.tables, self.default))

    @property
    def envelope_topics(self) -> tuple[str, ...]:
        """The topics whose records are declared to be envelopes."""
        return self._topics_of_shape("envelope")

    def _topics_of_shape(self, shape: str) -> tuple[str, ...]:
        return tuple(self.topic(declared.table) for declared in self.tables if declared.shape == shape)

    def is_masked(self, table: str, column: str) -> bool:
        """Return whether the values of a source table's column must not be shown: its file has them hashed, masked or
        left out, in silver or already in bronze; of a table of shards for any of them. Case is ignored, since the
        source may change it; the table may be named as in topics.
        """
        home = self.home(table)
        spelled = (sanitize_for_topic(home), sanitize_for_topic(table))
        masks = (m for m in self.masks if sanitize_for_topic(m.table) in spelled or self.home(m.table) == table)
        alike = self._tables_by_topic_name.get(spelled[0], (self.default,))
        return any(each.hashes(column) or each.drops(column) for each in masks) or any(
            each.transform is not None and each.transform.hides(column) for each in alike
        )

    @cached_property
    def _tables_by_topic_name(self) -> Mapping[str, Sequence[Declaration]]:
        """The declared tables by their names as topics spell them, which several may share."""
        found: dict[str, list[Declaration]] = {}
        for each in self.tables:
            found.setdefault(sanitize_for_topic(each.table), []).append(each)
        return found

    @property
    def has_masks(self) -> bool:
        """Whether any column may be hidden."""
        transforms = [declared.transform for declared in (*self.tables, self.default) if declared.transform is not None]
        columns = [(*t.hashed, *t.masked, *t.except_column_list, *t.column_list) for t in transforms]
        return bool(self.masks) or any(columns)

    def topic(self, table: str) -> str:
        """Return the topic to which the connector writes a table unless it is routed elsewhere."""
        return f"{self.name}.{sanitize_for_topic(table)}"

    def matches(self, topic: str) -> bool:
        """Return whether the source reads a topic of that name."""
        return not self.objects and re.fullmatch(self.topics, topic) is not None

    def declaration(self, table: str) -> Declaration:
        """Return the declaration of ``<database or schema>.<table>``, by default that of the source."""
        return next((d for d in self.tables if d.table == table), replace(self.default, table=table))
