"""A rebuild makes from bronze what batches made of it, fixes what is wrong, and nobody ever sees less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.errors import ConfigError, SchemaRefused, TableStopped, WouldLose
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import purge
from replicator.operate.maintain import LakeTables, drop_shadows
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuild_all import Selection, carry_out, rebuild_model, resolve_selection
from replicator.operate.rebuilding import swap
from replicator.operate.rebuilding.rebuild_result import EQUAL, FINISHED, REPLACED, WRITTEN, RebuildResult, summarize
from replicator.spec import Applied, Column, Declaration, Model, ModelColumn, Progress, SourceSpec, Table, Transform
from replicator.stages import gold, silver, twins
from replicator.stages.account import Account
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.transforms.columns.layout import key_of
from replicator.transforms.comparison import compare, rebuild_diff
from tests.builders import SILVER, UNSENT, Record, bronze, envelope, made, record, states
from tests.cli import said
from tests.golden.cases import cases
from tests.golden.run import Run

pytestmark = pytest.mark.spark

ORDERS, NAME = "s.shop.orders", "shop.orders"
COLUMNS = (Column("id", "int"), Column("v", "int"), Column("t", "string"))
DAY = 86_400_000
NOW = 1_700_000_000_000


@dataclass
class World:
    """A source's silver, in memory or in Delta."""

    spark: SparkSession
    folder: Path
    format: Any = field(default_factory=MemoryFormat)
    control: Any = field(default_factory=MemoryControl)
    told: Declaration = field(default=Declaration(NAME, COLUMNS))
    sequence_by: str = "position"

    def __post_init__(self) -> None:
        self.declare()

    def declare(self, **told: Any) -> None:
        """Another declaration of the table, and another process."""
        self.told = replace(self.told, **told)
        spec = SourceSpec("s", ".*", tables=(self.told,), sequence_by=self.sequence_by)
        self.at = Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    @property
    def table(self) -> Table:
        """The table of silver."""
        return self.at.lake.silver("s", NAME, self.told.keys or ("id",))

    def take(self, *records: Record) -> Account:
        """One batch."""
        self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        return silver.refine(self.spark, self.at)[0]

    def rebuild(self, at: Refinement | None = None, **how: Any) -> RebuildResult:
        """The table once more."""
        return rebuild(self.spark, at or self.at, NAME, RebuildOptions(**how))

    def rows(self) -> dict[Any, tuple[Any, ...]]:
        """Silver at rest: (v, t, _deleted) by id."""
        rows = self.format.read(self.spark, self.table).collect()
        return {row["id"]: (row["v"], row["t"], row["_deleted"]) for row in rows}

    def version(self) -> int:
        """The table's newest."""
        return int(self.format.version(self.spark, self.table) or 0)

    def damage(self, **values: Any) -> None:
        """Write other values into the row of id 1, behind everybody's back."""
        row = self.format.read(self.spark, self.table).where("id = 1")
        for column, value in values.items():
            row = row.withColumn(column, F.lit(value).cast(dict(row.dtypes)[column]))
        self.format.put(row.withColumn("_op", F.lit("upsert")), self.table, Progress("damage", self.version() + 1))

    def leftovers(self) -> list[str]:
        """What a rebuild has left."""
        keeper = LakeTables(self.at.lake, self.format)
        rows = self.control.under(f"{self.folder}/_replicator/rebuild")
        return [*rows, *(table.location for table in keeper.shadows(self.spark))]


def change(offset: int, op: str, key: int, v: Any = 1, t: Any = "x", **more: Any) -> Record:
    """A change at ten times its offset of the binlog, long ago if not told."""
    image: dict[str, Any] = (
        {"before": {"id": key, "v": v, "t": t}} if op == "d" else {"after": {"id": key, "v": v, "t": t}}
    )
    told: dict[str, Any] = {"pos": 10 * offset, "ts_ms": NOW - 60 * DAY} | more
    return record(ORDERS, offset, told.pop("kafka", {"id": key}), envelope(op, **image, **told))


