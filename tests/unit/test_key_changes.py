"""Rows that change their key, through bronze and silver in memory, however the batches are cut (debezium.md C5, M7)."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from tests.builders import UNSENT, Record, bronze, record

pytestmark = pytest.mark.spark

TOPIC = "p.public.t"
Live = dict[int, tuple[Any, Any]]


@dataclass
class History:
    """Events of one PostgreSQL table (id, a, b) as Debezium writes them, at growing LSNs."""

    records: list[Record]
    tx: int = 1

    def add(self, op: str, key: int, before: Any = None, after: Any = None, **moved: int) -> None:
        """One record; ``newkey`` and ``oldkey`` are the headers of a key change, at the LSN of the record before."""
        offset = len(self.records)
        lsn = 1000 + 10 * offset - (10 if "oldkey" in moved else 0)
        source = {"connector": "postgresql", "name": "p", "db": "d", "schema": "public", "table": "t", "ts_ms": 1}
        source |= {"txId": self.tx, "lsn": lsn, "sequence": json.dumps([str(self.tx * 500), str(lsn)])}
        value = {"before": before, "after": after, "source": source, "op": op}
        headers = tuple((f"__debezium.{name}", json.dumps({"id": other}).encode()) for name, other in moved.items())
        self.records.append(record(TOPIC, offset, {"id": key}, value, headers=headers))

    def move(self, old: int, new: int, after: tuple[Any, Any], before: tuple[Any, Any] = (None, None)) -> None:
        """A key change: the delete of the old key and the insert of the new one."""
        self.add("d", old, row(old, *before), newkey=new)
        self.add("c", new, None, row(new, *after), oldkey=old)


def row(key: int, a: Any, b: Any) -> dict[str, Any]:
    return {"id": key, "a": a, "b": b}


def history() -> History:
    return History([])


class Table:
    """Silver of that table in memory."""

    def __init__(self, spark: Any, folder: Path, key: str = "int") -> None:
        columns = (Column("id", key), Column("a", "int"), Column("b", "string"))
        source = SourceSpec("p", ".*", tables=(Declaration("public.t", columns),))
        memory = MemoryFormat()
        self.spark, self.at = spark, Refinement(source, memory, memory, MemoryControl(), Lake(str(folder)))
        self.ignored: dict[str, int] = {}

    def take(self, records: Sequence[Record]) -> None:
        """One batch."""
        self.at.bronze.append(bronze(self.spark, records), self.at.lake.bronze("p"), None)
        for account in silver.refine(self.spark, self.at):
            assert (account.residue, account.error) == (0, None)
            for rule, count in account.ignored.items():
                self.ignored[rule] = self.ignored.get(rule, 0) + count

    def rows(self) -> list[Any]:
        return self.at.silver.read(self.spark, self.at.lake.silver("p", "public.t")).collect()

    def live(self) -> Live:
        """(a, b) of the live rows."""
        return {row["id"]: (row["a"], row["b"]) for row in self.rows() if not row["_deleted"]}

    def unknown(self) -> dict[int, list[str]]:
        """Columns whose value is not known, by id."""
        return {row["id"]: sorted(row["_column_seq"]) for row in self.rows() if row["_column_seq"]}

    def reasons(self) -> list[str]:
        letters = self.at.lake.dead_letters("p")
        if self.at.bronze.version(self.spark, letters) is None:
            return []
        return [row["reason"] for row in self.at.bronze.read(self.spark, letters).collect()]


CUTS: tuple[tuple[int, ...], ...] = ((2,), (1, 2, 3))


def run(spark: Any, folder: Path, events: History, cuts: Sequence[int], key: str = "int") -> Table:
    """The history in batches that end where it is cut."""
    table = Table(spark, folder, key)
    bounds = [0, *[cut for cut in cuts if cut < len(events.records)], len(events.records)]
    for start, end in pairwise(bounds):
        table.take(events.records[start:end])
    return table


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_a_row_keeps_its_large_value_when_its_key_changes(exact: Any, tmp_path: Path, cuts: Sequence[int]) -> None:
    """M7: what was not sent is what the row held under its old key, in this batch, in silver or in bronze alone."""
    events = history()
    events.add("c", 1, None, row(1, 1, "large"))
    events.tx = 2
    events.move(1, 7, (2, UNSENT))
    table = run(exact, tmp_path, events, cuts)
    assert table.live() == {7: (2, "large")}
    assert table.unknown() == {}


@pytest.mark.parametrize("cuts", [(), (1,)], ids=str)
def test_a_decimal_key_is_another_text_in_the_header(exact: Any, tmp_path: Path, cuts: Sequence[int]) -> None:
    """C6, measured Z2.4: base64 in the key, a number in the header; keys are equal when their values are."""
    events = history()
    events.add("c", 1, None, row(1, 1, "large"))
    events.tx = 2
    events.move(1, 7, (2, UNSENT))
    events.records = [in_base64(each) for each in events.records]
    table = run(exact, tmp_path, events, cuts, "decimal(6,3)")
    assert table.live() == {Decimal("0.007"): (2, "large")}
    assert table.unknown() == {}


def in_base64(told: Record) -> Record:
    """The record with its key in thousandths, as `decimal.handling.mode=precise` writes it."""

    def written(number: int) -> str:
        return base64.b64encode(bytes([number])).decode()

    key, value = json.loads(told.key or ""), json.loads(told.value or "")
    for image in ("before", "after"):
        if value[image] is not None:
            value[image]["id"] = written(value[image]["id"])
    headers = tuple((name, b'{"id":0.00%d}' % json.loads(text)["id"]) for name, text in told.headers)
    return record(TOPIC, told.offset, {"id": written(key["id"])}, value, headers=headers)


@pytest.mark.parametrize("cuts", [(), (1, 2, 3)], ids=str)
def test_a_value_follows_its_row_through_a_chain_of_keys(exact: Any, tmp_path: Path, cuts: Sequence[int]) -> None:
    """M7: on through the old key's own old key; each change in a transaction of its own."""
    events = history()
    events.add("c", 1, None, row(1, 1, "large"))
    for number, (old, new) in enumerate([(1, 2), (2, 3)]):
        events.tx = 2 + number
        events.move(old, new, (number, UNSENT))
    table = run(exact, tmp_path, events, cuts)
    assert table.live() == {3: (1, "large")}


