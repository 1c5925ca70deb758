"""One record as an event that people can read: what happened to which row, and where that stands in the source.

Pure Python over the texts of the record (debezium.md sections A, B, F): for looking at topics, where Spark would take
longer to start than the look lasts. Nothing is applied by what is said here; ``envelope.py`` judges for silver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from replicator.debezium.connect_schema import fields_of, row_fields
from replicator.debezium.display_values import to_display
from replicator.debezium.jsontext import dumps, loads
from replicator.debezium.logical_types import LogicalType
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.record_payload import PARSE_ERRORS, normalize, split_schema
from replicator.debezium.schema import declared_types, refine_types
from replicator.debezium.source_block import format_position
from replicator.errors import ConfigError
from replicator.spec import SourceSpec

Row = Mapping[str, Any]
"""Columns by the source's names; numbers are ``jsontext.Number``."""

UNSENT = "(not sent)"
"""Shown for a value that Debezium left out (debezium.md section E)."""

HIDDEN = "***"
"""Shown for a value that the source's file keeps from readers of the lake."""

_METADATA = "__"


@dataclass(frozen=True)
class KafkaRecord:
    """A record of Kafka's; ``timestamp`` in epoch milliseconds, None where it is not known."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class StartingOffset:
    """Where to begin to read a partition, or the versions of a table: at the ``offset``, or so many as ``last`` before
    the end. Without both at the beginning.
    """

    offset: int | None = None
    last: int | None = None

    def within(self, beginning: int, end: int) -> int:
        """The first one that is read where there are those from ``beginning`` up to ``end``."""
        wanted = beginning if self.offset is None else self.offset
        wanted = wanted if self.last is None else end - self.last
        return min(max(wanted, beginning), end)


@dataclass(frozen=True)
class ChangeEvent:
    """What a record says. ``op`` is Debezium's letter, '' of what is no change of a row: ``note`` tells what that is.
    ``before`` and ``after`` are None where the record has none; ``position`` is the source's, in its own terms;
    ``types`` are those by which the row was read, of columns that have one.
    """

    record: KafkaRecord
    op: str = ""
    table: str | None = None
    position: str = ""
    key: Row | None = None
    before: Row | None = None
    after: Row | None = None
    note: str = ""
    types: Mapping[str, LogicalType] = field(default_factory=dict)

    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Columns with their values before and after: of an update that tells both images those that differ, else all
        that the record has.
        """
        before, after = self.before or {}, self.after or {}
        both = self.before is not None and self.after is not None
        columns = dict.fromkeys([*before, *after])
        return {
            column: (before.get(column), after.get(column))
            for column in columns
            if not both or before.get(column) != after.get(column)
        }