STORY = [
    change(0, "c", 1, 1),
    change(1, "c", 2, 2),
    change(2, "c", 3, 3),
    change(3, "u", 1, 11, UNSENT),
    change(4, "d", 2, ts_ms=NOW - 40 * DAY),
    change(5, "c", 4, 4, ts_ms=NOW),
    change(6, "d", 4, ts_ms=NOW),
    change(7, "u", 3, 33, UNSENT, ts_ms=NOW),
]
LIVE = {1: (11, "x", False), 3: (33, "x", False)}


def test_a_rebuild_of_what_batches_made_changes_nothing(exact: SparkSession, tmp_path: Path) -> None:
    """P5: history, truncate, values that were not sent and a purge included; no commit, and nothing stays behind."""
    world = World(exact, tmp_path, told=Declaration(NAME, COLUMNS, stored_as_scd_type=2, purge_after=30 * 86_400))
    world.take(change(8, "c", 9, 9, pos=1), record(ORDERS, 9, None, envelope("t", pos=2)))
    for batch in (STORY[4:], STORY[:5]):
        assert world.take(*batch).error is None
    assert purge.purge(exact, world.at, NAME, NOW).purged == 1
    held, before = world.rows(), world.version()
    done = world.rebuild()
    assert (done.verdict, done.columns, done.rows) == (EQUAL, (), 3)
    assert (world.version(), sorted(world.rows())) == (before, [1, 3, 4])
    assert world.rows() == held
    assert world.leftovers() == []


def test_a_rebuild_of_a_recorded_case_changes_nothing(exact: SparkSession, tmp_path: Path) -> None:
    """P5, on what real Debezium sent of rows that exchange keys, in batches that were not in the source's order."""
    case = next(case for case in cases() if case.name == "maria_key_swap")
    run = Run(exact, tmp_path, SourceSpec(case.name, ".*", tables=tuple(case.declarations)))
    for batch in (case.events[1::2], case.events[::2]):
        run.feed(list(batch))
    for table in case.expected:
        done = rebuild(exact, run.at, table, RebuildOptions())
        assert (done.verdict, done.named) == (EQUAL, ())


class Reader(Thread):
    """Counts the live rows of a table as fast as it can."""

    def __init__(self, spark: SparkSession, table: Table) -> None:
        super().__init__()
        self._spark, self._table, self._ends = spark.newSession(), table, Event()
        self.seen: list[int] = []

    def run(self) -> None:
        while not self._ends.is_set():
            self.seen.append(DeltaFormat().read(self._spark, self._table).where("NOT _deleted").count())
            self._ends.wait(0.3)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """For the time of the block."""
        self.start()
        try:
            yield
        finally:
            self._ends.set()
            self.join()


def test_a_damaged_cell_is_fixed_and_a_column_retyped_while_readers_see_all_rows(
    exact: SparkSession, tmp_path: Path
) -> None:
    """One commit with the one key that changed; one with another schema, under the same identity; as the command."""
    world = World(exact, tmp_path, DeltaFormat(), JsonControl(exact))
    world.take(*STORY)
    identity = world.format.identity(exact, world.table)
    world.damage(v=99)
    before, reader = world.version(), Reader(exact, world.table)
    with reader.reading():
        assert world.rebuild(dry=True).changed == 1
        assert world.version() == before
        done = world.rebuild()
        assert (done.verdict, done.changed, done.named) == (WRITTEN, 1, ("id=1: v",))
        keys = world.format.changed_keys(exact, world.table, before, world.version())
        assert [row["id"] for row in keys.collect()] == [1]
        file = tmp_path / "declare.yaml"
        file.write_text("tables:\n  shop.orders:\n    columns: {id: int, v: string, t: string}\n")
        lake = ("--lake", str(tmp_path), "--declare", str(file))
        assert '"done": "replaced"' in said("rebuild", "orders", *lake, "--json")
    assert set(reader.seen) == {2}
    world.declare(columns=(COLUMNS[0], Column("v", "string"), COLUMNS[2]))
    assert world.take(change(8, "u", 1, 12)).error is None
    assert world.rows() | {2: None, 4: None} == {1: ("12", "x", False), 3: ("33", "x", False), 2: None, 4: None}
    assert world.format.identity(exact, world.table) == identity
    assert world.leftovers() == []


