"""Unwrapping of unions in JSON made from Avro, where a value is written with the name of its type (debezium.md A5).

``{"string": "x"}`` stands for ``"x"``, ``{"db.t.Value": {...}}`` for a row. A column is unwrapped if its type is known
from a schema block, the declaration or the stored column; else only if the record itself shows that it comes from Avro.
Pure Python over values of :mod:`replicator.debezium.jsontext`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replicator.debezium.connect_schema import JSON_OBJECT, row_fields
from replicator.debezium.jsontext import Number
from replicator.debezium.logical_types import LogicalType
from replicator.debezium.source_block import schema_of
from replicator.errors import ConfigError

Types = Mapping[str, LogicalType]
"""The types of one table's columns, by name."""

_NUMBERS = ("int", "long", "float", "double")
_PRIMITIVES = ("boolean", *_NUMBERS, "bytes", "string")
_STRUCTS = (
    "struct",
    "point",
    "geometry",
    "sparse_vector",
    "structured_date",
    "structured_time",
    "structured_timestamp",
    "structured_zoned_timestamp",
)
_BYTES = LogicalType("bytes", encoding="base64")
_BYTES_IN: Mapping[str, Types] = {
    "point": {"wkb": _BYTES},
    "geometry": {"wkb": _BYTES},
    "variable_decimal": {"value": _BYTES},
}
_SIDES = ("before", "after")


@dataclass(frozen=True)
class Unions:
    """Unwraps the unions of records, given the types of each table.

    ``latin1``: bytes are written as one character per byte, as in Avro's own JSON; else as base64, as in Debezium's
    JSON. The text of a value does not distinguish the two.
    """

    types: Mapping[str, Types] = field(default_factory=dict)
    latin1: bool = False

    def record(self, value: dict[str, Any], topic: str) -> dict[str, Any]:
        """A record's value without unions; anything else stays as it is."""
        if set(value) == {"schema", "payload"} and isinstance(value["payload"], dict):
            block = value["schema"] if isinstance(value["schema"], dict) else None
            return {"schema": value["schema"], "payload": self._body(value["payload"], topic, block)}
        return self._body(value, topic, None)

    def key(self, key: Any, table: str | None, *, from_avro: bool = False) -> Any:
        """A record's key without unions: no part of a key is an object. ``from_avro``: the record's value is."""
        if not isinstance(key, dict):
            return key
        if set(key) == {"schema", "payload"}:
            return {"schema": key["schema"], "payload": self.key(key["payload"], table, from_avro=from_avro)}
        types = self.types.get(table or "", {})
        return {
            name: self._column(part, types[name], from_avro) if name in types else _unwrapped(part)
            for name, part in _row(key, types).items()
        }

    def _body(self, body: dict[str, Any], topic: str, block: Mapping[str, Any] | None) -> dict[str, Any]:
        from_avro = is_from_avro(body)
        head = {name: _unwrapped(held) for name, held in body.items() if name not in _SIDES}
        types = _schema_types(block) or self.types.get(table_of(head, topic) or "", {})
        if head.get("op") is None and not isinstance(head.get("source"), dict):
            return self._columns(body, types, from_avro)
        sides = {side: body[side] for side in _SIDES if side in body}
        return head | {
            side: self._columns(_row(row, types), types, from_avro) if isinstance(row, dict) else row
            for side, row in sides.items()
        }

    def _columns(self, row: dict[str, Any], types: Types, from_avro: bool) -> dict[str, Any]:
        return {
            name: _unwrapped(held) if name.startswith("__") else self._column(held, types.get(name), from_avro)
            for name, held in row.items()
        }

    def _column(self, value: Any, logical: LogicalType | None, from_avro: bool) -> Any:
        """One column's value; ``logical`` is None if its type is unknown."""
        name, held = _branch(value) or ("", None)
        if logical is None:
            is_bytes = name == "bytes" and isinstance(held, str)
            return value if not from_avro else self._bytes(held) if is_bytes else _unwrapped(value)
        if logical.name in _STRUCTS or (logical.name == "variable_decimal" and logical.encoding == "base64"):
            return self._struct(value, logical, from_avro)
        if logical.name == "map":
            inside = held if name == "map" and isinstance(held, dict) else value if from_avro else None
            return {key: _unwrapped(part) for key, part in inside.items()} if isinstance(inside, dict) else value
        if logical.element is not None:
            parts = held if name == "array" else value
            element = logical.element
            return [self._column(part, element, from_avro) for part in parts] if isinstance(parts, list) else value
        is_union = _is_branch_of(name, held) and not isinstance(held, dict | list) and logical != JSON_OBJECT
        scalar = held if is_union else value
        return self._bytes(scalar) if (is_union or from_avro) and _is_bytes(logical) else scalar

    def _struct(self, value: Any, logical: LogicalType, from_avro: bool) -> Any:
        """A struct's value. A field's name may contain a dot, too: a known field of the struct is not a union."""
        known = {field.name: field.logical for field in logical.fields}
        name, held = _branch(value) or ("", None)
        is_union = "." in name and isinstance(held, dict) and name not in known
        fields, from_avro = held if is_union else value, from_avro or is_union
        if not isinstance(fields, dict):
            return value
        if from_avro:
            known |= _BYTES_IN.get(logical.name, {})
        return {part: self._column(inner, known.get(part), from_avro) for part, inner in fields.items()}

    def _bytes(self, value: Any) -> Any:
        """Bytes as base64."""
        if not self.latin1 or not isinstance(value, str):
            return value
        try:
            return base64.b64encode(value.encode("latin-1")).decode()
        except UnicodeEncodeError:
            return value


