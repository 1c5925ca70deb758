"""Deleted rows leave silver by age, and what comes after that for them is a dead letter (debezium.md M9)."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.cli import app
from replicator.errors import ConfigError, TableStopped
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import dead_letters, purge, retry
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.spec import Arrival, Column, Declaration, SourceSpec, Table
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from tests.builders import UNSENT, Record, bronze, envelope, record
from tests.cli import said

pytestmark = pytest.mark.spark

ORDERS = "s.shop.orders"
DAY = 86_400_000
NOW = 1_700_000_000_000
COLUMNS = (Column("id", "int"), Column("v", "int"), Column("t", "string"))


@dataclass
class World:
    """A source's silver, of which deleted rows go after 30 days."""

    spark: SparkSession
    folder: Path
    format: Any = field(default_factory=MemoryFormat)
    control: Any = field(default_factory=MemoryControl)
    told: Declaration = field(default=Declaration("shop.orders", COLUMNS, purge_after=30 * 86_400))
    binlog: str = "file_pos"

    def __post_init__(self) -> None:
        self.declare()

    def declare(self, **told: Any) -> None:
        """Another declaration of the table, and another process."""
        self.told = replace(self.told, **told)
        spec = SourceSpec("s", ".*", tables=(self.told,), binlog_position=self.binlog)
        self.at = Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    def take(self, *records: Record) -> dict[str, int]:
        """One batch: what became of its records."""
        self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        [account] = silver.refine(self.spark, self.at)
        assert (account.error, account.residue) == (None, 0)
        return {"applied": account.applied, "superseded": account.superseded, "dead": account.dead_lettered}

    def purge(self, **how: Any) -> tuple[int, int]:
        """How many rows went, how many deleted ones stay."""
        done = purge.purge(self.spark, self.at, "shop.orders", NOW, **how)
        return done.purged, done.kept

    def rows(self) -> dict[int, tuple[Any, ...]]:
        """Silver at rest: (v, t, _deleted, whether t is flagged)."""
        rows = self.format.read(self.spark, self.at.lake.silver("s", "shop.orders")).collect()
        return {row["id"]: (row["v"], row["t"], row["_deleted"], bool(row["_column_seq"])) for row in rows}

    def letters(self) -> dict[int, str]:
        """The reason of each dead letter, by offset."""
        rows = dead_letters.load_letters(self.spark, self.at).collect()
        return {row["offset"]: row["reason"] for row in rows}


def change(offset: int, op: str, key: int, days: float, at: int | None = None, v: Any = 1, t: Any = "x") -> Record:
    """A change so many days ago, at ``at`` of the binlog, ten times its offset if not given."""
    image: dict[str, Any] = (
        {"before": {"id": key, "v": v, "t": t}} if op == "d" else {"after": {"id": key, "v": v, "t": t}}
    )
    told = envelope(op, pos=at or 10 * offset, ts_ms=int(NOW - days * DAY), **image)
    return record(ORDERS, offset, {"id": key}, told)


STORY = [
    change(1, "c", 1, 50),
    change(2, "c", 2, 50),
    change(3, "c", 3, 50),
    change(4, "c", 4, 50),
    change(5, "d", 1, 45),
    change(6, "d", 2, 40),
    change(7, "d", 4, 20),
    change(8, "c", 5, 40),
    change(9, "d", 5, 35),
]
"""1 and 2 were deleted long ago, 4 lately; 5 too, by its time, but behind 4 in the source's order. 3 is alive."""


def test_old_deletes_go_and_nothing_brings_them_back(exact: SparkSession, tmp_path: Path) -> None:
    """A late change of a purged row is a dead letter; of a row that is there it joins; a new row begins anew, and no
    value from before the delete reaches it. In Delta, in partitions of the key.
    """
    world = World(exact, tmp_path, DeltaFormat(), JsonControl(exact))
    world.declare(partition_by=("id",))
    world.take(*STORY)
    assert world.purge(dry=True) == (2, 2)
    assert len(world.rows()) == 5
    assert world.purge() == (2, 2)
    assert sorted(world.rows()) == [3, 4, 5]
    assert world.purge() == (0, 2)
    done = world.take(
        change(20, "u", 1, 46, at=41, v=7),  # below the horizon, its row is gone
        change(21, "u", 3, 46, at=42, v=8),  # as old, but its row is there
        change(22, "c", 2, 1, at=200, v=9, t=UNSENT),  # a new row under an old key
        change(23, "u", 4, 21, at=55, v=9),  # late, and superseded by the delete that is still there
    )
    assert done == {"applied": 2, "superseded": 1, "dead": 1}
    assert world.letters() == {20: "below_purge_horizon"}
    assert world.rows()[2] == (9, None, False, True)
    world.take(change(24, "u", 2, 46, at=43, t="from before the delete"))
    assert world.rows()[2] == (9, None, False, True)
    assert 1 not in world.rows()
    retry.retry(exact, world.at, dead_letters.LetterFilter())
    assert world.letters() == {20: "below_purge_horizon"}
    assert 1 not in world.rows()