def test_a_table_whose_key_changed_is_rebuilt_by_the_declared_one(exact: SparkSession, tmp_path: Path) -> None:
    """C-7: it stops, keys are declared, a rebuild replaces its rows, and it goes on; a copy follows. The new key
    has the column that parts the table.
    """
    world = World(exact, tmp_path, DeltaFormat(), JsonControl(exact), Declaration(NAME, COLUMNS, twins=("hudi",)))
    world.take(*STORY[:3])
    assert [each.written for each in twins.follow(exact, world.at)] == [3]
    stopped = world.take(change(8, "c", 5, 5, "y", kafka={"id": 5, "t": "y"}))
    assert isinstance(stopped.error, SchemaRefused)
    world.declare(keys=("id", "t"), partition_by=("t",))
    done = world.rebuild()
    assert (done.verdict, done.columns) == (REPLACED, ("key: now id, t", "partitions: none, now t"))
    assert world.take(change(9, "u", 5, 55, "y", kafka={"id": 5, "t": "y"})).error is None
    assert world.rows() == {1: (1, "x", False), 2: (2, "x", False), 3: (3, "x", False), 5: (55, "y", False)}
    assert [each.error for each in twins.follow(exact, world.at)] == [None]
    table, twin = (world.format.read(exact, each) for each in (world.table, world.at.lake.twin("s", NAME, "hudi")))
    assert key_of(twin.schema) == ("id", "t")
    assert compare.differences(table, twin, ["id", "t"]).isEmpty()
    assert world.rebuild().verdict == EQUAL


def test_what_bronze_does_not_have_any_more_goes_only_when_that_is_accepted(
    exact: SparkSession, tmp_path: Path
) -> None:
    """Bronze ends before the newest rows, as one that is being read anew, or begins behind the row of id 1: they stand,
    or go by the word of an operator. Another order is noted.
    """
    world = World(exact, tmp_path)
    world.take(*STORY)
    before = world.rows()
    world.format.drop(exact, world.at.lake.bronze("s"))
    world.format.append(bronze(exact, STORY[:5]), world.at.lake.bronze("s"), None)
    world.declare()
    with pytest.raises(WouldLose, match=r"2 rows of .* it ends before the newest row of s/shop.orders"):
        world.rebuild()
    world.format.drop(exact, world.at.lake.bronze("s"))
    world.format.append(bronze(exact, STORY[4:]), world.at.lake.bronze("s"), None)
    world.declare()
    with pytest.raises(WouldLose, match=r"2 rows of .* partition 0 of s.shop.orders begins at offset 4"):
        world.rebuild()
    assert world.rows() == before
    assert world.rebuild(dry=True).columns[0].startswith("needs --accept-gap: 2 rows of")
    assert world.rebuild(accept_gap=True).gone == 1
    assert world.rows()[3] == (33, None, False)
    assert world.take(change(8, "u", 3, 34, "z", ts_ms=NOW + 8)).error is None
    world.sequence_by = "source.ts_ms"
    world.declare()
    assert isinstance(world.take(change(9, "u", 3, 35, "z", ts_ms=NOW + 9)).error, TableStopped)
    assert world.rebuild(accept_gap=True).verdict == WRITTEN
    assert world.take(change(10, "u", 3, 36, "z", ts_ms=NOW + 10)).error is None
    assert world.rows()[3] == (36, "z", False)


