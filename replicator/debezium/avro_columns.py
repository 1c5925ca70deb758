"""Conversion of an Avro schema into declared columns (types.md Y13).

The schema is a file that comes with another tool's settings, or one that an Avro converter has registered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from replicator.debezium.connect_schema import BITS, BY_SEMANTIC_TYPE, DECIMAL, VARIABLE_DECIMAL, is_unsigned_bigint
from replicator.errors import ConfigError

_SIMPLE = {
    "int": "int",
    "long": "bigint",
    "string": "string",
    "boolean": "boolean",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "int date": "date",
    "int time-millis": "time",
    "long time-micros": "micro_time",
    "long timestamp-millis": "timestamp",
    "long timestamp-micros": "micro_timestamp",
    "string uuid": "uuid",
}
"""Declared types by Avro type, followed by the logical type if there is one; used without ``connect.name``."""

_BY_CONNECT_NAME = {**BY_SEMANTIC_TYPE, VARIABLE_DECIMAL: "variable_decimal"}
"""Declared types by ``connect.name``."""


def columns(schema: str) -> dict[str, str]:
    """Declared columns from the Avro schema of a row or an envelope, without Debezium's own fields. Raises ConfigError
    for a type that has no equivalent.
    """
    try:
        record = json.loads(schema)
        known = dict(_named_records(record))
        fields = {each["name"]: each["type"] for each in record["fields"]}
        row = _non_null_type(fields["after"], known) if {"op", "after"} <= fields.keys() else None
        if isinstance(row, dict) and "fields" in row:
            fields = {each["name"]: each["type"] for each in row["fields"]}
        return {name: _type(name, kind, known) for name, kind in fields.items() if not name.startswith("__")}
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"the schema is not an Avro record: {error}") from error


def _named_records(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The records that a schema defines, by name: later uses of a record refer to it by name."""
    if isinstance(schema, list):
        for each in schema:
            yield from _named_records(each)
    elif isinstance(schema, dict):
        if schema.get("type") == "record":
            yield ".".join(part for part in (schema.get("namespace"), schema["name"]) if part), schema
        for each in (schema.get("type"), schema.get("items"), *(schema.get("fields") or ())):
            yield from _named_records(each)


def _non_null_type(schema: Any, known: Mapping[str, Any]) -> Any:
    """The one type of a union with null, or the type itself; None if there are several."""
    kinds = [each for each in schema if each != "null"] if isinstance(schema, list) else [schema]
    return known.get(str(kinds[0]), kinds[0]) if len(kinds) == 1 else None


def _type(name: str, schema: Any, known: Mapping[str, Any]) -> str:
    kind = _non_null_type(schema, known)
    found = _annotated_type(name, kind, known) if isinstance(kind, dict) else _SIMPLE.get(str(kind))
    if found is None:
        raise ConfigError(f"column {name} of the schema has the type {schema}, which has no equivalent")
    return found


def _annotated_type(name: str, kind: Mapping[str, Any], known: Mapping[str, Any]) -> str | None:
    """The declared type by Connect's annotations, else by Avro's own type."""
    meaning = kind.get("connect.name")
    if meaning in _BY_CONNECT_NAME:
        return _BY_CONNECT_NAME[meaning]
    if meaning == BITS:
        return f"bits({kind['connect.parameters']['length']})"
    if kind.get("type") == "array":
        return f"array<{_type(name, kind['items'], known)}>"
    if meaning == DECIMAL or kind.get("logicalType") == "decimal":
        return "decimal({},{})".format(*_precision_and_scale(kind))
    if kind.get("type") == "long" and is_unsigned_bigint(kind.get("connect.parameters") or {}):
        return "bigint unsigned"
    short = kind.get("connect.type") in ("int8", "int16")
    return "smallint" if short else _SIMPLE.get(f"{kind.get('type')} {kind.get('logicalType', '')}".strip())


def _precision_and_scale(kind: Mapping[str, Any]) -> tuple[int, int]:
    """Precision and scale; for a scale that Avro does not allow, only Connect's parameters have them."""
    if "precision" in kind:
        return int(kind["precision"]), int(kind.get("scale", 0))
    parameters = kind["connect.parameters"]
    return int(parameters["connect.decimal.precision"]), int(parameters["scale"])
