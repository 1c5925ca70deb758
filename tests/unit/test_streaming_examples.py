"""The examples of docs/examples: scenario 2's operations on streams, with its numbers."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from tests.builders import made

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parents[2] / "docs/examples"
PEOPLE = [
    ("Flink", 123, "Germany", "Berlin"), ("hello", 135, "China", "Shanghai"), ("world", 124, "USA", "NewYork"),
    ("PyFlink", 32, "China", "Hangzhou"),
]  # fmt: skip


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def quick(spark: SparkSession) -> Iterator[Any]:
    """A session whose streams have one partition of state: there are few keys."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.streaming.stateStore.maintenanceInterval", "1h")
    yield session
    assert [query.name for query in session.streams.active] == []


def files(folder: Path, batches: Iterable[Sequence[dict[str, Any]]]) -> str:
    """A file per batch, in this order by their times."""
    folder.mkdir()
    for number, batch in enumerate(batches):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(each) + "\n" for each in batch), encoding="utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return str(folder)


def started(rows: Any, mode: str = "append") -> Any:
    name = f"q{uuid4().hex}"
    writer = rows.writeStream.format("memory").queryName(name).outputMode(mode)
    return writer.trigger(availableNow=True).start()


def of(session: Any, query: Any, *columns: str) -> list[tuple[Any, ...]]:
    query.awaitTermination()
    return sorted(tuple(row) for row in session.table(query.name).select(*columns or "*").collect())


def people(*changed: tuple[str, int, str, str]) -> list[dict[str, Any]]:
    rows = [*PEOPLE[:2], *(changed or PEOPLE[2:3]), PEOPLE[3]]
    return [
        {"id": at, "data": json.dumps({"name": name, "tel": tel, "country": c, "addr": {"country": c, "city": city}})}
        for at, (name, tel, c, city) in enumerate(rows, 1)
    ]


def test_json_is_taken_apart_filtered_grouped_and_joined(quick: Any, tmp_path: Path) -> None:
    """The table of scenario 2, one stream per operation."""
    it = example("json_rows")
    rows = it.rows(quick, files(tmp_path / "in", [people()[:2], people()[2:]]))
    ages = made(quick, [(1, 18), (2, 30), (3, 25), (4, 10)], "id INT, age INT")
    contacts, but, limited = started(it.contacts(rows)), started(it.but(rows, 3)), started(rows.limit(3))
    countries, grouped = started(it.countries(rows)), started(it.by_country(rows), "complete")
    joined, pieces = started(it.with_ages(rows, ages)), started(it.split_names(rows))
    assert of(quick, contacts) == [
        ("1_Flink", "Flink", 123, "Germany"), ("2_hello", "hello", 135, "China"), ("3_world", "world", 124, "USA"),
        ("4_PyFlink", "PyFlink", 32, "China"),
    ]  # fmt: skip
    assert contacts.recentProgress[0]["numInputRows"] > 0
    assert of(quick, but, "id") == [(1,), (2,), (4,)]
    assert of(quick, limited, "id") == [(1,), (2,), (3,)]
    assert of(quick, countries) == [("China",), ("Germany",), ("USA",)]
    assert of(quick, grouped) == [("China", 2, 135), ("Germany", 1, 123), ("USA", 1, 124)]
    assert of(quick, joined, "id", "age") == [(1, 18), (2, 30), (3, 25), (4, 10)]
    assert [piece for _, piece in of(quick, pieces)] == ["Fl", "nk", "hello", "world", "PyFl", "nk"]


def test_aggregates_of_ones_own(quick: Any, tmp_path: Path) -> None:
    """Row 3 in China: count and sum, and the two greatest, per country."""
    it = example("json_rows")
    rows = it.rows(quick, files(tmp_path / "in", [people(("world", 124, "China", "NewYork"))]))
    own, two = started(it.own_aggregate(rows), "complete"), started(it.greatest_two(rows), "complete")
    assert of(quick, own) == [("China", 3, 291), ("Germany", 1, 123)]
    assert of(quick, two) == [("China", [135, 124]), ("Germany", [123])]


START = 1708329600  # 2024-02-19 08:00:00 UTC
PAID = [
    ("PayPal", 0, 110.1), ("MasterCard", 2, 30.2), ("PayPal", 3, 20.0), ("MasterCard", 1, 53.1), ("PayPal", 4, 13.1),
    ("MasterCard", 3, 3.1), ("MasterCard", 7, 16.1), ("PayPal", 5, 20.1),
]  # fmt: skip


def newest(session: Any, query: Any) -> dict[tuple[int, str], tuple[int, Any]]:
    """The last word on each window, by its start in seconds."""
    query.awaitTermination()
    rows = session.table(query.name).groupBy("start", "name").agg({"events": "max", "total": "max"}).collect()
    return {(int(start.timestamp()), name): tuple(told) for start, name, *told in rows}


