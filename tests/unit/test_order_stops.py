"""What stops a table because its order broke, and how its user goes on: rewinds, epochs, grown partitions, times."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator import failpoints
from replicator.errors import ConfigError, PartitionsGrew, SourceRewound, TableMissing, TableStopped
from replicator.formats import delta_files
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import epoch, retry
from replicator.operate.dead_letters import LetterFilter
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.spec import Column, Declaration, SourceSpec, Transform
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from tests.builders import Record, bronze, envelope, record

pytestmark = pytest.mark.spark

ORDERS, ITEMS = "s.shop.orders", "s.shop.items"
NOON = 1700000000000


@dataclass
class Silver:
    """A source's silver in memory."""

    spark: SparkSession
    folder: Path
    sequence_by: str = "position"
    binlog_position: str = "file_pos"
    declared: Mapping[str, Any] = field(default_factory=dict)
    format: MemoryFormat | DeltaFormat = field(default_factory=MemoryFormat)
    control: MemoryControl = field(default_factory=MemoryControl)
    overtaken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, sequence_by: str | None = None, binlog_position: str | None = None) -> None:
        """Another process: it remembers nothing."""
        columns = (Column("id", "int"), Column("v", "int"))
        tables = tuple(Declaration(table, columns, **self.declared) for table in ("shop.orders", "shop.items"))
        self.sequence_by = sequence_by or self.sequence_by
        self.binlog_position = binlog_position or self.binlog_position
        order: dict[str, Any] = {"sequence_by": self.sequence_by, "binlog_position": self.binlog_position}
        spec = SourceSpec("s", ".*", tables=tables, **order)
        self.at = Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    def take(self, *records: Record) -> dict[str, Account]:
        """One batch."""
        if records:
            self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        accounts = silver.refine(self.spark, self.at)
        assert [account for account in accounts if account.error is None and account.residue] == []
        return {account.table: account for account in accounts}

    def error(self, *records: Record, table: str = "s/shop.orders") -> TableStopped | None:
        """One batch, and what stopped a table in it."""
        error = self.take(*records)[table].error
        assert error is None or isinstance(error, TableStopped)
        return error

    def rows(self, table: str = "shop.orders") -> dict[int, tuple[Any, ...]]:
        """(v, epoch) of live rows by id."""
        rows = self.format.read(self.spark, self.at.lake.silver("s", table)).collect()
        return {row["id"]: (row["v"], row["_seq"][:4]) for row in rows if not row["_deleted"]}

    def seqs(self) -> dict[int, str]:
        """``_seq`` by id."""
        rows = self.format.read(self.spark, self.at.lake.silver("s", "shop.orders")).collect()
        return {row["id"]: row["_seq"] for row in rows}

    def states(self) -> list[str]:
        """Where each state of the history begins."""
        rows = self.format.read(self.spark, self.at.lake.history("s", "shop.orders")).collect()
        return sorted(row["__START_AT"] for row in rows)

    def bump(self, **told: int) -> dict[tuple[str, int], tuple[int, str]]:
        """A new epoch: (offset, why) by partition."""
        place = epoch.LakeSource("s", self.at.lake, self.format, self.control, self.format)
        given = {(ORDERS, int(partition[1:])): offset for partition, offset in told.items()}
        starts = epoch.bump(self.spark, place, "restored", given)
        self.overtaken = epoch.tables_to_rebuild(self.spark, place, starts)
        return {(s.topic, s.partition): (s.offset, s.why) for s in starts}

    def rebuilt(self) -> Silver:
        """The same bronze, read from its beginning into a new silver by another process."""
        other = Silver(self.spark, self.folder, self.sequence_by, self.binlog_position, self.declared)
        bumps = self.control.get(self.at.lake.epochs("s"))
        if bumps is not None:
            other.control.put(self.at.lake.epochs("s"), bumps)
        other.format.append(self.format.read(self.spark, self.at.lake.bronze("s")), self.at.lake.bronze("s"), None)
        accounts = silver.refine(self.spark, other.at)
        assert [account.error for account in accounts if account.error] == []
        return other


@pytest.fixture
def lake(exact: SparkSession, tmp_path: Path) -> Silver:
    return Silver(exact, tmp_path)


