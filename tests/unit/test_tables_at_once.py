"""Tables of a small batch are worked on side by side: when, each for itself, and with the commits that each would make
alone.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ArithmeticException, NumberFormatException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import TableStopped
from replicator.failpoints import Killed
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Applied, Arrival, Column, Declaration, Progress, SourceSpec, Table, Token
from replicator.stages import parallel, silver, tuning
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.tick import routing
from replicator.stages.tick.source_state import SourceState
from tests.builders import Record, bronze, envelope, record

COLUMNS = (Column("id", "int"), Column("v", "int"))
NAMES = ("a", "b", "c")


class Met(MemoryFormat):
    """Knows how many tables were being written at once, and in how many sessions; ``expected`` wait for each other."""

    def __init__(self, expected: int, size: int = 100) -> None:
        super().__init__()
        self.most, self.sessions, self._size = 0, set[int](), size
        self._busy, self._turn, self._all = 0, threading.Lock(), threading.Barrier(expected)

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        found = super().arrivals(spark, table, after, upto)
        return [Arrival(each.partition, each.version, self._size) for each in found or ()]

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        with self._turn:
            self._busy += 1
            self.most = max(self.most, self._busy)
            self.sessions.add(changes.sparkSession._jsparkSession.hashCode())
        self._all.wait(timeout=120)
        try:
            return super().apply(changes, table, progress)
        finally:
            with self._turn:
                self._busy -= 1


class Noting(MemoryFormat):
    """Knows in which order tables were written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        self.written.append(table.name)
        return super().apply(changes, table, progress)


class Leased:
    """A lease that nobody takes."""

    token = Token("lake", 7)

    def check(self) -> None: ...

    def refuse_if_lost(self) -> None: ...


def world(folder: Path, tables: Any, *, at_once: int = 3, **told: Any) -> Refinement:
    declared = tuple(Declaration(f"shop.{name}", COLUMNS, **told) for name in NAMES)
    lake = Lake(str(folder))
    return Refinement(SourceSpec("s", ".*", tables=declared), tables, tables, MemoryControl(), lake, 1.0, at_once)


def change(name: str, offset: int, value: Any = 1, op: str = "u", **more: Any) -> Record:
    row = {"id": offset % 3, "v": value} | more
    return record(f"s.shop.{name}", offset, {"id": row["id"]}, envelope(op, row, table=f"shop.{name}", pos=9 + offset))


def take(spark: SparkSession, at: Refinement, *records: Record) -> dict[str, Account]:
    at.bronze.append(bronze(spark, records), at.lake.bronze("s"), None)
    return {each.table: each for each in silver.refine(spark, at)}


def rows(spark: SparkSession, at: Refinement, name: str) -> dict[int, int]:
    return {row["id"]: row["v"] for row in at.silver.read(spark, at.lake.silver("s", f"shop.{name}")).collect()}


@pytest.mark.spark
def test_the_table_with_the_most_records_is_taken_first(exact: SparkSession, tmp_path: Path) -> None:
    """None waits in the end for one that began late; the accounts are in the order of the names."""
    noting = Noting()
    at = world(tmp_path, noting, at_once=1)
    done = take(exact, at, change("a", 1), *(change("b", n) for n in range(3)), *(change("c", n) for n in range(2)))
    assert noting.written == ["s/shop.b", "s/shop.c", "s/shop.a"]
    assert list(done) == [f"s/shop.{name}" for name in NAMES]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("at_once", "size", "expected"),
    [(3, 100, 3), (1, 100, 1), (3, tuning.LARGE_RECORD_BYTES, 1)],
    ids=["three", "one by one", "a large batch"],
)
def test_so_many_tables_of_a_batch_are_written_at_once(
    exact: SparkSession, tmp_path: Path, at_once: int, size: int, expected: int
) -> None:
    """As many as the setting says, each in a session of its own; of a large batch one. The accounts are in the order of
    the names.
    """
    met = Met(expected, size)
    at = world(tmp_path, met, at_once=at_once)
    done = take(exact, at, *(change(name, 1) for name in reversed(NAMES)))
    assert [(table, account.applied, account.error) for table, account in done.items()] == [
        (f"s/shop.{name}", 1, None) for name in NAMES
    ]
    assert (met.most, len(met.sessions)) == (expected, expected)
    assert [rows(exact, at, name) for name in NAMES] == [{1: 1}] * 3


@pytest.mark.spark
def test_a_table_that_stops_and_letters_of_all_keep_the_others_going(exact: SparkSession, tmp_path: Path) -> None:
    """Errors are each table's own; dead letters of several tables are all there, once."""
    at = world(tmp_path, MemoryFormat(), truncate="fail")
    take(exact, at, *(change(name, 1) for name in NAMES))
    bad = [change(name, offset, "no number") for offset in (2, 3) for name in NAMES]
    done = take(exact, at, *bad, change("b", 4, op="t"), *(change(name, 5, 5) for name in NAMES))
    assert {table: type(account.error) for table, account in done.items() if account.error} == {
        "s/shop.b": TableStopped
    }
    assert [account.residue for account in done.values() if account.error is None] == [0, 0]
    assert [rows(exact, at, name).get(2) for name in NAMES] == [5, None, 5]
    letters = at.bronze.read(exact, at.lake.dead_letters("s")).select("topic", "offset").collect()
    assert Counter(map(tuple, letters)) == Counter((f"s.shop.{name}", offset) for name in "ac" for offset in (2, 3))


