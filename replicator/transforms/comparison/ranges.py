"""Values of a key column by ranges: equal ranges of equal values in every engine (reliability.md P9).

A range goes from behind one bound up to the next, with it; the first and the last have no end. Bounds come from a
sample of the keys, so that ranges are of about one size however the keys lie.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.transforms.comparison.comparable import column_types

COUNT = 64
"""How many ranges there are at most."""

SAMPLE = 64 * COUNT
"""So many rows tell where bounds are."""

Interval = tuple[Any, Any]
"""Values above the first up to the second; None: it has no such end."""

_HASH = "_ hash"
_ORDERED = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType, T.StringType, T.DateType)


def orderable_keys(rows: DataFrame, keys: Sequence[str]) -> list[str]:
    """The keys whose values stand in one order everywhere: numbers, dates, and texts by their bytes."""
    types = column_types(rows)
    return [key for key in keys if isinstance(types[key], _ORDERED)]


def sample(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """``columns`` of SAMPLE rows without a NULL there, always the same ones of a table: by the hash of ``keys``."""
    hashed = rows.select(*map(names.quote_spark, columns), F.xxhash64(*map(names.quote_spark, keys)).alias(_HASH))
    return hashed.dropna().orderBy(names.quote_spark(_HASH)).limit(SAMPLE).drop(_HASH)


def bounds(values: Sequence[Any]) -> tuple[Any, ...]:
    """Distinct bounds that part sorted values into COUNT ranges; fewer where values repeat."""
    parts = (values[len(values) * at // COUNT] for at in range(1, COUNT) if values)
    return tuple(dict.fromkeys(parts))


def intervals(values: Sequence[Any], share: float = 1.0) -> dict[int, Interval]:
    """The ranges of sorted values by their number; of each the ``share`` at its end, the newest keys among them. Where
    that is less than the values tell, of some ranges only.
    """
    every = list(enumerate(pairwise((None, *bounds(values), None))))
    least = COUNT / SAMPLE
    step = max(1, round(least / share))
    return {at: _end(values, *ends, max(share, least)) for at, ends in every[::-1][::step][::-1]}


def range_number(value: Column, ends: Sequence[Any]) -> Column:
    """Which range a value is in: 0 to ``len(ends)``."""

    def among(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        return F.when(value <= F.lit(ends[middle]), among(low, middle)).otherwise(among(middle + 1, high))

    return among(0, len(ends))


def range_number_of(value: Any, ends: Sequence[Any]) -> int:
    """The same of a value that is here."""
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
    above = F.lit(True) if low is None else value > F.lit(low)
    return above if high is None else above & (value <= F.lit(high))