def test_a_truncate_may_be_the_newest_that_bronze_tells_of_a_table(exact: SparkSession, tmp_path: Path) -> None:
    """The rows that it deleted one by one differ from nothing; what is damaged among them may go."""
    world = World(exact, tmp_path)
    world.take(*STORY)
    world.take(record(ORDERS, 8, None, envelope("t", pos=80)))
    done = world.rebuild(dry=True)
    assert (done.verdict, done.gone, done.of_deleted) == (EQUAL, 0, 0)
    world.damage(_deleted=False)
    done = world.rebuild()
    assert (done.verdict, done.rows, done.error) == (WRITTEN, 0, None)
    assert (done.gone, done.of_deleted) == (1, 0)
    assert {key: deleted for key, (*_, deleted) in world.rows().items()} == {2: True, 3: True, 4: True}


def test_rows_that_a_truncate_deleted_are_nothing_that_bronze_has_lost(exact: SparkSession, tmp_path: Path) -> None:
    """P5: the shadow, which reads all at once, never had them. Also of a topic that begins late, where they were rows
    that would go, and a rebuild was refused.
    """
    world = World(exact, tmp_path)
    for batch in (STORY[1:3], [record(ORDERS, 4, None, envelope("t", pos=40))], [change(5, "c", 4, 4)]):
        assert world.take(*batch).error is None
    held = world.rows()
    for dry in (True, False):
        done = world.rebuild(dry=dry)
        assert (done.verdict, done.columns, done.named) == (EQUAL, (), ())
    assert world.rows() == held


def test_one_column_is_taken_over_where_rows_stand_at_the_same_place(exact: SparkSession, tmp_path: Path) -> None:
    """Others keep what they have, and rows that bronze has moved on from are counted as skipped."""
    world = World(exact, tmp_path)
    world.take(*STORY)
    world.damage(v=99, t="wrong")
    world.format.append(bronze(exact, [change(8, "u", 3, 34, "z")]), world.at.lake.bronze("s"), None)
    done = world.rebuild(column="v")
    assert (done.verdict, done.changed, done.skipped, done.named) == (WRITTEN, 1, 1, ("id=1: v",))
    assert {key: world.rows()[key] for key in LIVE} == {1: (11, "wrong", False), 3: (33, "x", False)}
    assert silver.refine(exact, world.at)[0].applied == 1
    for column in ("id", "nothing"):
        with pytest.raises(ConfigError, match="cannot be rebuilt alone"):
            world.rebuild(column=column)
    assert world.leftovers() == []


def test_a_column_that_the_table_lacks_comes_with_what_is_known_of_it(exact: SparkSession) -> None:
    """Where rows stand elsewhere it is flagged as unknown (M2), and nothing else changes."""
    ours = "_seq STRING, _deleted BOOLEAN, _column_seq MAP<STRING,STRING>, _source_ts_ms BIGINT"
    present = made(exact, [(1, 1, "10", False, {"a": "05"}, 1), (2, 2, "20", False, None, 1),
                           (3, None, "30", True, None, 1)], f"k INT, a INT, {ours}")  # fmt: skip
    other = made(exact, [(1, 7, "b", "10", False, {"b": "06"}, 1), (2, 8, "c", "21", False, None, 1)], SILVER)
    found = rebuild_diff.patch_columns(present, other, ["k"], ["b"])
    assert found.columns == ["k", "a", "b", "_seq", "_deleted", "_column_seq", "_source_ts_ms"]
    assert states(found.collect()) == {
        1: (1, "b", "10", False, {"a": "05", "b": "06"}),
        2: (2, None, "20", False, {"b": ""}),
        3: (None, None, "30", True, None),
    }


class Killed(BaseException):
    """The process ends."""


class Dying(MemoryFormat):
    """Ends its process at a call for one location, before or after that counts; ``applied`` counts the batches."""

    def __init__(self, alive: MemoryFormat, call: str, location: str, *, after: bool = False) -> None:
        self.__dict__ = alive.__dict__
        self.call, self.location, self.after, self.applied = call, location, after, 0

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        with self._dying("apply", table):
            self.applied += 1
            return super().apply(changes, table, progress)

    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
        with self._dying("put", table):
            return super().put(difference, table, progress, repeats=repeats)

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        with self._dying("replace", table):
            return super().replace(rows, table, progress)

    def drop(self, spark: SparkSession, table: Table) -> None:
        with self._dying("drop", table):
            super().drop(spark, table)

    @contextmanager
    def _dying(self, call: str, table: Table) -> Iterator[None]:
        is_here = call == self.call and table.location.endswith(self.location)
        if is_here and not self.after:
            raise Killed
        yield
        if is_here:
            raise Killed