def test_a_value_that_no_record_held_stays_unknown_and_flagged(exact: Any, tmp_path: Path) -> None:
    """E5: NULL never passes for knowledge."""
    events = history()
    events.move(1, 7, (2, UNSENT))
    table = run(exact, tmp_path, events, ())
    assert table.live() == {7: (2, None)}
    assert table.unknown() == {7: ["b"]}


def swap() -> History:
    """Two rows exchange their keys in one transaction; the source sends d1 c2 d2 c1 (measured Z2.5)."""
    events = history()
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 2, None, row(2, 20, "two"))
    events.tx = 2
    events.move(1, 2, (10, "one"), before=(10, "one"))
    events.move(2, 1, (20, "two"), before=(20, "two"))
    return events


@pytest.mark.parametrize("cuts", [(), (4,), (3, 4, 5)], ids=str)
def test_two_rows_may_swap_keys_in_one_transaction(exact: Any, tmp_path: Path, cuts: Sequence[int]) -> None:
    """C5: the second delete takes away the key's former owner, not the row that has just come."""
    table = run(exact, tmp_path, swap(), cuts)
    assert table.live() == {1: (20, "two"), 2: (10, "one")}
    assert table.ignored == {"key_swap": 1}
    assert table.reasons() == []


@pytest.mark.parametrize("cuts", [(3,)], ids=str)
def test_a_row_that_moves_twice_in_one_transaction_leaves_the_key_between(
    exact: Any, tmp_path: Path, cuts: Sequence[int]
) -> None:
    """C5: the same image moved on, so the delete is one."""
    events = history()
    events.add("c", 1, None, row(1, 10, "one"))
    events.tx = 2
    events.move(1, 2, (10, "one"), before=(10, "one"))
    events.move(2, 3, (10, "one"), before=(10, "one"))
    assert run(exact, tmp_path / "full", events, cuts).live() == {3: (10, "one")}


