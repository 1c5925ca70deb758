"""Where the keys of a batch lie: every key is in a span, and what is far from all of them is not."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator import key_spans
from replicator.transforms import spans
from tests.builders import made

pytestmark = pytest.mark.spark

COLUMNS = "tenant INT, id BIGINT, day DATE, number DECIMAL(38,0), `a.name` STRING, price DECIMAL(10,2)"


def row(number: int) -> tuple[Any, ...]:
    day = date.fromordinal(700_000 + number % 90_000)
    return number % 7, number, day, Decimal(number * 10**20), str(number), Decimal(number % 1000) / 4


def test_recent_keys_and_old_ones_are_spans_apart(exact: SparkSession) -> None:
    """A batch of a range's end and of three rows of before: all rows between them are left out."""
    recent = range(1_000_000, 1_000_500)
    keys = made(exact, map(row, [*recent, 3, 70_000, 500_000]), COLUMNS)
    [lie] = key_spans.find([(keys, ["id", "number", "a.name", "price"])])
    assert set(lie) == {"id", "number"}
    assert [span for span in lie["id"] if span[0] < 1_000_000] == [(3, 3), (70_000, 70_000), (500_000, 500_000)]
    assert (lie["id"][0][0], lie["id"][-1][1], len(lie["id"])) == (3, 1_000_499, 4)
    table = made(exact, map(row, range(0, 1_100_000, 1_000)), COLUMNS)
    found = table.where(spans.may_match(table, ["id", "number"], lie, ["id", "number"]))
    assert {each["id"] for each in found.collect()} == {70_000, 500_000, 1_000_000}


@pytest.mark.parametrize("seed", range(3))
def test_every_key_is_in_a_span_of_each_of_its_columns(exact: SparkSession, seed: int) -> None:
    """However keys lie, with NULLs among them: at most sixteen spans, apart, in order, and no key outside."""
    dice = random.Random(seed)
    numbers = [int(dice.choice([10**3, 10**6, 10**12]) * dice.random() ** 3) - 500 for _ in range(400)]
    keys = made(exact, [*map(row, numbers), (None,) * 6], COLUMNS)
    of_keys, of_days = key_spans.find([(keys, ["tenant", "id"]), (keys.where("id > 0"), ["day"])])
    for lie, column, values in (
        (of_keys, "tenant", [number % 7 for number in numbers]),
        (of_keys, "id", numbers),
        (of_days, "day", [(row(number)[2] - date(1970, 1, 1)).days for number in numbers if number > 0]),
    ):
        each = lie[column]
        assert all(any(low <= value <= high for low, high in each) for value in values)
        assert len(each) <= spans.MAX_SPANS
        ends = [end for span in each for end in span]
        assert ends == sorted(ends)
    both = keys.where(spans.may_match(keys, ["tenant", "id"], of_keys, ["tenant", "id"]))
    assert both.count() == len(numbers)


@pytest.mark.parametrize(
    "day", ["DATE'0001-01-01' - INTERVAL 400 DAYS", "DATE'9999-12-31' + INTERVAL 1 DAY", "DATE'1582-10-10'"]
)
def test_a_day_that_python_or_its_calendar_lacks_is_in_a_span(exact: SparkSession, day: str) -> None:
    """Spark has days of other years, and those that were left out when the calendar changed."""
    keys = exact.sql(f"SELECT {day} AS day")
    [lie] = key_spans.find([(keys, ["day"])])
    assert keys.where(spans.may_match(keys, ["day"], lie, ["day"])).count() == 1


def test_without_a_key_no_row_is_looked_for(exact: SparkSession) -> None:
    """Nothing has no span; columns of other types tell nothing, and leave out nothing."""
    keys, table = made(exact, [], COLUMNS), made(exact, [row(1)], COLUMNS)
    [lie] = key_spans.find([(keys, ["id", "price"])])
    assert lie == {"id": []}
    assert table.where(spans.may_match(table, ["id"], lie, ["id"])).isEmpty()
    assert table.where(spans.may_match(table, ["price"], lie, ["price"])).count() == 1
    assert key_spans.find([(keys, ["price"]), (keys, [])]) == [{}, {}]
    assert table.where(spans.may_match(table, ["a.name"], {"id": [(5, 6)]}, ["id"])).count() == 1


def test_a_file_is_met_where_its_bounds_and_a_span_do() -> None:
    """By every column of which the log tells both ends."""
    lie = {"tenant": [(1, 1), (5, 6)], "id": [(100, 200)]}
    assert spans.overlaps(lie, {"tenant": 2, "id": 150}, {"tenant": 5, "id": 900})
    assert not spans.overlaps(lie, {"tenant": 2, "id": 150}, {"tenant": 4, "id": 900})
    assert not spans.overlaps(lie, {"tenant": 0, "id": 201}, {"tenant": 9, "id": 900})
    assert spans.overlaps(lie, {"tenant": 2}, {"id": 900})
    assert not spans.overlaps({"id": []}, {"id": 1}, {"id": 2})
