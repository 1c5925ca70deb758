"""Two tables that must be equal: first their checksums by bucket, then the rows of the buckets that are not.

Buckets are parts of the keys, the same on both sides: ranges, and parts of each by hash. A sample is a part of each
range, or some of the buckets where keys have no common order.
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
"""So many keys are named."""

KNOWN = 1000
"""So many keys that differ are remembered, to be looked at again."""


@dataclass(frozen=True)
class Pair:
    """``one`` holds what ``other`` must hold; ``keys`` are columns of both, ``ranges`` of these. ``meanings``: see
    ``transforms/comparison/canonical.py``.
    """

    one: DataFrame
    other: DataFrame
    keys: tuple[str, ...]
    meanings: Mapping[str, str] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=Ranges)

    @property
    def columns(self) -> list[str]:
        """Those beside the keys that have one type on both sides."""
        unlike = self.unlike
        return [name for name in self.one.columns if name not in self.keys and name not in unlike]

    @property
    def unlike(self) -> Mapping[str, tuple[str | None, str | None]]:
        """Columns that cannot be compared, with their two types."""
        return compare.type_mismatches(self.one, self.other)


@dataclass(frozen=True)
class Differences:
    """What the rows of ``one`` add up to; how many keys differ in which way, in which ranges (``spans``), and KNOWN of
    them at most: the key with COPY, ``verdict`` and ``columns``.
    """

    total: Sum
    counts: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def differing(self) -> int:
        """How many keys differ."""
        return sum(self.counts.values())

    def keys(self, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The keys that are known to differ."""
        return list(dict.fromkeys(key_of_row(row, columns) for row in self.rows))

    def without(self, keys: Sequence[tuple[Any, ...]], pair: Pair) -> Differences:
        """The same, some keys left out; only where all that differ are known."""
        if not keys:
            return self
        kept = tuple(row for row in self.rows if key_of_row(row, pair.keys) not in set(keys))
        verdicts = [row["verdict"] for row in kept]
        counts = {word: verdicts.count(word) for word in dict.fromkeys(verdicts)}
        return replace(self, counts=counts, rows=kept, spans=_spans(pair.ranges, kept))

    def where(self, parts: Ranges) -> Ranges:
        """Those of the ranges in which keys differ; all, where one of these is in none, as NULL is."""
        if sum(span.keys for span in self.spans) < self.differing:
            return parts
        return parts.narrowed(span.low for span in self.spans)


def key_of_row(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    """The values of a row's key, which their hashes tell apart."""
    return tuple(map(_stable_value, (row[name] for name in columns)))


def _stable_value(value: Any) -> Any:
    """Bytes that do not change; the second time that the clock of the driver's zone shows in an hour, with its zone."""
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(timezone.utc) if isinstance(value, datetime) and value.fold else value


def to_spark_key(key: Sequence[Any], kinds: Sequence[DataType]) -> tuple[Any, ...]:
    """The values of a key as Spark takes them for what they were: of a time without its zone it guesses the hour."""
    return tuple(
        value.astimezone(timezone.utc) if isinstance(kind, TimestampType) and value is not None else value
        for value, kind in zip(key, kinds, strict=True)
    )


def find_differences(pair: Pair, look: VerifyOptions) -> Differences:
    """What tells the two apart."""
    sides = [pair.ranges.within(rows) for rows in (pair.one, pair.other)]
    sums = [checksum.to_sums(_sums(rows, pair, look)) for rows in sides]
    total = sum(sums[0].values(), Sum())
    wrong = checksum.differing_buckets(*sums)
    if not wrong:
        return Differences(total)
    one, other = (_bucket_rows(rows, pair, wrong) for rows in sides)
    with tuning.persist(compare.differences(one, other, [*pair.keys, COPY_NUMBER])) as found:
        counts = {row["verdict"]: row["count"] for row in found.groupBy("verdict").count().collect()}
        rows = tuple(found.limit(KNOWN).collect())
        are_all = sum(counts.values()) == len(rows)
        return Differences(total, counts, rows, _spans(pair.ranges, rows) if are_all else pair.ranges.spans_of(found))


def to_verdict(told: Verdict, pair: Pair, found: Differences, look: VerifyOptions) -> Verdict:
    """The verdict that follows, in words."""
    return replace(
        told,
        rows=found.total.rows,
        missing=found.counts.get(compare.MISSING, 0),
        extra=found.counts.get(compare.EXTRA, 0),
        differing=found.counts.get(compare.DIFFERING, 0),
        columns=tuple(f"{names.decode(c)}: {a or 'none'}, {b or 'none'}" for c, (a, b) in pair.unlike.items()),
        named=tuple(_describe(row.asDict()) for row in found.rows[:SHOWN]),
        ranges=describe(pair.ranges.column, found.spans),
        checksum=str(found.total),
        share=look.share,
    )


def _sums(rows: DataFrame, pair: Pair, look: VerifyOptions) -> list[Row]:
    if look.share < 1 and not pair.ranges.column:
        rows = rows.where(checksum.bucket(rows, pair.keys) < math.ceil(look.share * checksum.BUCKETS))
    summed = checksum.sums(rows, pair.keys, pair.columns, pair.meanings, _range(pair)).collect()
    look.advance(sum(row["rows"] for row in summed))
    return summed


def _bucket_rows(rows: DataFrame, pair: Pair, buckets: Sequence[int]) -> DataFrame:
    inside = rows.where(checksum.bucket(rows, pair.keys, _range(pair)).isin(list(buckets)))
    return checksum.rows_to_compare(inside, pair.keys, pair.columns, pair.meanings)


def _range(pair: Pair) -> Column | None:
    return pair.ranges.number() if pair.ranges.column else None


def _spans(ranges: Ranges, rows: Sequence[Row]) -> tuple[Span, ...]:
    return ranges.spans(row[ranges.column] for row in rows) if ranges.column else ()


def _describe(row: dict[str, Any]) -> str:
    verdict, columns, copy = row.pop("verdict"), row.pop("columns"), row.pop(COPY_NUMBER)
    key = ", ".join(f"{names.decode(column)}={_printable(value)}" for column, value in row.items())
    again = "" if copy == 1 else f" (row {copy} of this key)"
    return f"{key}{again}: {', '.join(columns) if isinstance(columns, list) else verdict}"


def _printable(value: Any) -> Any:
    """Bytes in hex, whatever else a key is of as it is."""
    return value.hex() if isinstance(value, (bytes, bytearray)) else value
