"""Which files may hold a key of a batch: never one less than do (performance.md A3)."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from replicator.formats.delta_data_skipping import BatchKeys, comparable_columns


def stats(least: dict[str, Any], greatest: dict[str, Any]) -> str:
    """As Delta's log has them."""
    return json.dumps({"numRecords": 5, "minValues": least, "maxValues": greatest})


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(1,), (99,)], False),
        ([(1,), (10,), (99,)], True),
        ([(1,), (20,)], True),
        ([(15,)], True),
        ([(9,), (21,)], False),
        ([], False),
    ],
)
def test_a_file_between_two_keys_of_the_batch_holds_neither(rows: list[tuple[int]], found: bool) -> None:
    """A range from the least to the greatest key would not tell."""
    assert BatchKeys(("k",), rows).may_be_in(stats({"k": 10}, {"k": 20})) is found


@pytest.mark.parametrize(
    "told",
    ["", "{}", '{"numRecords":5}', stats({"x": 1}, {"x": 2}), stats({"k": 7}, {}), stats({"k": None}, {"k": None})],
)
def test_a_file_of_which_the_log_does_not_tell_enough_may_hold_any_key(told: str) -> None:
    """Statistics are what a writer chose to write."""
    assert BatchKeys(("k",), [(1,)]).may_be_in(told)


def test_every_part_of_a_key_must_fit_in_the_same_row() -> None:
    """One key has the first part, another the second: none has both. A part that the log does not tell fits."""
    file = stats({"w": 1, "o": 100}, {"w": 3, "o": 200})
    assert not BatchKeys(("w", "o"), [(1, 50), (2, 99), (4, 150)]).may_be_in(file)
    assert BatchKeys(("w", "o"), [(1, 50), (2, 100), (4, 150)]).may_be_in(file)
    assert BatchKeys(("x", "o"), [(9, 150)]).may_be_in(file)
    assert not BatchKeys(("x", "o"), [(9, 250)]).may_be_in(file)


@pytest.mark.parametrize(
    ("least", "greatest", "inside", "outside"),
    [
        (Decimal("-1.50"), Decimal("2.25"), Decimal("2.25"), Decimal("2.26")),
        ("Zebra", "é", "a", "\U0001f600"),
        ("a\uffff", "a\U0001f600", "a\U0001f600", "a\U0001f601"),
        (-(1 << 63), 1 << 53, (1 << 53) - 1, (1 << 53) + 1),
    ],
)
def test_values_are_compared_as_spark_orders_them(least: Any, greatest: Any, inside: Any, outside: Any) -> None:
    """Decimals and large whole numbers exactly, texts by code points."""
    told = json.dumps({"minValues": {"k": least}, "maxValues": {"k": greatest}}, default=float)
    assert BatchKeys(("k",), [(inside,)]).may_be_in(told)
    assert not BatchKeys(("k",), [(outside,)]).may_be_in(told)


def test_no_file_is_left_out_that_holds_a_key() -> None:
    """Random tables of composite keys, cut into files, and random batches of keys in and beside them."""
    dice = random.Random(7)
    missed = left = 0
    for _ in range(200):
        table = sorted({(dice.randrange(4), dice.randrange(30)) for _ in range(40)})
        files = [table[at : at + 6] for at in range(0, len(table), 6)]
        batch = sorted({(dice.randrange(5), dice.randrange(40)) for _ in range(dice.randrange(6))})
        for file in files:
            low, high = ({"a": pick(a for a, _ in file), "b": pick(b for _, b in file)} for pick in (min, max))
            may_be = BatchKeys(("a", "b"), batch).may_be_in(stats(low, high))
            missed += bool(set(file) & set(batch)) and not may_be
            left += not may_be
    assert (missed, left > 500) == (0, True)


@pytest.mark.parametrize(
    ("stored", "changed", "is_compared"),
    [
        (LongType(), IntegerType(), True),
        (DecimalType(10, 2), ByteType(), True),
        (StringType(), StringType(), True),
        (LongType(), StringType(), False),
        (DateType(), DateType(), False),
        (TimestampType(), TimestampType(), False),
        (DoubleType(), DoubleType(), False),
    ],
)
def test_only_columns_that_the_log_tells_exactly_are_compared(
    stored: DataType, changed: DataType, is_compared: bool
) -> None:
    """Instants are rounded there, NaN and zero have an order of their own."""
    found = comparable_columns(("k",), StructType().add("k", stored), StructType().add("k", changed))
    assert found == (("k",) if is_compared else ())
