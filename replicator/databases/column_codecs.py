"""Codecs that turn texts from a database into columns of Spark types (types.md section 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.transforms.comparison import canonical

INTEGER_TYPES = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_SIZES: Mapping[type[T.DataType], int] = {T.ByteType: 1, T.ShortType: 2, T.IntegerType: 4, T.LongType: 8}
"""Bytes of Spark's types of whole numbers."""


@dataclass(frozen=True)
class ColumnCodec:
    """``database_snapshots.ColumnCodec``, with ``made``, a function from text to value."""

    sql: str
    made: Callable[[Column], Column]
    meaning: str = ""
    ordered: str = ""
    may_not_fit: bool = False

    def value(self, text: Column) -> Column:
        """The value of a text."""
        return self.made(text)


def cast(sql: str, kind: T.DataType, ordered: str = "") -> ColumnCodec:
    """A codec by Spark's cast: exact for whole numbers, decimals of enough digits, floats, dates, wall-clock times."""
    return ColumnCodec(sql, lambda text: text.cast(kind), ordered=ordered)


def number(sql: str, kind: T.DataType, ordered: str = "{}", size: int = 0) -> ColumnCodec | None:
    """The codec from a decimal text to one of Spark's numbers, or to a text of any length. ``size``: bytes of the
    database's type of whole numbers, 0 for any other.
    """
    if isinstance(kind, T.StringType):
        return ColumnCodec(sql, lambda text: text, canonical.NUMBER)
    if isinstance(kind, (T.FloatType, T.DoubleType)) or 0 < size <= _SIZES.get(type(kind), 0):
        return cast(sql, kind, ordered)
    if isinstance(kind, T.DecimalType):
        return ColumnCodec(sql, lambda text: _decimal(text, kind), ordered=ordered, may_not_fit=True)
    if isinstance(kind, INTEGER_TYPES):
        return ColumnCodec(sql, lambda text: _whole(text, kind), ordered=ordered, may_not_fit=True)
    return None


def matching(text: Column, pattern: str) -> Column:
    """The text if it matches the pattern, else NULL."""
    return F.when(text.rlike(pattern), text)


def _decimal(text: Column, kind: T.DecimalType) -> Column:
    """A number in plain notation, without rounding; NULL if the type cannot hold it (types.md Y10)."""
    whole, scale = kind.precision - kind.scale, kind.scale
    return matching(text, rf"^-?0*[0-9]{{0,{whole}}}([.][0-9]{{0,{scale}}}0*)?$").cast(kind)


def _whole(text: Column, kind: T.DataType) -> Column:
    end = 1 << 8 * _SIZES[type(kind)] - 1
    value = _decimal(text, T.DecimalType(38, 0))
    return F.when((value >= -end) & (value <= end - 1), value).cast(kind)  # `end` may exceed a long


def hex_bytes(sql: str) -> ColumnCodec:
    """The codec of bytes in hex."""
    return ColumnCodec(sql, F.unhex)


def json_text(sql: str) -> ColumnCodec:
    """The codec of JSON text that is compared by its value."""
    return ColumnCodec(sql, lambda text: text, canonical.JSON)


def from_json(sql: str, kind: T.DataType) -> ColumnCodec:
    """The codec from JSON to one of Spark's nested types."""
    return ColumnCodec(sql, lambda text: F.from_json(text, kind.simpleString()))