def test_what_is_read_once_more_is_not_late(exact: SparkSession, tmp_path: Path) -> None:
    """A topic that is read again from its beginning (here for a history) brings nothing back and makes no dead letters;
    the history has what silver has forgotten. A table that is built again from bronze has nothing purged.
    """
    world = World(exact, tmp_path)
    world.take(*STORY)
    world.purge()
    world.declare(stored_as_scd_type=2)
    assert world.take(change(25, "u", 3, 0, v=3))["dead"] == 0
    assert sorted(world.rows()) == [3, 4, 5]
    past = world.format.read(exact, world.at.lake.history("s", "shop.orders"))
    assert {row["id"] for row in past.collect()} == {1, 2, 3, 4, 5}
    del world.format._tables[world.at.lake.silver("s", "shop.orders").location]
    assert world.take(change(26, "u", 1, 46, at=41))["dead"] == 0
    assert {key for key, row in world.rows().items() if row[2]} == {1, 2, 4, 5}


class Forgetful(MemoryFormat):
    """Its log does not reach back."""

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:  # noqa: ARG002
        return None


def test_a_table_that_was_quiet_while_bronze_was_tidied_up_is_purged(exact: SparkSession, tmp_path: Path) -> None:
    """Other topics went on, and the version of bronze that it has read is not kept any more. Where the log does not
    tell either what came since, it says what fixes that; nothing has moved.
    """
    world = World(exact, tmp_path)
    world.take(*STORY)
    world.format.append(bronze(exact, [record("s.shop.other", 0, None, "1")]), world.at.lake.bronze("s"), None)
    world.format.maintain(exact, world.at.lake.bronze("s"), 0)
    forgetful = Forgetful()
    forgetful._tables = world.format._tables
    with pytest.raises(
        TableStopped, match=r"no longer has its version .* up to which the table has read.*`replicator run silver`"
    ):
        purge.purge(exact, replace(world.at, bronze=forgetful), "shop.orders", NOW)
    assert world.purge() == (2, 2)


class ProcessDied(BaseException):
    """Nothing of ours runs after it."""


def die(*_: Any) -> None:
    raise ProcessDied