@dataclass(frozen=True)
class EventReader:
    """How the records of one source are read: by the types that they bring, else by those that are declared."""

    source: SourceSpec = SourceSpec("", "")  # noqa: RUF009 - frozen

    def event(self, record: KafkaRecord) -> ChangeEvent:
        """Never raises: a record that cannot be read has a note that says so."""
        if record.value is None:
            return ChangeEvent(record, key=self._key(record, {}), note="tombstone")
        try:
            told = loads(record.value.decode())
        except UnicodeDecodeError:
            return ChangeEvent(record, note="not UTF-8")
        except (ValueError, RecursionError):
            return ChangeEvent(record, key=self._key(record, {}), note="malformed JSON")
        if told is None:
            return ChangeEvent(record, key=self._key(record, {}), note="tombstone")
        record, told = self._plain(record, told)
        schema, body = split_schema(told)
        if not isinstance(body, dict):
            return ChangeEvent(record, note="tombstone" if body is None else "no object")
        return self._envelope(record, schema, body) if _is_envelope(body) else self._flattened(record, schema, body)

    def _plain(self, record: KafkaRecord, told: Any) -> tuple[KafkaRecord, Any]:
        """The record as a plain one: its key, and what it tells."""
        if not isinstance(told, dict):
            return record, told
        key, body = normalize(self.source, record.topic, record.key, told)
        return (record if key is None else replace(record, key=dumps(key).encode())), body

    def _envelope(self, record: KafkaRecord, schema: Any, body: Row) -> ChangeEvent:
        source = body["source"] if isinstance(body.get("source"), dict) else {}
        table = _table(source.get("schema") or source.get("db"), source.get("table") or source.get("table_name"))
        table = table or body.get("type")  # an event of our own
        types = self._types(table, schema)
        return ChangeEvent(
            record,
            op=str(body["op"]),
            table=table,
            position=format_position(source),
            key=self._key(record, types, table),
            before=self._row(body.get("before"), types, table),
            after=self._row(body.get("after"), types, table),
            types=types,
        )

    def _flattened(self, record: KafkaRecord, schema: Any, body: Row) -> ChangeEvent:
        """A row with Debezium's fields beside its own, or no row at all."""
        own = {name: value for name, value in body.items() if not name.startswith(_METADATA)}
        told = _source_metadata({name: value for name, value in body.items() if name not in own})
        note = _control_note(record.topic, body)
        parts = record.topic.split(".")
        if note or (not told and len(parts) < 3):
            shown = {"ddl": body["ddl"]} if note == "schema change" else None if self.source.hides_some else own
            return ChangeEvent(record, key=self._key(record, {}), after=shown, note=note or "no event of Debezium's")
        table = _table(told.get("schema") or told.get("db") or parts[-2], told.get("table") or parts[-1])
        types = self._types(table, schema)
        is_gone = str(told.get("deleted", "")).lower() == "true"
        row, op = self._row(own, types, table), str(told.get("op") or "u")
        before, after = (row, None) if is_gone else (None, row)
        key = self._key(record, types, table)
        return ChangeEvent(
            record, "d" if is_gone else op, table, format_position(told), key, before, after, types=types
        )

    def _key(self, record: KafkaRecord, types: Mapping[str, LogicalType], table: str | None = None) -> Row | None:
        table = table or _table_of_topic(record.topic)
        try:
            schema, body = split_schema(loads((record.key or b"null").decode()))
        except (ValueError, RecursionError):
            body = None if record.key is None else record.key.decode(errors="replace")
            schema = None
        if body is None:
            return None
        if not isinstance(body, dict):
            return {"key": HIDDEN if self.source.hides_some else body}
        own = _schema_types(fields_of, schema, types)
        return self._row(body, {**types, **own}, table)

    def _types(self, table: str | None, schema: Any) -> Mapping[str, LogicalType]:
        columns = self.source.declaration(table).columns if table is not None else ()
        declared = declared_types(columns)
        return declared | _schema_types(row_fields, schema, declared)

    def _row(self, row: Any, types: Mapping[str, LogicalType], table: str | None) -> Row | None:
        if not isinstance(row, dict):
            return None
        hidden = {name for name, value in row.items() if self._hides(table, name, value)}
        may_lack = table is None or self.source.declaration(table).unavailable
        unsent = {name for name, value in row.items() if may_lack and self._is_unsent(value)}
        return {
            name: HIDDEN if name in hidden else UNSENT if name in unsent else _value(types.get(name), value)
            for name, value in row.items()
        }

    def _hides(self, table: str | None, name: str, value: Any) -> bool:
        """Whether a value is nobody's to see; what is nested in it may be of another shape than we think."""
        if table is None or not self.source.hides_some:
            return False
        return isinstance(value, dict) or self.source.hides(table, name)

    def _is_unsent(self, value: Any) -> bool:
        """Whether a value is the placeholder, by whatever its column's type makes of that (E2)."""
        return (dumps(value) if isinstance(value, (dict, list)) else value) in self._unsent

    @cached_property
    def _unsent(self) -> frozenset[str]:
        return frozenset(Placeholder(self.source.placeholder).spellings())


def _value(logical: LogicalType | None, value: Any) -> Any:
    return value if logical is None else to_display(logical, value)


def _is_envelope(body: Row) -> bool:
    return "op" in body and isinstance(body.get("source"), dict)


def _source_metadata(marks: Row) -> dict[str, Any]:
    """What Debezium's fields of a flattened row say, by their names in a ``source`` block; the row may have columns of
    these names (F4).
    """
    plain = {name.removeprefix(_METADATA): value for name, value in marks.items()}
    of_source = {name.removeprefix("source_"): value for name, value in plain.items() if name.startswith("source_")}
    return plain | {name: value for name, value in of_source.items() if value is not None}


def _table(schema: Any, table: Any) -> str | None:
    return f"{schema}.{table}" if schema and table else None


def _table_of_topic(topic: str) -> str | None:
    """The table that a topic's name tells."""
    parts = topic.split(".")
    return ".".join(parts[-2:]) if len(parts) > 1 else None


def _schema_types(
    read: Callable[[Any], Any], schema: Any, declared: Mapping[str, LogicalType]
) -> dict[str, LogicalType]:
    """The types that a schema block tells, with what is declared beside it; none where it is broken."""
    if not isinstance(schema, dict):
        return {}
    try:
        return {field.name: field.logical for field in refine_types(read(schema), declared)}
    except (ConfigError, *PARSE_ERRORS):
        return {}


def _control_note(topic: str, body: Row) -> str:
    """What a record is that Debezium writes about itself; '' if it is none."""
    if topic.startswith("__debezium-heartbeat"):
        return "heartbeat"
    if topic.endswith(".transaction") and body.get("status") in ("BEGIN", "END") and "data_collections" in body:
        return "transaction"
    return "schema change" if "ddl" in body and "source" in body else ""
