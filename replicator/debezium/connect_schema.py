"""Kafka Connect's schema blocks, by which a record describes its own columns (types.md section 2, debezium.md A2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from replicator import names
from replicator.debezium.logical_types import MAX_PRECISION, Field, LogicalType
from replicator.errors import ConfigError

_BY_CONNECT_TYPE = {
    "int8": "smallint", "int16": "smallint", "int32": "int", "int64": "bigint",
    "float": "float", "float32": "float", "double": "double", "float64": "double",
    "boolean": "boolean", "string": "string",
}  # fmt: skip
BY_SEMANTIC_TYPE = {
    "io.debezium.time.Date": "date",
    "org.apache.kafka.connect.data.Date": "date",
    "io.debezium.time.Time": "time",
    "org.apache.kafka.connect.data.Time": "time",
    "io.debezium.time.MicroTime": "micro_time",
    "io.debezium.time.NanoTime": "nano_time",
    "io.debezium.time.Timestamp": "timestamp",
    "org.apache.kafka.connect.data.Timestamp": "timestamp",
    "io.debezium.time.MicroTimestamp": "micro_timestamp",
    "io.debezium.time.NanoTimestamp": "nano_timestamp",
    "io.debezium.time.ZonedTimestamp": "zoned_timestamp",
    "io.debezium.time.ZonedTime": "zoned_time",
    "io.debezium.time.IsoDate": "iso_date",
    "io.debezium.time.IsoTime": "iso_time",
    "io.debezium.time.IsoTimestamp": "iso_timestamp",
    "io.debezium.time.StructuredDate": "structured_date",
    "io.debezium.time.StructuredTime": "structured_time",
    "io.debezium.time.StructuredTimestamp": "structured_timestamp",
    "io.debezium.time.StructuredZonedTimestamp": "structured_zoned_timestamp",
    "io.debezium.time.Year": "year",
    "io.debezium.time.Interval": "interval",
    "io.debezium.time.MicroDuration": "micro_duration",
    "io.debezium.time.NanoDuration": "nano_duration",
    "io.debezium.data.Json": "json",
    "io.debezium.data.Uuid": "uuid",
    "io.debezium.data.Xml": "xml",
    "io.debezium.data.Ltree": "ltree",
    "io.debezium.data.Tsvector": "tsvector",
    "io.debezium.data.Enum": "enum",
    "io.debezium.data.EnumSet": "enum_set",
    "io.debezium.data.geometry.Point": "point",
    "io.debezium.data.geometry.Geometry": "geometry",
    "io.debezium.data.geometry.Geography": "geometry",
    "io.debezium.data.SparseDoubleVector": "sparse_vector",
}
DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
BITS = "io.debezium.data.Bits"
JSON_OBJECT = LogicalType("json", encoding="object")
"""A struct or a map that is kept as its JSON text; a single member is never the type of a union, whatever its name."""

_VECTORS = {"io.debezium.data.FloatVector": "float", "io.debezium.data.DoubleVector": "double"}
_SOURCE_TYPE = "__debezium.source.column.type"
_MONEY_PRECISION = 19
_UNQUOTED_NAME = re.compile(r"(?!\d+(e\d+)?([yslfd]|bd)?$)\w+", re.ASCII | re.IGNORECASE)
"""Letters, digits and ``_``, except for number literals: ``1e5``, ``7L``."""


def row_fields(value_schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The columns of the rows that records with this value schema carry.

    For an envelope these are the fields of ``after`` (else ``before``), for a flattened row those of the struct itself.
    Raises ConfigError if the schema is not a struct.
    """
    members = {member.get("field"): member for member in value_schema.get("fields") or ()}
    if "op" in members:
        for side in ("after", "before"):
            if members.get(side, {}).get("type") == "struct":
                return fields_of(members[side])
    return fields_of(value_schema)


