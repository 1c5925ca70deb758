"""The life of a row through real stages, in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.errors import ConfigError
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.explain import explain
from replicator.operate.row.trace import find_table
from replicator.spec import Column, Declaration, SourceSpec, Transform
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from tests.builders import UNSENT, Record, bronze, envelope, record

pytestmark = pytest.mark.spark

ORDERS = "s.shop.orders"


@pytest.fixture
def at(exact: SparkSession, tmp_path: Path) -> Refinement:
    columns = (Column("id", "int"), Column("v", "int"), Column("w", "string"))
    memory = MemoryFormat()
    source = SourceSpec("s", ".*", tables=(Declaration("shop.orders", columns),))
    return Refinement(source, memory, memory, MemoryControl(), Lake(str(tmp_path)))


def take(exact: SparkSession, at: Refinement, *records: Record) -> None:
    at.bronze.append(bronze(exact, records), at.lake.bronze("s"), None)
    assert [account.error for account in silver.refine(exact, at) if account.error] == []


def change(offset: int, op: str, v: object, pos: int, key: int = 1, w: str = "w", **more: object) -> Record:
    image = None if op == "d" else {"id": key, "v": v, "w": w}
    return record(ORDERS, offset, {"id": key}, envelope(op, image, image, pos=pos), **more)


def test_each_record_of_a_key_gets_the_verdict_that_the_merge_gave_it(exact: SparkSession, at: Refinement) -> None:
    """Update, late event, delete, tombstone, re-insert, dead letters, a value not sent, and what is still to come."""
    take(exact, at, change(0, "c", 1, 10), change(1, "c", 1, 11, key=11), change(2, "u", 2, 30))
    take(exact, at, change(3, "u", 3, 20), change(4, "d", None, 40), record(ORDERS, 5, {"id": 1}, None))
    take(exact, at, change(6, "c", 6, 50), change(7, "u", "poison", 60), record(ORDERS, 8, {"id": 1}, "{oops"))
    take(exact, at, change(9, "u", 9, 70, w=UNSENT))
    at.bronze.append(bronze(exact, [change(10, "u", 10, 80)]), at.lake.bronze("s"), None)
    life = explain(exact, *find_table(exact, [at], "orders"), "1")
    found = [(entry.offset, entry.verdict, entry.why) for entry in life.entries]
    name = f"{ORDERS}/0"
    assert [(offset, verdict) for offset, verdict, _ in found] == [
        (0, "applied"),
        (3, "superseded"),
        (2, "applied"),
        (4, "applied"),
        (5, "ignored"),
        (6, "applied"),
        (7, "dead letter"),
        (8, "dead letter"),
        (9, "applied"),
        (10, "waiting"),
    ]
    why = {offset: text for offset, _, text in found}
    assert why[0] == f"sets the row, until {name}/2"
    assert why[3] == f"older than {name}/2, which came before it"
    assert why[4] == f"deletes the row, until {name}/6"
    assert why[5].startswith("tombstone: ")
    assert why[6] == f"sets the row, until {name}/9; its w is still current"
    assert why[7].startswith("type_mismatch (v): ")
    assert why[8].startswith("malformed_json: ")
    assert why[9] == "sets the row; this is the current state; does not supply w"
    assert [entry.position for entry in life.entries if entry.offset in (3, 5)] == ["file 1, pos 20, offset 3", None]
    assert (life.deleted, life.position, life.warnings) == (False, "file 1, pos 70, offset 9", ())
    assert [(cell.column, cell.value, cell.position) for cell in life.row] == [
        ("id", "1", None),
        ("v", "9", None),
        ("w", "w", "file 1, pos 50, offset 6"),
    ]


def test_a_record_whose_letter_is_gone_is_told_by_what_is_wrong_with_it(exact: SparkSession, at: Refinement) -> None:
    """Q1: its position is none, as its letter said."""
    take(exact, at, change(0, "c", 1, 10), record(ORDERS, 1, {"id": 1}, envelope("c", {"id": 1, "v": 2}, pos="x")))
    at.bronze.drop(exact, at.lake.dead_letters("s"))
    told = {entry.offset: entry.why for entry in explain(exact, *find_table(exact, [at], "orders"), "1").entries}
    assert told[1].startswith("position_malformed: ")


def test_a_key_that_moved_is_followed_through_the_headers(exact: SparkSession, at: Refinement) -> None:
    """C3: the insert under the new key names the old one, the delete of the old one the new."""
    old, new = (("__debezium.oldkey", b'{"id":1}'),), (("__debezium.newkey", b'{"id":2}'),)
    take(
        exact,
        at,
        change(0, "c", 1, 10),
        change(1, "d", None, 20, headers=new),
        change(2, "c", 1, 20, key=2, headers=old),
        record(ORDERS, 3, None, envelope("t", pos=30)),
        change(4, "c", 3, 40, key=3),
    )
    moved = {entry.offset: entry.verdict for entry in explain(exact, at, "shop.orders", "id=2").entries}
    assert moved == {1: "other key", 2: "applied", 3: "applied"}
    left = explain(exact, at, "shop.orders", "1")
    assert {entry.offset: entry.verdict for entry in left.entries} == {
        0: "applied",
        1: "applied",
        2: "other key",
        3: "applied",
    }
    assert (left.position, left.warnings) == (None, ())
    nobody = explain(exact, at, "shop.orders", "77")
    assert (nobody.position, {entry.op for entry in nobody.entries}) == (None, {"t"})


def test_a_row_of_a_shard_is_explained_by_the_records_of_its_topic(exact: SparkSession, at: Refinement) -> None:
    """No record has the column that tells shards apart: a row with the same key in another shard is another one."""
    shards = Declaration(
        "shop.all", (Column("id", "int"),), shards="shop_[0-9][.]all", transform=Transform(shard="shard")
    )
    at = replace(at, source=replace(at.source, tables=(shards,)))

    def of_shard(n: int, offset: int, op: str) -> Record:
        image = None if op == "d" else {"id": 1}
        told = envelope(op, image, image, pos=10 * offset + n, table=f"shop_{n}.all")
        return record(f"s.shop_{n}.all", offset, {"id": 1}, told)

    take(
        exact,
        at,
        of_shard(1, 0, "c"),
        of_shard(2, 0, "c"),
        of_shard(2, 1, "d"),
        record("s.shop_2.all", 2, {"id": 1}, None),
    )
    found = {n: explain(exact, at, "shop.all", f"id=1,shard=shop_{n}.all") for n in (1, 2)}
    assert [(life.deleted, life.warnings) for life in found.values()] == [(False, ()), (True, ())]
    assert [(each.topic, each.offset, each.verdict) for each in (*found[1].entries, *found[2].entries)] == [
        ("s.shop_1.all", 0, "applied"),
        ("s.shop_2.all", 0, "applied"),
        ("s.shop_2.all", 1, "applied"),
        ("s.shop_2.all", 2, "ignored"),
    ]


def test_a_table_is_found_by_any_of_its_names_or_refused_with_those_that_there_are(
    exact: SparkSession, at: Refinement
) -> None:
    """`orders`, `shop.orders`, `s/shop.orders`."""
    take(exact, at, change(0, "c", 1, 10))
    assert {find_table(exact, [at], name)[1] for name in ("orders", "shop.orders", "s/shop.orders")} == {"shop.orders"}
    with pytest.raises(ConfigError, match=r"s/shop\.orders"):
        find_table(exact, [at], "order")
    with pytest.raises(ConfigError, match="the key has one column: id"):
        explain(exact, at, "shop.orders", "1,2")
    with pytest.raises(ConfigError, match="which 'one' is not"):
        explain(exact, at, "shop.orders", "one")


def test_a_key_is_found_however_it_is_typed(exact: SparkSession, at: Refinement) -> None:
    """A decimal without its last zero is the same row; a date as the number that the record has is refused."""
    columns = (Column("id", "decimal_string(9,2)"), Column("day", "date"), Column("v", "int"))
    keyed = replace(at, source=replace(at.source, tables=(Declaration("shop.orders", columns),)))
    key = {"id": "1.50", "day": 20454}
    take(exact, keyed, record(ORDERS, 0, key, envelope("c", {**key, "v": 1}, pos=10)))
    life = explain(exact, keyed, "shop.orders", "1.5,2026-01-01")
    assert ([entry.verdict for entry in life.entries], life.deleted) == (["applied"], False)
    with pytest.raises(ConfigError, match="dates like 2026-01-31, which '20454' is not"):
        explain(exact, keyed, "shop.orders", "1.50,20454")