def test_a_crash_before_the_rows_go_is_repaired_by_the_next_purge(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The horizon is there first; the rows still are, so that what comes late joins them."""
    world = World(exact, tmp_path)
    world.take(*STORY)
    monkeypatch.setattr(world.format, "put", die)
    with pytest.raises(ProcessDied):
        world.purge()
    monkeypatch.undo()
    assert len(world.rows()) == 5
    assert world.take(change(20, "u", 1, 46, at=41))["superseded"] == 1
    assert world.purge() == (2, 2)


def test_rows_that_a_truncate_took_are_as_old_as_what_came_after_it(exact: SparkSession, tmp_path: Path) -> None:
    """Their delete has no time of its own. With 0 every delete goes; the watermark outlives the rows."""
    world = World(exact, tmp_path)
    world.take(change(1, "c", 1, 50), change(2, "c", 2, 50))
    world.take(record(ORDERS, 3, None, envelope("t", pos=30)))
    assert world.purge() == (0, 2)
    world.take(change(4, "c", 3, 40), change(5, "c", 4, 1), change(6, "d", 4, 1))
    assert world.purge() == (2, 1)
    assert world.take(change(7, "u", 1, 49, at=15)) == {"applied": 0, "superseded": 1, "dead": 0}
    world.declare(purge_after=0)
    assert world.purge() == (1, 0)
    assert sorted(world.rows()) == [3]


def test_the_verb_purges_what_is_declared_to_be_purged(exact: SparkSession, tmp_path: Path) -> None:
    """A table without `purge_after` keeps its rows, and naming it is an error that says what to declare. One that stops
    keeps no other from it.
    """
    world = World(exact, tmp_path / "lake", DeltaFormat(), JsonControl(exact))
    world.take(*STORY)
    declared = tmp_path / "declare.yaml"
    declared.write_text("tables: {shop.orders: {purge_after: 30 days}}")
    words = ["purge", "orders", "--lake", str(tmp_path / "lake"), "--json"]
    [told] = json.loads(said(*words, "--declare", str(declared)))
    assert (told["table"], told["purged"], told["kept"]) == ("s/shop.orders", 4, 0)
    with pytest.raises(ConfigError, match="purge_after"):
        said(*words)
    broken = tmp_path / "lake/silver/s/shop.broken"
    shutil.copytree(tmp_path / "lake/silver/s/shop.orders", broken)
    for file in broken.glob("*.parquet"):
        file.unlink()
    declared.write_text("tables: {shop.orders: {purge_after: 30 days}, shop.broken: {purge_after: 30 days}}")
    done = CliRunner().invoke(app, ["purge", "--lake", str(tmp_path / "lake"), "--declare", str(declared), "--json"])
    told = {each["table"]: each["error"] and each["error"].partition(":")[0] for each in json.loads(done.stdout)}
    assert (done.exit_code, told) == (1, {"s/shop.broken": "ENGINE_FAILED", "s/shop.orders": None})
    assert "s/shop.broken: ENGINE_FAILED" in done.stderr


def test_a_rebuild_finds_no_loss_in_what_a_purge_made_unknown(exact: Any, tmp_path: Path) -> None:
    """M9: a new row of a purged key knows no value from before, at whichever place; bronze begins behind offset 0."""
    world = World(exact, tmp_path)
    world.take(
        change(1, "c", 1, 50, at=10),
        change(2, "d", 1, 45, at=20),
        change(3, "c", 2, 45, at=30),
        change(4, "d", 2, 44, at=60),
        change(5, "c", 3, 1, at=90),
    )
    world.purge()
    world.take(change(6, "c", 1, 1, at=200, v=9, t=UNSENT))
    assert rebuild(exact, world.at, "shop.orders", RebuildOptions()).gone == 0


def row(offset: int, key: int, days: float, partition: int, *, deleted: bool = False, t: str = "x") -> Record:
    """A flattened row of a topic that only offsets order, so many days ago."""
    told: dict[str, Any] = {
        "id": key,
        "v": 1,
        "t": t,
        "__deleted": str(deleted).lower(),
        "__source_ts_ms": int(NOW - days * DAY),
    }
    return record(ORDERS, offset, {"id": key}, told, partition=partition)


def test_offsets_of_one_partition_say_nothing_of_another_one_to_a_purge(exact: SparkSession, tmp_path: Path) -> None:
    """Q3, M9: where only offsets order, a partition with few records is not below what went from one with many."""
    world = World(exact, tmp_path)
    world.take(row(500, 1, 50, 0), row(501, 1, 45, 0, deleted=True), row(7, 2, 50, 1))
    assert world.purge() == (1, 0)
    assert world.take(row(8, 3, 1, 1)) == {"applied": 1, "superseded": 0, "dead": 0}
    assert world.take(row(9, 4, 1, 1, t=UNSENT)) == {"applied": 1, "superseded": 0, "dead": 0}
    assert world.take(row(10, 4, 1, 1, t="y"))["applied"] == 1
    assert sorted(world.rows()) == [2, 3, 4]
    assert world.rows()[4] == (1, "y", False, False)


def test_a_horizon_goes_with_the_order_that_it_is_of(exact: SparkSession, tmp_path: Path) -> None:
    """M9, Q9: places of another order are neither above it nor below; a rebuild that changes the order has nothing
    purged, and until then nothing is.
    """
    world = World(exact, tmp_path)
    world.take(*STORY)
    assert world.purge() == (2, 2)
    world.declare(sequence_by="source.ts_ms")
    with pytest.raises(TableStopped, match="its rows were ordered by position"):
        world.purge()
    assert rebuild(exact, world.at, "shop.orders", RebuildOptions(accept_gap=True)).added == 2
    assert world.control.get(world.at.lake.horizon("s", "shop.orders")) is None
    assert world.take(change(30, "c", 6, 1)) == {"applied": 1, "superseded": 0, "dead": 0}
    assert world.purge() == (3, 1)
    assert world.take(change(31, "c", 1, 46))["dead"] == 1
