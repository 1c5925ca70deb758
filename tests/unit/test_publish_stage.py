"""Gold -> target: what is sent, and when nothing is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.errors import (
    ConfigError,
    StaleWriter,
    TableMissing,
    TableStopped,
    TargetMoved,
    TargetRefused,
    Unreachable,
)
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.sinks.memory import MemorySink
from replicator.spec import Applied, Model, ModelColumn, Progress, Target
from replicator.stages.publish import PublishResult, _repartition, publish
from replicator.stages.run_report import of_publish
from tests.builders import made

pytestmark = pytest.mark.spark

COLUMNS = "id INT, part STRING, name STRING, _source STRING, _op STRING"


def model(name: str = "dim", **more: Any) -> Model:
    columns = (ModelColumn("id", "integer"), ModelColumn("part", "text"), ModelColumn("name", "text", nullable=False))
    return Model(name, "", {}, ("id", "part"), columns, target=Target("w", "s", name), **more)


@dataclass
class World:
    """A lake in memory and a target in memory."""

    spark: SparkSession
    gold: MemoryFormat = field(default_factory=MemoryFormat)
    sink: MemorySink = field(default_factory=MemorySink)
    lake: Lake = field(default_factory=lambda: Lake("memory"))
    written: int = 0

    def put(self, of: Model, *rows: tuple[Any, ...]) -> None:
        self.written += 1
        typed = [(key, part, name, "lineage", op) for key, part, name, op in rows]
        table = self.lake.gold(of.name, of.key)
        self.gold.put(made(self.spark, typed, COLUMNS), table, Progress("silver", self.written))

    def publish(self, *models: Model) -> list[PublishResult]:
        return publish(self.spark, models, self.gold, self.lake, self.sink)

    def served(self, of: Model) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in self.sink.tables[of.name].values())


@pytest.fixture
def world(spark: SparkSession) -> World:
    return World(spark)


def test_the_first_time_sends_the_whole_model(world: World) -> None:
    """Declared columns only: lineage stays in gold."""
    dim = model()
    world.put(dim, (1, "a", "Ann", "upsert"), (2, "b", " Zoë", "upsert"))
    (report,) = world.publish(dim)
    assert (report.model, report.rows, report.applied, report.error) == ("dim", 2, Applied(2, 0, 0, 0), None)
    assert world.served(dim) == [(1, "a", "Ann"), (2, "b", " Zoë")]


def test_nothing_new_is_not_in_the_batch(world: World) -> None:
    """The second run reports nothing, and so does a model without target."""
    dim = model()
    world.put(dim, (1, "a", "Ann", "upsert"))
    world.publish(dim)
    bare = Model("bare", "", {}, ("id",), ())
    assert world.publish(dim, bare) == []


def test_later_only_changed_keys_travel_and_deletes_with_them(world: World) -> None:
    """Updated, new and deleted rows are in the difference, unchanged ones are not."""
    dim = model()
    world.put(dim, (1, "a", "Ann", "upsert"), (2, "a", "Bob", "upsert"), (3, "a", "Cid", "upsert"))
    world.publish(dim)
    world.put(dim, (2, "a", "Bea", "upsert"), (3, "a", None, "delete"))
    world.put(dim, (4, "a", "Dan", "upsert"))
    (report,) = world.publish(dim)
    assert (report.rows, report.applied) == (3, Applied(1, 1, 1, 2))
    assert world.served(dim) == [(1, "a", "Ann"), (2, "a", "Bea"), (4, "a", "Dan")]


def test_a_target_that_loses_its_newest_batch_meanwhile_gets_it_again(world: World) -> None:
    """As behind a standby that takes over between the question how far the target is and the rows since then."""

    class TakesOver(MemorySink):
        older: tuple[Any, ...] | None = None

        def publish(self, differences: Any) -> dict[str, Applied]:
            if self.older is not None:
                (self.tables, self.ledger), self.older = self.older, None
            return super().publish(differences)

    dim, world.sink = model(), TakesOver()
    world.put(dim, (1, "a", "Ann", "upsert"))
    world.publish(dim)
    older = (world.sink.tables, world.sink.ledger)
    world.put(dim, (2, "a", "Bob", "upsert"))
    world.publish(dim)
    world.put(dim, (3, "a", "Zoë", "upsert"))
    world.sink.older = older
    (report,) = world.publish(dim)
    assert isinstance(report.error, TargetMoved)
    assert report.error.retry
    world.publish(dim)
    assert [row[0] for row in world.served(dim)] == [1, 2, 3]


def test_a_version_without_changes_moves_the_ledger(world: World) -> None:
    """So that the range of the next run starts after it."""
    dim = model()
    world.put(dim, (1, "a", "Ann", "upsert"))
    world.publish(dim)
    world.put(dim)
    (report,) = world.publish(dim)
    assert (report.rows, report.applied) == (0, Applied(0, 0, 0, 1))
    assert world.publish(dim) == []


def test_a_gold_table_that_was_made_anew_replaces_the_target(world: World) -> None:
    """Its identity is another one, so rows that it lacks go; that is told, for two lakes may have one target."""
    dim = model()
    world.put(dim, (1, "a", "Ann", "upsert"), (2, "a", "Bob", "upsert"))
    assert world.publish(dim)[0].warnings == ()
    first, world.gold = world.gold, MemoryFormat()
    world.put(dim, (2, "a", "Bob", "upsert"))
    (report,) = world.publish(dim)
    assert report.applied == Applied(0, 0, 1, 0)
    assert world.served(dim) == [(2, "a", "Bob")]
    other, world.gold = world.gold, first
    (back,) = world.publish(dim)
    assert (back.applied, world.publish(dim)) == (Applied(1, 0, 0, 0), [])
    assert [len(each.warnings) for each in (report, back)] == [1, 1]
    assert "two lakes publish to the same target" in of_publish(back).warnings[0]
    world.gold = other
    assert world.publish(dim)[0].warnings == back.warnings


def test_a_history_that_is_gone_is_replaced_by_the_whole_model(world: World) -> None:
    """A format that cannot say what changed makes the difference complete."""

    class Forgetful(MemoryFormat):
        def changed_keys(self, *_: Any) -> None:
            return None

    dim, world.gold = model(), Forgetful()
    world.put(dim, (1, "a", "Ann", "upsert"), (2, "a", "Bob", "upsert"))
    world.publish(dim)
    world.put(dim, (1, "a", None, "delete"))
    (report,) = world.publish(dim)
    assert (report.rows, report.applied) == (1, Applied(0, 0, 1, 1))
    assert world.served(dim) == [(2, "a", "Bob")]


def test_a_bad_model_is_in_its_report_and_the_others_go_on(world: World) -> None:
    """Refused by the target, not written yet, and gone back: each has its own error."""
    good, refused, missing, back = model("good"), model("refused"), model("missing"), model("back")
    world.put(good, (1, "a", "Ann", "upsert"))
    world.put(refused, (1, "a", None, "upsert"))
    world.put(back, (1, "a", "Ann", "upsert"))
    identity = world.gold.identity(world.spark, world.lake.gold("back"))
    world.sink.ledger["back"] = Progress(str(identity), 7)
    reports = {each.model: each for each in world.publish(good, refused, missing, back)}
    assert reports["good"].applied == Applied(1, 0, 0, 0)
    assert isinstance(reports["refused"].error, TargetRefused)
    assert isinstance(reports["missing"].error, TableMissing)
    assert isinstance(reports["back"].error, StaleWriter)
    assert [each.applied for each in reports.values()][1:] == [None, None, None]
    assert list(world.sink.tables) == ["good"]


def test_a_declared_column_that_gold_lacks_is_named(world: World) -> None:
    """The model and its table do not fit; nothing of it is sent."""
    dim = model()
    world.put(dim, (1, "a", "Ann", "upsert"))
    wider = Model("dim", "", {}, dim.key, (*dim.columns, ModelColumn("city", "text")), target=dim.target)
    (report,) = world.publish(wider)
    assert isinstance(report.error, TargetRefused)
    assert "city" in str(report.error)


@pytest.mark.parametrize(
    ("count", "size", "tasks"), [(100, 1 << 40, 1), (100_000, 1 << 20, 1), (100_001, 0, 2), (20_000, 64 << 20, 4)]
)
def test_rows_travel_in_as_many_tasks_as_the_drivers_memory_wants(
    world: World, count: int, size: int, tasks: int
) -> None:
    """By their count, and where they are wide by their bytes; a few rows stay in one."""
    rows = world.spark.range(10).coalesce(1)
    assert _repartition(rows, count, size).rdd.getNumPartitions() == tasks


def test_a_model_that_no_target_can_have_stops_alone(world: World) -> None:
    """Its names and types are asked with its ledger row; those of others have nothing to do with it."""

    class Strict(MemorySink):
        def progress(self, model: Model) -> Progress | None:
            if model.name == "odd":
                raise ConfigError("table name _replicator_ledger is reserved for publishing")
            return super().progress(model)

    dim, odd, world.sink = model(), model("odd"), Strict()
    for each in (dim, odd):
        world.put(each, (1, "a", "Ann", "upsert"))
    told = {each.model: each for each in world.publish(odd, dim)}
    assert isinstance(told["odd"].error, ConfigError)
    assert told["dim"].applied == Applied(1, 0, 0, 0)


def test_a_target_out_of_reach_comes_out(world: World) -> None:
    """Nothing can be published, and a retry can help: that is not one model's error."""

    class Away(MemorySink):
        def publish(self, *_: Any) -> dict[str, Applied]:
            raise Unreachable("Postgres does not answer")

    dim, world.sink = model(), Away()
    world.put(dim, (1, "a", "Ann", "upsert"))
    with pytest.raises(Unreachable):
        world.publish(dim)


