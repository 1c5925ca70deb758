"""Order-independent checksums of tables, by bucket of keys (reliability.md P9).

A row's hash is the MD5 of its canonical text: 128 bits that every database can compute. The hashes of a bucket are
summed as two 64-bit halves, so that duplicate rows do not cancel out. Only rows of differing buckets need to be
compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from replicator import names
from replicator.transforms.comparison import canonical, ranges

BUCKETS = 1024
"""The number of buckets into which keys are divided by their hash."""

_OF_A_RANGE = BUCKETS // ranges.COUNT

COPY_NUMBER = "_replicator_copy"
"""The column with a row's number among the rows of its key; 1 if the key occurs once."""

_HALF = 1 << 64


@dataclass(frozen=True)
class Sum:
    """The checksum of a set of rows: their number, and the sums of the two halves of their hashes, modulo 2^64 each."""

    rows: int = 0
    high: int = 0
    low: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.rows + other.rows, (self.high + other.high) % _HALF, (self.low + other.low) % _HALF)

    def __str__(self) -> str:
        return f"{self.high:016x}{self.low:016x}"


def bucket(rows: DataFrame, keys: Sequence[str], range_: Column | None = None) -> Column:
    """The bucket of a row, 0 to BUCKETS - 1, by its key alone. With ``range_`` (``transforms/comparison/ranges.py``)
    the buckets of one range are adjacent.
    """
    first = F.substring(F.md5(canonical.length_prefixed(canonical.column_texts(rows, keys).values())), 1, 8)
    hashed = F.conv(first, 16, 10).cast("bigint")
    if range_ is None:
        return (hashed % BUCKETS).cast("int")
    return (range_ * _OF_A_RANGE + hashed % _OF_A_RANGE).cast("int")


def sums(
    rows: DataFrame,
    keys: Sequence[str],
    columns: Sequence[str],
    meanings: Mapping[str, str] | None = None,
    range_: Column | None = None,
) -> DataFrame:
    """One row per non-empty bucket: ``bucket INT, rows BIGINT, high DECIMAL(30,0), low DECIMAL(30,0)``, the halves not
    reduced yet (see :func:`to_sums`). ``columns`` are those hashed in addition to the keys.
    """
    part = bucket(rows, keys, range_).alias("bucket")
    hashed = rows.select(part, _hash(rows, keys, columns, meanings).alias("hash"))
    return hashed.groupBy("bucket").agg(F.count(F.lit(1)).alias("rows"), _half(1).alias("high"), _half(17).alias("low"))


def to_sums(summed: Iterable[Row]) -> dict[int, Sum]:
    """The rows of :func:`sums` as values."""
    return {row["bucket"]: Sum(row["rows"], int(row["high"]) % _HALF, int(row["low"]) % _HALF) for row in summed}


def differing_buckets(one: Mapping[int, Sum], other: Mapping[int, Sum]) -> list[int]:
    """The buckets whose checksums differ, sorted."""
    return sorted(each for each in {*one, *other} if one.get(each) != other.get(each))


def rows_to_compare(
    rows: DataFrame, keys: Sequence[str], columns: Sequence[str], meanings: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows for a comparison one by one: keys unchanged, ``columns`` as canonical texts, and COPY_NUMBER, which
    makes the key unique.
    """
    alike = Window.partitionBy(*map(names.quote_spark, keys)).orderBy(_hash(rows, keys, columns, meanings))
    numbered = rows.withColumn(COPY_NUMBER, F.row_number().over(alike))
    return canonical.texts(numbered, [*keys, COPY_NUMBER], columns, meanings)


def _hash(rows: DataFrame, keys: Sequence[str], columns: Sequence[str], meanings: Mapping[str, str] | None) -> Column:
    return F.md5(canonical.length_prefixed(canonical.column_texts(rows, [*keys, *columns], meanings).values()))


def _half(start: int) -> Column:
    """The sum of 64 bits of every hash."""
    return F.sum(F.conv(F.substring("hash", start, 16), 16, 10).cast("decimal(20,0)"))
