"""Rows that a whole snapshot taken again does not mention go from silver where it is asked for (debezium.md D7)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import position, seq_format
from replicator.errors import ConfigError, TableStopped
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import pause, snapshot_removal
from replicator.operate.dead_letters import LetterFilter
from replicator.operate.explain import explain
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import EQUAL
from replicator.operate.retry import retry
from replicator.sources.recorded import RecordedSource
from replicator.spec import Applied, Column, Declaration, Outbox, Progress, SourceSpec, Table
from replicator.stages import silver, tuning
from replicator.stages.account import Account
from replicator.stages.continuous import run_continuously
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.pipeline import Pipeline
from replicator.stages.refinement import Refinement
from replicator.stages.run_report import ReportLine
from replicator.stages.table import snapshots
from replicator.stages.table.snapshots import FullSnapshot
from tests.builders import UNSENT, Record, bronze, envelope, made, record

pytestmark = pytest.mark.spark

ORDERS, NAME = "s.shop.orders", "shop.orders"
COLUMNS = (Column("id", "int"), Column("v", "int"), Column("t", "string"))
BIG = 1 << 40


class Killed(BaseException):
    """The process ends."""


class Dying(MemoryFormat):
    """Ends its process at the next commit of a snapshot's deletes, before or after that counts."""

    when = ""

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        is_here = progress.input.endswith("/snapshot")
        if is_here and self.when == "before":
            raise Killed
        done = super().apply(changes, table, progress)
        if is_here and self.when == "after":
            raise Killed
        return done


@dataclass
class World:
    """A source's silver."""

    spark: SparkSession
    folder: Path
    format: Any = field(default_factory=Dying)
    control: Any = field(default_factory=MemoryControl)
    told: Declaration = field(default=Declaration(NAME, COLUMNS))

    def __post_init__(self) -> None:
        self.declare()

    def declare(self, **told: Any) -> None:
        """Another declaration of the table, and another process."""
        self.told = replace(self.told, **told)
        spec = SourceSpec("s", ".*", tables=(self.told,))
        self.at = Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    @property
    def table(self) -> Table:
        """In silver."""
        return self.at.lake.silver("s", NAME, ("id",))

    def take(self, *records: Record) -> list[Account]:
        """One tick, over new records if there are some."""
        if records:
            self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        return silver.refine(self.spark, self.at)

    def finish(self, begun: dict[int, int], ended: dict[int, int], number: int = 1) -> None:
        """A whole snapshot is over: where it began and ended, by partition."""
        places = ({(ORDERS, partition): offset for partition, offset in each.items()} for each in (begun, ended))
        snapshots.add(self.control, self.at.lake.snapshots("s"), {NAME: FullSnapshot(number, *places)})

    def live(self) -> dict[int, Any]:
        """Live rows: v by key."""
        rows = self.format.read(self.spark, self.table).where("NOT _deleted").collect()
        return {row["id"]: row["v"] for row in rows}

    def version(self) -> int:
        """Of the table."""
        return int(self.format.version(self.spark, self.table))


def change(offset: int, op: str, key: int, v: Any = 1, partition: int = 0, pos: int = 0, **more: Any) -> Record:
    """A change at ``pos`` of the binlog, ten times its offset if not given."""
    image = {"id": key, "v": v, "t": more.pop("t", "x")}
    images: dict[str, Any] = {"before": image} if op == "d" else {"after": image}
    told = envelope(op, pos=pos or 10 * offset, **images, **more)
    return record(ORDERS, offset, {"id": key}, told, partition=partition)


BEFORE = [
    change(0, "c", 1, pos=10),
    change(1, "c", 2, pos=20),
    change(0, "c", 3, partition=1, pos=30),
    change(1, "c", 4, partition=1, pos=40),
    change(2, "c", 5, partition=1, pos=50, t="far older than its row"),
    change(3, "u", 5, 55, partition=1, pos=55, t=UNSENT),
]
"""Then the connector is away, and 2, 4 and 5 are deleted."""

SEEN = [
    change(2, "r", 1, 11, pos=60, snapshot="incremental"),
    change(3, "c", 6, pos=70),
]
CHANGED = [
    change(4, "u", 3, 33, partition=1, pos=65),  # in the window: its row of the snapshot is left out
    change(5, "c", 7, partition=1, pos=66),
    change(6, "d", 7, partition=1, pos=67),
]
"""The snapshot, with what happens meanwhile."""

