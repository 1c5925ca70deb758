"""Columns for a catalog: Spark's types as Hive's, for Glue's columns, and as Trino's, for Athena's views.

Athena keeps times to the millisecond. It reads ``TIMESTAMP`` of Delta as a time with a zone, ``TIMESTAMP_NTZ`` as one
without; Hive's type is ``timestamp`` for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import types as T

from replicator import names
from replicator.errors import CatalogRefused, ConfigError

COMMENT_LENGTH = 255
"""The greatest length of a column's comment in Glue, in characters."""

_HIVE: dict[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.ByteType: "tinyint",
    T.ShortType: "smallint",
    T.IntegerType: "int",
    T.LongType: "bigint",
    T.FloatType: "float",
    T.DoubleType: "double",
    T.StringType: "string",
    T.BinaryType: "binary",
    T.DateType: "date",
    T.TimestampType: "timestamp",
    T.TimestampNTZType: "timestamp",
}
_TRINO = {
    "int": "integer",
    "float": "real",
    "string": "varchar",
    "binary": "varbinary",
    "timestamp": "timestamp(3)",
}
_PLAIN_FIELD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column as a catalog has it: its name in lower case, its type in Hive's and in Trino's notation.

    ``comment`` is None if there is none to write, so that an existing one stays.
    """

    name: str
    hive: str
    trino: str
    comment: str | None = None

    @property
    def has_time(self) -> bool:
        """Whether its values contain timestamps, for which Trino has more than one type."""
        return "timestamp" in self.trino


def columns(fields: Iterable[T.StructField], comments: Mapping[str, str], where: str) -> tuple[Column, ...]:
    """Return the columns of a table, in their order. *comments* are by stored name; for a column without one, the
    source's spelling of its name is noted if it differs.

    Raises CatalogRefused, naming the column, for a type that Athena does not read and for names that differ by case
    only.
    """
    every = list(fields)
    try:
        names.refuse_case_conflict((field.name for field in every), "The table")
        return tuple(_column(field, comments.get(field.name)) for field in every)
    except ConfigError as error:
        raise CatalogRefused(error.what, where=where) from error
    except _UnsupportedType as error:
        raise CatalogRefused(str(error), where=where, fix="Remove it from the model, or cast it there.") from error


def hive_type(kind: T.DataType) -> str:
    """The type in Hive's notation. Raises for a type that Athena does not have."""
    if isinstance(kind, T.DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, T.ArrayType):
        return f"array<{hive_type(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"map<{hive_type(kind.keyType)},{hive_type(kind.valueType)}>"
    if isinstance(kind, T.StructType):
        return f"struct<{','.join(f'{_field(each)}:{hive_type(each.dataType)}' for each in kind)}>"
    if type(kind) not in _HIVE:
        raise _UnsupportedType(f"Athena has no type for {kind.simpleString()}")
    return _HIVE[type(kind)]


def trino_type(kind: T.DataType) -> str:
    """The type in Trino's notation. Raises for a type that Athena does not have."""
    if isinstance(kind, T.ArrayType):
        return f"array({trino_type(kind.elementType)})"
    if isinstance(kind, T.MapType):
        return f"map({trino_type(kind.keyType)}, {trino_type(kind.valueType)})"
    if isinstance(kind, T.StructType):
        return f"row({', '.join(_row_field(each) for each in kind)})"
    plain = hive_type(kind)
    return _TRINO.get(plain, plain)


def one_line(text: str, length: int = COMMENT_LENGTH) -> str:
    """A text as Glue accepts it for a comment: one line, truncated to ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


class _UnsupportedType(Exception):
    """A type that Hive-like catalogs do not have."""


def _column(field: T.StructField, comment: str | None) -> Column:
    try:
        hive, trino = hive_type(field.dataType), trino_type(field.dataType)
    except _UnsupportedType as error:
        raise _UnsupportedType(f"{error}, which column {field.name} has") from error
    name, original = field.name.lower(), str(field.metadata.get("name", field.name))
    text = comment or (f"{original} at the source" if original != name else None)
    return Column(name, hive, trino, one_line(text) if text else None)


def _field(field: T.StructField) -> str:
    if not _PLAIN_FIELD.fullmatch(field.name):
        raise _UnsupportedType(f"Athena cannot read a field named {field.name!r}")
    return field.name.lower()


def _row_field(field: T.StructField) -> str:
    return f'"{_field(field)}" {trino_type(field.dataType)}'
