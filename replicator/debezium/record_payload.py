"""Records of unusual shapes as plain ones, for who looks at a few without Spark: CloudEvents, JSON made from Avro,
MongoDB's (debezium.md A5, A6, K), and whatever stands in a wrapper.

``shapes`` does the same for silver, over the records that ``envelope`` marks. Pure Python over :mod:`jsontext` values.
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
"""What is raised where JSON has another shape than it should."""


def normalize(source: SourceSpec, topic: str, key: bytes | None, value: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Key and value of a record as a plain one of the source has them; the key is None where it stays as it is, and
    both are what they were where the record is a plain one, or cannot be read any further.
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
    told = body.get("source")
    return str(told.get("connector", "")).lower() if isinstance(told, dict) else ""


def _parse_key(key: bytes | None) -> Any:
    """The key's value, None where it is no JSON."""
    try:
        return None if key is None else loads(key.decode())
    except ValueError:
        return None


def split_schema(told: Any) -> tuple[Any, Any]:
    """The schema block and the record without its wrapper (A3)."""
    is_wrapped = isinstance(told, dict) and set(told) == {"schema", "payload"}
    return (told["schema"], told["payload"]) if is_wrapped else (None, told)


def schema_block(value: bytes | None) -> Mapping[str, Any] | None:
    """The schema block of a record's value, its numbers as Python's; None without one."""
    try:
        schema, _ = split_schema(json.loads(value or b"null"))
    except (ValueError, RecursionError):
        return None
    return schema if isinstance(schema, dict) else None


def has_key_columns(key: bytes | None) -> bool:
    """Whether a record's key says which columns a row is known by: an object of JSON does, a plain text does not."""
    try:
        _, body = split_schema(loads((key or b"null").decode()))
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and bool(body)