def test_payments_by_key_and_by_window(quick: Any, tmp_path: Path) -> None:
    """Sample A, one event per micro-batch: nothing is late within two seconds."""
    it = example("windows")
    paid = [[{"name": name, "at": START + at, "amount": amount}] for name, at, amount in PAID]
    rows = it.events(quick, files(tmp_path / "in", paid))
    totals, windows = started(it.totals(rows), "complete"), started(it.per_window(rows, 2, 5), "update")
    assert of(quick, totals) == [("MasterCard", 4, Decimal("102.50")), ("PayPal", 4, Decimal("163.30"))]
    found = {(start - START, name): told for (start, name), told in newest(quick, windows).items()}
    assert {place: (max(told), min(told)) for place, told in found.items()} == {
        (0, "PayPal"): (Decimal("143.20"), 3),
        (0, "MasterCard"): (Decimal("86.40"), 3),
        (5, "PayPal"): (Decimal("20.10"), 1),
        (5, "MasterCard"): (Decimal("16.10"), 1),
    }
    assert it.late(windows) == 0


def ordered(*events: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "at": at, "amount": 1} for name, at in events]


def counts(session: Any, query: Any) -> dict[tuple[int, str], int]:
    return {place: int(min(told)) for place, told in newest(session, query).items()}


def test_windows_over_an_order_without_lateness(quick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sample B: a watermark that follows the greatest order."""
    it = example("windows")
    events = ordered(
        ("PayPal", 1), ("MasterCard", 2), ("PayPal", 3), ("MasterCard", 4), ("PayPal", 5), ("MasterCard", 8),
        ("MasterCard", 9), ("PayPal", 15),
    )  # fmt: skip
    folder = files(tmp_path / "in", [events[:5], events[5:]])
    query = started(it.per_window(it.events(quick, folder), 0, 5), "update")
    assert counts(quick, query) == {
        (0, "PayPal"): 2, (0, "MasterCard"): 2, (5, "PayPal"): 1, (5, "MasterCard"): 2, (15, "PayPal"): 1,
    }  # fmt: skip
    it.main(folder, "0", "5")
    assert capsys.readouterr().out == "0 events were late\n"


@pytest.mark.parametrize(("tolerance", "late"), [(4, 2), (5, 0)])
def test_what_is_late_is_not_counted(quick: Any, tmp_path: Path, tolerance: int, late: int) -> None:
    """Sample C: 12 and 11 come behind 19; within five seconds they still count."""
    it = example("windows")
    before = ordered(
        *[("authorizationCreated", at) for at in (1, 3, 5)], *[("schemesResponded", at) for at in (2, 4, 8, 9)]
    )
    behind = [("acquirerRequested", 19), ("acquirerResponded", 18), ("acquirerRequested", 16)]
    behind += [("acquirerResponded", 12), ("acquirerResponded", 11)]
    rows = it.events(quick, files(tmp_path / "in", [before, *(ordered(each) for each in behind)]))
    query = started(it.per_window(rows, tolerance, 5), "update")
    found = counts(quick, query)
    assert (it.late(query), sum(found.values())) == (late, 12 - late)
    assert found == {
        (0, "authorizationCreated"): 2, (0, "schemesResponded"): 2,
        (5, "authorizationCreated"): 1, (5, "schemesResponded"): 2,
        (15, "acquirerRequested"): 2, (15, "acquirerResponded"): 1,
    } | ({} if late else {(10, "acquirerResponded"): 2})  # fmt: skip


def test_a_key_that_nobody_touches_is_forgotten(quick: Any, tmp_path: Path) -> None:
    """By the clock of the events: after two idle seconds a count starts anew, and what may go on is not told yet."""
    it = example("keyed_state")
    batches = [[("a", 100), ("a", 101), ("b", 101)], [("c", 110)], [("a", 110)], [("a", 111)], [("d", 120)]]
    written = [[{"key": key, "at": at} for key, at in batch] for batch in batches]
    rows = it.forgotten(it.events(quick, files(tmp_path / "in", written)), 2)
    found = [(key, int(start.timestamp()), events) for key, start, events in of(quick, started(rows))]
    assert found == [("a", 100, 2), ("a", 110, 2), ("b", 101, 1), ("c", 110, 1)]


def test_bad_lines_are_kept_and_stop_nothing(quick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reported by reason, kept as they came; the good ones around them arrive, and those of the next run."""
    it = example("quarantine")
    lines = ['{"id": 1, "name": "a", "amount": 1.5}', '{"id": 2, "na', "[]", '{"name": "b"}', '{"id": 3, "name": "c"}']
    (tmp_path / "in").mkdir()
    good, bad = f"{tmp_path}/good", f"{tmp_path}/bad"
    for number, part in enumerate((lines[:4], lines[4:])):
        (tmp_path / f"in/{number}.jsonl").write_text("\n".join(part), encoding="utf-8")
        it.main(str(tmp_path / "in"), good, bad)
    assert capsys.readouterr().err.splitlines() == [
        "batch 0: 2 lines kept aside: no JSON of an event",
        "batch 0: 1 lines kept aside: no id",
    ]
    assert sorted(row["id"] for row in quick.read.parquet(good).collect()) == [1, 3]
    assert {row["value"] for row in quick.read.json(bad).collect()} == {lines[1], lines[2], lines[3]}
