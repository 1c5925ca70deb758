"""Dead letters: buried once, looked at, tried again in order, given up with a trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import dead_letters
from replicator.operate.dead_letters import LetterFilter
from replicator.operate.retry import retry
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.table.dead_letters import write
from tests.builders import Record, bronze, envelope, made, record

pytestmark = pytest.mark.spark

ORDERS = "s.shop.orders"
BIG = 1 << 40


@dataclass
class Shop:
    """A source's silver."""

    spark: SparkSession
    at: Refinement

    def declare(self, kind: str) -> None:
        """The type of column v from now on."""
        tables = (Declaration("shop.orders", (Column("id", "int"), Column("v", kind))),)
        self.at = replace(self.at, source=SourceSpec("s", ".*", tables=tables))

    def arrive(self, *records: Record) -> None:
        self.at.bronze.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)

    def take(self, *records: Record) -> dict[str, Account]:
        """One tick."""
        self.arrive(*records)
        return {account.table: account for account in silver.refine(self.spark, self.at)}

    def rows(self) -> dict[int, tuple[Any, bool]]:
        rows = self.at.silver.read(self.spark, self.at.lake.silver("s", "shop.orders")).collect()
        return {row["id"]: (row["v"], row["_deleted"]) for row in rows}

    def letters(self, *, dropped: bool = False) -> dict[int, Any]:
        rows = dead_letters.load_letters(self.spark, self.at, dropped=dropped).collect()
        assert len({row["offset"] for row in rows}) == len(rows)
        return {row["offset"]: row for row in rows}

    def progress(self) -> Any:
        identity = str(self.at.bronze.identity(self.spark, self.at.lake.bronze("s")))
        return self.at.silver.progress(self.spark, self.at.lake.silver("s", "shop.orders"), identity)


@pytest.fixture
def shop(exact: SparkSession, tmp_path: Path) -> Shop:
    """In Delta."""
    return opened(exact, tmp_path, DeltaFormat(), JsonControl(exact))


@pytest.fixture
def quick_shop(exact: SparkSession, tmp_path: Path) -> Shop:
    """In memory, where the format makes no difference."""
    return opened(exact, tmp_path, MemoryFormat(), MemoryControl())


def opened(exact: Any, folder: Path, tables: Any, control: Any) -> Shop:
    made = Shop(exact, Refinement(SourceSpec("s", ".*"), tables, tables, control, Lake(str(folder))))
    made.declare("int")
    return made


def change(offset: int, key: int, v: Any, pos: int, op: str = "c") -> Record:
    return record(ORDERS, offset, {"id": key}, envelope(op, {"id": key, "v": v}, pos=pos))


def test_letters_are_tried_again_in_order_and_leave_when_they_could_be_applied(shop: Shop) -> None:
    """R4: a retried change joins at its own `_seq`; the second retry is a no-op; no progress moves."""
    shop.take(change(0, 1, BIG, 10), change(1, 2, BIG, 20), change(2, 1, 7, 30, "u"), change(3, 3, "x", 40))
    first = shop.letters()
    assert {at: (row["reason"], row["detail"], row["table"]) for at, row in first.items()} == {
        0: ("integer_overflow", "v", "shop.orders"),
        1: ("integer_overflow", "v", "shop.orders"),
        3: ("type_mismatch", "v", "shop.orders"),
    }
    assert shop.rows() == {1: (7, False)}
    shop.declare("bigint")
    shop.arrive(change(4, 4, 4, 50))
    before = shop.progress()
    [account] = retry(shop.spark, shop.at, LetterFilter(table="orders"))
    told = (account.read, account.applied, account.superseded, account.dead_lettered, account.error)
    assert told == (3, 1, 1, 1, None)
    assert shop.rows() == {1: (7, False), 2: (BIG, False)}
    assert shop.progress() == before
    assert {at: row["first_seen"] for at, row in shop.letters().items()} == {3: first[3]["first_seen"]}
    [again] = retry(shop.spark, shop.at, LetterFilter(reason="type_mismatch"))
    assert (again.read, again.dead_lettered) == (1, 1)
    assert retry(shop.spark, shop.at, LetterFilter(reason="integer_overflow")) == []
    [tick] = silver.refine(shop.spark, shop.at)
    assert (tick.read, tick.applied) == (1, 1)
    assert shop.rows()[4] == (4, False)


def test_a_table_that_was_never_written_is_built_and_its_letters_leave(quick_shop: Shop) -> None:
    """Where all records were dead letters nothing has recorded how far it had read: a tick does."""
    quick_shop.take(change(0, 1, BIG, 10))
    assert len(quick_shop.letters()) == 1
    quick_shop.declare("bigint")
    assert [account.error for account in retry(quick_shop.spark, quick_shop.at, LetterFilter())] == [None]
    assert quick_shop.rows() == {1: (BIG, False)}
    assert quick_shop.letters() == {}
    assert silver.refine(quick_shop.spark, quick_shop.at) == []


