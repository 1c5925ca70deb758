"""The JSON Schema (2020-12) of a feed's events, from the types of its key and image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T

from replicator.spec import Feed
from replicator.transforms.events import CREATE, DELETE, READ, UPDATE

_FLOAT: dict[str, Any] = {"type": ["number", "string"], "pattern": "^(NaN|-?Infinity)$"}
"""A JSON number cannot be NaN or infinite: Spark writes these as texts."""

_PLAIN_TEXT = {"type": "string"}
_OF_RECORD = {"topic": _PLAIN_TEXT, "partition": {"type": "integer"}, "offset": {"type": "integer"}}
_OF_COMMIT = {"commit": {"type": "integer"}}

_PLAIN: Mapping[type[T.DataType], dict[str, Any]] = {
    T.BooleanType: {"type": "boolean"},
    T.ByteType: {"type": "integer"},
    T.ShortType: {"type": "integer"},
    T.IntegerType: {"type": "integer"},
    T.LongType: {"type": "integer"},
    T.FloatType: _FLOAT,
    T.DoubleType: _FLOAT,
    T.DateType: {"type": "string", "format": "date"},
    T.TimestampType: {"type": "string", "format": "date-time"},
    T.BinaryType: {"type": "string", "contentEncoding": "base64"},
}


def build_json_schema(feed: Feed, key: T.StructType, image: T.StructType) -> dict[str, Any]:
    """The schema of every event of this version of the feed; ``key`` and ``image`` have the types of ``events.images``.

    Columns are nullable, since an expression or an unknown value can make them NULL; those of the key are not.
    """
    row = _row(image, nullable=True)
    source = {"table": _PLAIN_TEXT, "sequence": _PLAIN_TEXT, **(_OF_RECORD if feed.every_change else _OF_COMMIT)}
    members = {
        "id": {"type": "string", "description": "Id of the change: the same whenever it is sent again."},
        "type": {"const": feed.name},
        "version": {"const": feed.version},
        "op": {"enum": [CREATE, READ, UPDATE, DELETE], "description": "read: the row existed when the feed began."},
        "time": {"type": ["string", "null"], "format": "date-time", "description": "Time of the change at its source."},
        "key": _row(key, nullable=False),
        "before": {"anyOf": [row, {"type": "null"}]},
        "after": {"anyOf": [row, {"type": "null"}]},
        "complete": {"type": "boolean", "description": "false: some column is null because its value is unknown."},
        "source": {
            "type": "object",
            "description": "Origin of the change; for one key a greater sequence is a later state.",
            "properties": source,
            "required": list(source),
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{feed.name} version {feed.version}",
        "description": feed.description or f"Changes of {feed.table}, in the topic {feed.topic}.",
        "type": "object",
        "properties": members,
        "required": list(members),
    }


def _row(kind: T.StructType, *, nullable: bool) -> dict[str, Any]:
    columns = {field.name: _nullable(_value(field.dataType)) if nullable else _value(field.dataType) for field in kind}
    return {"type": "object", "properties": columns, "required": list(columns)}


def _value(kind: T.DataType) -> dict[str, Any]:
    if isinstance(kind, T.ArrayType):
        return {"type": "array", "items": _nullable(_value(kind.elementType))}
    if isinstance(kind, T.MapType):
        return {"type": "object", "additionalProperties": _nullable(_value(kind.valueType))}
    if isinstance(kind, T.StructType):
        return _row(kind, nullable=True)
    return dict(_PLAIN.get(type(kind), {"type": "string"}))


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}