def test_a_model_waits_for_what_it_references_and_is_not_published(world: World) -> None:
    """Decision 0006: a fact that goes ahead would point at rows that are not there, whoever has refused them."""
    dim, fact, farther = model("dim"), model("fact", references=("dim",)), model("farther", references=("fact",))
    for each in (dim, fact, farther):
        world.put(each, (1, "a", "first", "upsert"))
    world.publish(dim, fact, farther)
    for each in (dim, fact, farther):
        world.put(each, (2, "a", "second", "upsert"))
    wider = Model("dim", "", {}, dim.key, (*dim.columns, ModelColumn("city", "text")), target=dim.target)
    told = {each.model: each for each in world.publish(farther, fact, wider)}
    assert "lacks" in str(told["dim"].error)
    assert "references dim, which was refused" in str(told["fact"].error)
    assert "references fact, which was refused" in str(told["farther"].error)
    assert [world.served(each) for each in (dim, fact, farther)] == [[(1, "a", "first")]] * 3


def test_a_model_at_which_the_engine_fails_is_named_and_the_others_go_on(world: World) -> None:
    """Architecture, idea 5: its changed keys cannot be read, for one."""

    class Broken(MemoryFormat):
        def changed_keys(self, spark: SparkSession, table: Any, after: int, upto: int) -> Any:
            found = super().changed_keys(spark, table, after, upto)
            return found.where("assert_true(id > 9) IS NULL") if table.name == "bad" else found

    world.gold = Broken()
    good, bad = model("good"), model("bad")
    for name in ("first", "second"):
        for each in (bad, good):
            world.put(each, (1, "a", name, "upsert"))
        told = {each.model: each for each in world.publish(bad, good)}
    assert isinstance(told["bad"].error, TableStopped)
    assert (world.served(bad), world.served(good)) == ([(1, "a", "first")], [(1, "a", "second")])
