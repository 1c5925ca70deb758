"""Ranges of keys: the same in Python and in Spark, of about one size, and what a sample looks at."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.operate.verify.ranges import Ranges, Span, build, describe
from replicator.transforms.comparison import ranges
from tests.builders import made

DENSE = tuple(range(1000, 3000))
TEXTS = tuple(sorted({f"{chr(65 + n % 60)}{n * 7919 % 1009:04d}\u00e9\U0001f600"[: 3 + n % 5] for n in range(500)}))


def test_ranges_are_of_one_size_however_the_keys_lie() -> None:
    """64 of them; an outlier, or keys that are dense here and sparse there, change nothing."""
    for values in (DENSE, (*DENSE[:1000], *(n * n for n in DENSE[1000:])), (*DENSE, 10**15)):
        ends = ranges.bounds(values)
        counts = Ranges("k", values).spans(values)
        assert len(ends) == ranges.COUNT - 1
        assert {each.keys for each in counts} <= set(range(len(values) // 64 - 1, len(values) // 64 + 3))
        assert sum(each.keys for each in counts) == len(values)


def test_a_sample_is_the_end_of_each_range() -> None:
    """A tenth of the keys, or a thousandth, with the newest ones and those that are newer still; in few stretches."""
    values = tuple(range(64_000))[::16]
    for share, stretches in ((0.1, 64), (0.01, 32), (0.001, 4)):
        inside = Ranges("k", values, share).intervals or ()
        assert (len(inside), inside[-1][1]) == (stretches, None)
        seen = [n for n in range(64_000) if any((a is None or n > a) and (b is None or n <= b) for a, b in inside)]
        assert 0.75 * share < len(seen) / 64_000 < 1.25 * share
        assert max(seen) == 63_999


def test_what_differs_is_told_between_which_keys() -> None:
    """By range, and of one key without an end."""
    told = Ranges("order_x20_id", DENSE).spans([1001, 1003, 2999])
    assert told == (Span(1001, 1003, 2), Span(2999, 2999, 1))
    assert describe("order_x20_id", told) == ("order id 1001 to 1003: 2 keys", "order id 2999: 1 key")
    assert len(Ranges("k", DENSE).narrow([1001, 1003, 2999]).intervals or ()) == 2
    assert (Ranges("k", DENSE).intervals, Ranges().intervals) == (None, None)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BIGINT", (*DENSE, -(2**63), 2**63 - 1)),
        ("STRING", TEXTS),
        ("DECIMAL(20,2)", tuple(Decimal(n) / 4 for n in DENSE)),
        ("DATE", tuple(date(2020, 1, 1) + timedelta(days=n) for n in range(300))),
        ("DATE", (date.min, *(date(1582, 9, 30) + timedelta(days=n) for n in range(64)), date.max)),
    ],
)
def test_spark_and_python_agree_on_every_value(exact: SparkSession, kind: str, values: tuple[Any, ...]) -> None:
    """The range of each, and whether a sample looks at it: texts go by their bytes."""
    part = Ranges("k", tuple(sorted(values)), 0.25)
    assert part.intervals is not None
    number, within = part.number().alias("at"), ranges.in_intervals(F.col("k"), part.intervals).alias("within")
    for row in made(exact, [(value,) for value in values], f"k {kind}").select("k", number, within).collect():
        assert row["at"] == ranges.range_number_of(row["k"], part.bounds)
        expected = any((a is None or row["k"] > a) and (b is None or row["k"] <= b) for a, b in part.intervals)
        assert row["within"] == expected


@pytest.mark.spark
def test_the_column_that_tells_keys_apart_makes_the_ranges(exact: SparkSession) -> None:
    """Not the first one where that has few values; none of a type without a common order, nor a sample that is none."""
    rows = exact.sql("SELECT id % 3 AS tenant, id, encode(CAST(id AS STRING), 'UTF-8') AS raw FROM range(500)")
    assert build(rows, ["tenant", "id"], 0.2).column == "id"
    assert build(rows, ["raw"], 1.0) == Ranges()
    assert build(rows, ["tenant"], 1.0).column == "tenant"
    assert build(rows, ["tenant"], 0.2) == Ranges()
    assert build(rows.limit(0), ["id"], 1.0) == Ranges()
