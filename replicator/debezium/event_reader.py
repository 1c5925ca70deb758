"""Reader of single records as readable events: what happened to which row, at which position of the source.

Pure Python over the texts of the record (debezium.md sections A, B, F), for looking at topics without waiting for
Spark to start. For display only: silver applies what ``envelope.py`` finds.
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
from replicator.debezium.source_block import format_position, schema_of
from replicator.errors import ConfigError
from replicator.spec import SourceSpec

Row = Mapping[str, Any]
"""Columns by the source's names; numbers are ``jsontext.Number``."""

UNSENT = "(not sent)"
"""Shown for a value that Debezium left out (debezium.md section E)."""

HIDDEN = "***"
"""Shown for a value that the source's file hides from readers of the lake."""

_METADATA = "__"


@dataclass(frozen=True)
class KafkaRecord:
    """A Kafka record; ``timestamp`` in epoch milliseconds, None if unknown."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class StartingOffset:
    """Where to start reading a partition, or the versions of a table: at ``offset``, or ``last`` entries before the
    end; with neither at the beginning.
    """

    offset: int | None = None
    last: int | None = None

    def within(self, beginning: int, end: int) -> int:
        """The first offset to read, given that those from ``beginning`` to before ``end`` exist."""
        wanted = beginning if self.offset is None else self.offset
        wanted = wanted if self.last is None else end - self.last
        return min(max(wanted, beginning), end)


@dataclass(frozen=True)
class ChangeEvent:
    """The content of a record. ``op`` is Debezium's letter, '' for what is not a change of a row: ``note`` says what it
    is instead. ``before`` and ``after`` are None if the record has none; ``position`` is in the source's own terms;
    ``types`` are those by which the row was read, for columns that have one.
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
        """Columns with their values before and after: those that differ if the record has both images, else all."""
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
    """Reads the records of one source, by the types in their schema blocks, else by the declared ones."""

    source: SourceSpec = SourceSpec("", "")  # noqa: RUF009 - frozen

    def event(self, record: KafkaRecord) -> ChangeEvent:
        """Read a record. Never raises: an unreadable record gets a ``note`` that says so."""
        if record.value is None:
            return ChangeEvent(record, key=self._key(record, {}), note="tombstone")
        try:
            value = loads(record.value.decode())
        except UnicodeDecodeError:
            return ChangeEvent(record, note="not UTF-8")
        except (ValueError, RecursionError):
            return ChangeEvent(record, key=self._key(record, {}), note="malformed JSON")
        if value is None:
            return ChangeEvent(record, key=self._key(record, {}), note="tombstone")
        record, value = self._plain(record, value)
        schema, body = split_schema(value)
        if not isinstance(body, dict):
            return ChangeEvent(record, note="tombstone" if body is None else "not an object")
        return self._envelope(record, schema, body) if _is_envelope(body) else self._flattened(record, schema, body)

    def _plain(self, record: KafkaRecord, value: Any) -> tuple[KafkaRecord, Any]:
        """The record with the key of a plain one, and its value as a plain one."""
        if not isinstance(value, dict):
            return record, value
        key, body = normalize(self.source, record.topic, record.key, value)
        return (record if key is None else replace(record, key=dumps(key).encode())), body

    def _envelope(self, record: KafkaRecord, schema: Any, body: Row) -> ChangeEvent:
        source = body["source"] if isinstance(body.get("source"), dict) else {}
        table = _table(source.get("schema") or source.get("db"), source.get("table") or source.get("table_name"))
        table = table or body.get("type")  # an event of our own
        types = self._types(table, schema)
        return ChangeEvent(
            record,
            op=_text(body["op"]),
            table=table,
            position=format_position(source),
            key=self._key(record, types, table),
            before=self._row(body.get("before"), types, table),
            after=self._row(body.get("after"), types, table),
            types=types,
        )

    def _flattened(self, record: KafkaRecord, schema: Any, body: Row) -> ChangeEvent:
        """The event of a flattened row, or of a record that is no row."""
        own = {name: value for name, value in body.items() if not name.startswith(_METADATA)}
        metadata = _source_metadata({name: value for name, value in body.items() if name not in own})
        note = _control_note(record.topic, body)
        parts = record.topic.split(".")
        schema_name, table_name = parts[-2:] if len(parts) > 2 else (None, None)  # as silver does
        if note or (not metadata and table_name is None):
            shown = {"ddl": body["ddl"]} if note == "schema change" else None if self.source.has_masks else own
            return ChangeEvent(record, key=self._key(record, {}), after=shown, note=note or "not a Debezium event")
        table = _table(schema_of(metadata, schema_name), metadata.get("table") or table_name)
        types = self._types(table, schema)
        is_deleted = str(metadata.get("deleted", "")).lower() == "true"
        row, op = self._row(own, types, table), _text(metadata.get("op") or "u")
        before, after = (row, None) if is_deleted else (None, row)
        key = self._key(record, types, table)
        return ChangeEvent(
            record, "d" if is_deleted else op, table, format_position(metadata), key, before, after, types=types
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
            return {"key": HIDDEN if self.source.has_masks else body}
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
        """Whether a value must be hidden. Any of an unknown table is, and a nested one, since its structure may not be
        the expected one.
        """
        if not self.source.has_masks:
            return False
        return table is None or isinstance(value, dict) or self.source.is_masked(table, name)

    def _is_unsent(self, value: Any) -> bool:
        """Whether a value is the placeholder, in the spelling of any column type (E2)."""
        return (dumps(value) if isinstance(value, (dict, list)) else value) in self._unsent

    @cached_property
    def _unsent(self) -> frozenset[str]:
        return frozenset(Placeholder(self.source.placeholder).spellings())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _value(logical: LogicalType | None, value: Any) -> Any:
    return value if logical is None else to_display(logical, value)


def _is_envelope(body: Row) -> bool:
    return "op" in body and isinstance(body.get("source"), dict)


def _source_metadata(marks: Row) -> dict[str, Any]:
    """Debezium's metadata fields of a flattened row, by their names in a ``source`` block; the row itself may have
    columns of these names (F4).
    """
    plain = {name.removeprefix(_METADATA): value for name, value in marks.items()}
    of_source = {name.removeprefix("source_"): value for name, value in plain.items() if name.startswith("source_")}
    return plain | {name: value for name, value in of_source.items() if value is not None}


def _table(schema: Any, table: Any) -> str | None:
    return f"{schema}.{table}" if schema and table else None


def _table_of_topic(topic: str) -> str | None:
    """The table that a topic is named after."""
    parts = topic.split(".")
    return ".".join(parts[-2:]) if len(parts) > 1 else None


def _schema_types(
    read: Callable[[Any], Any], schema: Any, declared: Mapping[str, LogicalType]
) -> dict[str, LogicalType]:
    """The types in a schema block, refined by the declared ones; empty if the block is invalid."""
    if not isinstance(schema, dict):
        return {}
    try:
        return {field.name: field.logical for field in refine_types(read(schema), declared)}
    except (ConfigError, *PARSE_ERRORS):
        return {}


def _control_note(topic: str, body: Row) -> str:
    """The kind of a record that is not about a row: heartbeat, transaction, schema change; '' for any other."""
    if topic.startswith("__debezium-heartbeat"):
        return "heartbeat"
    if topic.endswith(".transaction") and body.get("status") in ("BEGIN", "END") and "data_collections" in body:
        return "transaction"
    return "schema change" if "ddl" in body and "source" in body else ""
