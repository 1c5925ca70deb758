"""What a model's file says is what its rows have: dates and times of any year, whatever zone the process is in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone

import pytest
from pyspark.sql import SparkSession

from replicator.spec.rules import AcceptedValues
from replicator.transforms.checks import is_violation
from replicator.transforms.model import unknown_member

pytestmark = pytest.mark.spark

MOMENT = datetime(2024, 3, 31, 2, 30, tzinfo=timezone(timedelta(hours=2)))
VALUES = {
    "0001-01-01": date(1, 1, 1),
    "1582-10-10": date(1582, 10, 10),
    "0001-01-01 00:00:00": datetime(1, 1, 1),  # noqa: DTZ001 - a wall time
    "1900-01-01 00:00:00": datetime(1900, 1, 1),  # noqa: DTZ001 - a wall time
    "9999-12-31 23:59:59.999999": datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001 - a wall time
    "2024-03-31 00:30:00": MOMENT,
}


@pytest.fixture(autouse=True, params=["UTC", "Asia/Tokyo"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone of the process, which is that of the machine."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("text", VALUES)
def test_an_unknown_member_has_the_dates_and_times_of_its_file(exact: SparkSession, text: str) -> None:
    """The first day of all is one that such a row often has; in any type of time, a moment as UTC shows it."""
    rows = exact.sql(
        "SELECT TIMESTAMP'2024-01-01' AS instant, TIMESTAMP_NTZ'2024-01-01' AS wall, DATE'2024-01-01' AS d"
    )
    member = unknown_member(rows, dict.fromkeys(rows.columns, VALUES[text]))
    [shown] = member.selectExpr(*[f"CAST({column} AS STRING)" for column in rows.columns]).collect()
    full = text if " " in text else f"{text} 00:00:00"
    assert tuple(shown) == (full, full, text[:10])


def test_dates_are_accepted_as_they_are_written(exact: SparkSession) -> None:
    """One of these values is no violation."""
    rows = exact.sql("SELECT explode(array(DATE'0001-01-01', DATE'1582-10-10', DATE'1582-10-20')) AS day")
    rule = AcceptedValues("day", (date(1, 1, 1), date(1582, 10, 10)))
    assert [str(row["day"]) for row in rows.where(is_violation(rule, rows)).collect()] == ["1582-10-20"]
