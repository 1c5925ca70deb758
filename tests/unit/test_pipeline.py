"""A run that goes on: what wakes its stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from threading import Event
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import (
    ConfigError,
    EngineFailed,
    LoginRefused,
    ReplicatorError,
    TargetRefused,
    Unreachable,
    ValueRefused,
    exit_code,
)
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.protocols import Difference
from replicator.sinks.memory import MemorySink
from replicator.sinks.memory_outlet import MemoryOutlet
from replicator.spec import Applied, Column, Declaration, Feed, Model, ModelColumn, Progress, SourceSpec, Table, Target
from replicator.stages import continuous, pipeline, report_throttle, tuning
from replicator.stages.canonical import FeedContext
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.pipeline import Pipeline
from replicator.stages.refinement import Refinement
from replicator.stages.run_report import ReportLine
from replicator.stages.tick import transaction_cut
from replicator.stages.tick.transaction_cut import CutState
from tests.builders import SILVER, bronze, envelope, made, record

pytestmark = pytest.mark.spark

MODEL = Model(
    "m",
    "SELECT k, a FROM {t}",
    {"t": "s/db.t"},
    ("k",),
    (ModelColumn("k", "integer"), ModelColumn("a", "integer")),
    target=Target("warehouse", "public", "m"),
)


def test_gold_without_silver_wakes_by_what_another_process_writes_there(spark: SparkSession) -> None:
    """Each commit of silver is taken and published, and transactions that are whole again are; bronze is not asked."""
    small, tables, control, sink = tuning.session_for(spark, 0), MemoryFormat(), MemoryControl(), MemorySink()
    lake, stop = Lake("memory"), Event()
    silver = lake.silver("s", "db.t", ("k",))
    at = Refinement(SourceSpec("s", ".*", whole_transactions=True), tables, tables, control, lake)
    made_of = Pipeline((), (), (at,), Warehouse(tables, tables, control, lake), (MODEL,), {"warehouse": sink})

    def commit(number: int) -> None:
        rows = made(small, [(number, number, "x", f"{number:02}", False, None, 1, "upsert")], f"{SILVER}, _op STRING")
        tables.put(rows.withMetadata("k", {"key": 0, "name": "k"}), silver, Progress("bronze", number))

    whole = CutState("bronze")
    acts = [
        lambda: commit(1),
        lambda: (commit(2), control.put(lake.cut("s"), replace(whole, lagging_tables=None).value())),
        lambda: control.put(lake.cut("s"), whole.value()),
        stop.set,
    ]
    lines: list[ReportLine] = []
    looks = 0

    def between() -> None:
        """The other process: one thing after the other, each once the run has had time to see the last one."""
        nonlocal looks
        looks += 1
        if looks % 3 == 1:
            acts.pop(0)()

    continuous.run_continuously(small, made_of, ("gold", "publish"), lines.append, stop, between)
    assert [line.error for line in lines if line.error is not None] == []
    words = [" ".join(line.warnings) for line in lines]
    seen = [(line, said) for line, said in zip(lines, words, strict=True) if "does not exist yet" not in said]
    assert [(line.stage, line.applied, "waits: transactions of s are incomplete" in said) for line, said in seen] == [
        ("gold", 1, False),
        ("publish", 1, False),
        ("gold", 0, True),
        ("gold", 1, False),
        ("publish", 1, False),
    ]
    assert sorted(sink.tables["m"]) == [(1,), (2,)]
    assert transaction_cut.load_consistent(control, lake, "s") == whole


def test_feeds_by_themselves_wake_by_the_tables_that_they_send(spark: SparkSession) -> None:
    """Each commit of another process is sent, without a stage before it in this run."""
    small, tables, control, outlet = tuning.session_for(spark, 0), MemoryFormat(), MemoryControl(), MemoryOutlet("t")
    lake, stop, number = Lake("memory"), Event(), 0
    at = Warehouse(tables, tables, control, lake)
    feed = Feed("people", "t", "m", bootstrap_servers="memory")
    offer = FeedContext((feed,), {"people": outlet}, {"m": ("k",)}, {}, at)
    lines: list[ReportLine] = []

    def between() -> None:
        nonlocal number
        number += 1
        if number % 3 == 1 and number < 6:
            rows = made(small, [(number, "lineage", "upsert")], "k INT, _source STRING, _op STRING")
            tables.put(rows, lake.gold("m", ("k",)), Progress("in", number))
        elif number > 8:
            stop.set()

    made_of = Pipeline((), (), (), at, (), {}, offer)
    continuous.run_continuously(small, made_of, ("canonical",), lines.append, stop, between)
    assert [line.applied for line in lines if line.error is None and line.applied] == [1, 1]
    assert len(outlet.topics["t"]) == 2


def test_a_target_or_a_topic_out_of_reach_keeps_nothing_from_feeds(spark: SparkSession) -> None:
    """Each is a line that may be tried again, and feeds are sent: once, and in a run that goes on, which tries again
    without a new commit.
    """

    class Away(MemorySink):
        def progress(self, model: Model) -> Progress | None:
            raise Unreachable("Postgres does not answer", where=model.name)

    small, tables, control, outlet = tuning.session_for(spark, 0), MemoryFormat(), MemoryControl(), MemoryOutlet("t")
    lake, stop = Lake("memory"), Event()
    at = Warehouse(tables, tables, control, lake)
    rows = made(small, [(1, 2, "lineage", "upsert")], "k INT, a INT, _source STRING, _op STRING")
    tables.put(rows, lake.gold("m", ("k",)), Progress("in", 1))
    here = Feed("here", "t", "m", bootstrap_servers="memory")
    feeds = (replace(here, name="later", topic="missing"), here)
    offer = FeedContext(feeds, dict.fromkeys(("here", "later"), outlet), {"m": ("k",)}, {}, at)
    made_of = Pipeline((), (), (), at, (MODEL,), {"warehouse": Away()}, offer)
    lines: list[ReportLine] = []
    pipeline.run_once(small, made_of, ("publish", "canonical"), lines.append)
    assert [(line.stage, line.table, line.applied, type(line.error)) for line in lines] == [
        ("publish", "warehouse", 0, Unreachable),
        ("canonical", "later", 0, Unreachable),
        ("canonical", "here", 1, type(None)),
    ]
    assert exit_code([line.error for line in lines if line.error is not None]) == 3
    lines.clear()

    def between() -> None:
        """The topic is made after the first pass."""
        stop.set() if "missing" in outlet.topics else outlet.topics.setdefault("missing", [])

    continuous.run_continuously(small, made_of, ("canonical",), lines.append, stop, between)
    assert [(line.table, line.applied, type(line.error)) for line in lines] == [
        ("later", 0, Unreachable),
        ("later", 1, type(None)),
    ]


def test_a_target_or_a_lake_that_came_back_is_no_error_of_a_run_that_goes_on(spark: SparkSession) -> None:
    """What was out of reach, or let nobody in, is told of when it is back: the last word on it, by which a run ends
    with 0.
    """

    class Silent(MemoryFormat):
        is_silent = False

        def version(self, spark: SparkSession, table: Table) -> int | None:
            if self.is_silent:
                self.is_silent = False
                raise Unreachable("the store does not answer", where=table.location)
            return super().version(spark, table)

    class Back(MemorySink):
        looked = 0

        def progress(self, model: Model) -> Progress | None:
            self.looked += 1
            if self.looked == 1:
                raise Unreachable("Postgres does not answer", where=model.name)
            if self.looked == 2:
                raise LoginRefused("Postgres lets nobody in", where=model.name)
            return super().progress(model)

    small, tables, control, sink = tuning.session_for(spark, 0), Silent(), MemoryControl(), Back()
    lake, stop = Lake("memory"), Event()
    at = Warehouse(tables, tables, control, lake)
    rows = made(small, [(1, 2, "lineage", "upsert")], "k INT, a INT, _source STRING, _op STRING")
    tables.put(rows, lake.gold("m", ("k",)), Progress("in", 1))
    made_of = Pipeline((), (), (), at, (MODEL,), {"warehouse": sink})
    tables.is_silent = True
    lines: list[ReportLine] = []
    continuous.run_continuously(
        small, made_of, ("publish",), lines.append, stop, lambda: stop.set() if sink.tables else None
    )
    assert [(line.table, line.applied, type(line.error), line.how) for line in lines] == [
        ("", 0, Unreachable, ""),
        ("warehouse", 0, Unreachable, ""),
        ("", 0, type(None), "reachable again"),
        ("warehouse", 0, LoginRefused, ""),
        ("m", 1, type(None), ""),
        ("warehouse", 0, type(None), "reachable again"),
    ]
    last = {(line.stage, line.table): line.error for line in lines}
    assert set(last.values()) == {None}


@pytest.mark.parametrize(("seconds", "times"), [(60, 1), (0, 3)])
def test_a_target_that_stays_away_is_told_of_once_in_a_while(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seconds: float, times: int
) -> None:
    """It is tried every second, all night: the same words as often would be all that the log has."""

    class Away(MemorySink):
        looked = 0

        def progress(self, model: Model) -> Progress | None:
            self.looked += 1
            if self.looked < 4:
                raise LoginRefused("the database does not exist", where=model.name)
            return super().progress(model)

    monkeypatch.setattr(report_throttle, "_SILENT_SECONDS", seconds)
    small, tables, control, sink = tuning.session_for(spark, 0), MemoryFormat(), MemoryControl(), Away()
    lake, stop, lines = Lake("memory"), Event(), list[ReportLine]()
    rows = made(small, [(1, 2, "lineage", "upsert")], "k INT, a INT, _source STRING, _op STRING")
    tables.put(rows, lake.gold("m", ("k",)), Progress("in", 1))
    made_of = Pipeline((), (), (), Warehouse(tables, tables, control, lake), (MODEL,), {"warehouse": sink})
    between = lambda: stop.set() if sink.tables else None  # noqa: E731 - as short as what it says
    continuous.run_continuously(small, made_of, ("publish",), lines.append, stop, between)
    told = [type(line.error) for line in lines if line.table == "warehouse"]
    assert told == [*[LoginRefused] * times, type(None)]


def test_what_a_target_refuses_is_tried_again_without_news(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table is fixed where nobody tells of it, and the source may be quiet: the run ends with 0 all the same."""

    class Fixed(MemorySink):
        tried = 0

        def publish(self, differences: Sequence[Difference]) -> dict[str, Applied]:
            self.tried += 1
            if self.tried < 3:
                raise TargetRefused("Postgres refuses model m", where="m")
            return super().publish(differences)

    monkeypatch.setattr(continuous, "_AGAIN_SECONDS", 0.1)
    small, tables, control, sink = tuning.session_for(spark, 0), MemoryFormat(), MemoryControl(), Fixed()
    lake, stop, ends = Lake("memory"), Event(), time.monotonic() + 60
    rows = made(small, [(1, 2, "lineage", "upsert")], "k INT, a INT, _source STRING, _op STRING")
    tables.put(rows, lake.gold("m", ("k",)), Progress("in", 1))
    made_of = Pipeline((), (), (), Warehouse(tables, tables, control, lake), (MODEL,), {"warehouse": sink})
    lines: list[ReportLine] = []

    def between() -> None:
        if sink.tables or time.monotonic() > ends:
            stop.set()

    continuous.run_continuously(small, made_of, ("publish",), lines.append, stop, between)
    assert [(line.table, line.applied, type(line.error)) for line in lines] == [
        ("m", 0, TargetRefused),
        ("m", 0, TargetRefused),
        ("m", 1, type(None)),
    ]


