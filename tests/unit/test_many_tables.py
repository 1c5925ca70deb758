"""Tables beside each other: paused ones, shards of one, and what is asked of those that are idle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.errors import ConfigError, TableMissing
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import pause, purge
from replicator.operate.pause import TableState
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import EQUAL
from replicator.operate.status import StatusInputs, list_statuses
from replicator.spec import Column, Declaration, SourceSpec, Table, Transform
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.tick import retry_backoff
from replicator.stages.tick.epochs import Epochs
from replicator.stages.tick.source_state import SourceState
from replicator.transforms.table_transform.hashing import digest
from tests.builders import UNSENT, Record, bronze, envelope, record

pytestmark = pytest.mark.spark

KEY = "the key of hashed columns"
COLUMNS = (Column("id", "int"), Column("v", "int"))


class Asked(MemoryFormat):
    """Knows which tables were asked for their progress."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def progress(self, spark: SparkSession, table: Table, name: str) -> Any:
        self.names.append(table.name)
        return super().progress(spark, table, name)


class World:
    """A source's silver in memory, one record per offset."""

    def __init__(self, spark: SparkSession, folder: Path, *tables: Declaration) -> None:
        self.spark, self.tables, self.offset = spark, Asked(), 0
        spec = SourceSpec("s", ".*", tables=tables, hash_key=KEY)
        self.at = Refinement(spec, self.tables, self.tables, MemoryControl(), Lake(str(folder)))

    def record(self, table: str, key: int, value: Any, op: str = "c", **told: Any) -> Record:
        self.offset += 1
        row = None if op == "d" else {"id": key, "v": value}
        pos = told.pop("pos", 10 * self.offset)
        return record(f"s.{table}", self.offset, {"id": key}, envelope(op, row, table=table, pos=pos), **told)

    def take(self, *records: Record) -> dict[str, Account]:
        """One batch, and which tables read something of it."""
        if records:
            self.at.bronze.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        self.tables.names.clear()
        return {each.table.removeprefix("s/"): each for each in silver.refine(self.spark, self.at)}

    def rows(self, table: str, *columns: str) -> set[tuple[Any, ...]]:
        """Live rows."""
        found = self.tables.read(self.spark, self.at.lake.silver("s", table)).where("NOT _deleted")
        return {tuple(row) for row in found.select(*(columns or ("id", "v"))).collect()}

    def restart(self) -> None:
        """Another process."""
        self.at = Refinement(self.at.source, self.at.bronze, self.tables, self.at.control, self.at.lake)


def test_a_paused_table_waits_and_loses_nothing(exact: SparkSession, tmp_path: Path) -> None:
    """Bronze goes on, other tables too; after a resume, also in another process, it has all that it missed, in order.
    A table can be paused before it is there.
    """
    world = World(exact, tmp_path, *(Declaration(f"shop.{name}", COLUMNS) for name in "abc"))
    place = [(world.at, "shop.a"), (world.at, "shop.c")]
    world.take(world.record("shop.a", 1, 1), world.record("shop.b", 1, 1))
    assert pause.pause(place, "now") == [TableState("s/shop.a", "now"), TableState("s/shop.c", "now")]
    pause.pause(place[:1], "later")
    assert [(each.table, each.paused) for each in pause.list_tables(exact, [world.at])] == [
        ("s/shop.a", "now"),
        ("s/shop.b", None),
        ("s/shop.c", "now"),
    ]
    around = StatusInputs(world.at.lake, world.tables, world.at.control, {}, {}, (), {})
    standing = [(each.table, each.paused) for each in list_statuses(exact, around) if each.layer == "silver"]
    assert standing == [("s/shop.a", True), ("s/shop.b", False)]
    for turn in (2, 3):
        done = world.take(*[world.record(f"shop.{name}", turn, turn) for name in "abc"])
        assert done.keys() == {"shop.b"}
        assert world.take() == {}
        if turn == 2:
            world.restart()  # a new process asks all tables
    assert (world.rows("shop.a"), len(world.rows("shop.b"))) == ({(1, 1)}, 3)
    pause.resume(place[:1])
    assert {table: account.applied for table, account in world.take().items()} == {"shop.a": 2}
    pause.resume(place[1:])
    done = world.take(world.record("shop.a", 1, 9, "u"))
    assert {table: (account.applied, account.error) for table, account in done.items()} == {
        "shop.a": (1, None),
        "shop.c": (2, None),
    }
    assert world.rows("shop.a") == {(1, 9), (2, 2), (3, 3)}
    assert world.rows("shop.c") == {(2, 2), (3, 3)}
    assert world.take() == {}
    assert world.at.control.get(world.at.lake.pauses("s")) is None