def test_a_key_has_as_many_rows_as_came_and_did_not_leave(exact: Any, tmp_path: Path) -> None:
    """C5: equal rows are two rows, a row may be written on its way, a truncate leaves none; all of it redelivered."""
    events = history()
    for key in (1, 2, 5):  # 1 and 2 look the same
        events.add("c", key, None, row(key, 10, "one"))
    events.add("t", 0)
    events.records[-1] = Record(TOPIC, 3, None, events.records[-1].value)
    for key in (1, 2):
        events.add("c", key, None, row(key, 10, "one"))
    events.tx = 2
    for old, new in ((1, 2), (2, 1)):
        events.move(old, new, (10, "one"), before=(10, "one"))
    events.add("c", 3, None, row(3, 30, "three"))
    events.move(3, 4, (30, "three"), before=(30, "three"))
    events.add("u", 4, row(4, 30, "three"), row(4, 31, "three"))
    events.move(4, 5, (31, "three"), before=(31, "three"))
    events.move(5, 6, (31, "three"))  # the key 5 was free: the truncate took its row
    again = [Record(TOPIC, r.offset + 20, r.key, r.value, headers=r.headers) for r in events.records[6:]]
    table = run(exact, tmp_path, History([*events.records, *again]), (9, len(events.records)))
    assert table.reasons() == []
    assert table.live() == {1: (10, "one"), 2: (10, "one"), 6: (31, "three")}


def test_without_an_image_of_the_old_row_only_a_free_key_is_judged(exact: Any, tmp_path: Path) -> None:
    """C5 under the default replica identity: a key that nobody had is left by its newcomer; else it is said aloud."""
    events = history()
    events.add("c", 1, None, row(1, 10, "one"))
    events.tx = 2
    events.move(1, 2, (10, "one"))
    events.move(2, 3, (10, "one"))
    chain = run(exact, tmp_path / "chain", events, ())
    assert (chain.live(), chain.reasons()) == ({3: (10, "one")}, [])

    events = history()
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 2, None, row(2, 20, "two"))
    events.tx = 2
    events.move(1, 2, (10, "one"))
    events.move(2, 1, (20, "two"))
    swapped = run(exact, tmp_path / "swap", events, ())
    assert swapped.reasons() == ["key_swap_ambiguous"]
    assert swapped.live() == {1: (20, "two"), 2: (10, "one")}


@pytest.mark.parametrize("cuts", [(), (7,)], ids=str)
def test_a_chain_of_keys_may_be_sent_again(exact: Any, tmp_path: Path, cuts: Sequence[int]) -> None:
    """J1, C5, M7: copies of a key change are no former owner of its key, and hide no value of the row that moved."""
    events = history()
    events.add("c", 1, None, row(1, 10, "large"))
    events.tx = 2
    events.move(1, 2, (10, UNSENT))
    events.move(2, 3, (10, UNSENT))
    tail = events.records[1:]
    events.records += [replace(each, offset=each.offset + len(tail)) for each in tail]
    table = run(exact, tmp_path, events, cuts)
    assert (table.live(), table.reasons(), table.unknown()) == ({3: (10, "large")}, [], {})


def test_a_delete_without_a_key_takes_it_from_before(exact: Any, tmp_path: Path) -> None:
    """B4: the Kafka key, else ``before``; with neither it is a dead letter."""
    events = history()
    events.add("c", 1, None, row(1, 10, "one"))
    events.add("c", 2, None, row(2, 20, "two"))
    events.add("d", 1, row(1, None, None))
    events.add("d", 2)
    records = [*events.records[:2], *[Record(TOPIC, r.offset, None, r.value) for r in events.records[2:]]]
    table = Table(exact, tmp_path)
    table.take(records)
    assert table.live() == {2: (20, "two")}
    assert table.reasons() == ["key_missing"]
