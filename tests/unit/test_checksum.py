"""Canonical texts, fixed vectors, and sums that see what they must and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timezone
from decimal import Decimal
from hashlib import md5
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.transforms.comparison import canonical, checksum
from replicator.transforms.comparison.checksum import Sum
from tests.builders import made

NTZ = "TIMESTAMP_NTZ'2020-01-02 03:04:05.060000'"
VECTORS = [
    ("CAST(-7 AS INT)", "-7"),
    ("CAST('1.50' AS DECIMAL(10,2))", "1.5"),
    ("CAST('-0.05' AS DECIMAL(4,2))", "-0.05"),
    ("CAST('100' AS DECIMAL(5,0))", "100"),
    ("CAST('0' AS DECIMAL(38,18))", "0"),
    ("CAST('0.000000000000000010' AS DECIMAL(38,18))", "0.00000000000000001"),
    ("CAST('12345678901234567890.120000000000000000' AS DECIMAL(38,18))", "12345678901234567890.12"),
    ("CAST('-99999999999999999999999999999999999999' AS DECIMAL(38,0))", "-99999999999999999999999999999999999999"),
    ("CAST('-0.0' AS DOUBLE)", "0.0"),
    ("CAST('NaN' AS DOUBLE)", "NaN"),
    ("CAST('-Infinity' AS FLOAT)", "-Infinity"),
    ("CAST(0.1 AS FLOAT)", "0.1"),
    ("X'00ff'", "00FF"),
    ("true", "true"),
    ("DATE'0001-01-01'", "0001-01-01"),
    ("TIMESTAMP'1969-12-31 23:59:59.999999Z'", "-1"),
    (NTZ, "2020-01-02 03:04:05.06"),
    ("''", ""),
    ("CAST(NULL AS STRING)", None),
    ("array('b', NULL, 'a')", "1:b-1:a"),
    ("map('b', 2, 'a', CAST(NULL AS INT))", "1:a-1:b1:2"),
    ("named_struct('x', 1.5D, 'y', CAST(NULL AS STRING))", "3:1.5-"),
    ("CAST(NULL AS ARRAY<INT>)", None),
]


@pytest.mark.spark
def test_values_have_one_text_each(exact: SparkSession) -> None:
    """P9: UTC microseconds, trimmed numbers, hex, NaN, -0.0, NULL and '', maps sorted, arrays in order."""
    rows = exact.sql("SELECT " + ", ".join(f"{sql} AS v{at}" for at, (sql, _) in enumerate(VECTORS)))
    found = rows.select([each.alias(name) for name, each in canonical.column_texts(rows, rows.columns).items()]).first()
    assert list(found or ()) == [text for _, text in VECTORS]
    elsewhere = exact.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    wall = elsewhere.sql(f"SELECT {NTZ} AS wall, TIMESTAMP'2020-01-02 03:04:05Z' AS instant")
    assert list(canonical.texts(wall, [], wall.columns).first() or ()) == ["2020-01-02 03:04:05.06", "1577934245000000"]
    numbers = made(exact, [("1.50",), ("-0.00",), ("007",), ("NaN",), ("10",), ("-0.5",), ("100.0",)], "n STRING")
    trimmed = [row[0] for row in canonical.texts(numbers, [], ["n"], {"n": canonical.NUMBER}).collect()]
    assert trimmed == ["1.5", "0", "7", "NaN", "10", "-0.5", "100"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"b": 1, "a": [1.50, true]}', '{"a":[1.5,true],"b":1.0}'),
        ('{"a": {"y": 1, "x": null}}', '{"a":{"x":null,"y":1}}'),
        ('"\\u00e9"', '"é"'),
        ("0.0", "-0"),
        ("1e2", "100"),
    ],
)
def test_json_is_compared_by_its_value(one: str, other: str) -> None:
    """Order of keys, blanks, escapes and how a number is written say nothing."""
    assert canonical.json_text(one) == canonical.json_text(other)


def test_json_of_another_value_is_another_text() -> None:
    """Arrays have an order, texts are no numbers, and what is no JSON stays as it is."""
    texts = [canonical.json_text(each) for each in ("[1,2]", "[2,1]", '["1",2]', '{"a":1}', '{"a":null}', "{}")]
    texts += [canonical.json_text(f"1{'0' * 30}.{n}") for n in (1, 2)]
    texts += [canonical.json_text(each) for each in ("0", "1e-9999999", "1e9999999", f"1e{'9' * 30}")]
    texts += [canonical.json_text('{"a":' * depth + "1" + "}" * depth) for depth in (2, 450, 100_000)]
    assert len(set(texts)) == len(texts)
    assert canonical.json_text("not json") == "not json"
    assert canonical.json_text(None) is None


ROWS = [
    (n, f"name {n}", Decimal(n) / 4, datetime(2020, 1, 1, tzinfo=timezone.utc), date(2020, 1, 1)) for n in range(40)
]
DDL = "k INT, name STRING, price DECIMAL(10,2), at TIMESTAMP, day DATE"


def by_hand(row: tuple[Any, ...]) -> str:
    """The canonical text of such a row."""
    texts = [str(row[0]), row[1], f"{row[2]:g}", "1577836800000000", "2020-01-01"]
    return "".join(f"{len(text)}:{text}" for text in texts)


def summed(rows: DataFrame, columns: Iterable[str] = ("name", "price", "at", "day")) -> dict[int, Sum]:
    return checksum.to_sums(checksum.sums(rows, ["k"], list(columns)).collect())


@pytest.mark.spark
def test_sums_see_every_change_and_no_order(exact: SparkSession) -> None:
    """A permutation leaves them; a cell, a row more, a row twice, two values exchanged between columns or rows do not;
    the value is the one that anybody computes by hand.
    """
    rows = made(exact, ROWS, DDL)
    whole = summed(rows)
    assert summed(made(exact, ROWS[::-1], DDL).repartition(3)) == whole
    total = sum(whole.values(), Sum())
    hashes = [md5(by_hand(row).encode(), usedforsecurity=False).hexdigest() for row in ROWS]
    halves = [sum(int(each[at : at + 16], 16) for each in hashes) % 2**64 for at in (0, 16)]
    assert total == Sum(40, *halves)
    assert str(total) == "cabff86699195378aa2d3173cadaa111"
    ghost = rows.withColumn("name", F.when(F.col("k") == 7, "name  7").otherwise(F.col("name")))
    assert len(checksum.differing_buckets(whole, summed(ghost))) == 1
    twice = summed(rows.unionByName(rows.where("k IN (3)")).unionByName(rows.where("k = 3")))
    assert len(checksum.differing_buckets(whole, twice)) == 1
    assert sum(twice.values(), Sum()).rows == 42
    ddl = "k INT, a STRING, b STRING"
    values = [("ab", "c"), ("a", "bc"), ("", "abc"), (None, "abc"), ("abc", None), ("1:a", None)]
    pairs = [[(1, *value)] for value in values]
    every = [str(sum(summed(made(exact, pair, ddl), ("a", "b")).values(), Sum())) for pair in pairs]
    assert len(set(every)) == len(pairs)
    swapped = made(exact, [(1, "x", None), (2, "y", None)], ddl), made(exact, [(1, "y", None), (2, "x", None)], ddl)
    assert summed(swapped[0], ("a", "b")) != summed(swapped[1], ("a", "b"))