@pytest.mark.parametrize("stage", ["silver", "gold", "publish"])
def test_a_table_that_a_full_disk_stopped_is_tried_again_without_news(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Room is made where nobody tells of it, and the source may be quiet: what was there already is taken, and the run
    ends with 0 all the same.
    """
    full = AnalysisException("Job aborted: java.io.IOException: No space left on device")

    class Full(MemoryFormat):
        left = 2

        def _met(self, met: str) -> None:
            if met == stage and self.left:
                self.left -= 1
                raise full

        def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
            self._met("silver")
            return super().apply(changes, table, progress)

        def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
            self._met("gold")
            return super().put(difference, table, progress, repeats=repeats)

        def size(self, spark: SparkSession, table: Table) -> int:
            if table.location.endswith("gold/m") and self.version(spark, table) is not None:
                self._met("publish")
            return super().size(spark, table)

    monkeypatch.setattr(continuous, "_AGAIN_SECONDS", 0.1)
    exact, tables, control, sink = tuning.session_for(spark, 0, exact_names=True), Full(), MemoryControl(), MemorySink()
    lake, stop, ends = Lake("memory"), Event(), time.monotonic() + 60
    source = SourceSpec("s", ".*", tables=(Declaration("shop.t", (Column("k", "int"), Column("a", "int"))),))
    at, model = Refinement(source, tables, tables, control, lake), replace(MODEL, inputs={"t": "s/shop.t"})
    made_of = Pipeline((), (), (at,), Warehouse(tables, tables, control, lake), (model,), {"warehouse": sink})
    told = envelope("c", {"k": 1, "a": 2}, table="shop.t", pos=4)
    tables.append(bronze(exact, [record("s.shop.t", 1, {"k": 1}, told)]), lake.bronze("s"), None)
    lines: list[ReportLine] = []

    def between() -> None:
        if sink.tables or time.monotonic() > ends:
            stop.set()

    continuous.run_continuously(exact, made_of, ("silver", "gold", "publish"), lines.append, stop, between)
    of_stage = [(line.applied, type(line.error)) for line in lines if line.stage == stage]
    assert of_stage == [(0, EngineFailed), (0, EngineFailed), (1, type(None))]
    last = {(line.stage, line.table): line.error for line in lines}
    assert set(last.values()) == {None}


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT k, element_at(array(k), a) AS a FROM {t}", ValueRefused),
        ("SELECT k, nope AS a FROM {t}", ConfigError),
        ("SELECT k, IF(a < 0, a, CAST(raise_error('no a') AS INT)) AS a FROM {t}", ValueRefused),
    ],
    ids=["a value", "a column", "an error of its own"],
)
def test_a_model_whose_sql_is_wrong_is_computed_again_with_news_alone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, sql: str, error: type[ReplicatorError]
) -> None:
    """The same rows come to the same end; told with every minute, nobody would read it."""
    monkeypatch.setattr(continuous, "_AGAIN_SECONDS", 0.1)
    small, tables, control = tuning.session_for(spark, 0), MemoryFormat(), MemoryControl()
    lake, stop, looks = Lake("memory"), Event(), count(1)
    silver, model = lake.silver("s", "db.t", ("k",)), replace(MODEL, sql=sql, target=None)
    made_of = Pipeline((), (), (), Warehouse(tables, tables, control, lake), (model,), {})
    lines: list[ReportLine] = []

    def commit(version: int) -> None:
        rows = made(small, [(1, 0, "x", f"{version:02}", False, None, 1, "upsert")], f"{SILVER}, _op STRING")
        tables.put(rows.withMetadata("k", {"key": 0, "name": "k"}), silver, Progress("bronze", version))

    def between() -> None:
        look = next(looks)
        if look in (1, 10):
            commit(look)
        if look == 20:
            stop.set()

    continuous.run_continuously(small, made_of, ("gold",), lines.append, stop, between)
    assert [type(line.error) for line in lines if not line.warnings] == [error, error]


def test_a_source_that_a_full_disk_stopped_is_told_of_when_it_goes_on(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a control row has no room, no table is told alone: that the source goes on is the last word on it, by which
    the run ends with 0.
    """

    class Full(MemoryControl):
        left = 2

        def put(self, path: str, value: Mapping[str, Any]) -> None:
            if self.left:
                self.left -= 1
                raise AnalysisException("java.io.IOException: No space left on device")
            super().put(path, value)

    monkeypatch.setattr(continuous, "_AGAIN_SECONDS", 0.1)
    exact, tables, control = tuning.session_for(spark, 0, exact_names=True), MemoryFormat(), Full()
    lake, stop, ends = Lake("memory"), Event(), time.monotonic() + 60
    source = SourceSpec("s", ".*", tables=(Declaration("shop.t", (Column("k", "int"), Column("a", "int"))),))
    at = Refinement(source, tables, tables, control, lake)
    made_of = Pipeline((), (), (at,), Warehouse(tables, tables, control, lake), (), {})
    told = envelope("c", {"k": 1, "a": 2}, table="shop.t", pos=4)
    tables.append(bronze(exact, [record("s.shop.t", 1, {"k": 1}, told)]), lake.bronze("s"), None)
    lines: list[ReportLine] = []

    def between() -> None:
        if any(line.applied for line in lines) or time.monotonic() > ends:
            stop.set()

    continuous.run_continuously(exact, made_of, ("silver",), lines.append, stop, between)
    assert [(line.table, line.applied, type(line.error), line.how) for line in lines] == [
        ("s", 0, EngineFailed, ""),
        ("s", 0, EngineFailed, ""),
        ("s/shop.t", 1, type(None), ""),
        ("s", 0, type(None), "continues"),
    ]


class Watched(MemorySink):
    """Its first batch takes until silver has one more version; what gold was at before and behind each is kept."""

    silver: Callable[[], int | None]
    gold: Callable[[], int | None]

    def __init__(self, tables: MemoryFormat, lake: Lake, spark: SparkSession) -> None:
        super().__init__()
        self.silver, self.gold = (
            lambda: tables.version(spark, lake.silver("s", "shop.t")),
            lambda: tables.version(spark, lake.gold("m")),
        )
        self.stood: list[tuple[int | None, int | None]] = []
        self.is_at_work, self.was_overtaken = Event(), False

    def publish(self, differences: Sequence[Difference]) -> dict[str, Applied]:
        before, silver = self.gold(), self.silver()
        self.is_at_work.set()
        until = time.monotonic() + 60
        while not self.was_overtaken and time.monotonic() < until:
            time.sleep(0.02)
            self.was_overtaken = self.silver() != silver
        if not self.stood:
            self.stood.append((before, self.gold()))
            raise Unreachable("Postgres does not answer", where="m")
        applied = super().publish(differences)
        self.stood.append((before, self.gold()))
        return applied


def test_silver_goes_on_while_publish_is_at_work_and_gold_does_not(spark: SparkSession) -> None:
    """Publish of a pass works beside the silver of the next one; gold stands still under it. What publish could not
    reach is tried again, without a new record, and told of when it is back; what is under way at the end is told, too.
    """
    exact, tables, control = tuning.session_for(spark, 0, exact_names=True), MemoryFormat(), MemoryControl()
    lake, stop = Lake("memory"), Event()
    source = SourceSpec("s", ".*", tables=(Declaration("shop.t", (Column("k", "int"), Column("a", "int"))),))
    at, sink = Refinement(source, tables, tables, control, lake), Watched(tables, lake, exact)
    model = replace(MODEL, inputs={"t": "s/shop.t"})
    warehouse = Warehouse(tables, tables, control, lake)
    made_of = Pipeline((), (), (at,), warehouse, (model,), {"warehouse": sink})

    def arrive(number: int) -> None:
        told = envelope("c", {"k": number, "a": number}, table="shop.t", pos=4 + number)
        records = [record("s.shop.t", number, {"k": number}, told)]
        tables.append(bronze(exact, records), lake.bronze("s"), None)

    arrive(1)
    lines: list[ReportLine] = []

    def between() -> None:
        if sink.is_at_work.is_set() and len(tables.read(exact, lake.bronze("s")).collect()) == 1:
            arrive(2)
        if len(sink.tables.get("m", {})) == 2:
            stop.set()

    continuous.run_continuously(exact, made_of, ("silver", "gold", "publish"), lines.append, stop, between)
    assert sink.was_overtaken
    assert all(before == behind for before, behind in sink.stood)
    assert [(line.stage, line.applied, type(line.error), line.how.partition(":")[0]) for line in lines] == [
        ("silver", 1, type(None), ""),
        ("gold", 1, type(None), "first build"),
        ("silver", 1, type(None), ""),
        ("publish", 0, Unreachable, ""),
        ("gold", 1, type(None), "full"),
        ("publish", 2, type(None), ""),
        ("publish", 0, type(None), "reachable again"),
    ]


def test_silver_of_a_lake_without_bronze_says_so(spark: SparkSession) -> None:
    """Nothing new would be no news of a lake that is the wrong one. A run that reads Kafka itself waits."""
    tables, control, lake = MemoryFormat(), MemoryControl(), Lake("memory")
    at = Refinement(SourceSpec("s", ".*"), tables, tables, control, lake)
    made_of = Pipeline((), (), (at,), Warehouse(tables, tables, control, lake), (), {})
    lines: list[ReportLine] = []
    pipeline.run_once(spark, made_of, ("bronze", "silver"), lines.append)
    assert lines == []
    pipeline.run_once(spark, made_of, ("silver",), lines.append)
    told = "bronze of s does not exist yet [memory/bronze/s] `replicator run bronze` reads it from Kafka;"
    assert [str(line.error) for line in lines] == [f"{told} or specify the right lake."]
    assert exit_code([line.error for line in lines if line.error is not None]) == 1