BEGUN, ENDED = {0: 2, 1: 4}, {0: 4, 1: 7}


def test_rows_that_nothing_mentions_since_go(exact: SparkSession, tmp_path: Path) -> None:
    """Once bronze has the end, in one commit that shows their keys only; what came meanwhile stays. Nothing is done
    twice, also by another process; what comes back later lives; a table made once more loses the same. In Delta, in
    partitions of the key: of a delete nothing else is known that says where its row lies.
    """
    parted = Declaration(NAME, COLUMNS, partition_by=("id",))
    world = World(exact, tmp_path, DeltaFormat(), JsonControl(exact), parted)
    world.take(*BEFORE)
    world.finish(BEGUN, ENDED)
    [account] = world.take(*SEEN)
    assert (account.applied, set(world.live())) == (2, {1, 2, 3, 4, 5, 6})  # the end is not there yet
    read, removed = world.take(*CHANGED)
    assert (read.applied, removed.read, removed.residue, removed.error) == (2, 0, 0, None)
    assert removed.warnings[0].startswith(
        "3 rows were removed: the repeated snapshot shows that the source no longer has them"
    )
    assert world.live() == {1: 11, 3: 33, 6: 1}
    after = world.version()
    keys = world.format.changed_keys(exact, world.table, after - 1, after).collect()
    assert {row["id"] for row in keys} == {2, 4, 5}
    deleted = world.format.read(exact, world.table).where("_deleted").collect()
    assert [row["_column_seq"] for row in deleted] == [None] * 4
    assert {row["id"]: seq_format.describe(row["_seq"], "mariadb") for row in deleted} == {
        2: "file 1, pos 20, offset 2",
        4: "file 1, pos 40, offset 2",
        5: "file 1, pos 55, offset 4",
        7: "file 1, pos 67, offset 6",
    }
    world.declare()
    assert (world.take(), world.version()) == ([], after)
    assert explain(exact, world.at, NAME, "5").warnings[0].startswith("the row was removed: a repeated snapshot")
    again = change(4, "c", 2, 22, pos=80), change(7, "r", 4, 44, partition=1, pos=40, snapshot="true")
    assert [each.applied for each in world.take(*again)] == [2]
    assert world.live() == {1: 11, 2: 22, 3: 33, 4: 44, 6: 1}
    assert rebuild(exact, world.at, NAME, RebuildOptions()).verdict == EQUAL


def test_a_death_at_the_commit_is_gone_on_with(exact: SparkSession, tmp_path: Path) -> None:
    """The deletes and that they were made are one commit: the next process makes them, or sees that they are there."""
    world = World(exact, tmp_path)
    world.take(*BEFORE)
    world.finish(BEGUN, ENDED)
    world.format.when = "before"
    with pytest.raises(Killed):
        world.take(*SEEN, *CHANGED)
    world.declare()
    world.format.when = "after"
    with pytest.raises(Killed):
        world.take()
    world.declare()
    world.format.when = "before"
    assert world.take() == []
    assert world.live() == {1: 11, 3: 33, 6: 1}


class Large(MemoryFormat):
    """Says that bronze is beyond small work, and notes of what work the deletes of a snapshot were made."""

    def __init__(self) -> None:
        super().__init__()
        self.is_small: list[bool] = []

    def size(self, spark: SparkSession, table: Table) -> int:
        return tuning.SMALL_RECORD_BYTES + 1 if table.name == "bronze/s" else super().size(spark, table)

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        if progress.input.endswith("/snapshot"):
            self.is_small.append(tuning.is_small(changes.sparkSession))
        return super().apply(changes, table, progress)


def test_what_a_snapshot_mentions_is_read_as_any_other_records(exact: SparkSession, tmp_path: Path) -> None:
    """Half a million records lie in 20 MB of bronze: they are compiled for, and read on all cores, from where a batch
    of them is, and not from where rows of a table are.
    """
    world = World(exact, tmp_path, Large())
    world.take(*BEFORE)
    world.finish(BEGUN, ENDED)
    world.take(*SEEN, *CHANGED)
    assert world.live() == {1: 11, 3: 33, 6: 1}
    assert world.format.is_small == [False]


def test_an_empty_table_loses_all_its_rows_once_it_is_not_paused(exact: SparkSession, tmp_path: Path) -> None:
    """No record since means that no row is there; a paused table stays as it is."""
    world = World(exact, tmp_path)
    world.take(*BEFORE)
    pause.pause([(world.at, NAME)], "now")
    world.finish(BEGUN, BEGUN)
    assert world.take() == []
    assert len(world.live()) == 5
    pause.resume([(world.at, NAME)])
    [account] = world.take()
    assert account.warnings[0].startswith("5 rows")
    assert world.live() == {}


