"""B5: tombstones that Kafka's log compaction left alone delete their rows, and all others say nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.spec import Declaration, SourceSpec
from replicator.stages.account import Account
from replicator.transforms import lone_tombstones
from tests.builders import Record, made, record, wrapped
from tests.unit.test_order_stops import Silver, change, flat

pytestmark = pytest.mark.spark

Placed = Callable[..., Record]
COMPACTED = {"compacted_topic": True}
KEY = {"type": "struct", "fields": [{"field": "id", "type": "int32", "optional": False}]}
SEED, LOGS = 11, 80


def tombstone(offset: int, key: int, table: str = "orders") -> Record:
    return record(f"s.shop.{table}", offset, {"id": key}, None)


def values(lake: Silver, table: str = "orders") -> dict[int, Any]:
    """Live rows."""
    return {key: value for key, (value, _) in lake.rows(f"shop.{table}").items()}


def placed(table: str) -> Placed:
    """A change of a table: offset, key, value, position, second, and what ``change`` is told besides."""
    return partial(change, topic=f"s.shop.{table}")


def alone(table: str) -> list[list[Record]]:
    """A tombstone whose delete was removed, after what bronze has, and behind records of its own batch."""
    one = placed(table)
    second = [tombstone(5, 1, table), one(6, 3, 30, 500, 2, "c"), tombstone(9, 3, table)]
    return [[one(0, 1, 10, 100, 0, "c"), one(1, 2, 20, 300, 1, "c")], second]


def behind(table: str) -> list[list[Record]]:
    """A tombstone behind its delete: in the same batch, in a later one, and once more."""
    one = placed(table)
    return [
        [one(0, 1, 10, 100, 0, "c"), one(1, 2, 20, 200, 1, "c"), one(2, 1, 10, 300, 2, "d")],
        [tombstone(3, 1, table), tombstone(4, 1, table)],
        [one(5, 2, 20, 400, 3, "d"), tombstone(6, 2, table)],
    ]


def back(table: str) -> list[list[Record]]:
    """Rows that come back after a lone tombstone: in one batch with it, and in the next."""
    one = placed(table)
    return [
        [one(0, 1, 10, 100, 0, "c"), one(1, 2, 20, 110, 0, "c")],
        [tombstone(5, 1, table), one(6, 1, 11, 500, 2, "c"), tombstone(7, 2, table)],
        [one(8, 2, 21, 600, 3, "c")],
    ]


def elsewhere(table: str) -> list[list[Record]]:
    """Deletes that are none of the tombstone's: of its key in another partition, before it or between it and its row;
    of another key right before it. And a tombstone of a key that nobody has.
    """
    one = placed(table)
    first = [one(0, 1, 10, 100, 0, "c"), one(1, 2, 20, 110, 0, "c"), one(2, 4, 40, 120, 0, "c")]
    of_others = [one(6, 4, 40, 300, 1, "d"), tombstone(7, 4, table), tombstone(8, 2, table), tombstone(9, 7, table)]
    between = replace(one(11, 3, 30, 500, 1, "d"), partition=1)
    return [
        first,
        [
            *[replace(one(0, 1, 10, 90, 0, "d"), partition=1), tombstone(5, 1, table)],
            *of_others,
            *[one(10, 3, 30, 600, 2, "c"), between, tombstone(12, 3, table)],
        ],
    ]


def untouched(table: str) -> list[list[Record]]:
    """The key that compaction took from another topic."""
    return [[placed(table)(0, 1, 10, 100, 0, "c")], [tombstone(5, 7, table)]]


def of_shape(table: str) -> list[list[Record]]:
    """An upsert, a tombstone, and an upsert, in wrapped envelopes, or in rows of the mode rewrite-with-tombstone by
    position or by offset.
    """
    key: Any = wrapped({"id": 1}, KEY) if table == "wrapped" else {"id": 1}

    def upsert(at: int, value: int) -> Record:
        if table == "wrapped":
            told = wrapped(_body(placed(table)(at, 1, value, 100 + at, at, "c")))
        else:
            place: dict[str, Any] = {"__file": "binlog.1", "__pos": 100 + at} if table == "placed" else {}
            told = _body(flat(at, 1, value, __deleted="false", **place, __table=table))
        return record(f"s.shop.{table}", at, key, told)

    return [[upsert(0, 10)], [record(f"s.shop.{table}", 5, key, None)], [upsert(6, 11)]]


STORIES: dict[str, tuple[Callable[[str], list[list[Record]]], list[dict[int, int]]]] = {
    "alone": (alone, [{1: 10, 2: 20}, {2: 20}, {2: 20}]),
    "behind": (behind, [{2: 20}, {2: 20}, {}]),
    "back": (back, [{1: 10, 2: 20}, {1: 11}, {1: 11, 2: 21}]),
    "elsewhere": (elsewhere, [{1: 10, 2: 20, 4: 40}, {}, {}]),
    "untouched": (untouched, [{1: 10}, {1: 10}, {1: 10}]),
    "undeclared": (alone, [{1: 10, 2: 20}, {1: 10, 2: 20, 3: 30}, {1: 10, 2: 20, 3: 30}]),
    **{shape: (of_shape, [{1: 10}, {}, {1: 11}]) for shape in ("wrapped", "placed", "counted")},
}
"""What comes into each table, batch by batch, and its live rows behind each of three. ``undeclared`` is the default."""


@dataclass
class Told:
    """The stories side by side: live rows behind each batch, the accounts of each, and the lake."""

    lake: Silver
    live: dict[str, list[dict[int, Any]]]
    accounts: list[dict[str, Account]]

    def places(self, table: str) -> dict[int, str]:
        """``_seq`` by key."""
        lake = self.lake
        rows = lake.format.read(lake.spark, lake.at.lake.silver("s", f"shop.{table}")).collect()
        return {row["id"]: row["_seq"] for row in rows}


@pytest.fixture(scope="module")
def told(exact: Any, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The n-th batch of every story is one batch."""
    lake = Silver(exact, tmp_path_factory.mktemp("stories"))
    columns = lake.at.source.tables[0].columns
    declared = [Declaration(f"shop.{table}", columns, compacted_topic=table != "undeclared") for table in STORIES]
    lake.at = replace(lake.at, source=replace(lake.at.source, tables=tuple(declared)))
    found = Told(lake, {table: [] for table in STORIES}, [])
    for batch in zip_longest(*[story(table) for table, (story, _) in STORIES.items()], fillvalue=[]):
        found.accounts.append(lake.take(*[each for part in batch for each in part]))
        for table, seen in found.live.items():
            seen.append(values(lake, table))
    return found


