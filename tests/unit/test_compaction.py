"""B5: tombstones that Kafka's log compaction left alone delete their rows, and all others say nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from replicator.spec import Declaration
from replicator.transforms import compaction
from tests.builders import Record, record, wrapped
from tests.unit.test_order_stops import ITEMS, ORDERS, Silver, change, flat

pytestmark = pytest.mark.spark

COMPACTED = {"compacted_topic": True}
KEY = {"type": "struct", "fields": [{"field": "id", "type": "int32", "optional": False}]}
SEED, LOGS = 11, 80


@pytest.fixture
def lake(exact, tmp_path: Path) -> Silver:
    return Silver(exact, tmp_path, declared=COMPACTED)


def tombstone(offset: int, key: int, topic: str = ORDERS) -> Record:
    return record(topic, offset, {"id": key}, None)


def values(lake: Silver) -> dict[int, Any]:
    """Live rows."""
    return {key: value for key, (value, _) in lake.rows().items()}


def test_a_tombstone_whose_delete_was_removed_deletes_its_row(lake: Silver) -> None:
    """Behind what bronze has, or behind records of its own batch; at the place that its partition had reached (Q6)."""
    lake.take(change(0, 1, 10, 100, 0, "c"), change(1, 2, 20, 300, 1, "c"))
    accounts = lake.take(tombstone(5, 1), change(6, 3, 30, 500, 2, "c"), tombstone(9, 3))
    assert values(lake) == {2: 20}
    assert lake.seqs()[1] == f"0000{1:08x}{300:012x}{0:016x}{5:016x}"
    account = accounts["s/shop.orders"]
    assert (account.read, account.applied, account.ignored) == (3, 2, {})
    assert values(lake.rebuilt()) == {2: 20}


def test_a_tombstone_behind_its_delete_says_nothing(lake: Silver) -> None:
    """In the same batch, in a later one, and once more: its delete's place is known, and a guess would be higher."""
    lake.take(change(0, 1, 10, 100, 0, "c"), change(1, 2, 20, 200, 1, "c"), change(2, 1, 10, 300, 2, "d"))
    lake.take(tombstone(3, 1), tombstone(4, 1))
    ignored = lake.take(change(5, 2, 20, 400, 3, "d"), tombstone(6, 2))["s/shop.orders"].ignored
    assert ignored == {"tombstone": 1}
    assert lake.seqs() == {
        1: f"0000{1:08x}{300:012x}{0:016x}{2:016x}",
        2: f"0000{1:08x}{400:012x}{0:016x}{5:016x}",
    }


def test_without_the_declaration_a_tombstone_never_deletes(exact, tmp_path: Path) -> None:
    """The default, and the negative control."""
    lake = Silver(exact, tmp_path)
    lake.take(change(0, 1, 10, 100, 0, "c"))
    lake.take(tombstone(5, 1))
    assert values(lake) == {1: 10}


def test_a_row_comes_back_after_a_lone_tombstone(lake: Silver) -> None:
    """In one batch and in the next."""
    lake.take(change(0, 1, 10, 100, 0, "c"), change(1, 2, 20, 110, 0, "c"))
    lake.take(tombstone(5, 1), change(6, 1, 11, 500, 2, "c"), tombstone(7, 2))
    lake.take(change(8, 2, 21, 600, 3, "c"))
    assert values(lake) == {1: 11, 2: 21}


def test_the_keys_of_other_partitions_and_topics_are_others(lake: Silver) -> None:
    """Compaction sees one partition; what another one holds under the same text says nothing of it."""
    lake.take(change(0, 1, 10, 100, 0, "c"), change(0, 1, 10, 100, 0, "c", topic=ITEMS))
    lake.take(replace(change(0, 1, 10, 90, 0, "d"), partition=1), tombstone(5, 1), tombstone(5, 7, topic=ITEMS))
    assert values(lake) == {}
    assert {key for key, _ in lake.rows("shop.items").items()} == {1}


def test_records_of_every_shape_are_compacted_alike(lake: Silver) -> None:
    """A wrapped envelope, and rows of the mode rewrite-with-tombstone by position and by offset."""

    def upserts(at: int, value: int) -> dict[str, tuple[Any, Any]]:
        """Key and value of an upsert of each shape, by table."""
        plain, placed = {"__deleted": "false"}, {"__file": "binlog.1", "__pos": 100 + at}
        wrap = wrapped(_body(change(at, 1, value, 100 + at, at, "c", topic="s.shop.wrapped")))
        return {
            "shop.wrapped": (wrapped({"id": 1}, KEY), wrap),
            "shop.placed": ({"id": 1}, _body(flat(at, 1, value, **plain, **placed, __table="placed"))),
            "shop.counted": ({"id": 1}, _body(flat(at, 1, value, **plain, __table="counted"))),
        }

    def take(at: int, told: dict[str, tuple[Any, Any]]) -> list[dict[int, Any]]:
        """Live rows of each table behind the batch."""
        lake.take(*[record(f"s.{table}", at, key, value) for table, (key, value) in told.items()])
        return [{key: value for key, (value, _) in lake.rows(table).items()} for table in told]

    columns = lake.at.source.tables[0].columns
    declared = tuple(Declaration(table, columns, **COMPACTED) for table in upserts(0, 0))
    lake.at = replace(lake.at, source=replace(lake.at.source, tables=declared))
    assert take(0, upserts(0, 10)) == [{1: 10}] * 3
    assert take(5, {table: (key, None) for table, (key, _) in upserts(5, 0).items()}) == [{}] * 3
    assert take(6, upserts(6, 11)) == [{1: 11}] * 3