def test_nothing_goes_while_the_key_of_a_record_since_cannot_be_read(exact: SparkSession, tmp_path: Path) -> None:
    """It may be about any row: the table says so, until a later snapshot. A letter from before that is tried once more
    brings no row back.
    """
    world = World(exact, tmp_path)
    world.take(*BEFORE, change(2, "u", 2, BIG, pos=25))
    world.finish({0: 3, 1: 4}, {0: 4, 1: 4})
    read, stopped = world.take(change(3, "r", BIG, pos=60, snapshot="incremental"))
    assert (read.error, isinstance(stopped.error, TableStopped)) == (None, True)
    assert "1 records of the time of the snapshot are dead letters" in str(stopped.error)
    assert set(world.live()) == {1, 2, 3, 4, 5}
    world.finish({0: 4, 1: 4}, {0: 5, 1: 4}, number=2)
    world.take(change(4, "r", 1, 11, pos=70, snapshot="incremental"))
    assert world.live() == {1: 11}
    world.declare(columns=(COLUMNS[0], Column("v", "bigint"), COLUMNS[2]))
    assert [each.error for each in retry(exact, world.at, LetterFilter())] == [None, None]
    assert world.live() == {1: 11}


def test_a_record_since_of_which_only_the_key_can_be_read_says_that_its_row_is_there(
    exact: SparkSession, tmp_path: Path
) -> None:
    """A dead letter like any other: its row keeps what it has, and rows that nothing mentions go."""
    world = World(exact, tmp_path)
    world.take(*BEFORE)
    world.finish({0: 2, 1: 4}, {0: 3, 1: 4})
    read, removed = world.take(change(2, "r", 1, BIG, pos=60, snapshot="incremental"))
    assert (read.error, read.dead_lettered, removed.error) == (None, 1, None)
    assert world.live() == {1: 1}


def test_what_happens_behind_a_snapshot_does_not_undo_it(exact: SparkSession, tmp_path: Path) -> None:
    """A record behind its end that nobody can read says nothing of its time; a letter from before brings no row back,
    though the table is paused; a table built again is judged again; and while a later one is to be seen to, or cannot
    be, nothing is made of the earlier one. A history that was kept before, and is switched off, stands in no way.
    """
    world = World(exact, tmp_path)
    world.declare(stored_as_scd_type=2)
    world.take(*BEFORE, change(2, "u", 2, BIG, pos=25))
    world.declare(stored_as_scd_type=1)
    world.finish({0: 3, 1: 4}, {0: 4, 1: 4})
    seen = change(3, "r", 1, 11, pos=60, snapshot="incremental"), change(4, "c", 8, BIG, pos=70)
    assert [account.error for account in world.take(*seen)] == [None, None]
    assert world.live() == {1: 11}
    assert rebuild(exact, world.at, NAME, RebuildOptions()).verdict == EQUAL
    pause.pause([(world.at, NAME)], "now")
    world.format.append(bronze(exact, [record("s.shop.other", 0, None, "1")]), world.at.lake.bronze("s"), None)
    world.format.maintain(exact, world.at.lake.bronze("s"), 0)  # what the table has read is not the newest version
    world.declare(columns=(COLUMNS[0], Column("v", "bigint"), COLUMNS[2]))
    assert [each.error for each in retry(exact, world.at, LetterFilter())] == [None, None]
    assert world.live() == {1: 11, 8: BIG}
    pause.resume([(world.at, NAME)])
    world.finish({0: 5, 1: 4}, {0: 6, 1: 4}, number=2)
    with pytest.raises(TableStopped, match="has not been processed yet"):
        rebuild(exact, world.at, NAME, RebuildOptions())
    world.declare(shards="shop[.]orders_.*")
    *_, stopped = world.take(change(5, "r", 1, 11, pos=80, snapshot="incremental"))
    assert "it combines the rows of several tables" in str(stopped.error)
    assert world.live() == {1: 11, 8: BIG}


