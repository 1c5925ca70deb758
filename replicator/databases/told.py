"""How a value that a database writes as text becomes a column of one of Spark's types (types.md section 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.transforms.equality import canonical

WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_SIZES: Mapping[type[T.DataType], int] = {T.ByteType: 1, T.ShortType: 2, T.IntegerType: 4, T.LongType: 8}
"""Bytes of whole numbers."""


@dataclass(frozen=True)
class Told:
    """``Told`` of the protocols, with a function that makes the value."""

    sql: str
    made: Callable[[Column], Column]
    meaning: str = ""
    ordered: str = ""
    may_not_fit: bool = False

    def value(self, text: Column) -> Column:
        """The value of a text."""
        return self.made(text)


def plain(sql: str, kind: T.DataType, ordered: str = "") -> Told:
    """A text that Spark casts: exact for whole numbers, decimals of enough digits, floats, dates, wall times."""
    return Told(sql, lambda text: text.cast(kind), ordered=ordered)


def number(sql: str, kind: T.DataType, ordered: str = "{}", size: int = 0) -> Told | None:
    """A decimal as one of Spark's numbers, or as a text of any length. ``size``: the bytes of the whole number that it
    is, 0 of any other.
    """
    if isinstance(kind, T.StringType):
        return Told(sql, lambda text: text, canonical.NUMBER)
    if isinstance(kind, (T.FloatType, T.DoubleType)) or 0 < size <= _SIZES.get(type(kind), 0):
        return plain(sql, kind, ordered)
    if isinstance(kind, T.DecimalType):
        return Told(sql, lambda text: _decimal(text, kind), ordered=ordered, may_not_fit=True)
    if isinstance(kind, WHOLE):
        return Told(sql, lambda text: _whole(text, kind), ordered=ordered, may_not_fit=True)
    return None


def within(text: Column, pattern: str) -> Column:
    """The texts that are written so; NULL for others."""
    return F.when(text.rlike(pattern), text)


def _decimal(text: Column, kind: T.DecimalType) -> Column:
    """A number in plain notation to its last digit; NULL where the type does not hold it (types.md Y10)."""
    whole, behind = kind.precision - kind.scale, kind.scale
    return within(text, rf"^-?0*[0-9]{{0,{whole}}}([.][0-9]{{0,{behind}}}0*)?$").cast(kind)


def _whole(text: Column, kind: T.DataType) -> Column:
    end = 1 << 8 * _SIZES[type(kind)] - 1
    value = _decimal(text, T.DecimalType(38, 0))
    return F.when((value >= -end) & (value <= end - 1), value).cast(kind)  # `end` is no long


def hexed(sql: str) -> Told:
    """Bytes in hex."""
    return Told(sql, F.unhex)


def json(sql: str) -> Told:
    """JSON, to be compared by its value."""
    return Told(sql, lambda text: text, canonical.JSON)


def from_json(sql: str, kind: T.DataType) -> Told:
    """JSON of one of Spark's nested types."""
    return Told(sql, lambda text: F.from_json(text, kind.simpleString()))