def _body(made: Record) -> Any:
    return json.loads(made.value or "null")


@dataclass
class Log:
    """A partition of a topic as a connector fills it, Kafka compacts it and we read it at three times."""

    number: int
    dice: random.Random
    live: dict[int, int] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    repeated: list[range] = field(default_factory=list)
    sent: list[tuple[int, int | None, int]] = field(default_factory=list)

    @classmethod
    def filled(cls, number: int, dice: random.Random) -> Log:
        """With changes of three keys, and sometimes their tail once more."""
        log = cls(number, dice)
        for step in range(14):
            key, pos = 10 * number + dice.randrange(3), 100 * step + 100
            gone = key in log.live and dice.random() < 0.5
            log._sends(key, None if gone else step, pos)
            if dice.random() < 0.15:
                start = len(log.records)
                for again in log.sent[-dice.randint(1, 6) :]:
                    log._sends(*again)
                log.repeated.append(range(start + 1, len(log.records)))
        return log

    def _sends(self, key: int, value: int | None, pos: int) -> None:
        offset, second = len(self.records), pos
        op = "d" if value is None else "u"
        self.records.append(change(offset, key, value or 0, pos, second, op, partition=self.number))
        if value is None:
            self.records.append(replace(tombstone(offset + 1, key), partition=self.number))
            self.live.pop(key, None)
        else:
            self.live[key] = value
        if (key, value, pos) not in self.sent:
            self.sent.append((key, value, pos))

    def read(self) -> list[list[Record]]:
        """What each of three reads finds: before each, the log up to some place was compacted. Never within what the
        connector repeated: the newest record of a key there may be older than one that was read before.
        """
        cuts = sorted(self.dice.sample(range(1, len(self.records)), 2))
        left, found = self.records, []
        for begin, end in pairwise([0, *cuts, len(self.records)]):
            clean = self.dice.choice([0, *[at for at in range(end + 1) if not any(at in r for r in self.repeated)]])
            left = _compacted(left, clean)
            found.append([each for each in left if begin <= each.offset < end])
        return found


def _compacted(records: Sequence[Record], clean: int) -> list[Record]:
    """Of the records below an offset the newest of each key."""
    newest = {each.key: each.offset for each in records if each.offset < clean}
    return [each for each in records if each.offset >= clean or newest[each.key] == each.offset]


def _read_all(lake: Silver) -> tuple[dict[int, Any], dict[int, Any]]:
    """Live rows of many logs read at three times, and what their sources hold."""
    dice = random.Random(SEED)
    logs = [Log.filled(number, dice) for number in range(LOGS)]
    for batch in zip(*[log.read() for log in logs], strict=True):
        lake.take(*[each for part in batch for each in part])
    return values(lake), {key: value for log in logs for key, value in log.live.items()}


def test_a_compacted_log_ends_as_its_source_wherever_it_is_read(lake: Silver) -> None:
    """Random logs with replays, compacted at random places between three reads; a rebuild from bronze agrees."""
    found, wanted = _read_all(lake)
    assert found == wanted
    assert values(lake.rebuilt()) == wanted


def test_by_the_letter_of_the_rule_a_repeated_delete_hides_a_later_one(
    exact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of what we add to B5: the tombstone is all that tells of the second delete."""
    first = change(0, 1, 10, 100, 0, "c"), change(1, 1, 0, 200, 1, "d"), tombstone(2, 1), change(3, 1, 11, 300, 2, "c")
    repeated, later = change(4, 1, 0, 200, 1, "d"), tombstone(9, 1)
    found = []
    for name in ("refined", "by the letter"):
        lake = Silver(exact, tmp_path / name, declared=COMPACTED)
        lake.take(*first, repeated)
        lake.take(later)
        found.append(values(lake))
        monkeypatch.setattr(compaction, "_says_nothing_new", compaction._follows_delete)
    assert found == [{}, {1: 11}]


@pytest.mark.parametrize("declared", [True, False], ids=["every tombstone deletes", "none does"])
def test_without_the_check_or_without_the_delete_rows_are_wrong(
    exact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: bool
) -> None:
    """The negative controls: a replayed delete's tombstone takes the row for good; a removed delete is missed."""
    monkeypatch.setattr(compaction, "_says_nothing_new", lambda: F.lit(False))
    found, wanted = _read_all(Silver(exact, tmp_path, declared={"compacted_topic": declared}))
    lost, left = wanted.keys() - found.keys(), found.keys() - wanted.keys()
    assert (bool(lost), bool(left)) == ((True, False) if declared else (False, True))