def change(offset: int, key: int, value: int, pos: int, second: int, op: str = "u", **more: Any) -> Record:
    """A change of an order, or of another table by its ``topic``, ``second`` seconds after noon by the source."""
    topic, partition = more.pop("topic", ORDERS), more.pop("partition", 0)
    row = envelope(op, {"id": key, "v": value}, pos=pos, ts_ms=NOON + 1000 * second, table=topic[2:], **more)
    return record(topic, offset, {"id": key}, row, partition=partition, second=NOON // 1000 + second)


def flat(offset: int, key: int, value: int | None, partition: int = 0, **more: Any) -> Record:
    """A row of a flattened topic in which nulls delete: its order is the offset."""
    told: dict[str, Any] = {"id": key, "v": value, "__op": "u", "__table": "orders", "__db": "shop"} | more
    return record(ORDERS, offset, {"id": key}, None if value is None else told, partition=partition)


BEFORE = (change(0, 1, 10, 1000, 0), change(1, 2, 20, 2000, 10), change(0, 9, 90, 2100, 11, topic=ITEMS))
BACK = (change(2, 3, 30, 500, 100), change(3, 1, 11, 600, 110))


def test_a_source_that_went_back_stops_its_table_and_a_new_epoch_goes_on(lake: Silver) -> None:
    """J4, Q2: named, nothing moved, the other table goes on; after the bump the newer change wins, and a rebuild
    agrees.
    """
    lake.take(*BEFORE)
    table = lake.at.lake.silver("s", "shop.orders")
    before = lake.format.version(lake.spark, table)
    accounts = lake.take(*BACK, change(1, 9, 91, 2200, 105, topic=ITEMS))
    error = accounts["s/shop.orders"].error
    assert isinstance(error, SourceRewound)
    assert (error.code, accounts["s/shop.items"].error) == ("SOURCE_REWOUND", None)
    assert f"offset 2 of {ORDERS}, partition 0" in str(error)
    assert "replicator epoch bump s --reason" in str(error)
    assert lake.format.version(lake.spark, table) == before
    assert isinstance(lake.error(change(4, 4, 40, 9000, 120)), SourceRewound)
    lake.restart()
    assert isinstance(lake.error(), SourceRewound)
    assert lake.bump() == {(ORDERS, 0): (2, "the source was rewound here"), (ITEMS, 0): (2, "bronze ends here")}
    assert lake.overtaken == []
    lake.take()
    assert lake.rows() == {1: (11, "0001"), 2: (20, "0000"), 3: (30, "0001"), 4: (40, "0001")}
    assert lake.rebuilt().seqs() == lake.seqs()


def test_a_redelivery_stops_nothing(lake: Silver) -> None:
    """J1: the same records at new offsets, in the same batch and a later one, even where a long transaction's late
    commit has an earlier time than what it overtook.
    """
    late = change(1, 2, 20, 2000, 1)
    lake.take(change(0, 1, 10, 1000, 5), late, change(2, 1, 10, 1000, 5), change(3, 2, 20, 2000, 1))
    again = [change(4, 1, 10, 1000, 5), change(5, 2, 20, 2000, 1), change(6, 1, 12, 3000, 20)]
    assert lake.error(*again) is None
    lake.restart()
    assert lake.error(change(7, 2, 20, 2000, 1), change(8, 1, 12, 3000, 20), change(9, 3, 30, 4000, 30)) is None
    assert lake.rows() == {1: (12, "0000"), 2: (20, "0000"), 3: (30, "0000")}


def test_a_redelivery_into_another_partition_stops_nothing(lake: Silver) -> None:
    """J1: with partitions that were added, what is sent again may have a lower offset than before."""
    lake.take(change(7, 1, 10, 1000, 5))
    assert lake.error(change(0, 2, 20, 2000, 1, partition=1), change(1, 1, 10, 1000, 5, partition=1)) is None
    assert lake.rows() == {1: (10, "0000"), 2: (20, "0000")}


def test_a_redelivery_is_known_from_what_came_lately(exact: SparkSession, tmp_path: Path) -> None:
    """J1: where a late commit has an older time than what it overtook, a connector that begins again looks like a
    source that went back. Bronze's older files tell nothing of it and are not read: here they are gone, and too many
    for the table to be read without the log's help.
    """
    lake = Silver(exact, tmp_path, format=DeltaFormat())
    table, many = lake.at.lake.bronze("s"), 2 * delta_files.MAX_DIRECT_FILES
    past = [change(n, 1, n, 1000 + n, n - 86_400) for n in range(many)]
    lake.format.append(bronze(exact, past).repartition(many), table, None)
    old = list(Path(table.location).rglob("part-*.parquet"))
    assert len(old) > delta_files.MAX_DIRECT_FILES
    late = change(many, 2, 20, 2000, 5), change(many + 1, 3, 30, 3000, 1)
    lake.take(*late)
    for file in old:
        file.unlink()
    again = [replace(each, offset=each.offset + 2) for each in late]
    assert lake.error(*again, change(many + 4, 3, 31, 4000, 6)) is None
    assert lake.rows() == {1: (many - 1, "0000"), 2: (20, "0000"), 3: (31, "0000")}


def test_a_silver_behind_what_the_log_of_bronze_forgot_reads_it_again(exact: SparkSession, tmp_path: Path) -> None:
    """K-M1: it stopped for longer than the log is kept; nothing is lost, and what it had read is no rewind."""
    lake = Silver(exact, tmp_path, format=DeltaFormat())
    lake.take(*BEFORE)
    table = lake.at.lake.bronze("s")
    exact.sql(f"ALTER TABLE delta.`{table.location}` SET TBLPROPERTIES (delta.checkpointInterval = 2)")
    for offset in range(2, 6):
        lake.format.append(bronze(exact, [change(offset, offset, offset, 1000 * offset, offset)]), table, None)
    for file in Path(table.location, "_delta_log").glob("0*"):
        os.utime(file, (NOON // 1000, NOON // 1000 + 3600 * int(file.name[:20])))
    lake.format.maintain(exact, table, 1)
    assert not Path(table.location, "_delta_log", f"{0:020}.json").exists()
    lake.restart()
    assert lake.error() is None
    assert lake.rows() == {1: (10, "0000"), 2: (2, "0000"), 3: (3, "0000"), 4: (4, "0000"), 5: (5, "0000")}
    assert isinstance(lake.error(change(6, 3, 30, 500, 100)), SourceRewound)


@pytest.mark.parametrize("second", [0, 8_000_000_000_000], ids=["clocks apart", "no time of this world"])
def test_a_redelivery_of_what_came_long_ago_is_looked_for_in_all_of_bronze(lake: Silver, second: int) -> None:
    """J1, J4: what came lately does not tell, whatever time the source gives."""
    a_day_ago = NOON // 1000 - 86_400
    early = replace(change(0, 2, 20, 2000, second), second=a_day_ago)
    lake.take(early, replace(change(1, 3, 30, 3000, second - 1), second=a_day_ago))
    assert lake.error(replace(early, offset=2, second=a_day_ago + 5)) is None
    assert lake.rows() == {2: (20, "0000"), 3: (30, "0000")}


def test_a_rewind_is_found_below_another_table_of_the_topic(lake: Silver) -> None:
    """J4: marks are of a partition, whatever its tables; that another record of the table is a redelivery clears no
    other.
    """

    def one_of(table: str, offset: int, key: int, pos: int, second: int) -> Record:
        row = envelope("u", {"id": key, "v": 1}, pos=pos, ts_ms=NOON + 1000 * second, table=table)
        return record("s.shop.all", offset, {"id": key}, row, second=NOON // 1000 + second)

    items, orders = "shop.items", "shop.orders"
    lake.take(one_of(items, 0, 1, 900, 5), one_of(orders, 1, 9, 1000, 0))
    again = one_of(items, 2, 1, 900, 5), one_of(orders, 3, 9, 1000, 0)
    restored = one_of(orders, 4, 8, 5000, 600), one_of(items, 5, 2, 3000, 1200)
    assert isinstance(lake.error(*again, *restored, table="s/shop.items"), SourceRewound)


def test_a_change_of_another_table_clears_no_rewind(lake: Silver) -> None:
    """J4: all changes of a transaction may have one place (SQL Server, Oracle), and rows of two tables one key."""
    lake.take(change(0, 1, 10, 1000, 0), change(0, 1, 10, 1000, 0, topic=ITEMS))
    accounts = lake.take(change(1, 7, 70, 500, 100), change(1, 7, 70, 500, 100, topic=ITEMS))
    assert {type(account.error) for account in accounts.values()} == {SourceRewound}


def test_older_news_is_late_and_no_rewind(lake: Silver) -> None:
    """J4 asks for a newer time: an older record that comes late is superseded; and offsets out of order are fine."""
    lake.take(change(5, 1, 10, 1000, 5))
    assert lake.error(change(6, 1, 9, 900, 4)) is None
    assert lake.error(change(2, 2, 20, 500, 60)) is None
    assert lake.rows() == {1: (10, "0000"), 2: (20, "0000")}


def test_a_rewind_inside_one_batch_is_found(lake: Silver) -> None:
    """A first run over a long history stops too, although the source has passed its old place since."""
    records = [change(0, 1, 10, 1000, 0), change(1, 2, 20, 500, 100), change(2, 1, 11, 5000, 200)]
    assert isinstance(lake.error(*records), SourceRewound)
    assert lake.bump()[ORDERS, 0] == (1, "the source was rewound here")
    assert lake.error() is None
    assert lake.rows() == {1: (11, "0001"), 2: (20, "0001")}


def test_a_new_process_knows_how_far_the_source_had_come(lake: Silver) -> None:
    """The control row is older than the last batch: what came between is derived from bronze; and without it, all."""
    lake.take(change(0, 1, 10, 1000, 0))
    lake.take(change(1, 1, 11, 2000, 10))
    assert lake.control.get(lake.at.lake.reached("s"))["topics"][ORDERS]["version"] == 0
    lake.restart()
    assert isinstance(lake.error(change(2, 3, 30, 1500, 100)), SourceRewound)
    lake.control.remove(lake.at.lake.reached("s"))
    lake.restart()
    assert isinstance(lake.error(), SourceRewound)


def test_a_snapshot_after_a_new_start_ranks_above_the_new_epoch_only(lake: Silver) -> None:
    """Q5: the running maximum is that of the row's own epoch, so the changes behind the snapshot beat its rows."""
    lake.take(change(0, 1, 10, 9000, 0))
    lake.bump()
    lake.take(change(1, 2, 20, 100, 100))
    lake.take(change(2, 1, 11, 50, 101, op="r"))
    lake.take(change(3, 1, 12, 200, 102))
    assert lake.rows() == {1: (12, "0001"), 2: (20, "0001")}
    assert lake.seqs()[1].startswith(f"0001{1:08x}{200:012x}")


def test_an_operator_may_know_better_where_the_source_started_anew(lake: Silver) -> None:
    """``--from`` wins over what bronze says, and a place that bronze does not have is refused. A table that has read
    records behind it is named: only a rebuild puts these into the new order.
    """
    with pytest.raises(TableMissing):
        lake.bump()
    lake.take(change(0, 1, 10, 1000, 0), change(1, 2, 20, 2000, 1))
    with pytest.raises(ConfigError):
        lake.bump(p7=1)
    assert lake.bump(p0=1) == {(ORDERS, 0): (1, "as told")}
    assert lake.rebuilt().rows() == {1: (10, "0000"), 2: (20, "0001")}
    lake.take(change(2, 1, 11, 5000, 2), change(3, 1, 12, 50, 0))  # that one is late by its time, and loses
    assert lake.bump(p0=3) == {(ORDERS, 0): (3, "as told")}
    assert (lake.overtaken, lake.take(), lake.rows()[1]) == (["shop.orders"], {}, (11, "0001"))
    rebuild(lake.spark, lake.at, "shop.orders", RebuildOptions())
    assert lake.rows() == {1: (12, "0002"), 2: (20, "0001")}
    assert (lake.bump(p0=4), lake.overtaken) == ({(ORDERS, 0): (4, "as told")}, [])


def test_a_partition_that_was_far_behind_goes_into_the_new_epoch_with_the_others(lake: Silver) -> None:
    """J4, Q2, T2: what it has since the source went back stands above all that it had before, so that it alone tells
    nothing. In the old order a TRUNCATE in the partition that fell would take its newer rows away, for good.
    """
    lake.take(change(0, 1, 10, 5000, 0), change(0, 2, 20, 100, 1, partition=1), change(1, 4, 40, 200, 2, partition=1))
    emptied = record(ORDERS, 2, None, envelope("t", pos=700, ts_ms=NOON + 101_000))
    late = change(2, 4, 40, 200, 2, partition=1), change(3, 3, 30, 800, 102, partition=1)
    assert isinstance(lake.error(change(1, 1, 11, 600, 100), emptied, *late), SourceRewound)
    lake.restart()
    found = {0: (1, "the source was rewound here"), 1: (3, "another partition was rewound")}
    assert lake.bump() == {(ORDERS, partition): start for partition, start in found.items()}
    lake.take()
    assert lake.overtaken == []
    assert lake.rows() == lake.rebuilt().rows() == {3: (30, "0001")}


def test_what_a_partition_had_passed_is_told_anew_by_an_epoch_that_begins_below_it(
    exact: SparkSession, tmp_path: Path
) -> None:
    """Q2, Q5, J4: marks of the old order say nothing of the new one. A row of a snapshot without a place ranks above
    what came before it in its epoch, and a source that goes back in that epoch stops its table; in a process that
    begins and in one that goes on.
    """
    lake = Silver(exact, tmp_path, binlog_position="gtid")
    lake.take(*(change(n, 1, n, 100, n, gtid=f"0-1-{10 + n}") for n in range(2)))
    lake.bump(p0=1)
    lake.restart()
    assert lake.error(change(2, 1, 2, 300, 2, op="r", gtid=None)) is None
    assert lake.seqs() == lake.rebuilt().seqs() == {1: f"0001{11:020x}{0:016x}{2:016x}"}
    lake.bump(p0=2)
    assert lake.error(change(3, 1, 3, 100, 3, gtid="0-1-50")) is None
    assert lake.bump(p0=3) == {(ORDERS, 0): (3, "as told")}
    assert isinstance(lake.error(change(4, 1, 4, 100, 4, gtid="0-1-40")), SourceRewound)


def test_a_history_that_had_read_into_the_new_epoch_is_named_too(exact: SparkSession, tmp_path: Path) -> None:
    """Q2: a run that died behind the history's commit has told it of records whose table knows nothing of them. The
    states stand in the old order beside those of the new one until the table is built again.
    """
    lake, first = Silver(exact, tmp_path, declared={"stored_as_scd_type": 2}), (change(0, 1, 10, 1000, 0),)
    for batch in (first, (change(1, 1, 11, 2000, 1), change(2, 1, 12, 2100, 2))):
        with failpoints.watched(partial(_die_at, "silver.history_kept")), pytest.raises(failpoints.Killed):
            lake.take(*batch)
        lake.restart()
        assert lake.bump(p0=batch[0].offset) == {(ORDERS, 0): (batch[0].offset, "as told")}
        assert lake.overtaken == ["shop.orders"]
        lake.take()
        rebuild(lake.spark, lake.at, "shop.orders", RebuildOptions())
        assert lake.states() == lake.rebuilt().states()
    assert [seq[:4] for seq in lake.states()] == ["0001", "0002", "0002"]


def _die_at(wanted: str, name: str) -> None:
    if name == wanted:
        raise failpoints.Killed(name)


def test_partitions_that_were_added_stop_a_table_ordered_by_offset(lake: Silver) -> None:
    """Q8: offsets of two partitions do not compare; after the bump the new partition's records are newer."""
    lake.take(flat(900, 1, 10), flat(40, 2, 20, partition=1))
    error = lake.error(flat(0, 1, 11, partition=2))
    assert isinstance(error, PartitionsGrew)
    assert f"partition 2 of {ORDERS} is new" in str(error)
    assert lake.rows() == {1: (10, "0000"), 2: (20, "0000")}
    lake.restart()
    found = lake.bump()
    assert (found[ORDERS, 2], found[ORDERS, 0]) == ((0, "partition is new"), (901, "bronze ends here"))
    assert lake.error(flat(1, 2, 21, partition=2), flat(901, 3, 30)) is None
    assert lake.rows() == {1: (11, "0001"), 2: (21, "0001"), 3: (30, "0001")}
    assert lake.rebuilt().seqs() == lake.seqs()
    assert isinstance(lake.error(flat(0, 1, 12, partition=3)), PartitionsGrew)


def test_two_topics_that_only_offsets_order_do_not_share_a_table(lake: Silver) -> None:
    """C9, Q8: a row that moves between partitions of PostgreSQL's is deleted in one topic and inserted in the other.
    Once one topic carries the table, a new epoch goes on.
    """
    other = "s.shop.orders_2"
    assert lake.error(flat(0, 1, 10), flat(1, 2, 20)) is None
    moved = replace(flat(0, 1, 11), topic=other)
    error = lake.error(moved)
    assert error is not None
    assert f"{ORDERS} and {other} carry the table" in str(error)
    assert lake.rows() == {1: (10, "0000"), 2: (20, "0000")}
    lake.restart()
    lake.bump()
    assert lake.error(flat(2, 1, 12)) is None
    assert lake.rows() == {1: (12, "0001"), 2: (20, "0000")}
    assert lake.error(replace(flat(1, 1, 13), topic=other)) is not None


def test_shards_that_only_offsets_order_share_a_table(exact: SparkSession, tmp_path: Path) -> None:
    """Their rows have keys of their own."""
    shards = {"shards": r"shop_[12]\.orders", "truncate": "fail", "transform": Transform(shard="shop")}
    lake = Silver(exact, tmp_path, declared=shards)
    records = [replace(flat(0, 1, at, __db=f"shop_{at}"), topic=f"s.shop_{at}.orders") for at in (1, 2)]
    assert lake.error(*records) is None


def test_partitions_do_not_matter_where_positions_order(lake: Silver) -> None:
    """C7: a key that moved to another partition goes on there."""
    lake.take(change(900, 1, 10, 1000, 0))
    assert lake.error(change(2, 1, 11, 2000, 10, partition=4)) is None
    assert lake.rows() == {1: (11, "0000")}


def test_a_truncate_by_offset_is_applied_in_a_single_partition_alone(lake: Silver) -> None:
    """T4: among several nothing says which rows came before it: it is a dead letter; one partition has an order."""

    def single(offset: int, key: int, value: int) -> Record:
        return replace(flat(offset, key, value, __table="items"), topic=ITEMS)

    def truncate(topic: str, table: str) -> Record:
        return record(topic, 1, None, {"__op": "t", "__table": table, "__db": "shop"})

    lake.take(flat(0, 1, 10), flat(0, 2, 20, partition=1), single(0, 1, 10))
    account = lake.take(truncate(ORDERS, "orders"), truncate(ITEMS, "items"))["s/shop.orders"]
    assert (account.read, account.dead_lettered, account.applied) == (1, 1, 0)
    letters = lake.format.read(lake.spark, lake.at.lake.dead_letters("s")).collect()
    assert [(row["topic"], row["offset"], row["reason"]) for row in letters] == [(ORDERS, 1, "truncate_unordered")]
    lake.take(single(2, 2, 20))
    assert lake.rows() == {1: (10, "0000"), 2: (20, "0000")}
    assert lake.rows("shop.items") == {2: (20, "0000")}


def test_the_sources_time_orders_where_it_is_asked_to(exact: SparkSession, tmp_path: Path) -> None:
    """Q9: the newest time wins, then the offset; a snapshot row too; the run warns once of what is weaker."""
    lake = Silver(exact, tmp_path, "source.ts_ms")
    first = lake.take(change(0, 1, 10, 2000, 50), change(1, 1, 11, 3000, 40), change(2, 2, 20, 100, 60))
    assert "source.ts_ms" in " ".join(first["s/shop.orders"].warnings)
    second = lake.take(change(3, 2, 21, 90, 60), change(4, 1, 12, 9000, 45, op="r"))
    assert second["s/shop.orders"].warnings == ()
    assert lake.rows() == {1: (10, "0000"), 2: (21, "0000")}
    assert lake.seqs()[2] == f"0000{NOON + 60000:020x}{0:016x}{3:016x}"
    keyless = replace(change(5, 1, 9, 3000, 30), key=None)
    assert lake.take(keyless)["s/shop.orders"].dead_lettered == 1
    lake.declared = {"keys": ("id",)}
    lake.restart("position")
    error = lake.error(change(6, 1, 13, 9100, 70))
    tried = retry.retry(exact, lake.at, LetterFilter())[0].error
    for told in (error, tried):
        assert "the table is ordered by positions now, but its rows were ordered by source.ts_ms" in str(told)
    assert lake.rows()[1] == (10, "0000")
    lake.restart("source.ts_ms")
    assert lake.error() is None


@pytest.mark.parametrize("is_named", [True, False], ids=["named", "by an earlier checkout"])
def test_a_truncate_of_another_order_takes_no_rows(lake: Silver, is_named: bool) -> None:
    """Q9, T1: a table that was removed, and is built again in another order, begins with its own truncates alone."""
    lake.take(change(0, 1, 10, 1000, 50), record(ORDERS, 1, None, envelope("t", pos=1100, ts_ms=NOON + 51_000)))
    lake.take(change(2, 2, 20, 1200, 60))
    place = lake.at.lake.truncates("s", "shop.orders")
    if not is_named:
        lake.control.put(place, {"watermark": lake.control.get(place)["watermark"]})
    lake.format.drop(lake.spark, lake.at.lake.silver("s", "shop.orders"))
    lake.restart("source.ts_ms")
    lake.take(change(3, 3, 30, 1300, 70))
    assert lake.rows() == {2: (20, "0000"), 3: (30, "0000")}
    lake.take(change(4, 1, 11, 1400, 40))
    assert sorted(lake.rows()) == [2, 3]


def test_a_history_of_another_order_is_no_history_of_the_table(lake: Silver) -> None:
    """Q9: a table that was removed is not built again beside it, whether it is kept or not; without it, it is."""
    lake.declared = {"stored_as_scd_type": 2}
    lake.restart()
    lake.take(change(0, 1, 10, 1000, 50), change(1, 1, 11, 1100, 60))
    lake.format.drop(lake.spark, lake.at.lake.silver("s", "shop.orders"))
    history = lake.at.lake.history("s", "shop.orders")
    for kept in (2, 1):
        lake.declared = {"stored_as_scd_type": kept}
        lake.restart("source.ts_ms")
        error = lake.error()
        assert "now, but its history was ordered by position" in str(error)
        assert history.location in str(error)
    lake.format.drop(lake.spark, history)
    assert lake.error() is None
    assert lake.rows() == {1: (11, "0000")}


def test_a_table_ordered_by_time_says_so_to_its_readers(exact: SparkSession, tmp_path: Path) -> None:
    """Q9: the flag is in the table's own properties, whether it was made with it or not."""
    lake = Silver(exact, tmp_path, "source.ts_ms", format=DeltaFormat())
    place = lake.at.lake.silver("s", "shop.orders").location
    for number in range(2):
        lake.take(change(number, 1, 10 + number, 2000 + number, 50 + number))
        told: dict[str, Any] = {
            row["key"]: row["value"] for row in exact.sql(f"SHOW TBLPROPERTIES delta.`{place}`").collect()
        }
        assert told["replicator.sequence_by"] == "source.ts_ms"
        exact.sql(f"ALTER TABLE delta.`{place}` UNSET TBLPROPERTIES ('replicator.sequence_by')")
    assert lake.rows() == {1: (11, "0000")}


def test_partitions_that_contradict_each_other_at_one_place_are_told(lake: Silver) -> None:
    """Q11: the same change from another partition is a duplicate; another one is an alarm, and `_seq` decides."""
    first = change(0, 1, 10, 1000, 0), change(1, 2, 20, 1100, 1)
    same = change(0, 1, 10, 1000, 0, partition=1)
    assert lake.take(*first, same)["s/shop.orders"].warnings == ()
    other = change(1, 3, 30, 1200, 2, partition=1), change(2, 3, 31, 1200, 2), change(3, 2, 21, 1300, 3)
    [told] = lake.take(*other)["s/shop.orders"].warnings
    assert "cross_partition_tie" in told
    assert "key (3)" in told
    assert {key: value for key, (value, _) in lake.rows().items()} == {1: 10, 2: 21, 3: 31}


def test_a_row_of_a_snapshot_contradicts_at_the_place_that_it_gets(lake: Silver) -> None:
    """Q11 with Q5: its own position is another one, below what its partition has reached."""
    changes = change(0, 5, 50, 1200, 0), change(0, 6, 60, 1200, 1, partition=1)
    row = change(1, 5, 51, 900, 2, op="r", snapshot="true", partition=1)
    [told] = lake.take(*changes, row)["s/shop.orders"].warnings
    assert "cross_partition_tie" in told
    assert "key (5)" in told
