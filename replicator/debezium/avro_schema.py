"""Conversion of a schema block into the Avro schema that an Avro converter would register (debezium.md A5).

For tools that need an Avro schema (``.avsc``) of JSON records. What Avro cannot express is added to its types under the
names that converters use (``connect.name``, ``connect.type``, ``connect.parameters``): ``avro_columns.py`` reads them
back. Defaults of structs and lists are left out.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replicator.debezium.connect_schema import DECIMAL, logical_of, require_struct
from replicator.debezium.logical_types import MAX_PRECISION
from replicator.errors import ConfigError

_SIMPLE = {
    "int8": "int", "int16": "int", "int32": "int", "int64": "long",
    "float": "float", "float32": "float", "double": "double", "float64": "double",
    "boolean": "boolean", "string": "string", "bytes": "bytes",
}  # fmt: skip
_SHORT = ("int8", "int16")
_CONNECT = "org.apache.kafka.connect.data."
_LOGICAL = {f"{_CONNECT}Date": "date", f"{_CONNECT}Time": "time-millis", f"{_CONNECT}Timestamp": "timestamp-millis"}
"""Types with an equivalent logical type in Avro; Debezium's own are given by ``connect.name`` alone."""

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_]")


def avro_schema(block: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the schema of a record's value, a Connect struct, to an Avro record. An optional field becomes a union
    with null. Raises ConfigError if the block is not a struct, and for a field name that Avro does not allow.
    """
    require_struct(block)
    schema: dict[str, Any] = _SchemaBuilder().type_of(block)
    return schema


@dataclass
class _SchemaBuilder:
    """Builds Avro types; a named type is defined where it occurs first, and referred to by name from then on."""

    defined: dict[str, Any] = field(default_factory=dict)

    def type_of(self, schema: Mapping[str, Any]) -> Any:
        """The Avro type of a schema, without the union with null."""
        kind = str(schema.get("type"))
        if kind == "struct":
            return self._record(schema)
        if kind == "array":
            return _with_connect_attributes(
                {"type": "array", "items": self._nullable(schema.get("items") or {"type": "string"})}, schema
            )
        if kind == "map":
            return _with_connect_attributes(self._map(schema), schema)
        if kind not in _SIMPLE:
            raise ConfigError(f"unknown Connect type {kind!r}", where=schema.get("field"))
        found = _with_connect_attributes({"type": _SIMPLE[kind]} | _logical_type(schema) | _connect_type(kind), schema)
        return found["type"] if len(found) == 1 else found

    def _record(self, schema: Mapping[str, Any]) -> Any:
        members = schema.get("fields") or []
        full = ".".join(_valid_name(part) for part in str(schema.get("name") or "Value").split("."))
        while full in self.defined:
            if self.defined[full] == members:
                return full
            full += "_"
        self.defined[full] = members
        space, _, name = full.rpartition(".")
        named = {"type": "record", "name": name} | ({"namespace": space} if space else {})
        return _with_connect_attributes(named, schema) | {"fields": [self._field(member) for member in members]}

    def _field(self, member: Mapping[str, Any]) -> dict[str, Any]:
        name = str(member["field"])
        if not _NAME.fullmatch(name):
            fix = "Set `field.name.adjustment.mode: avro` at the connector."
            raise ConfigError("not a valid Avro field name", where=name, fix=fix)
        default, kind = _default(member), self.type_of(member)
        if not member.get("optional"):
            return {"name": name, "type": kind} | ({} if default is None else {"default": default})
        union = ["null", kind] if default is None else [kind, "null"]
        return {"name": name, "type": union, "default": default}

    def _nullable(self, schema: Mapping[str, Any]) -> Any:
        kind = self.type_of(schema)
        return ["null", kind] if schema.get("optional") else kind

    def _map(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The Avro type of a map. Raises ConfigError if its keys are not texts; Debezium's own maps have no others."""
        keys = schema.get("keys") or {"type": "string"}
        if keys.get("type") != "string":
            what = f"Avro does not support maps with keys of type {keys.get('type')}"
            raise ConfigError(what, where=schema.get("field"), fix="Leave the column out at the connector.")
        return {"type": "map", "values": self._nullable(schema.get("values") or {"type": "string"})}


def _logical_type(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Avro's logical type, if it has one for these values; it has none for a negative scale, for example."""
    if schema.get("name") != DECIMAL:
        logical = _LOGICAL.get(str(schema.get("name")))
        return {} if logical is None else {"logicalType": logical}
    decimal = logical_of(schema)
    precision, scale = decimal.precision or MAX_PRECISION, decimal.scale or 0
    return {"logicalType": "decimal", "precision": precision, "scale": scale} if 0 <= scale <= precision else {}


def _connect_type(kind: str) -> dict[str, Any]:
    return {"connect.type": kind} if kind in _SHORT else {}


def _with_connect_attributes(kind: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The type with Connect's attributes from the block."""
    attributes = {part: schema.get(part) for part in ("version", "parameters", "name")}
    return kind | {f"connect.{part}": value for part, value in attributes.items() if value is not None}


def _default(member: Mapping[str, Any]) -> Any:
    """The block's default as Avro writes it: bytes as one character each. None also for a struct or a list."""
    default, kind = member.get("default"), member.get("type")
    if isinstance(default, dict | list) or (kind == "bytes" and not isinstance(default, str)):
        return None
    try:
        return base64.b64decode(str(default), validate=True).decode("latin-1") if kind == "bytes" else default
    except binascii.Error:
        return None


def _valid_name(part: str) -> str:
    """A part of a schema's name, adjusted like Debezium's ``schema.name.adjustment.mode: avro`` does."""
    fitted = _NOT_IN_NAMES.sub("_", part)
    return fitted if _NAME.fullmatch(fitted) else f"_{fitted}"