def test_whoever_is_killed_is_gone_on_with(exact: SparkSession, tmp_path: Path) -> None:
    """K-M: half a shadow is made anew, a whole one is used, and behind the swap only the cleaning is left."""
    world = World(exact, tmp_path / "lake")
    world.take(*STORY)
    shadow, table = "rebuild/silver/s.shop.orders", "lake/silver/s/shop.orders"
    for call, location, after, verdict, again in (
        ("apply", shadow, False, WRITTEN, 1),
        ("put", table, False, WRITTEN, 0),
        ("put", table, True, FINISHED, 0),
        ("drop", shadow, True, EQUAL, 1),
    ):
        world.damage(v=99)
        before = world.version()
        dying = Dying(world.format, call, location, after=after)
        if call == "drop":
            world.rebuild()
        with pytest.raises(Killed):
            world.rebuild(replace(world.at, silver=dying))
        alive = Dying(world.format, "", "")
        assert world.rebuild(replace(world.at, silver=alive)).verdict == verdict, call
        assert (alive.applied, world.version()) == (again, before + 1), call
        assert {key: world.rows()[key] for key in LIVE} == LIVE
        assert world.leftovers() == []
    with pytest.raises(Killed):
        world.rebuild(replace(world.at, silver=Dying(world.format, "apply", shadow, after=True)))
    assert drop_shadows(exact, LakeTables(world.at.lake, world.format)) == ["s.shop.orders"]
    world.damage(v=99)
    assert world.rebuild().verdict == WRITTEN


class DyingDelta(DeltaFormat):
    """Dies right after it has replaced all rows."""

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        super().replace(rows, table, progress)
        raise Killed


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
def test_a_table_whose_new_columns_need_a_commit_of_their_own_goes_on(
    exact: SparkSession, tmp_path: Path, dies: bool
) -> None:
    """TIMESTAMP_NTZ is a feature that Delta enables on an existing table by a commit before that of the rows."""
    told = Declaration(NAME, COLUMNS, transform=Transform(derive=(("at", "v + 1"),)))
    world = World(exact, tmp_path, DeltaFormat(), JsonControl(exact), told)
    world.take(*STORY[:2])
    before = world.version()
    world.declare(transform=Transform(derive=(("at", "CAST(timestamp_millis(v) AS TIMESTAMP_NTZ)"),)))
    if dies:
        with pytest.raises(Killed):
            world.rebuild(replace(world.at, silver=DyingDelta()))
    assert world.rebuild().verdict == (FINISHED if dies else REPLACED)
    assert world.version() == before + 2
    account = world.take(change(8, "c", 8, 8))
    assert (account.error, account.applied) == (None, 1)
    assert world.leftovers() == []


def test_a_first_history_whose_rebuild_was_killed_stops_nobody(exact: SparkSession, tmp_path: Path) -> None:
    """K-M: the history is there and does not say yet how far it has read bronze; silver reads all of it again."""
    world = World(exact, tmp_path / "lake")
    world.take(*STORY)
    world.declare(stored_as_scd_type=2)
    with pytest.raises(Killed):
        world.rebuild(replace(world.at, silver=Dying(world.format, "replace", "history/s/shop.orders", after=True)))
    account = world.take(change(8, "u", 1, 12, ts_ms=NOW))
    assert account.error is None
    assert world.rows()[1] == (12, "x", False)
    assert world.rebuild().verdict == EQUAL