def test_a_run_that_goes_on_is_woken_by_the_end_of_a_snapshot(exact: SparkSession, tmp_path: Path) -> None:
    """That is no record: a source that is quiet then would keep its rows. What this process has done with a table
    holds for that table alone.
    """
    world, stop, looks = World(exact, tmp_path), Event(), 0
    world.take(*BEFORE, *SEEN, *CHANGED)
    at = Warehouse(world.format, world.format, world.control, world.at.lake)

    def between() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            world.finish(BEGUN, ENDED)
        elif looks > 9 or 2 not in world.live():
            stop.set()

    lines: list[ReportLine] = []
    run_continuously(exact, Pipeline((), (), (world.at,), at, (), {}), ("silver",), lines.append, stop, between)
    assert [line.error for line in lines] == [None]
    assert world.live() == {1: 11, 3: 33, 6: 1}
    world.format.drop(exact, world.table)
    world.take(change(4, "u", 1, 12, pos=80))
    assert world.live() == {1: 12, 3: 33, 6: 1}


def test_of_two_snapshots_no_partition_goes_back() -> None:
    """Whichever was over first: the next number, and of each partition the later place; the row holds it all."""
    control, place = MemoryControl(), (ORDERS, 0)
    for number, begun in ((7, 30), (5, 20)):
        taken = FullSnapshot(number, {place: begun, (ORDERS, 1): number}, {place: begun + 5})
        snapshots.add(control, "snapshots", {NAME: taken, f"shop.{number}": taken})
    known = snapshots.load(control, "snapshots")
    assert known[NAME] == FullSnapshot(8, {place: 30, (ORDERS, 1): 7}, {place: 35})
    assert known["shop.5"] == FullSnapshot(5, {place: 20, (ORDERS, 1): 5}, {place: 25})


def test_the_place_behind_a_change_is_newer_than_it_alone(exact: SparkSession) -> None:
    """One offset later, where positions tell, else below the next offset: in Spark and for people alike (Q1, Q8)."""
    seqs = [f"{0:04x}{major:020x}{minor:016x}{offset:016x}" for major, minor, offset in
            ((0, 0, 9), (7, 3, 0xFFFF), (1 << 60, 0, (1 << 60) - 1))]  # fmt: skip
    found = made(exact, [(seq,) for seq in seqs], "seq STRING").select(position.next_seq(F.col("seq"))).collect()
    assert [row[0] for row in found] == [seq_format.next_seq(seq) for seq in seqs]
    nexts = [f"{seq[:-16]}{int(seq[-16:], 16) + 1:016x}" for seq in seqs]
    assert all(seq < seq_format.next_seq(seq) for seq in seqs)
    assert [seq_format.next_seq(seq) < after for seq, after in zip(seqs, nexts, strict=True)] == [True, False, False]
    assert [seq_format.parse(seq_format.next_seq(seq)).offset for seq in seqs] == [9, 0x10000, 1 << 60]


@pytest.mark.parametrize(
    ("told", "objects", "reason"),
    [
        ({"shards": "shop[.]orders_.*"}, "", "the rows of several tables"),
        ({"outbox": Outbox("log")}, "", "events deleted from their outbox"),
        ({"stored_as_scd_type": 2}, "", "the end times of rows of its history cannot be determined"),
        ({}, "s3a://b/x", "its records come from objects"),
    ],
)
def test_a_table_of_which_nobody_can_tell_what_is_missing_is_refused(
    exact: SparkSession, tmp_path: Path, told: dict[str, Any], objects: str, reason: str
) -> None:
    """Before anything is asked for; a table that there is not, too."""
    world = World(exact, tmp_path)
    world.declare(**told)
    at = replace(world.at, source=replace(world.at.source, objects=objects))
    with pytest.raises(ConfigError, match=reason):
        snapshot_removal.begin(exact, at, RecordedSource(()), [NAME])
    with pytest.raises(ConfigError, match=r"table 's/shop.ordres' does not exist; did you mean"):
        snapshot_removal.begin(exact, at, RecordedSource(()), ["shop.ordres"])


def test_where_offsets_tell_the_next_record_is_newer_than_what_was_gone(exact: SparkSession, tmp_path: Path) -> None:
    """Q8: the row comes again with the very next record of its partition."""

    def flat(offset: int, key: int, v: int) -> Record:
        return record(ORDERS, offset, {"id": key}, {"id": key, "v": v, "t": "x", "__deleted": "false"})

    world = World(exact, tmp_path)
    world.take(flat(0, 1, 1), flat(1, 2, 1))
    world.finish({0: 2}, {0: 2})
    world.take()
    assert world.live() == {}
    world.take(flat(2, 2, 22))
    assert world.live() == {2: 22}
