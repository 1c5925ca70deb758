"""Key spans: the keys of a batch as a few ranges of values, a filter for skipping files and row groups (performance.md
A3). A join alone skips nothing: it reads the whole table to find some of its keys.

Spans exist for integers and dates. They contain every key and may contain others: filtered rows still have to be joined
with the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names

MAX_SPANS = 16
"""The largest number of spans of one column."""

Span = tuple[Any, Any]
"""A range of values, both ends inclusive. Dates are days since 1970: Python does not have all of Spark's dates, and a
date that its calendar lacks, as the days before the 15th of October 1582, would become another one on the way.
"""

Spans = Mapping[str, Sequence[Span]]
"""Spans by column; nothing is known about the values of a missing column."""

Keys = Sequence[tuple[DataFrame, Sequence[str]]]
"""Frames, each with the columns whose spans are wanted."""

_PARTS = 1024
_NUMBER, _LARGE_NUMBER = "BIGINT", "DECIMAL(38,0)"
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def values(keys: Keys) -> DataFrame | None:
    """One row per value of each column of each frame, with the numbers of frame and column; NULLs are left out. None if
    no column can have spans.
    """
    rangeable = [(frame, _rangeable_columns(frame, columns)) for frame, columns in keys]
    kinds = [_kind(frame, column) for frame, columns in rangeable for column in columns]
    number = _LARGE_NUMBER if any(isinstance(kind, T.DecimalType) for kind in kinds) else _NUMBER
    frames = [_values(frame, columns, at, number) for at, (frame, columns) in enumerate(rangeable) if columns]
    return reduce(DataFrame.unionByName, frames).where(F.col("value").isNotNull()) if frames else None


def bounds(of: DataFrame) -> DataFrame:
    """The minimum and maximum of each column: ``frame``, ``column``, ``low``, ``high``."""
    return of.groupBy("frame", "column").agg(*_least_and_greatest())


def parts(of: DataFrame, known: Sequence[Row]) -> DataFrame:
    """The minimum and maximum within each of ``_PARTS`` equal parts between the ``known`` bounds of each column."""
    return of.groupBy("frame", "column", _part(known).alias("part")).agg(*_least_and_greatest())


def to_spans(keys: Keys, known: Sequence[Row]) -> Sequence[Spans]:
    """The spans of the columns of each frame, from the rows of :func:`parts`. An empty frame has none."""
    return [
        {
            column: _spans(known, (at, number), _kind(frame, column))
            for number, column in enumerate(_rangeable_columns(frame, columns))
        }
        for at, (frame, columns) in enumerate(keys)
    ]


def may_match(rows: DataFrame, columns: Sequence[str], spans: Spans, keys: Sequence[str]) -> Column:
    """Whether a row may have one of the keys: its ``columns`` correspond to the ``keys``, which name the spans."""
    conditions = [
        _among(F.col(names.quote_spark(column)), spans[key], _kind(rows, column))
        for column, key in zip(columns, keys, strict=True)
        if key in spans and _is_rangeable(_kind(rows, column))
    ]
    return reduce(and_, conditions, F.lit(True))


def overlaps(spans: Spans, least: Mapping[str, Any], greatest: Mapping[str, Any]) -> bool:
    """Whether a file may have one of the keys, by the minimum and maximum of its columns; without these a column may
    have any value.
    """
    return all(
        any(least[column] <= high and low <= greatest[column] for low, high in each)
        for column, each in spans.items()
        if least.get(column) is not None and greatest.get(column) is not None
    )


def _rangeable_columns(frame: DataFrame, columns: Sequence[str]) -> list[str]:
    return [column for column in columns if _is_rangeable(_kind(frame, column))]


def _kind(rows: DataFrame, column: str) -> T.DataType:
    return rows.schema[column].dataType


def _is_rangeable(kind: T.DataType) -> bool:
    return isinstance(kind, (*_WHOLE, T.DateType)) or (isinstance(kind, T.DecimalType) and kind.scale == 0)


def _values(rows: DataFrame, columns: Sequence[str], at: int, number: str) -> DataFrame:
    """One row per value of each column, with the numbers of frame and column. All columns are read in one pass: with a
    union of passes Spark would not use the checkpoint of the rows.
    """
    numbers = [_value(rows, name).cast(number).alias("value") for name in columns]
    each = [F.struct(F.lit(n).alias("column"), value) for n, value in enumerate(numbers)]
    exploded = rows.select(F.explode(F.array(*each)).alias("each"))
    return exploded.select(F.lit(at).alias("frame"), "each.column", "each.value")


def _value(rows: DataFrame, column: str) -> Column:
    value = F.col(names.quote_spark(column))
    return F.unix_date(value) if isinstance(_kind(rows, column), T.DateType) else value


def _number(value: int | Decimal, kind: T.DataType) -> int | Decimal:
    return value if isinstance(kind, T.DecimalType) else int(value)


def _literal(value: int | Decimal, kind: T.DataType) -> Column:
    return F.date_from_unix_date(F.lit(value)) if isinstance(kind, T.DateType) else F.lit(value)


def _part(known: Sequence[Row]) -> Column:
    """The number of the equal part between the bounds of its column in which a value lies."""
    part = F.lit(0)
    for row in known:
        is_of = (F.col("frame") == row["frame"]) & (F.col("column") == row["column"])
        first, width = float(row["low"]), float(row["high"] - row["low"])
        if width > 0:
            share = (F.col("value").cast("double") - F.lit(first)) / F.lit(width)
            part = F.when(is_of, F.floor(share * _PARTS)).otherwise(part)
    return part


def _least_and_greatest() -> tuple[Column, Column]:
    return F.min("value").alias("low"), F.max("value").alias("high")


def _spans(known: Sequence[Row], of: tuple[int, int], kind: T.DataType) -> list[Span]:
    in_order = sorted((row["low"], row["high"]) for row in known if (row["frame"], row["column"]) == of)
    return [(_number(low, kind), _number(high, kind)) for low, high in _joined(in_order)]


def _joined(parts: Sequence[Span]) -> Iterator[Span]:
    """Merge parts into at most MAX_SPANS spans, separated at the largest gaps."""
    gaps = sorted(((after[0] - before[1], at) for at, (before, after) in enumerate(pairwise(parts))), reverse=True)
    cuts = sorted(at for gap, at in gaps[: MAX_SPANS - 1] if gap > 1)
    for start, end in pairwise([-1, *cuts, len(parts) - 1] if parts else ()):
        yield parts[start + 1][0], parts[end][1]


def _among(value: Column, spans: Sequence[Span], kind: T.DataType) -> Column:
    ranges = [(value >= _literal(low, kind)) & (value <= _literal(high, kind)) for low, high in spans]
    return reduce(or_, ranges, F.lit(False))
