"""The names of column types in their short form, and their aliases (types.md section 2)."""

from __future__ import annotations

import difflib
import re

from replicator.errors import ConfigError

# Logical types without arguments, each with its silver type (types.md section 2).
SIMPLE_TYPES = {
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "STRING",
    "bytes": "BINARY",
    "date": "DATE",
    "time": "BIGINT",
    "micro_time": "BIGINT",
    "nano_time": "BIGINT",
    "timestamp": "TIMESTAMP_NTZ",
    "micro_timestamp": "TIMESTAMP_NTZ",
    "nano_timestamp": "TIMESTAMP_NTZ",
    "zoned_timestamp": "TIMESTAMP",
    "zoned_time": "STRING",
    "iso_date": "DATE",
    "iso_time": "STRING",
    "iso_timestamp": "TIMESTAMP_NTZ",
    "structured_date": "DATE",
    "structured_time": "BIGINT",
    "structured_timestamp": "TIMESTAMP_NTZ",
    "structured_zoned_timestamp": "TIMESTAMP",
    "year": "INT",
    "interval": "STRING",
    "micro_duration": "BIGINT",
    "nano_duration": "BIGINT",
    "json": "STRING",
    "uuid": "STRING",
    "xml": "STRING",
    "ltree": "STRING",
    "tsvector": "STRING",
    "enum": "STRING",
    "enum_set": "ARRAY<STRING>",
    "map": "MAP<STRING, STRING>",
    "point": "STRUCT<x: DOUBLE, y: DOUBLE, wkb: BINARY, srid: INT>",
    "geometry": "STRUCT<wkb: BINARY, srid: INT>",
    "sparse_vector": "STRUCT<dimensions: INT, entries: ARRAY<STRUCT<i: INT, v: DOUBLE>>>",
}

# Aliases. SQL names mean what Debezium sends for such a column by default.
ALIASES = {
    "tinyint": "smallint", "int8": "smallint", "int16": "smallint", "int2": "smallint", "short": "smallint",
    "smallserial": "smallint",
    "integer": "int", "int32": "int", "int4": "int", "mediumint": "int", "serial": "int",
    "long": "bigint", "int64": "bigint", "bigserial": "bigint",
    "float32": "float", "float4": "float", "real": "float",
    "float64": "double", "float8": "double", "double precision": "double",
    "bool": "boolean",
    "text": "string", "varchar": "string", "char": "string", "character": "string", "character varying": "string",
    "bpchar": "string", "nchar": "string", "nvarchar": "string", "varchar2": "string", "nvarchar2": "string",
    "tinytext": "string", "mediumtext": "string", "longtext": "string", "clob": "string", "citext": "string",
    "inet": "string", "cidr": "string", "macaddr": "string",
    "binary": "bytes", "varbinary": "bytes", "blob": "bytes", "tinyblob": "bytes", "mediumblob": "bytes",
    "longblob": "bytes", "bytea": "bytes", "raw": "bytes",
    "numeric": "decimal", "dec": "decimal",
    "datetime": "timestamp",
    "timestamptz": "zoned_timestamp", "timestamp with time zone": "zoned_timestamp",
    "datetimeoffset": "zoned_timestamp",
    "timetz": "zoned_time", "time with time zone": "zoned_time",
    "jsonb": "json", "hstore": "map", "set": "enum_set", "geography": "geometry",
    "duration": "micro_duration",
    "bit": "bits", "varbit": "bits", "bit varying": "bits",
}  # fmt: skip

# Short forms that name the encoding of the values, whatever the source's handling modes are.
ENCODED_TYPES = {
    "decimal_string": ("decimal", "text"),
    "decimal_number": ("decimal", "number"),
    "decimal_base64": ("decimal", "base64"),
    "decimal_connect": ("decimal", "connect"),
    "variable_decimal_string": ("variable_decimal", "text"),
    "bytes_base64": ("bytes", "base64text"),
    "bytes_base64url": ("bytes", "base64url"),
    "bytes_hex": ("bytes", "hex"),
}
SUFFIX_OF_ENCODING = {
    ("decimal", "text"): "_string",
    ("decimal", "number"): "_number",
    ("decimal", "connect"): "_connect",
    ("variable_decimal", "text"): "_string",
    ("bytes", "base64text"): "_base64",
    ("bytes", "base64url"): "_base64url",
    ("bytes", "hex"): "_hex",
}
_WITH_ARGUMENTS = ("decimal", "variable_decimal", "bits")


def unknown_type(text: str) -> ConfigError:
    """The error for an unknown type, with the nearest known name."""
    known = [*SIMPLE_TYPES, *_WITH_ARGUMENTS, *ENCODED_TYPES, *ALIASES, "array"]
    near = difflib.get_close_matches(re.split(r"[(<\[]", text.strip().lower())[0], known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "docs/types.md lists the short forms."
    if text.count("(") > text.count(")"):
        hint = 'Put a type with a comma in quotation marks: "decimal(10,2)".'
    return ConfigError(f"unknown type {text!r}", fix=hint)
