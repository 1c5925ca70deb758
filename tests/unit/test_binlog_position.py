"""What places a change of MySQL's or MariaDB's where the user says that it is not file and position (Q4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.debezium import seq_format
from replicator.formats.delta import DeltaFormat
from tests.builders import Record, record
from tests.unit.test_order_stops import ORDERS, Silver, change

pytestmark = pytest.mark.spark


def maria(offset: int, key: int, value: int, gtid: str | None, file: int, pos: int, **more: Any) -> Record:
    """A change of MariaDB's; ``second`` of its clock follows the offset."""
    place: dict[str, Any] = {"file": f"binlog.{file:06}", "gtid": gtid, "connector": "mariadb"}
    return change(offset, key, value, pos, more.pop("second", 10 * offset), **place, **more)


def flattened(offset: int, key: int, value: int, gtid: str, file: int, pos: int) -> Record:
    """The same as `connect apply` has the connector flatten it."""
    place = {"__file": f"binlog.{file:06}", "__pos": pos, "__row": 0, "__gtid": gtid, "__source_ts_ms": 1000 * offset}
    row = {"id": key, "v": value, "__op": "u", "__db": "shop", "__table": "orders", "__deleted": "false"}
    return record(ORDERS, offset, {"id": key}, row | place)


@pytest.fixture
def lake(exact: SparkSession, tmp_path: Path) -> Silver:
    return Silver(exact, tmp_path, binlog_position="gtid")


def test_another_server_takes_over_and_its_binlog_begins_anew(lake: Silver) -> None:
    """The GTID goes on where file and position fall: the newer change wins, and nothing is taken for a rewind. A
    snapshot row, which has no GTID, gives way to the first change; what is delivered again changes nothing.
    """
    snapshot = maria(0, 1, 10, None, 9, 5000, op="r"), maria(1, 2, 20, None, 9, 5000, op="r")
    before = maria(2, 1, 11, "0-1-5", 9, 6000), maria(3, 1, 12, "0-1-5", 9, 6100)
    after = maria(4, 1, 13, "0-2-6", 1, 400), maria(5, 2, 21, "0-2-7", 1, 900)
    lake.take(*snapshot, *before)
    assert lake.rows() == {1: (12, "0000"), 2: (20, "0000")}
    lake.take(*after)
    assert lake.rows() == {1: (13, "0000"), 2: (21, "0000")}
    assert lake.seqs()[1] == f"0000{6:020x}{0:016x}{4:016x}"
    lake.take(maria(6, 1, 11, "0-1-5", 9, 6000), maria(7, 1, 12, "0-1-5", 9, 6100))
    assert lake.rows() == {1: (13, "0000"), 2: (21, "0000")}
    assert lake.rebuilt().rows() == lake.rows()


def test_positions_within_a_transaction_are_those_of_its_server(exact: SparkSession, tmp_path: Path) -> None:
    """Another server has a transaction at other positions: what it sends again of one, also behind one whose clock
    says less, is no rewind and no state of its own, and the rest of one that broke off wins.
    """
    lake = Silver(exact, tmp_path, binlog_position="gtid", declared={"stored_as_scd_type": 2})
    sent = [maria(0, 1, 10, "0-1-5", 9, 6000, second=9), maria(1, 1, 11, "0-1-5", 9, 6100, second=9)]
    lake.take(*sent, maria(2, 2, 20, "0-1-6", 9, 6300, second=4), maria(3, 3, 30, "0-1-7", 9, 6400, second=10))
    states = lake.states()
    again = [maria(4, 1, 10, "0-1-5", 1, 400, second=9), maria(5, 1, 11, "0-1-5", 1, 500, second=9)]
    lake.take(*again, maria(6, 2, 20, "0-1-6", 1, 700, second=4), maria(7, 3, 31, "0-1-7", 1, 900, second=10))
    assert lake.rows() == {1: (11, "0000"), 2: (20, "0000"), 3: (31, "0000")}
    assert lake.states() == states


