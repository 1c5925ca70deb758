"""Ranges of a key column's values, the same in every engine (reliability.md P9).

A range excludes its lower bound and includes its upper one; the first and the last are open. Bounds come from a sample
of the keys, so that ranges have about the same size for any distribution.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import date
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.transforms.comparison.comparable import column_types
from replicator.transforms.literals import literal

COUNT = 64
"""The largest number of ranges."""

SAMPLE = 64 * COUNT
"""The number of sampled rows from which bounds are computed."""

Interval = tuple[Any, Any]
"""Values above the first up to and including the second; None: open."""

_HASH = "_ hash"
_ORDERED = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType, T.StringType, T.DateType)


def orderable_keys(rows: DataFrame, keys: Sequence[str]) -> list[str]:
    """The keys whose values have the same order in every engine: numbers, dates, and strings by their bytes."""
    types = column_types(rows)
    return [key for key in keys if isinstance(types[key], _ORDERED)]


def sample(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """``columns`` of SAMPLE rows without NULLs in them; deterministic, by the hash of ``keys``."""
    hashed = rows.select(*map(names.quote_spark, columns), F.xxhash64(*map(names.quote_spark, keys)).alias(_HASH))
    return hashed.dropna().orderBy(names.quote_spark(_HASH)).limit(SAMPLE).drop(_HASH)


def bounds(values: Sequence[Any]) -> tuple[Any, ...]:
    """Distinct bounds that divide sorted values into COUNT ranges, or fewer if values repeat."""
    parts = (values[len(values) * at // COUNT] for at in range(1, COUNT) if values)
    return tuple(dict.fromkeys(parts))


def intervals(values: Sequence[Any], share: float = 1.0) -> dict[int, Interval]:
    """The ranges of sorted values by their number; of each the ``share`` at its upper end, the newest keys included. If
    the share is finer than the sample, only some ranges are taken.
    """
    every = list(enumerate(pairwise((None, *bounds(values), None))))
    least = COUNT / SAMPLE
    step = max(1, round(least / share))
    return {at: _end(values, *ends, max(share, least)) for at, ends in every[::-1][::step][::-1]}


def range_number(value: Column, ends: Sequence[Any]) -> Column:
    """The number of the range of a value: 0 to ``len(ends)``."""

    def among(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        return F.when(value <= _literal(ends[middle]), among(low, middle)).otherwise(among(middle + 1, high))

    return among(0, len(ends))


def range_number_of(value: Any, ends: Sequence[Any]) -> int:
    """The same for a Python value."""
    return bisect_left(ends, value)


def in_intervals(value: Column, inside: Iterable[Interval]) -> Column:
    """Whether a value is in one of the intervals."""
    return reduce(or_, (_between(value, *each) for each in inside), F.lit(False))


def _end(values: Sequence[Any], low: Any, high: Any, share: float) -> Interval:
    start = 0 if low is None else bisect_right(values, low)
    stop = len(values) if high is None else bisect_right(values, high)
    skipped = int((stop - start) * (1 - share))
    return (values[start + skipped - 1] if skipped else low), high


def _between(value: Column, low: Any, high: Any) -> Column:
    above = F.lit(True) if low is None else value > _literal(low)
    return above if high is None else above & (value <= _literal(high))


def _literal(bound: Any) -> Column:
    return literal(bound, T.DateType()) if isinstance(bound, date) else F.lit(bound)
