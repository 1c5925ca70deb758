"""Rows that change their key, in records that are not one partition of envelopes (debezium.md C3, C5, M7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicator.spec import Transform
from tests.builders import UNSENT, Record, envelope, record
from tests.unit.test_key_changes import History, Table, batches, in_base64, moved, row
from tests.unit.test_silver_stage import ORDERS, silver_of

pytestmark = pytest.mark.spark


def header(name: str, key: dict[str, Any]) -> tuple[tuple[str, bytes], ...]:
    return ((f"__debezium.{name}", json.dumps(key).encode()),)


def flat(tombstones: bool) -> list[Record]:
    """Key 1 becomes 2, which is deleted later."""

    def gone(key: int) -> dict[str, Any] | None:
        return None if tombstones else {"id": key, "v": 1, "__deleted": "true"}

    def there(key: int) -> dict[str, Any]:
        return {"id": key, "v": 1} | ({} if tombstones else {"__deleted": "false"})

    return [
        record(ORDERS, 0, {"id": 1}, there(1)),
        record(ORDERS, 1, {"id": 1}, gone(1), headers=header("newkey", {"id": 2})),
        record(ORDERS, 2, {"id": 2}, there(2), headers=header("oldkey", {"id": 1})),
        record(ORDERS, 3, {"id": 2}, gone(2)),
    ]


@pytest.mark.parametrize("tombstones", [True, False], ids=["tombstone", "rewrite"])
@pytest.mark.parametrize("cut", [4, 3], ids=["one batch", "delete in the next"])
def test_a_flattened_row_that_moved_is_deleted_under_its_new_key(
    exact: Any, tmp_path: Path, tombstones: bool, cut: int
) -> None:
    """Offsets say nothing of transactions: all of history is not one, in which rows would exchange keys (C5, Q8)."""
    lake, events = silver_of(exact, tmp_path), flat(tombstones)
    for batch in filter(None, (events[:cut], events[cut:])):
        accounts = lake.take(*batch)
        assert [(each.error, each.dead_lettered) for each in accounts.values()] == [(None, 0)]
    assert {key: deleted for key, (_, deleted) in lake.rows().items()} == {1: True, 2: True}


def test_flattened_rows_with_positions_hand_on_their_keys(exact: Any, tmp_path: Path) -> None:
    """Within a transaction 1 becomes 2 and 2 is deleted: its delete is its own image (F3)."""
    places = [(10, 1), (20, 2), (20, 2), (30, 2)]
    events = [
        replace(
            told, value=json.dumps(json.loads(told.value or "") | {"__lsn": lsn, "__txId": tx, "__source_ts_ms": 1})
        )
        for told, (lsn, tx) in zip(flat(tombstones=False), places, strict=True)
    ]
    lake = silver_of(exact, tmp_path)
    accounts = lake.take(*events)
    assert [each.error for each in accounts.values()] == [None]
    assert {key: deleted for key, (_, deleted) in lake.rows().items()} == {1: True, 2: True}


def test_what_a_lagging_partition_still_has_is_not_overlooked(exact: Any, tmp_path: Path) -> None:
    """M7: the partition of the new key is ahead; what the row was last under its old one comes later, and is not known
    until it has left there. Wherever batches are cut, each way in partitions of its own.
    """
    ways: list[tuple[int, ...]] = [(), (2,), (1, 2)]
    every = []
    for number, cuts in enumerate(ways):
        events = History(number)
        events.add("c", 1, None, row(1, 1, "X"))
        events.tx = 2
        events.add("u", 1, None, row(1, 1, "Y"))
        events.tx = 3
        events.move(1, 7, (2, UNSENT))
        came, changed, left, arrived = events.records
        ahead = replace(arrived, partition=len(ways) + number, offset=0)
        every.append(batches([came, ahead, changed, left], cuts))
    table = Table(exact, tmp_path)
    for at in range(max(map(len, every))):
        table.take([each for own in every if at < len(own) for each in own[at]])
    for number, cuts in enumerate(ways):
        assert table.live(number) == {7: (2, None if cuts else "Y")}
        assert table.unknown(number) == ({7: ["b"]} if cuts else {})


def test_a_decimal_key_behind_a_transform_stops_no_table(exact: Any, tmp_path: Path) -> None:
    """Z2.4: what a header calls the old key is not found in bronze then; the value stays unknown."""
    moved(events := History())
    records = [in_base64(each) for each in events.records]
    table = Table(exact, tmp_path, "decimal(6,3)")
    told = replace(table.at.source.tables[0], transform=Transform(rename=(("id", "nr"),)))
    table.at = replace(table.at, source=replace(table.at.source, tables=(told,)))
    for batch in batches(records, (2,)):
        table.take(batch)
    rows = table.at.silver.read(exact, table.at.lake.silver("p", "public.t")).where("NOT _deleted").collect()
    assert [(row["a"], row["b"], [*row["_column_seq"]]) for row in rows] == [(2, None, ["b"])]


@pytest.mark.parametrize(("order", "size"), [((0, 1, 2), 1), ((0, 2, 1), 1), ((0, 1, 2), 3)], ids=str)
def test_a_row_stays_where_its_declared_key_is_a_part_of_kafkas(
    exact: Any, tmp_path: Path, order: Sequence[int], size: int
) -> None:
    """C1, C3: a delete because another column of Kafka's key changed takes no row away, whatever offsets it has: in one
    partition, and in two.
    """

    def key(number: int, region: str) -> dict[str, Any]:
        return {"id": number, "region": region}

    def moved_to(number: int, place: tuple[int, int]) -> list[Record]:
        one, other = key(number, "A"), key(number, "B")
        old, new = one | {"v": 1}, other | {"v": 2}
        first, second = 1000 * number + 10, 1000 * number + 20
        came = record(ORDERS, 100, one, envelope("c", old, pos=first))
        left = record(ORDERS, 101, one, envelope("d", None, old, pos=second), headers=header("newkey", other))
        arrived = record(
            ORDERS, place[1], other, envelope("c", new, pos=second), headers=header("oldkey", one), partition=place[0]
        )
        return [replace(came, partition=number), replace(left, partition=number), arrived]

    ways = [moved_to(1, (1, 102)), moved_to(2, (3, 5))]
    lake, ignored = silver_of(exact, tmp_path, ("id",)), 0
    for start in range(0, 3, size):
        accounts = lake.take(*[events[at] for events in ways for at in order[start : start + size]])
        ignored += sum(each.ignored.get("key_swap", 0) for each in accounts.values())
    assert lake.rows() == {1: (2, False), 2: (2, False)}
    assert ignored == 2
