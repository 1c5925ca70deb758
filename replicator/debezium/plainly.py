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

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What is raised where JSON has another shape than it should."""


def plain(source: SourceSpec, topic: str, key: bytes | None, value: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Key and value of a record as a plain one of the source has them; the key is None where it stays as it is, and
    both are what they were where the record is a plain one, or cannot be read any further.
    """
    try:
        return _plain(source, topic, key, value)
    except UNREADABLE:
        return None, value


def _plain(source: SourceSpec, topic: str, key: bytes | None, value: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    is_wrapped = set(value) == {"schema", "payload"} and isinstance(value["payload"], dict)
    body = value["payload"] if is_wrapped else value
    if "specversion" in value:
        event = cloudevents.plain(value)
        return None, value if event is None else event
    if _connector(body) == mongodb.CONNECTOR:
        return mongodb.plain(_parsed(key), value)
    if not is_from_avro(body):
        return None, value
    unions = Unions({each.table: declared_types(each.columns) for each in source.tables}, source.latin1_bytes)
    read = unions.record(value, topic)
    table = table_of(read["payload"] if is_wrapped else read, topic)
    return unions.key(_parsed(key), table, from_avro=True), read


def _connector(body: dict[str, Any]) -> str:
    told = body.get("source")
    return str(told.get("connector", "")).lower() if isinstance(told, dict) else ""


def _parsed(key: bytes | None) -> Any:
    """The key's value, None where it is no JSON."""
    try:
        return None if key is None else loads(key.decode())
    except ValueError:
        return None


def unwrapped(told: Any) -> tuple[Any, Any]:
    """The schema block and the record without its wrapper (A3)."""
    is_wrapped = isinstance(told, dict) and set(told) == {"schema", "payload"}
    return (told["schema"], told["payload"]) if is_wrapped else (None, told)


def block(value: bytes | None) -> Mapping[str, Any] | None:
    """The schema block of a record's value, its numbers as Python's; None without one."""
    try:
        schema, _ = unwrapped(json.loads(value or b"null"))
    except (ValueError, RecursionError):
        return None
    return schema if isinstance(schema, dict) else None


def names_columns(key: bytes | None) -> bool:
    """Whether a record's key says which columns a row is known by: an object of JSON does, a plain text does not."""
    try:
        _, body = unwrapped(loads((key or b"null").decode()))
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and bool(body)
