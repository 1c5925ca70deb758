"""Normalization of single records without Spark: CloudEvents, JSON made from Avro, MongoDB's records, and anything in a
converter's wrapper (debezium.md A5, A6, K).

``shapes.py`` does the same for silver, over the records that ``envelope.py`` marks. Pure Python over values of
:mod:`replicator.debezium.jsontext`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from replicator.debezium import cloudevents, mongodb
from replicator.debezium.jsontext import loads
from replicator.debezium.schema import declared_types
from replicator.debezium.unions import Unions, is_from_avro, table_of
from replicator.spec import SourceSpec

PARSE_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""Raised for JSON without the expected structure."""


def normalize(source: SourceSpec, topic: str, key: bytes | None, value: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Key and value of the equivalent plain record. The key is None if it stays as it is; the value is unchanged, too,
    if the record is a plain one or cannot be interpreted.
    """
    try:
        return _normalize(source, topic, key, value)
    except PARSE_ERRORS:
        return None, value


def _normalize(source: SourceSpec, topic: str, key: bytes | None, value: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    is_wrapped = set(value) == {"schema", "payload"} and isinstance(value["payload"], dict)
    body = value["payload"] if is_wrapped else value
    if "specversion" in value:
        event = cloudevents.to_envelope(value)
        return None, value if event is None else event
    if _connector(body) == mongodb.CONNECTOR:
        return mongodb.to_envelope(_parse_key(key), value)
    if not is_from_avro(body):
        return None, value
    unions = Unions({each.table: declared_types(each.columns) for each in source.tables}, source.latin1_bytes)
    read = unions.record(value, topic)
    table = table_of(read["payload"] if is_wrapped else read, topic)
    return unions.key(_parse_key(key), table, from_avro=True), read


def _connector(body: dict[str, Any]) -> str:
    source = body.get("source")
    return str(source.get("connector", "")).lower() if isinstance(source, dict) else ""


def _parse_key(key: bytes | None) -> Any:
    """The key's value, None if it is not JSON."""
    try:
        return None if key is None else loads(key.decode())
    except ValueError:
        return None


def split_schema(value: Any) -> tuple[Any, Any]:
    """The schema block and the record without its wrapper (A3); the block is None without one."""
    is_wrapped = isinstance(value, dict) and set(value) == {"schema", "payload"}
    return (value["schema"], value["payload"]) if is_wrapped else (None, value)


def schema_block(value: bytes | None) -> Mapping[str, Any] | None:
    """The schema block of a record's value, with Python's numbers; None without one."""
    try:
        schema, _ = split_schema(json.loads(value or b"null"))
    except (ValueError, RecursionError):
        return None
    return schema if isinstance(schema, dict) else None


def has_key_columns(key: bytes | None) -> bool:
    """Whether a record's key names the columns that identify a row: a JSON object does, a plain text does not."""
    try:
        _, body = split_schema(loads((key or b"null").decode()))
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and bool(body)