def test_models_follow_their_columns_and_what_fails_does_not_stop_the_rest(exact: SparkSession, tmp_path: Path) -> None:
    """A dropped column replaces the rows in one commit; a table that is truncated against its policy is named."""
    world = World(exact, tmp_path)
    world.take(*STORY)
    at = Warehouse(world.format, world.format, world.control, world.at.lake)
    wide = Model("m", "SELECT id, v, t FROM {o}", {"o": f"s/{NAME}"}, ("id",), (ModelColumn("id", "integer"),))
    assert [each.error for each in gold.refresh(exact, [wide], at)] == [None]
    narrow = replace(wide, sql="SELECT id, v FROM {o}")
    assert isinstance(gold.refresh(exact, [narrow], at)[0].error, SchemaRefused)
    assert rebuild_model(exact, narrow, at, RebuildOptions(dry=True), {}).verdict == REPLACED
    world.declare(truncate="fail")
    world.format.append(
        bronze(exact, [record(ORDERS, 8, None, envelope("t", pos=80))]), world.at.lake.bronze("s"), None
    )
    what = resolve_selection(exact, [world.at], [narrow], None)
    done = {each.table: each for each in carry_out(exact, what, at, RebuildOptions())}
    assert isinstance(done[f"s/{NAME}"].error, TableStopped)
    assert (done["m"].verdict, done["m"].columns) == (REPLACED, ("t: string, now none",))
    assert gold.refresh(exact, [narrow], at) == []
    table = at.lake.gold("m", ("id",))
    assert sorted(map(tuple, world.format.read(exact, table).collect())) == [(1, 11), (3, 33)]
    assert rebuild_model(exact, narrow, at, RebuildOptions(), {}).verdict == EQUAL
    assert resolve_selection(exact, [world.at], [narrow], ["m", "orders"]) == Selection(
        ((world.at, NAME),), (narrow,), {"m": ("id",)}
    )
    twin = replace(narrow, name="orders")
    with pytest.raises(ConfigError, match=f"orders is both a model and a table. Name the table {NAME}, or gold.orders"):
        resolve_selection(exact, [world.at], [twin], ["orders"])
    both = resolve_selection(exact, [world.at], [twin], ["gold.orders", NAME])
    assert both == Selection(((world.at, NAME),), (twin,), {"orders": ("id",)})
    with pytest.raises(ConfigError, match="table 'nothing' does not exist"):
        resolve_selection(exact, [world.at], [narrow], ["nothing"])
    with pytest.raises(ConfigError, match="exactly one table"):
        list(carry_out(exact, Selection((), (narrow,)), at, RebuildOptions(column="v")))


def test_topics_without_a_table_are_left_to_the_run_after_the_rebuild(exact: SparkSession, tmp_path: Path) -> None:
    """Bronze was replaced and has a record of no table that cannot be read: all tables are built from it, and that
    record becomes a dead letter with the next run, not nothing.
    """
    world = World(exact, tmp_path)
    world.take(*STORY)
    world.format.drop(exact, world.at.lake.bronze("s"))
    stray = record("s.shop.stray", 0, {"id": 1}, "{no json")
    world.format.append(bronze(exact, [*STORY, stray]), world.at.lake.bronze("s"), None)
    world.declare()
    done = carry_out(exact, resolve_selection(exact, [world.at], [], None), None, RebuildOptions())  # type: ignore[arg-type] # no model
    assert [each.error for each in done] == [None]
    silver.refine(exact, world.at)
    letters = world.format.read(exact, world.at.lake.dead_letters("s")).select("topic", "offset").collect()
    assert [tuple(letter) for letter in letters] == [("s.shop.stray", 0)]
    assert {key: world.rows()[key] for key in LIVE} == LIVE
    assert silver.refine(exact, world.at) == []


def test_a_key_is_named_whatever_day_it_is(exact: SparkSession) -> None:
    """Spark has days that Python lacks: naming one ended the rebuild of all tables."""
    before, after = (exact.sql(f"SELECT DATE'9999-12-31' + INTERVAL 1 DAY AS day, {v} AS v") for v in (1, 2))
    with swap.compare_tables(Table("t", "t", ("day",)), before, after, (), same_key=True) as compared:
        assert summarize(compared).named == ("day=+10000-01-01: v",)