def table_of(head: Mapping[str, Any], topic: str) -> str | None:
    """``<database or schema>.<table>`` of a record from its source block, its metadata fields, or its topic."""
    source = head.get("source")
    found = source if isinstance(source, dict) else {name[2:]: held for name, held in head.items() if name[:2] == "__"}
    found = {name.removeprefix("source_"): held for name, held in found.items()}
    parts = topic.split(".") if len(topic.split(".")) >= 3 else [None, None]
    schema = schema_of(found, parts[-2])
    table = found.get("table") or parts[-1]
    return f"{schema}.{table}" if schema and table else None


def is_from_avro(body: Mapping[str, Any]) -> bool:
    """Whether a record shows that it comes from Avro: by a row under its type's name, or a Debezium field in a union.

    ``body`` is the record without a schema wrapper.
    """
    sides = [body.get(side) for side in _SIDES]
    if any(isinstance(side, dict) and _row(side, {}) is not side for side in sides):
        return True
    source = body.get("source")
    own = list(source.values()) if isinstance(source, dict) else []
    own += [held for name, held in body.items() if name.startswith("__") or name in ("op", "ts_ms")]
    return any(_unwrapped(held) is not held for held in own if isinstance(held, dict))


def _row(row: dict[str, Any], types: Types) -> dict[str, Any]:
    """The row inside an object with its type's name; the object itself if the name is no such name."""
    branch = _branch(row)
    if branch is None or not isinstance(branch[1], dict) or branch[0] in types:
        return row
    name, inner = branch
    is_type = name.split(".")[-1] in ("Value", "Key", "Envelope") or name.count(".") > 1
    return inner if is_type else row


def _branch(value: Any) -> tuple[str, Any] | None:
    """Name and value of an object of one field, which may be a union; None for anything else."""
    return next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else None


def _unwrapped(value: Any) -> Any:
    """A value without its unions, recognised by their form alone."""
    branch = _branch(value)
    if branch is not None and _is_branch_of(*branch):
        return _inside(branch[1])
    return _inside(value)


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {name: _unwrapped(held) for name, held in value.items()}
        return value if all(inner[name] is value[name] for name in value) else inner
    if isinstance(value, list):
        parts = [_unwrapped(held) for held in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    return value


def _is_branch_of(name: str, value: Any) -> bool:
    """Whether a union's branch of this name can hold the value."""
    if name in _NUMBERS:
        return isinstance(value, Number) or (name in ("float", "double") and value in ("NaN", "Infinity", "-Infinity"))
    if name in _PRIMITIVES:
        return isinstance(value, bool if name == "boolean" else str)
    if name in ("array", "map"):
        return isinstance(value, list if name == "array" else dict)
    return "." in name and isinstance(value, dict | str)


def _is_bytes(logical: LogicalType) -> bool:
    return logical.name == "bits" or (
        logical.name in ("bytes", "decimal") and logical.encoding in ("base64", "connect")
    )


def _schema_types(block: Mapping[str, Any] | None) -> Types:
    if block is None:
        return {}
    try:
        return {column.name: column.logical for column in row_fields(block)}
    except (ConfigError, ValueError, TypeError, AttributeError, LookupError):
        return {}  # reported when its records are decoded
