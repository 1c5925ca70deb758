"""Cases of our own, recorded from real Debezium: silver ends as the source did, whatever way the events come.

``python -m tests.golden.record`` writes them; each folder's ``why.md`` says what it is for. A batch holds the events of
all cases, since a batch costs seconds: each case still answers for its own tables only.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql.types import TimestampType

from replicator.spec import SourceSpec
from replicator.transforms.live import live
from tests.builders import exact_session
from tests.golden.cases import Case, Rows, cases, exact
from tests.golden.run import Run

pytestmark = pytest.mark.spark

BATCHES, SEED = 2, 7

Records = list[dict[str, Any]]


def whole(events: Records) -> list[Records]:
    """All at once."""
    return [events]


def cut(events: Records) -> list[Records]:
    """In the order of their offsets."""
    cuts = [len(events) * part // BATCHES for part in range(BATCHES + 1)]
    return [events[start:end] for start, end in pairwise(cuts)]


def shuffled(events: Records) -> list[Records]:
    """The dice say in which batch a record comes, and in which place of it; it keeps its own offset."""
    dice = random.Random(SEED)
    batches: list[Records] = [[] for _ in range(BATCHES)]
    for event in dice.sample(events, len(events)):
        dice.choice(batches).append(event)
    return batches


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((whole, False), id="one batch, Delta"),
        pytest.param((cut, True), id=f"{BATCHES} batches"),
        pytest.param((shuffled, True), id=f"{BATCHES} batches, shuffled by {SEED}"),
    ],
)
def run(request, spark, tmp_path_factory) -> Run:
    """The events of all cases through one lake, in this way."""
    way, memory = request.param
    declared = tuple(declaration for case in cases() for declaration in case.declarations)
    source = SourceSpec("golden", ".*", tables=declared)
    made = Run(exact_session(spark), tmp_path_factory.mktemp("golden"), source, memory=memory)
    for parts in zip(*[way(case.events) for case in cases()], strict=True):
        made.feed([event for part in parts for event in part])
    made.shuffled = way is shuffled
    return made


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_silver_ends_as_the_source_did(run: Run, case: Case) -> None:
    """P1, P2, P6: the live rows are the source's, and every record is accounted for, none as a dead letter.

    A value that came after the row that left it out, under another key, may be unknown, and is flagged then (P12).
    """
    expected = {table: without(rows, unknown(run, table)) for table, rows in case.expected.items()}
    accounts = [account for account in run.accounts if is_about(account.table, case)]
    assert [str(account.error) for account in accounts if account.error] == []
    actual = {table: found(run, table, rows) for table, rows in case.expected.items()}
    assert {table: without(rows, unknown(run, table)) for table, rows in actual.items()} == expected
    assert run.shuffled or not any(unknown(run, table) for table in expected)
    assert sum(account.read for account in accounts) == len(case.events)
    assert sum(account.dead_lettered + account.residue for account in accounts) == 0


def is_about(account: str, case: Case) -> bool:
    """Whether it accounts for a table of the case, or for a topic of it that had carried no table yet."""
    return account.removeprefix("golden/") in case.expected or account.startswith(f"topic {case.name}.")


def found(run: Run, table: str, expected: Rows) -> Rows:
    """The live rows in the columns that the source has in the end: silver never drops one (debezium.md G3)."""
    instants = [field.name for field in live(run.read(table)).schema if isinstance(field.dataType, TimestampType)]
    rows = [dict(row) for row in run.shown(table).values()]
    for row in rows:
        row.update({name: row[name].astimezone() for name in instants if row[name] is not None})
    return exact({name: row[name] for name in expected[0]} if expected else row for row in rows)


def unknown(run: Run, table: str) -> set[str]:
    """Columns that some live row of the table does not know."""
    rows = run.read(table).where("NOT _deleted AND _column_seq IS NOT NULL").collect()
    return {
        column
        for row in rows
        for column, place in row["_column_seq"].items()
        if place in ("", None) or place[-1] == "-"
    }


def without(rows: Rows, columns: set[str]) -> Rows:
    """Rows without some columns."""
    return [{name: value for name, value in row.items() if name not in columns} for row in rows]


def test_every_case_is_complete() -> None:
    """A folder has its script, its settings, the recorded events and rows, and says why it is there."""
    parts = {"script.sql", "case.yaml", "events.jsonl", "expected.json", "why.md"}
    missing = {case.name: parts - {file.name for file in case.folder.iterdir()} for case in cases()}
    assert {name: files for name, files in missing.items() if files} == {}


def test_no_two_cases_have_a_table_of_one_name() -> None:
    """They share a lake in these tests."""
    tables = [table for case in cases() for table in case.expected]
    assert len(tables) == len(set(tables))