def test_letters_of_a_batch_that_was_refused_leave_as_its_error_says(quick_shop: Shop) -> None:
    """R5: the table takes the whole batch once it is declared right; the letters that were told meanwhile stay until a
    retry, which changes no row.
    """
    batch = [change(offset, offset, f"x{offset}", 10 * offset + 10) for offset in range(100)]
    error = quick_shop.take(*batch)["s/shop.orders"].error
    assert "`replicator dead-letters retry`" in str(error)
    quick_shop.declare("string")
    assert quick_shop.take()["s/shop.orders"].applied == 100
    rows = quick_shop.rows()
    assert len(quick_shop.letters()) == 100
    [account] = retry(quick_shop.spark, quick_shop.at, LetterFilter())
    assert (account.error, account.dead_lettered) == (None, 0)
    assert quick_shop.letters() == {}
    assert quick_shop.rows() == rows


def test_a_retried_snapshot_row_stands_where_it_stood(quick_shop: Shop) -> None:
    """Q5: above all that came before it in its partition, though that is not read again."""
    quick_shop.take(change(0, 1, 1, 50), change(1, 1, BIG, 40, "r"), change(2, 2, 2, 60))
    assert quick_shop.rows() == {1: (1, False), 2: (2, False)}
    buried = quick_shop.letters()[1]["seq"]
    quick_shop.declare("bigint")
    retry(quick_shop.spark, quick_shop.at, LetterFilter())
    assert quick_shop.rows() == {1: (BIG, False), 2: (2, False)}
    stored = (
        quick_shop.at.silver.read(quick_shop.spark, quick_shop.at.lake.silver("s", "shop.orders"))
        .where("id = 1")
        .first()
    )
    assert stored["_seq"] == buried


def test_a_crash_before_the_letters_left_is_repaired_by_the_next_retry(quick_shop: Shop) -> None:
    """The merge comes first: what is applied twice is as once."""
    quick_shop.take(change(0, 1, BIG, 10), change(1, 2, 2, 20))
    rows = dead_letters.load_letters(quick_shop.spark, quick_shop.at)
    quick_shop.declare("bigint")
    retry(quick_shop.spark, quick_shop.at, LetterFilter())
    applied = quick_shop.rows()
    quick_shop.at.bronze.append(rows, quick_shop.at.lake.dead_letters("s"), None)
    [account] = retry(quick_shop.spark, quick_shop.at, LetterFilter())
    assert (account.read, account.applied, account.superseded) == (1, 0, 1)
    assert (quick_shop.rows(), quick_shop.letters()) == (applied, {})


def test_a_letter_is_buried_once_and_keeps_its_first_date(quick_shop: Shop) -> None:
    """K-S5: the same record again adds no row and changes none, whatever else the batch brings."""
    quick_shop.take(change(0, 1, "x", 10), change(1, 2, 2, 20), record(ORDERS, 2, {"id": 3}, "{oops"))
    first = quick_shop.letters()
    quick_shop.at = replace(quick_shop.at, silver=MemoryFormat())
    quick_shop.take(change(3, 4, "y", 30))
    again = quick_shop.letters()
    assert {at: again[at] for at in first} == first
    assert {at: row["reason"] for at, row in again.items()} == {
        0: "type_mismatch",
        2: "malformed_json",
        3: "type_mismatch",
    }
    assert again[0]["first_seen"] is not None
    assert again[0]["seq"] is not None


def test_dropped_letters_leave_a_trace_and_do_not_come_back(shop: Shop) -> None:
    """What was given up, when and by which filter stays findable; the record is not buried for that reason again."""
    shop.take(change(0, 1, "x", 10), change(1, 2, BIG, 20), change(2, 3, 3, 30))
    assert dead_letters.drop(shop.spark, shop.at, LetterFilter(reason="decimal_scale")) == 0
    assert dead_letters.drop(shop.spark, shop.at, LetterFilter(table="shop.orders", reason="type_mismatch")) == 1
    [gone] = shop.letters(dropped=True).values()
    assert (gone["topic"], gone["partition"], gone["offset"], gone["reason"]) == (ORDERS, 0, 0, "type_mismatch")
    assert (gone["filter"], gone["dropped_at"] is not None) == ("table=shop.orders reason=type_mismatch", True)
    assert set(shop.letters()) == {1}
    letters = dead_letters.load_letters(shop.spark, shop.at, dropped=True).drop("dropped_at", "filter", "first_seen")
    write(shop.spark, shop.at, letters)
    assert set(shop.letters()) == {1}
    [count] = dead_letters.counts(shop.spark, shop.at, LetterFilter(), dropped=True)
    assert (count.table, count.reason, count.letters) == ("shop.orders", "type_mismatch", 1)
    found = dead_letters.find(shop.spark, [shop.at], ORDERS, 0, 0)
    assert (found.letter, found.dropped["reason"]) == (None, "type_mismatch")
    assert found.record["key"] == '{"id":1}'


def test_letters_of_an_earlier_release_are_read_and_added_to(shop: Shop) -> None:
    """They have no topic id and no date: NULL."""
    old = "topic STRING, partition INT, offset BIGINT, table STRING, seq STRING, reason STRING, detail STRING"
    row = (ORDERS, 0, 9, "shop.orders", None, "key_missing", None)
    shop.at.bronze.append(made(shop.spark, [row], old), shop.at.lake.dead_letters("s"), None)
    assert shop.letters()[9]["first_seen"] is None
    shop.take(change(0, 1, "x", 10), change(1, 2, 2, 20))
    assert {at: row["first_seen"] is None for at, row in shop.letters().items()} == {9: True, 0: False}