def fields_of(schema_block: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of a Connect struct: a row, a flattened row, or a key (types.md section 2).

    The semantic ``name`` decides, then the Connect type. Raises ConfigError if the block is not a struct.
    """
    require_struct(schema_block)
    return tuple(
        Field(
            name=str(member["field"]),
            logical=logical_of(member),
            optional=bool(member.get("optional", True)),
            default=member.get("default"),
        )
        for member in schema_block.get("fields") or ()
    )


def require_struct(schema_block: Mapping[str, Any]) -> None:
    """Raise ConfigError if the block is not a struct."""
    if schema_block.get("type") != "struct":
        message = f"a schema of type {schema_block.get('type')!r} is not a row"
        raise ConfigError(message, fix="Expected a Connect struct.")


def logical_of(schema: Mapping[str, Any]) -> LogicalType:
    """The logical type of one Connect schema; unknown semantic names are read by their Connect type."""
    name, connect_type = schema.get("name"), str(schema.get("type"))
    if name == DECIMAL:
        return _connect_decimal(schema)
    if name == VARIABLE_DECIMAL:
        return LogicalType("variable_decimal", encoding="base64")
    if name == BITS:
        return LogicalType("bits", length=int(_parameters(schema).get("length", 64)))
    if name in _VECTORS:
        return LogicalType("array", element=LogicalType(_VECTORS[name]))
    if name in BY_SEMANTIC_TYPE:
        return LogicalType(BY_SEMANTIC_TYPE[name])
    return _by_connect_type(schema, connect_type)


def _by_connect_type(schema: Mapping[str, Any], connect_type: str) -> LogicalType:
    if connect_type == "bytes":
        return LogicalType("bytes", encoding="base64")
    if connect_type == "array":
        return LogicalType("array", element=logical_of(schema.get("items") or {"type": "string"}))
    if connect_type == "struct":
        fields = fields_of(schema)
        return LogicalType("struct", fields=fields) if _is_valid_struct(fields) else JSON_OBJECT
    if connect_type == "map":
        return LogicalType("map") if _is_text_map(schema) else JSON_OBJECT
    if connect_type not in _BY_CONNECT_TYPE:
        raise ConfigError(f"unknown Connect type {connect_type!r}", where=schema.get("field"))
    unsigned = connect_type == "int64" and is_unsigned_bigint(_parameters(schema))
    return LogicalType(_BY_CONNECT_TYPE[connect_type], unsigned=unsigned)


def is_unsigned_bigint(parameters: Mapping[str, Any]) -> bool:
    """Whether a schema's parameters say that its column is a BIGINT UNSIGNED at the source."""
    source_type = str(parameters.get(_SOURCE_TYPE, "")).upper()
    return source_type.startswith("BIGINT") and "UNSIGNED" in source_type


def _is_valid_struct(fields: Sequence[Field]) -> bool:
    """Whether Delta can store a struct of these fields: there are some, and their names, which are not encoded within a
    column, are plain and differ in more than case.
    """
    found = [field.name for field in fields]
    return bool(found) and all(map(is_unquoted_name, found)) and names.find_case_conflict(found) is None


def is_unquoted_name(name: str) -> bool:
    """Whether Spark can read the field name back, unquoted, from a type that it wrote itself."""
    return _UNQUOTED_NAME.fullmatch(name) is not None


def _is_text_map(schema: Mapping[str, Any]) -> bool:
    return all((schema.get(part) or {}).get("type") == "string" for part in ("keys", "values"))


def _connect_decimal(schema: Mapping[str, Any]) -> LogicalType:
    """The type of a Connect Decimal. The block lacks the converter's ``decimal.format``; each value shows it."""
    parameters = _parameters(schema)
    precision = parameters.get("connect.decimal.precision")
    if precision is None and str(parameters.get(_SOURCE_TYPE, "")).upper() in ("MONEY", "SMALLMONEY"):
        precision = _MONEY_PRECISION
    scale = int(parameters.get("scale", 0))
    return LogicalType("decimal", int(precision or MAX_PRECISION), scale, encoding="connect")


def _parameters(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema.get("parameters") or {}
