"""Rows that change their key, in records that are not one partition of envelopes (debezium.md C3, C5, M7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicator.spec import Column, Declaration, Transform
from replicator.transforms.columns.layout import stored_name
from tests.builders import UNSENT, Record, envelope, record
from tests.unit.test_key_changes import History, Table, batches, in_base64, moved, row, swapped
from tests.unit.test_silver_stage import ORDERS, Silver, silver_of

pytestmark = pytest.mark.spark


def header(name: str, key: dict[str, Any]) -> tuple[tuple[str, bytes], ...]:
    return ((f"__debezium.{name}", json.dumps(key).encode()),)


def flat(tombstones: bool, table: str = "shop.orders") -> list[Record]:
    """Key 1 becomes 2, which is deleted later."""
    topic = f"s.{table}"

    def gone(key: int) -> dict[str, Any] | None:
        return None if tombstones else {"id": key, "v": 1, "__deleted": "true"}

    def there(key: int) -> dict[str, Any]:
        return {"id": key, "v": 1} | ({} if tombstones else {"__deleted": "false"})

    return [
        record(topic, 0, {"id": 1}, there(1)),
        record(topic, 1, {"id": 1}, gone(1), headers=header("newkey", {"id": 2})),
        record(topic, 2, {"id": 2}, there(2), headers=header("oldkey", {"id": 1})),
        record(topic, 3, {"id": 2}, gone(2)),
    ]


def test_a_flattened_row_that_moved_is_deleted_under_its_new_key(exact: Any, tmp_path: Path) -> None:
    """Offsets say nothing of transactions: all of history is not one, in which rows would exchange keys (C5, Q8); with
    tombstones and without, in one batch and with the delete in the next.
    """
    ways = {f"shop.{kind}_{cut}": (kind == "nulls", cut) for kind in ("nulls", "marks") for cut in (3, 4)}
    lake = tables_of(exact, tmp_path, dict.fromkeys(ways, ()))
    batches_of: list[list[Record]] = [[], []]
    for table, (tombstones, cut) in ways.items():
        events = flat(tombstones, table)
        batches_of[0] += events[:cut]
        batches_of[1] += events[cut:]
    for batch in batches_of:
        accounts = lake.take(*batch)
        assert {(each.error, each.dead_lettered) for each in accounts.values()} == {(None, 0)}
    found = {table: {key: deleted for key, (_, deleted) in lake.rows(table).items()} for table in ways}
    assert found == {table: {1: True, 2: True} for table in ways}


def tables_of(exact: Any, folder: Path, keys: Mapping[str, tuple[str, ...]]) -> Silver:
    """Silver of tables (id, v), each with the keys that are declared of it."""
    tables = tuple(Declaration(table, (Column("id", "int"), Column("v", "int")), of) for table, of in keys.items())
    at = silver_of(exact, folder).at
    return Silver(exact, replace(at, source=replace(at.source, tables=tables)))


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


def test_a_row_stays_where_its_declared_key_is_a_part_of_kafkas(exact: Any, tmp_path: Path) -> None:
    """C1, C3: a delete because another column of Kafka's key changed takes no row away, whatever offsets it has: in one
    partition, and in two; in one batch, in the order of the source, and with the new row before the delete.
    """

    def key(number: int, region: str) -> dict[str, Any]:
        return {"id": number, "region": region}

    def moved_to(table: str, number: int, place: tuple[int, int]) -> list[Record]:
        topic, one, other = f"s.{table}", key(number, "A"), key(number, "B")
        old, new = one | {"v": 1}, other | {"v": 2}
        places: list[dict[str, Any]] = [{"pos": 1000 * number + pos, "table": table} for pos in (10, 20)]
        first, second = places
        came = record(topic, 100, one, envelope("c", old, **first))
        left = record(topic, 101, one, envelope("d", None, old, **second), headers=header("newkey", other))
        arrived = record(
            topic, place[1], other, envelope("c", new, **second), headers=header("oldkey", one), partition=place[0]
        )
        return [replace(came, partition=number), replace(left, partition=number), arrived]

    orders = {"shop.in_order": ((0,), (1,), (2,)), "shop.new_first": ((0,), (2,), (1,)), "shop.whole": ((0, 1, 2),)}
    every = {table: [moved_to(table, 1, (1, 102)), moved_to(table, 2, (3, 5))] for table in orders}
    lake, ignored = tables_of(exact, tmp_path, dict.fromkeys(orders, ("id",))), dict.fromkeys(orders, 0)
    for step in range(3):
        parts = {table: each[step] for table, each in orders.items() if step < len(each)}
        accounts = lake.take(*[way[at] for table, part in parts.items() for way in every[table] for at in part])
        for name, each in accounts.items():
            ignored[name.removeprefix("s/")] += each.ignored.get("key_swap", 0)
    assert {table: lake.rows(table) for table in orders} == {table: {1: (2, False), 2: (2, False)} for table in orders}
    assert ignored == dict.fromkeys(orders, 2)


def test_offsets_tell_nothing_of_what_lies_in_another_partition(exact: Any, tmp_path: Path) -> None:
    """M7, Q8, E5: which of the old key's values was the last is not known where the row left in another partition than
    it came to; where it is the same one, it is, wherever the batches are cut.
    """

    def moved_to(old: int, place: tuple[int, int], at: int) -> list[Record]:
        def there(key: int, b: str) -> dict[str, Any]:
            return {"id": key, "v": 1, "b": b}

        one, other = {"id": old}, {"id": 10 * old}
        partition, offset = place
        return [
            record(ORDERS, at, one, there(old, "first")),
            record(ORDERS, at + 5, one, there(old, "last")),
            record(ORDERS, at + 6, one, None, headers=header("newkey", other)),
            record(ORDERS, offset, other, there(10 * old, UNSENT), headers=header("oldkey", one), partition=partition),
        ]

    ways = [moved_to(1, (1, 12), 10), moved_to(2, (0, 27), 20), moved_to(3, (1, 90), 30), moved_to(4, (0, 48), 40)]
    ways[3].insert(3, replace(ways[3][2], offset=47))  # older connectors send the delete as a null, and a tombstone
    cuts = [4, 4, 3, 3]
    lake = silver_of(exact, tmp_path)
    told = Declaration("shop.orders", (Column("id", "int"), Column("v", "int"), Column("b", "string")))
    lake.at = replace(lake.at, source=replace(lake.at.source, tables=(told,)))
    for batch in range(2):
        lake.take(*[each for way, cut in zip(ways, cuts, strict=True) for each in (way[:cut], way[cut:])[batch]])
    rows = lake.at.silver.read(exact, lake.at.lake.silver("s", "shop.orders")).where("NOT _deleted").collect()
    found = {row["id"]: (row["b"], row["_column_seq"] and [*row["_column_seq"]]) for row in rows}
    unknown, known = (None, ["b"]), ("last", None)
    assert found == {10: unknown, 20: known, 30: unknown, 40: known}


OURS: tuple[str, ...] = ("_known", "_link", "_of", "_verdict", "_whole", "_is_at", "_seen", "_v0")
OURS += ("_inserted", "_stays", "_at_op", "_at_0", "_record")


def test_columns_may_be_named_as_what_is_asked_of_moved_rows(exact: Any, tmp_path: Path) -> None:
    """C5, M7, G5: no column of the source is taken for one of ours: a value that is inherited, and a swap."""

    def wide(told: Record) -> Record:
        value = json.loads(told.value or "")
        for image in filter(None, (value["before"], value["after"])):
            image.update(dict.fromkeys(OURS, image["b"]))
        return replace(told, value=json.dumps(value))

    every = []
    for number, write in enumerate((moved, swapped)):
        write(events := History(number))
        every.append(batches([wide(each) for each in events.records], (2,)))
    history = History(2)
    for op, a in (("c", 1), ("c", "no number"), ("u", 2)):  # with a reason, and then joined with what was not sent
        history.add(op, 1, None, row(1, a, UNSENT if op == "u" else "one"))
    every.append(batches([wide(each) for each in history.records], (2,)))
    table = Table(exact, tmp_path)
    told = table.at.source.tables[0]
    told = replace(told, columns=(*told.columns, *(Column(name, "string") for name in OURS)))
    table.at = replace(table.at, source=replace(table.at.source, tables=(told,)))
    for at in range(2):
        table.take([each for own in every for each in own[at]])
    assert (table.live(0), table.live(1)) == ({7: (2, "large")}, {1: (20, "two"), 2: (10, "one")})
    assert (table.live(2), table.reasons(2)) == ({1: (2, "one")}, ["type_mismatch"])
    rows = [row for number in range(3) for row in table.rows(number).values() if not row["_deleted"]]
    stored = list(map(stored_name, OURS))
    assert [[row[name] for name in stored] for row in rows] == [[row["b"]] * len(OURS) for row in rows]


KEYS = ("_came", "_went", "_moved", "_gone", "_q", "_events", "_held", "_key", "_inserted")


def test_keys_may_be_named_as_what_is_asked_of_moved_rows(exact: Any, tmp_path: Path) -> None:
    """C5, M7, G5: a swap that is cut in its midst, and a value that is inherited, by a key of all such names."""

    def renamed(image: Any) -> Any:
        others = {column: value for column, value in (image or {}).items() if column != "id"}
        return image and dict.fromkeys(KEYS, image["id"]) | others

    def told(each: Record) -> Record:
        value, key = json.loads(each.value or ""), json.loads(each.key or "")
        value |= {image: renamed(value[image]) for image in ("before", "after")}
        headers = tuple((of, json.dumps(renamed(json.loads(text))).encode()) for of, text in each.headers)
        return replace(each, key=json.dumps(renamed(key)), value=json.dumps(value), headers=headers)

    swapped(events := History())
    events.tx = 3
    events.move(1, 5, (20, UNSENT), before=(20, "two"))
    table = Table(exact, tmp_path)
    declared = table.at.source.tables[0]
    declared = replace(declared, columns=(*(Column(name, "int") for name in KEYS), *declared.columns[1:]))
    table.at = replace(table.at, source=replace(table.at.source, tables=(declared,)))
    for batch in batches([told(each) for each in events.records], (5,)):
        table.take(batch)
    rows = table.at.silver.read(exact, table.at.lake.silver("p", "public.t")).where("NOT _deleted").collect()
    stored = list(map(stored_name, KEYS))
    found = sorted(([row[name] for name in stored], row["a"], row["b"]) for row in rows)
    assert found == [([2] * len(KEYS), 10, "one"), ([5] * len(KEYS), 20, "two")]


def known_whole(events: History) -> None:
    """A key change of which the new row was sent whole."""
    events.add("c", 1, None, row(1, 1, "one"))
    events.tx = 2
    events.move(1, 7, (2, "two"))


def jobs(exact: Any, folder: Path, events: History, cut: int) -> int:
    """How many jobs the batch takes that begins there."""
    scheduler, table = exact.sparkContext._jsc.sc().dagScheduler(), Table(exact, folder)
    first, last = batches(events.records, (cut,))
    table.take(first)
    before = int(scheduler.numTotalJobs())
    table.take(last)
    return int(scheduler.numTotalJobs()) - before


@pytest.fixture(scope="module")
def without_moves(exact: Any, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many jobs a batch takes in which no row moves, and a record is written like none before."""
    plain = History()
    plain.add("c", 1, None, row(1, 1, "one"))
    plain.add("d", 1, row(1, 1, "one"))
    return jobs(exact, tmp_path_factory.mktemp("plain"), plain, 1)


@pytest.mark.parametrize(
    ("write", "cut", "more"),
    [(known_whole, 1, 2), (moved, 1, 4), (moved, 2, 6), (swapped, 2, 7)],
    ids=["whole", "from silver", "from bronze", "swap"],
)
def test_a_row_that_moves_takes_few_jobs(
    exact: Any, tmp_path: Path, without_moves: int, write: Callable[[History], None], cut: int, more: int
) -> None:
    """Decision 0081: what is asked of moved rows costs a few jobs more than a batch without them."""
    write(events := History())
    assert jobs(exact, tmp_path, events, cut) - without_moves == more