@pytest.mark.spark
@pytest.mark.parametrize(
    "ways",
    [MergeThresholds(), MergeThresholds(0), MergeThresholds(0, marked_files=0)],
    ids=["written anew", "marked", "merged"],
)
def test_every_commit_carries_its_own_progress_and_token(
    spark: SparkSession, tmp_path: Path, ways: MergeThresholds
) -> None:
    """Both are settings of a session for the time of a commit: no table may find another one's, or none."""
    at = world(tmp_path, DeltaFormat(ways, fence=Leased()))
    for offset in (1, 4):
        done = take(spark, at, *(change(name, offset, offset) for name in NAMES))
        assert [account.error for account in done.values()] == [None] * 3
    bronze_id = at.bronze.identity(spark, at.lake.bronze("s")) or ""
    for name in NAMES:
        table = at.lake.silver("s", f"shop.{name}")
        assert rows(spark, at, name) == {1: 4}
        assert at.silver.progress(spark, table, bronze_id) == Progress(bronze_id, 1)
        commits = sorted(Path(table.location, "_delta_log").glob("*.json"))
        actions = [json.loads(line) for file in commits for line in file.read_text().splitlines()]
        told = [action["commitInfo"].get("userMetadata", "{}") for action in actions if "commitInfo" in action]
        assert [json.loads(each).get("number") for each in told] == [7] * len(commits)
        assert [action["txn"]["appId"] for action in actions if "txn" in action] == [bronze_id] * 2


@pytest.mark.spark
def test_a_death_in_one_table_ends_the_run(exact: SparkSession, tmp_path: Path) -> None:
    """Nobody goes on as if nothing had happened; the next run takes what is missing."""
    at = world(tmp_path, MemoryFormat())
    with failpoints.watched(failpoints.parse("silver.merged:raise:2")), pytest.raises(Killed):
        take(exact, at, *(change(name, 1) for name in NAMES))
    assert at.control.get(at.lake.reached("s")) is None  # the tick's end was not come to
    again = Refinement(at.source, at.bronze, at.silver, at.control, at.lake)
    assert {each.table: each.error for each in silver.refine(exact, again)}.items() <= {
        f"s/shop.{name}": None for name in NAMES
    }.items()
    assert [rows(exact, at, name) for name in NAMES] == [{1: 1}] * 3


@pytest.mark.spark
def test_tables_that_regain_columns_at_once_all_count_as_partial(exact: SparkSession, tmp_path: Path) -> None:
    """What one notes of its rows with unknown columns does not undo what another one noted."""
    names = NAMES[:2]
    at = world(tmp_path, MemoryFormat(), schema_changes="freeze")
    take(exact, at, *(change(name, 1) for name in names))
    take(exact, at, *(change(name, 2, w="kept out") for name in names))
    thawed = world(tmp_path, MemoryFormat()).source
    at = replace(at, source=thawed, state=SourceState())
    done = take(exact, at, *(change(name, 4, w="let in") for name in names))
    assert [account.error for account in done.values()] == [None] * 2
    for name in names:
        found = at.silver.read(exact, at.lake.silver("s", f"shop.{name}")).select("id", "w").collect()
        assert set(map(tuple, found)) == {(1, "let in"), (2, "kept out")}
    known = at.bronze.identity(exact, at.lake.bronze("s")) or ""
    assert routing.load_routes(at.control, at.lake.routes("s"), known).partial == {f"shop.{name}" for name in names}


@pytest.mark.spark
def test_threads_have_the_properties_of_who_started_them(spark: SparkSession) -> None:
    """A pool or a job group that the caller set holds for its tables; what one sets there stays with it."""
    context = spark.sparkContext
    context.setLocalProperty("replicator.test", "callers")

    def seen(number: int) -> tuple[str | None, str | None]:
        before = context.getLocalProperty("replicator.test")
        context.setLocalProperty("replicator.test", str(number))
        spark.range(number).count()
        return before, context.getLocalProperty("replicator.test")

    try:
        found = parallel.run_each(seen, [1, 2, 3, 4], 2, "test")
        assert context.getLocalProperty("replicator.test") == "callers"
    finally:
        context.setLocalProperty("replicator.test", None)  # type: ignore[arg-type]
    assert [own for _, own in found] == ["1", "2", "3", "4"]
    assert [before for before, _ in found] == ["callers"] * 4


@pytest.mark.spark
def test_what_is_built_beside_the_caller_is_built_as_the_caller_builds_it(spark: SparkSession) -> None:
    """An expression takes ANSI mode and the zone from the thread's active session: without one a sum that does not fit
    would be another number, and a text that is no number NULL.
    """
    rows = spark.sql("SELECT 2000000000 AS a, 'x' AS t")

    def failed(expression: str) -> str:
        with pytest.raises(ArithmeticException if "*" in expression else NumberFormatException) as caught:
            rows.select(F.expr(expression)).collect()
        return type(caught.value).__name__

    expressions = ["a * 2", "CAST(t AS int)"]
    alone = [failed(each) for each in expressions]
    assert parallel.run_each(failed, expressions, 2, "test") == alone
    with parallel.BackgroundTask[str]("test") as aside:
        aside.begin(lambda: failed("a * 2"))
        assert aside.take_result(wait=True) == alone[0]