def test_flattened_rows_have_the_gtid_for_their_place(exact: SparkSession, tmp_path: Path) -> None:
    """They do not name their connector: with `gtid` it is MariaDB's."""
    lake = Silver(exact, tmp_path, binlog_position="gtid", declared={"deletes": "rewrite"})
    lake.take(flattened(0, 1, 10, "0-1-5", 9, 6000))
    lake.take(flattened(1, 1, 11, "0-2-6", 1, 400))
    assert lake.rows() == {1: (11, "0000")}
    assert lake.seqs()[1] == f"0000{6:020x}{0:016x}{1:016x}"


def test_by_file_and_position_the_same_stops_the_table(exact: SparkSession, tmp_path: Path) -> None:
    """The negative control: without the setting the other server's changes stand below the first one's."""
    lake = Silver(exact, tmp_path)
    lake.take(maria(2, 1, 11, "0-1-5", 9, 6000))
    assert "the source was rewound" in str(lake.error(maria(4, 1, 13, "0-2-6", 1, 400)))


@pytest.mark.parametrize("together", [True, False])
def test_two_domains_have_no_order_and_stop_the_table(lake: Silver, together: bool) -> None:
    """In one batch or in two, and no other than that table; behind a new epoch a single domain goes on."""
    first, second = maria(0, 1, 10, "0-1-5", 9, 6000), maria(1, 1, 11, "7-1-2", 9, 6100)
    if not together:
        lake.take(first)
        first = maria(2, 1, 10, "7-1-3", 9, 6200)
    error = lake.error(*sorted([first, second], key=lambda each: each.offset))
    assert "GTID domains 0 and 7" in str(error)
    assert "replicator epoch bump s" in str(error)
    if not together:
        lake.bump(p0=1)
        assert lake.error() is None
        assert lake.rows() == {1: (10, "0001")}


def test_what_places_changes_may_not_change_under_a_table(exact: SparkSession, tmp_path: Path) -> None:
    """Positions of two kinds have no order; the table tells its readers which it has."""
    lake = Silver(exact, tmp_path, binlog_position="gtid", format=DeltaFormat())
    lake.take(maria(0, 1, 10, "0-1-5", 9, 6000))
    lake.take(maria(1, 1, 11, "0-1-6", 9, 6100))
    place = lake.at.lake.silver("s", "shop.orders").location
    told = {row["key"]: row["value"] for row in exact.sql(f"SHOW TBLPROPERTIES delta.`{place}`").collect()}
    assert told["replicator.sequence_by"] == "gtid"
    lake.restart(binlog_position="file_pos")
    assert "the table is ordered by positions now, but its rows were ordered by gtid" in str(
        lake.error(maria(2, 1, 12, "0-1-7", 9, 6200))
    )


def test_a_change_without_gtid_is_a_dead_letter(lake: Silver) -> None:
    """Q7: never guessed from file and position."""
    account = lake.take(maria(0, 1, 10, "0-1-5", 9, 6000), maria(1, 1, 11, None, 9, 6100))["s/shop.orders"]
    assert (account.applied, account.dead_lettered) == (1, 1)


def test_rows_of_one_event_have_an_order_where_the_user_says_so(exact: SparkSession, tmp_path: Path) -> None:
    """A replay passes the older row of an event without a trace; by file and position it would show it for a time."""
    lake = Silver(exact, tmp_path, binlog_position="file_pos_row")
    rows = change(0, 1, 10, 100, 1, row=0), change(1, 1, 11, 100, 1, row=1)
    lake.take(*rows)
    lake.take(change(2, 1, 10, 100, 1, row=0))
    assert lake.rows() == {1: (11, "0000")}
    assert lake.seqs()[1] == f"0000{1:08x}{100:012x}{1:016x}{1:016x}"
    plain = Silver(exact, tmp_path / "plain")
    plain.take(*rows)
    plain.take(change(2, 1, 10, 100, 1, row=0))
    assert plain.rows() == {1: (10, "0000")}


def test_a_place_is_told_in_the_terms_of_its_order() -> None:
    """What `explain` shows."""
    seq = f"0000{6:020x}{0:016x}{4:016x}"
    assert seq_format.describe(seq, "mariadb", "gtid") == "gtid sequence 6, offset 4"
    seq = f"0000{1700000000000:020x}{0:016x}{4:016x}"
    assert seq_format.describe(seq, "mysql", "source.ts_ms") == "ts_ms 1700000000000, offset 4"
