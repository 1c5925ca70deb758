"""Comparison of two tables that must be equal: first by checksums of buckets, then row by row in the buckets that
differ.

Buckets divide the keys in the same way on both sides: by ranges, and by hash within each range. A sample is a part of
each range, or some of the buckets where the keys have no common order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.types import DataType, TimestampType

from replicator import names
from replicator.operate.verify.ranges import Ranges, Span, describe
from replicator.operate.verify.verdict import Verdict, VerifyOptions
from replicator.stages import tuning
from replicator.transforms.comparison import checksum, compare
from replicator.transforms.comparison.checksum import COPY_NUMBER, Sum

SHOWN = 5
"""The number of differing keys that a verdict names at most."""

KNOWN = 1000
"""The number of differing keys that are kept at most, to be compared again."""


@dataclass(frozen=True)
class Pair:
    """Two sides of a comparison: ``other`` must contain the rows of ``one``. ``keys`` are columns of both, ``ranges``
    divide these. ``meanings``: see ``transforms/comparison/canonical.py``.
    """

    one: DataFrame
    other: DataFrame
    keys: tuple[str, ...]
    meanings: Mapping[str, str] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=Ranges)

    @property
    def columns(self) -> list[str]:
        """The compared columns: all but the keys that have the same type on both sides."""
        mismatched = self.incomparable
        return [name for name in self.one.columns if name not in self.keys and name not in mismatched]

    @property
    def incomparable(self) -> Mapping[str, tuple[str | None, str | None]]:
        """Columns that cannot be compared, with their two types."""
        return compare.type_mismatches(self.one, self.other)


@dataclass(frozen=True)
class Differences:
    """The checksum of the rows of ``one`` (``total``); the number of differing keys by verdict (``counts``) and by
    range (``spans``); and at most KNOWN of the keys, as rows of the key, COPY_NUMBER and what
    ``compare.differences`` says.
    """

    total: Sum
    counts: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def key_count(self) -> int:
        """The number of differing keys."""
        return sum(self.counts.values())

    def keys(self, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the known differing keys."""
        return list(dict.fromkeys(key_of_row(row, columns) for row in self.rows))

    def without(self, keys: Sequence[tuple[Any, ...]], pair: Pair) -> Differences:
        """Return the differences without some keys. Only valid where all differing keys are known."""
        if not keys:
            return self
        remaining = tuple(row for row in self.rows if key_of_row(row, pair.keys) not in set(keys))
        verdicts = [row[compare.VERDICT] for row in remaining]
        counts = {word: verdicts.count(word) for word in dict.fromkeys(verdicts)}
        return replace(self, counts=counts, rows=remaining, spans=_spans(pair.ranges, remaining))

    def where(self, parts: Ranges) -> Ranges:
        """Return those of the ranges that contain differing keys; all of them where some differing key is in no range,
        as NULL is.
        """
        if sum(span.keys for span in self.spans) < self.key_count:
            return parts
        return parts.narrow(span.low for span in self.spans)


def key_of_row(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of a row's key as a tuple whose hash and equality distinguish keys."""
    return tuple(map(_stable_value, (row[name] for name in columns)))


def _stable_value(value: Any) -> Any:
    """Return a hashable value: bytes for a bytearray; a time in UTC if it is in the second of two equal hours of a
    daylight saving change.
    """
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(timezone.utc) if isinstance(value, datetime) and value.fold else value


def to_spark_key(key: Sequence[Any], kinds: Sequence[DataType]) -> tuple[Any, ...]:
    """Return a key whose times have a time zone: for one without, Spark guesses between the two equal hours of a
    daylight saving change.
    """
    return tuple(
        value.astimezone(timezone.utc) if isinstance(kind, TimestampType) and value is not None else value
        for value, kind in zip(key, kinds, strict=True)
    )


def find_differences(pair: Pair, options: VerifyOptions) -> Differences:
    """Return the differences between the two sides."""
    sides = [pair.ranges.filter(rows) for rows in (pair.one, pair.other)]
    sums = [checksum.to_sums(_sums(rows, pair, options)) for rows in sides]
    total = sum(sums[0].values(), Sum())
    differing = checksum.differing_buckets(*sums)
    if not differing:
        return Differences(total)
    one, other = (_bucket_rows(rows, pair, differing) for rows in sides)
    with tuning.persist(compare.differences(one, other, [*pair.keys, COPY_NUMBER])) as found:
        counts = {row[compare.VERDICT]: row["count"] for row in found.groupBy(compare.VERDICT).count().collect()}
        rows = tuple(found.limit(KNOWN).collect())
        is_complete = sum(counts.values()) == len(rows)
        return Differences(
            total, counts, rows, _spans(pair.ranges, rows) if is_complete else pair.ranges.spans_of(found)
        )


def to_verdict(verdict: Verdict, pair: Pair, found: Differences, options: VerifyOptions) -> Verdict:
    """Return the verdict with the differences filled in."""
    return replace(
        verdict,
        rows=found.total.rows,
        missing=found.counts.get(compare.MISSING, 0),
        extra=found.counts.get(compare.EXTRA, 0),
        differing=found.counts.get(compare.DIFFERING, 0),
        columns=tuple(
            f"{names.decode(column)}: {one_type or 'none'}, {other_type or 'none'}"
            for column, (one_type, other_type) in pair.incomparable.items()
        ),
        named=tuple(_describe(row.asDict()) for row in found.rows[:SHOWN]),
        ranges=describe(pair.ranges.column, found.spans),
        checksum=str(found.total),
        share=options.share,
    )


def _sums(rows: DataFrame, pair: Pair, options: VerifyOptions) -> list[Row]:
    if options.share < 1 and not pair.ranges.column:
        rows = rows.where(checksum.bucket(rows, pair.keys) < math.ceil(options.share * checksum.BUCKETS))
    summed = checksum.sums(rows, pair.keys, pair.columns, pair.meanings, _range(pair)).collect()
    options.advance(sum(row["rows"] for row in summed))
    return summed


def _bucket_rows(rows: DataFrame, pair: Pair, buckets: Sequence[int]) -> DataFrame:
    inside = rows.where(checksum.bucket(rows, pair.keys, _range(pair)).isin(list(buckets)))
    return checksum.rows_to_compare(inside, pair.keys, pair.columns, pair.meanings)


def _range(pair: Pair) -> Column | None:
    return pair.ranges.number() if pair.ranges.column else None


def _spans(ranges: Ranges, rows: Sequence[Row]) -> tuple[Span, ...]:
    return ranges.spans(row[ranges.column] for row in rows) if ranges.column else ()


def _describe(row: dict[str, Any]) -> str:
    verdict, columns, copy = row.pop(compare.VERDICT), row.pop(compare.COLUMNS), row.pop(COPY_NUMBER)
    key = ", ".join(f"{names.decode(column)}={_printable(value)}" for column, value in row.items())
    suffix = "" if copy == 1 else f" (row {copy} of this key)"
    return f"{key}{suffix}: {', '.join(columns) if isinstance(columns, list) else verdict}"


def _printable(value: Any) -> Any:
    """Return bytes in hex, and any other value unchanged."""
    return value.hex() if isinstance(value, (bytes, bytearray)) else value