@pytest.mark.parametrize("table", STORIES)
def test_a_tombstone_deletes_where_it_is_all_that_compaction_left(told: Told, table: str) -> None:
    """B5: only where that is declared; never behind its delete; of one partition of one topic; in every shape; and a
    row comes back after it. See the stories.
    """
    assert told.live[table] == STORIES[table][1]


def test_a_tombstone_whose_delete_was_removed_is_a_change_at_the_place_of_its_partition(told: Told) -> None:
    """Q6: where its partition had come to."""
    assert told.places("alone")[1] == f"0000{1:08x}{300:012x}{0:016x}{5:016x}"
    account = told.accounts[1]["s/shop.alone"]
    assert (account.read, account.applied, account.ignored) == (3, 2, {})


def test_a_tombstone_behind_its_delete_says_nothing(told: Told) -> None:
    """Its delete's place is known, and a guess would be higher."""
    assert told.accounts[2]["s/shop.behind"].ignored == {"tombstone": 1}
    assert told.places("behind") == {
        1: f"0000{1:08x}{300:012x}{0:016x}{2:016x}",
        2: f"0000{1:08x}{400:012x}{0:016x}{5:016x}",
    }


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


def test_a_compacted_log_ends_as_its_source_wherever_it_is_read(exact: SparkSession, tmp_path: Path) -> None:
    """Random logs with replays, compacted at random places between three reads; a rebuild from bronze agrees."""
    lake = Silver(exact, tmp_path, declared=COMPACTED)
    found, wanted = _read_all(lake)
    assert found == wanted
    assert values(lake.rebuilt()) == wanted


def test_by_the_letter_of_the_rule_a_repeated_delete_hides_a_later_one(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        monkeypatch.setattr(lone_tombstones, "_is_redundant", lone_tombstones._follows_delete)
    assert found == [{}, {1: 11}]


@pytest.mark.parametrize("declared", [True, False], ids=["every tombstone deletes", "none does"])
def test_without_the_check_or_without_the_delete_rows_are_wrong(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: bool
) -> None:
    """The negative controls: a replayed delete's tombstone takes the row for good; a removed delete is missed."""
    monkeypatch.setattr(lone_tombstones, "_is_redundant", lambda: F.lit(False))
    found, wanted = _read_all(Silver(exact, tmp_path, declared={"compacted_topic": declared}))
    lost, left = wanted.keys() - found.keys(), found.keys() - wanted.keys()
    assert (bool(lost), bool(left)) == ((True, False) if declared else (False, True))


@pytest.mark.parametrize("is_default", [False, True])
def test_a_declaration_applies_to_topics_by_their_names(spark: SparkSession, is_default: bool) -> None:
    """To those of all shards of a table, and to those in which Debezium replaced a character of the table's name."""
    declared = (
        Declaration("shop.a b", compacted_topic=True),
        Declaration("shop.all", compacted_topic=True, shards="shop_[0-9]+[.]one"),
        Declaration("shop.other b"),
        Declaration("shop.others", shards="shop_[0-9]+[.]other"),
    )
    source = SourceSpec("s", ".*", tables=declared, default=Declaration("", compacted_topic=is_default))
    topics = ["s.shop.a_b", "s.shop.all", "s.shop_12.one", "s.shop.other_b", "s.shop_12.other", "s.shop_1.one.x"]
    is_compacted = lone_tombstones.compacted_topics(source)
    assert is_compacted is not None
    rows = made(spark, [(topic,) for topic in topics], "topic STRING").select(is_compacted.alias("found")).collect()
    assert [row["found"] for row in rows] == [True, True, True, False, False, is_default]
