"""Which ranges of a table's keys are looked at, of both sides alike, and in which of them something differs."""

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
"""A sample by ranges may be so much smaller or larger than it was asked for."""


@dataclass(frozen=True)
class Span:
    """Keys that differ in one range: from ``low`` to ``high``, so many."""

    low: Any
    high: Any
    keys: int


@dataclass(frozen=True)
class Ranges:
    """Ranges of the key ``column`` with some of its ``values``, sorted; no column where none has a common order.

    ``share``: this part of them is looked at (``ranges.intervals``); ``only``: in these ranges (None: in all).
    """

    column: str = ""
    values: tuple[Any, ...] = ()
    share: float = 1.0
    only: frozenset[int] | None = None

    @cached_property
    def bounds(self) -> tuple[Any, ...]:
        """Between the ranges."""
        return ranges.bounds(self.values)

    @cached_property
    def intervals(self) -> tuple[Interval, ...] | None:
        """What is looked at; None: everything."""
        if not self.column or (self.share >= 1 and self.only is None):
            return None
        every = ranges.intervals(self.values, self.share)
        return tuple(each for at, each in every.items() if self.only is None or at in self.only)

    def within(self, rows: DataFrame) -> DataFrame:
        """The rows that are looked at."""
        inside = self.intervals
        return (
            rows if inside is None else rows.where(ranges.in_intervals(F.col(names.quote_spark(self.column)), inside))
        )

    def number(self) -> Column:
        """The range of a row."""
        return ranges.range_number(F.col(names.quote_spark(self.column)), self.bounds)

    def narrowed(self, values: Iterable[Any]) -> Ranges:
        """The ranges that these values are in, and no other."""
        return replace(self, only=frozenset(ranges.range_number_of(value, self.bounds) for value in values))

    def spans(self, values: Iterable[Any]) -> tuple[Span, ...]:
        """Values by range; NULL, which a broken key may be, is in none."""
        found: dict[int, list[Any]] = defaultdict(list)
        for value in (each for each in values if each is not None):
            found[ranges.range_number_of(value, self.bounds)].append(value)
        return tuple(Span(min(found[at]), max(found[at]), len(found[at])) for at in sorted(found))

    def spans_of(self, rows: DataFrame) -> tuple[Span, ...]:
        """The same of rows, where they are."""
        if not self.column:
            return ()
        value = F.col(names.quote_spark(self.column))
        parts = rows.where(value.isNotNull()).groupBy(self.number().alias("at"))
        told = parts.agg(F.min(value).alias("low"), F.max(value).alias("high"), F.count("*").alias("keys"))
        return tuple(Span(row["low"], row["high"], row["keys"]) for row in told.orderBy("at").collect())


def build(rows: DataFrame, keys: Sequence[str], share: float) -> Ranges:
    """The ranges of a table: by the first key column that tells enough of them apart. None where no column does, or a
    share of its ranges would be no fair sample.
    """
    columns = ranges.orderable_keys(rows, keys)
    sampled = ranges.sample(rows, keys, columns).collect() if columns else []
    if not sampled:
        return Ranges()
    sorted_values = {column: tuple(sorted(row[column] for row in sampled)) for column in columns}
    told = {column: len(ranges.bounds(values)) for column, values in sorted_values.items()}
    column = next((each for each in columns if told[each] == ranges.COUNT - 1), max(columns, key=told.__getitem__))
    made = Ranges(column, sorted_values[column], share)
    return made if _is_fair(made) else Ranges()


def describe(column: str, spans: Collection[Span]) -> tuple[str, ...]:
    """In which ranges keys differ, in words."""
    name = names.decode(column)
    return tuple(
        f"{name} {each.low}: 1 key" if each.keys == 1 else f"{name} {each.low} to {each.high}: {each.keys:,} keys"
        for each in spans
    )


def _is_fair(made: Ranges) -> bool:
    inside = made.intervals
    if inside is None:
        return True
    seen = sum(any(_is_in(value, *each) for each in inside) for value in made.values)
    return _FAIR[0] <= seen / len(made.values) / made.share <= _FAIR[1]


def _is_in(value: Any, low: Any, high: Any) -> bool:
    return (low is None or value > low) and (high is None or value <= high)