def test_only_a_table_that_there_is_can_be_paused(exact: SparkSession, tmp_path: Path) -> None:
    """A misspelled name pauses nothing; one of two sources must say which."""
    one = World(exact, tmp_path, Declaration("shop.orders", COLUMNS))
    other = replace(one.at, source=replace(one.at.source, name="t"))
    for told, sources, part in (
        ("shop.ordres", [one.at], "did you mean 's/shop.orders'?"),
        ("shop.orders", [one.at, other], "s/shop.orders, t/shop.orders"),
    ):
        with pytest.raises(ConfigError) as caught:
            pause.find_tables(exact, sources, [told])
        assert part in str(caught.value)
    assert pause.find_tables(exact, [one.at], ["s/shop.orders"]) == [(one.at, "shop.orders")]


def test_idle_tables_are_not_asked_how_far_they_are(exact: SparkSession, tmp_path: Path) -> None:
    """Only tables of topics that got records are, and those that stopped."""
    world = World(exact, tmp_path, *(Declaration(f"shop.{name}", COLUMNS, truncate="fail") for name in "abc"))
    world.take(*[world.record(f"shop.{name}", 1, 1) for name in "abc"])
    assert world.take(world.record("shop.a", 1, 2, "u"))["shop.a"].applied == 1
    assert set(world.tables.names) == {"s/shop.a"}
    world.take()
    assert world.tables.names == []
    bad = world.record("shop.b", 1, 1, "t")
    assert world.take(bad)["shop.b"].error is not None
    assert world.take(world.record("shop.c", 2, 2)).keys() == {"shop.b", "shop.c"}
    assert set(world.tables.names) == {"s/shop.b", "s/shop.c"}
    assert world.take(world.record("shop.new", 1, 7)).keys() == {"shop.b", "shop.new"}
    assert world.rows("shop.new") == {(1, 7)}


