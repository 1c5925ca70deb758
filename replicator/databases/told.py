"""How a value that a database writes as text becomes a column of one of Spark's types (types.md section 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.transforms import canonical

WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
NUMBERS = (*WHOLE, T.DecimalType, T.FloatType, T.DoubleType)


@dataclass(frozen=True)
class Told:
    """``Told`` of the protocols, with a function that makes the value."""

    sql: str
    made: Callable[[Column], Column]
    meaning: str = ""
    ordered: str = ""

    def value(self, text: Column) -> Column:
        """The value of a text."""
        return self.made(text)


def plain(sql: str, kind: T.DataType, ordered: str = "") -> Told:
    """A text that Spark casts: exact for whole numbers, decimals of enough digits, floats, dates, wall times."""
    return Told(sql, lambda text: text.cast(kind), ordered=ordered)


def number(sql: str, kind: T.DataType, ordered: str = "{}") -> Told | None:
    """A decimal as one of Spark's numbers, or as a text of any length."""
    if isinstance(kind, T.StringType):
        return Told(sql, lambda text: text, canonical.NUMBER)
    return plain(sql, kind, ordered) if isinstance(kind, NUMBERS) else None


def hexed(sql: str) -> Told:
    """Bytes in hex."""
    return Told(sql, F.unhex)


def json(sql: str) -> Told:
    """JSON, to be compared by its value."""
    return Told(sql, lambda text: text, canonical.JSON)


def from_json(sql: str, kind: T.DataType) -> Told:
    """JSON of one of Spark's nested types."""
    return Told(sql, lambda text: F.from_json(text, kind.simpleString()))
