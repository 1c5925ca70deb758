"""The ranges of a table's keys that are compared, the same on both sides, and the ranges in which something differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.transforms.comparison import ranges
from replicator.transforms.comparison.ranges import Interval

_FAIR = (0.5, 2.0)
"""The bounds of an acceptable sample size, as a factor of the requested size."""


@dataclass(frozen=True)
class Span:
    """The differing keys in one range: the lowest, the highest and their number."""

    low: Any
    high: Any
    keys: int


@dataclass(frozen=True)
class Ranges:
    """Ranges of the key ``column``, formed from some of its ``values`` (sorted); the column is '' where no key column
    has an order that all engines share.

    ``share``: the part of each range that is compared (``ranges.intervals``); ``selected``: the numbers of the compared
    ranges (None: all).
    """

    column: str = ""
    values: tuple[Any, ...] = ()
    share: float = 1.0
    selected: frozenset[int] | None = None

    @cached_property
    def bounds(self) -> tuple[Any, ...]:
        """The bounds between the ranges."""
        return ranges.bounds(self.values)

    @cached_property
    def intervals(self) -> tuple[Interval, ...] | None:
        """The compared intervals; None: everything."""
        if not self.column or (self.share >= 1 and self.selected is None):
            return None
        intervals_by_number = ranges.intervals(self.values, self.share)
        return tuple(
            each for number, each in intervals_by_number.items() if self.selected is None or number in self.selected
        )

    def filter(self, rows: DataFrame) -> DataFrame:
        """Return those of the rows that are compared."""
        inside = self.intervals
        return (
            rows if inside is None else rows.where(ranges.in_intervals(F.col(names.quote_spark(self.column)), inside))
        )

    def number(self) -> Column:
        """Return the number of a row's range."""
        return ranges.range_number(F.col(names.quote_spark(self.column)), self.bounds)

    def narrow(self, values: Iterable[Any]) -> Ranges:
        """Return only the ranges that contain these values."""
        return replace(self, selected=frozenset(ranges.range_number_of(value, self.bounds) for value in values))

    def spans(self, values: Iterable[Any]) -> tuple[Span, ...]:
        """Return the spans of some values; NULL, which a broken key may contain, is in no range."""
        found: dict[int, list[Any]] = defaultdict(list)
        for value in (each for each in values if each is not None):
            found[ranges.range_number_of(value, self.bounds)].append(value)
        return tuple(Span(min(found[number]), max(found[number]), len(found[number])) for number in sorted(found))

    def spans_of(self, rows: DataFrame) -> tuple[Span, ...]:
        """Return the spans of the keys in some rows, computed by Spark."""
        if not self.column:
            return ()
        value = F.col(names.quote_spark(self.column))
        parts = rows.where(value.isNotNull()).groupBy(self.number().alias("at"))
        aggregated = parts.agg(F.min(value).alias("low"), F.max(value).alias("high"), F.count("*").alias("keys"))
        return tuple(Span(row["low"], row["high"], row["keys"]) for row in aggregated.orderBy("at").collect())


def build(rows: DataFrame, keys: Sequence[str], share: float) -> Ranges:
    """Return the ranges of a table, by the first key column that has enough distinct values. They are empty where no
    column has a common order, or a share of the ranges would not be a fair sample.
    """
    columns = ranges.orderable_keys(rows, keys)
    sampled = ranges.sample(rows, keys, columns).collect() if columns else []
    if not sampled:
        return Ranges()
    sorted_values = {column: tuple(sorted(row[column] for row in sampled)) for column in columns}
    bound_counts = {column: len(ranges.bounds(values)) for column, values in sorted_values.items()}
    column = next(
        (each for each in columns if bound_counts[each] == ranges.COUNT - 1), max(columns, key=bound_counts.__getitem__)
    )
    built = Ranges(column, sorted_values[column], share)
    return built if _is_fair(built) else Ranges()


def describe(column: str, spans: Collection[Span]) -> tuple[str, ...]:
    """Describe the ranges in which keys differ."""
    name = names.decode(column)
    return tuple(
        f"{name} {each.low}: 1 key" if each.keys == 1 else f"{name} {each.low} to {each.high}: {each.keys:,} keys"
        for each in spans
    )


def _is_fair(sampled: Ranges) -> bool:
    inside = sampled.intervals
    if inside is None:
        return True
    count = sum(any(_is_in(value, *each) for each in inside) for value in sampled.values)
    return _FAIR[0] <= count / len(sampled.values) / sampled.share <= _FAIR[1]


def _is_in(value: Any, low: Any, high: Any) -> bool:
    return (low is None or value > low) and (high is None or value <= high)