class Resting:
    """Tables ``a`` and ``b`` of which ``a`` stopped at a TRUNCATE that it does not take."""

    def __init__(self, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch, *, whole: bool) -> None:
        monkeypatch.setattr(retry_backoff, "_OF_A_COMMIT", retry_backoff._FEW // 2)  # as if commits were large
        self.world = World(spark, folder, *(Declaration(f"shop.{name}", COLUMNS, truncate="fail") for name in "ab"))
        source = replace(self.world.at.source, whole_transactions=whole)
        self.world.at = replace(self.world.at, source=source)
        assert self.ticks(1) == [1]
        assert self.world.take(self.world.record("shop.a", 1, 1, "t"))["shop.a"].error is not None

    def ticks(self, count: int) -> list[int]:
        """How many records the table that stopped read in each, while the other goes on."""
        world = self.world
        done = [world.take(world.record("shop.a", n, n), world.record("shop.b", n, n)) for n in range(count)]
        assert [each["shop.b"].applied for each in done] == [1] * count
        return [each["shop.a"].read if "shop.a" in each else 0 for each in done]

    def fixed(self) -> Account:
        """What becomes of it in a process that lets the TRUNCATE pass."""
        world = self.world
        restored = tuple(replace(each, truncate="ignore") for each in world.at.source.tables)
        world.at = replace(world.at, source=replace(world.at.source, tables=restored))
        world.restart()
        return world.take()["shop.a"]


def test_a_table_that_stopped_rests_until_it_has_twice_as_much_to_read(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody fixes it, and what it has to read is more with each tick: it is not read with each of them, nor are the
    commits that it has not seen. Others go on, a new process tries it, and so does one that sees that it was fixed.
    """
    resting = Resting(exact, tmp_path, monkeypatch, whole=False)
    world, ticks = resting.world, resting.ticks
    assert ticks(7) == [2, 0, 4, 0, 0, 0, 8]
    world.restart()
    assert ticks(2) == [9, 0]
    bumped = Epochs().next({"s.shop.a": {0: 10**6}}, "the table is well")
    world.at.control.put(world.at.lake.epochs("s"), bumped.value())
    assert ticks(1) == [11]
    pause.pause([(world.at, "shop.a")], "now")
    assert ticks(1) == [0]
    pause.resume([(world.at, "shop.a")])
    assert ticks(1) == [13]
    done = resting.fixed()
    assert (done.error, done.read, done.applied) == (None, 13, 7)


def test_where_transactions_are_shown_whole_a_table_that_stopped_rests_as_well(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it, and a new process tries it."""
    resting = Resting(exact, tmp_path, monkeypatch, whole=True)
    assert resting.ticks(4) == [2, 0, 4, 0]
    resting.world.restart()
    assert resting.ticks(1) == [6]
    done = resting.fixed()
    assert (done.error, done.read, done.applied) == (None, 6, 4)


def test_a_table_of_which_all_records_were_dead_letters_is_not_read_anew_with_each_tick(
    exact: SparkSession, tmp_path: Path
) -> None:
    """Until its first row: then it is what another process makes of its topics as a whole."""
    world, other = (World(exact, tmp_path / name) for name in ("one", "other"))

    def dead() -> Record:
        world.offset += 1
        return record("s.shop.a", world.offset, {"id": "x"}, envelope("c", {"id": 1, "w": 1.5}, table="shop.a"))

    def take(*records: Record) -> dict[str, Account]:
        other.at.bronze.append(bronze(exact, records), other.at.lake.bronze("s"), None)
        return world.take(*records)

    for _ in range(2):
        done = take(world.record("shop.b", 1, 1), dead(), dead())
        assert {table: (each.read, each.dead_lettered) for table, each in done.items()} == {
            "shop.a": (2, 2),
            "shop.b": (1, 0),
        }
    assert world.take() == {}
    assert take(world.record("shop.b", 1, 1))["shop.b"].read == 1
    first = take(world.record("shop.a", 1, 1), world.record("shop.b", 1, 1), dead())
    assert {table: (each.read, each.applied, each.error) for table, each in first.items()} == {
        "shop.a": (6, 1, None),
        "shop.b": (1, 1, None),
    }
    assert take(world.record("shop.a", 2, 2), dead())["shop.a"].read == 2
    other.take()
    one, same = (each.tables.read(exact, each.at.lake.silver("s", "shop.a")) for each in (world, other))
    assert sorted(one.dtypes) == sorted(same.dtypes)
    rows = [sorted(map(str, each.select(*sorted(one.columns)).collect())) for each in (one, same)]
    assert rows[0] == rows[1]


def test_a_table_that_went_back_is_read_again_from_where_it_is() -> None:
    """Somebody put an older copy of it into its place while the process goes on."""
    known = SourceState()
    known.settle("b", 7, (), {"shop.a": 6})
    settled = known.caught_up
    assert settled is not None
    assert settled.floor("s.shop.a", ["shop.a"], {"shop.a": 6}) == 7
    assert settled.floor("s.shop.a", ["shop.a"], {"shop.a": 5}) is None
    assert settled.floor("s.shop.a", ["shop.a"], {}) is None


def test_what_silver_had_read_before_shards_were_declared_goes_into_their_table(
    exact: SparkSession, tmp_path: Path
) -> None:
    """Of topics that are quiet since, too: into a table that is new, or one that has taken other shards for long; also
    where it stops, or is paused, at first. It is read once, and a rebuild finds the same.
    """

    def declared(pattern: str, **more: Any) -> None:
        shards = Declaration("shop.orders", COLUMNS, shards=pattern, truncate="fail", **more)
        world.at = replace(world.at, source=replace(world.at.source, tables=(shards,)))
        world.restart()

    world = World(exact, tmp_path)
    world.take(*[world.record(f"shop_{n}.orders", n, n) for n in (1, 2, 3, 4)], world.record("shop.orders", 9, 9))
    world.take(world.record("shop_1.orders", 5, 5))
    declared("shop_[12][.]orders")
    assert {table: account.applied for table, account in world.take().items()} == {"shop.orders": 3}
    assert world.rows("shop.orders") == {(1, 1), (2, 2), (5, 5), (9, 9)}
    world.restart()
    assert world.take() == {}
    declared("shop_[123][.]orders")
    assert world.take()["shop.orders"].applied == 1, "its table has read as far as bronze reaches"
    assert world.rows("shop.orders") == {(1, 1), (2, 2), (3, 3), (5, 5), (9, 9)}
    declared("shop_[0-9][.]orders", sequence_by="source.ts_ms")
    assert world.take()["shop.orders"].error is not None
    declared("shop_[0-9][.]orders")
    pause.pause([(world.at, "shop.orders")], "now")
    world.take(world.record("shop_3.orders", 6, 6))
    pause.resume([(world.at, "shop.orders")])
    assert rebuild(exact, world.at, "shop.orders", RebuildOptions()).rows == 7
    world.restart()
    assert world.take()["shop.orders"].error is None
    assert world.rows("shop.orders") == {(n, n) for n in (1, 2, 3, 4, 5, 6, 9)}
    world.restart()
    assert world.take() == {}
    assert rebuild(exact, world.at, "shop.orders", RebuildOptions()).verdict == EQUAL
    world.restart()
    [done] = world.take(world.record("shop_4.orders", 7, 7)).values()
    assert (done.read, done.applied) == (1, 1)
    told = world.at.control.get(world.at.lake.routes("s"))
    assert told is not None
    assert {tuple(tables) for tables in told["tables"].values()} == {("shop.orders",)}


def test_the_rows_of_a_new_shard_are_none_that_were_purged(exact: SparkSession, tmp_path: Path) -> None:
    """A horizon is a place of what the table had read: a shard that it takes from later on has rows from below it."""
    shards = Declaration(
        "shop.orders",
        COLUMNS,
        truncate="fail",
        shards="shop_1[.]orders",
        transform=Transform(shard="shard"),
        purge_after=0,
    )
    world = World(exact, tmp_path, shards)
    two = [world.record("shop_2.orders", 1, 2), world.record("shop_2.orders", 2, 2)]
    one = [world.record("shop_1.orders", 1, 1), world.record("shop_1.orders", 1, None, "d")]
    world.take(*two, *one)
    assert purge.purge(exact, world.at, "shop.orders", 0).purged == 1
    widened = replace(shards, shards="shop_[12][.]orders")
    world.at = replace(world.at, source=replace(world.at.source, tables=(widened,)))
    world.restart()
    assert world.take()["shop.orders"].dead_lettered == 0
    assert world.rows("shop.orders", "id", "shard") == {(1, "shop_2.orders"), (2, "shop_2.orders")}
    late = world.take(replace(one[0], offset=9))["shop.orders"]
    assert (late.applied, late.dead_lettered) == (0, 1)


def test_shards_that_go_into_a_table_of_another_name_are_there_whole(exact: SparkSession, tmp_path: Path) -> None:
    """What an older table of shards has taken goes into those that take them now, also of topics that are quiet since;
    it is read once, a rebuild finds the same, and the older table stays as it is.
    """

    def declared(**into: str) -> None:
        tables = tuple(
            Declaration(f"{name}.orders", COLUMNS, shards=pattern, truncate="fail") for name, pattern in into.items()
        )
        world.at = replace(world.at, source=replace(world.at.source, tables=tables))
        world.restart()

    world = World(exact, tmp_path)
    declared(shop="shop_[0-9][.]orders")
    world.take(*[world.record(f"shop_{n}.orders", n, n) for n in (1, 2, 3)], world.record("shop.orders", 9, 9))
    declared(every="shop_[0-9][.]orders")
    assert rebuild(exact, world.at, "shop.orders", RebuildOptions(dry=True)).rows == 1
    assert {table: done.applied for table, done in world.take().items()} == {"every.orders": 3, "shop.orders": 0}
    assert world.rows("every.orders") == {(1, 1), (2, 2), (3, 3)}
    declared(one="shop_1[.]orders", others="shop_[23][.]orders")
    world.take(world.record("shop_3.orders", 4, 4))
    assert (world.rows("one.orders"), world.rows("others.orders")) == ({(1, 1)}, {(2, 2), (3, 3), (4, 4)})
    assert rebuild(exact, world.at, "others.orders", RebuildOptions()).verdict == EQUAL
    with pytest.raises(TableMissing, match="by `shards` stays as it is"):
        rebuild(exact, world.at, "every.orders", RebuildOptions(dry=True))
    world.restart()
    assert world.take() == {}
    assert world.rows("shop.orders") == {(1, 1), (2, 2), (3, 3), (9, 9)}


def test_shards_go_into_one_table_whose_key_says_which(exact: SparkSession, tmp_path: Path) -> None:
    """Equal keys of two shards are two rows; a delete, also a row that moves to another key, is of its own shard. So it
    is where the key rests as a hash: the row brings along what was not sent (M7).
    """
    told = Transform(shard="shard", hashed=("id",), rename=(("id", "number"),))
    shards = Declaration("shop.orders", COLUMNS, truncate="fail", shards=r"shop_[0-9]+[.]orders", transform=told)
    world = World(exact, tmp_path, shards)
    one, two = "shop_1.orders", "shop_2.orders"
    done = world.take(
        world.record(one, 1, 11),
        world.record(one, 2, 12),
        world.record(two, 1, 21),
        world.record(two, 2, 22),
        world.record("shop_x.orders", 1, 0),
    )
    assert [(account.read, account.applied, account.residue) for account in done.values()] == [(4, 4, 0), (1, 1, 0)]
    assert world.tables.tables(exact, world.at.lake.silver_root("s")) == ("shop.orders", "shop_x.orders")
    done = world.take(
        world.record(two, 1, None, "d"),
        world.record(one, 2, None, "d", pos=500, headers=(("__debezium.newkey", b'{"id":3}'),)),
        world.record(one, 3, UNSENT, "c", pos=500, headers=(("__debezium.oldkey", b'{"id":2}'),)),
    )
    assert [(account.error, account.residue) for account in done.values()] == [(None, 0)]
    wanted = {(one, digest(KEY, "1"), 11), (one, digest(KEY, "3"), 12), (two, digest(KEY, "2"), 22)}
    assert world.rows("shop.orders", "shard", "number", "v") == wanted
