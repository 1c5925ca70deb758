"""What an Avro schema says of a table's columns, as they are declared (types.md Y13): of the file that comes with other
tools' settings, or that an Avro converter has registered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from replicator.debezium.connect_schema import BITS, BY_SEMANTIC_TYPE, DECIMAL, VARIABLE_DECIMAL
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
"""By Avro's type, with its logical one where it has that and Connect says nothing."""

_BY_CONNECT_NAME = {**BY_SEMANTIC_TYPE, VARIABLE_DECIMAL: "variable_decimal"}
"""By Connect's name of a type."""


def columns(schema: str) -> dict[str, str]:
    """Declared columns from an Avro schema, of a row or of an envelope, Debezium's own fields left out. Raises
    ConfigError for a type that has no equivalent.
    """
    try:
        record = json.loads(schema)
        known = dict(_named_records(record))
        fields = {each["name"]: each["type"] for each in record["fields"]}
        row = _non_null_type(fields["after"], known) if {"op", "after"} <= fields.keys() else None
        if isinstance(row, dict) and "fields" in row:
            fields = {each["name"]: each["type"] for each in row["fields"]}
        return {name: _type(name, told, known) for name, told in fields.items() if not name.startswith("__")}
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"the schema is no Avro record: {error}") from error


def _named_records(told: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The records that a schema defines, by their names: each is called by its name from its second place on."""
    if isinstance(told, list):
        for each in told:
            yield from _named_records(each)
    elif isinstance(told, dict):
        if told.get("type") == "record":
            yield ".".join(part for part in (told.get("namespace"), told["name"]) if part), told
        for each in (told.get("type"), told.get("items"), *(told.get("fields") or ())):
            yield from _named_records(each)


def _non_null_type(told: Any, known: Mapping[str, Any]) -> Any:
    """The one type beside null; None of several."""
    kinds = [each for each in told if each != "null"] if isinstance(told, list) else [told]
    return known.get(str(kinds[0]), kinds[0]) if len(kinds) == 1 else None


def _type(name: str, told: Any, known: Mapping[str, Any]) -> str:
    kind = _non_null_type(told, known)
    found = _annotated_type(name, kind, known) if isinstance(kind, dict) else _SIMPLE.get(str(kind))
    if found is None:
        raise ConfigError(f"column {name} of the schema has the type {told}, which has no equivalent")
    return found


def _annotated_type(name: str, kind: Mapping[str, Any], known: Mapping[str, Any]) -> str | None:
    """By what Connect says of it, else by Avro's words."""
    meaning = kind.get("connect.name")
    if meaning in _BY_CONNECT_NAME:
        return _BY_CONNECT_NAME[meaning]
    if meaning == BITS:
        return f"bits({kind['connect.parameters']['length']})"
    if kind.get("type") == "array":
        return f"array<{_type(name, kind['items'], known)}>"
    if meaning == DECIMAL or kind.get("logicalType") == "decimal":
        return "decimal({},{})".format(*_precision_and_scale(kind))
    short = kind.get("connect.type") in ("int8", "int16")
    return "smallint" if short else _SIMPLE.get(f"{kind.get('type')} {kind.get('logicalType', '')}".strip())


def _precision_and_scale(kind: Mapping[str, Any]) -> tuple[int, int]:
    """Precision and scale; of a scale that Avro does not have Connect's parameters alone tell them."""
    if "precision" in kind:
        return int(kind["precision"]), int(kind.get("scale", 0))
    told = kind["connect.parameters"]
    return int(told["connect.decimal.precision"]), int(told["scale"])
