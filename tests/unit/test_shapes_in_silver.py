"""Bronze -> silver in memory with records of every shape, through one source and two batches. All are synthetic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.config.sourcefile import load_sources
from replicator.config.yamlfile import Problems
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Declaration, Outbox, SourceSpec, Transform
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from tests.builders import Record, bronze, envelope, exact_session, record, wrapped

pytestmark = pytest.mark.spark

FILE = """
name: s
topics: .*
signal_data_collection: prod.shop.signals
tables:
  shop.plain: {columns: &columns {id: int, v: int}}
  shop.avro: {columns: {id: int, v: int, price: "decimal(10,4)", name: text}}
  shop.cloud: {columns: *columns}
  shop.cloud_by_offset: {columns: *columns}
  event.order: {outbox: router}
  event.cart: {outbox: {mode: router, empty_payload: delete, topic: carts}, keys: [aggregate_id]}
  event.blob: {outbox: router, columns: {payload: bytes}}
  shop.log: {columns: *columns, outbox: log}
  shop.odd: {columns: {id: int, op: text, source: text, ddl: text}, shape: flattened}
  shop.kept: {columns: *columns, deletes: rewrite}
  shop.docs: {columns: {_id: text, n: bigint}}
"""
AVRO_SOURCE = {"snapshot": {"string": "false"}}
STRUCT = {
    "type": "struct",
    "fields": [{"type": "int32", "field": "id"}, {"type": "int32", "field": "v", "optional": True}],
}
POSTGRES: dict[str, Any] = {"connector": "postgresql", "schema": "shop", "db": "prod", "file": None, "pos": None}


def avro(op: str, row: dict[str, Any] | None, pos: int) -> dict[str, Any]:
    """As the Avro converter's records look in JSON."""
    value = None if row is None else {"s.shop.avro.Value": row}
    before, after = (value, None) if op == "d" else (None, value)
    return envelope(op, after, before, pos=pos, table="shop.avro", **AVRO_SOURCE) | {"ts_ms": {"long": 1}}


def cloud(op: str, row: dict[str, Any], lsn: int | None, table: str = "cloud", *, with_schema: bool = False) -> Any:
    """As the CloudEvents converter writes it."""
    sides = {"before": row if op == "d" else None, "after": None if op == "d" else row}
    block = {"type": "struct", "fields": [STRUCT | {"field": side, "optional": True} for side in sides]}
    told = {"op": op, "name": "s", "connector": "postgresql", "db": "prod", "schema": "shop", "table": table}
    told |= {"tsms": "7", "snapshot": "false"} | ({"lsn": str(lsn)} if lsn is not None else {})
    return {
        "id": f"name:s;lsn:{lsn}",
        "specversion": "1.0",
        "type": "io.debezium.connector.postgresql.DataChangeEvent",
        "source": "/debezium/postgresql/s",
        **{f"iodebezium{name}": held for name, held in told.items()},
        "data": wrapped(sides, block) if with_schema else sides,
    }


def document(op: str, after: str | None) -> dict[str, Any]:
    source = {"connector": "mongodb", "name": "s", "db": "shop", "collection": "docs", "ts_ms": 1}
    return {"before": None, "after": after, "source": source, "op": op, "updateDescription": None}


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"headers": (("id", f"e-{number}".encode()), ("kind", b"placed"))} | more


FIRST = [
    record("s.shop.plain", 0, {"id": 1}, envelope("c", {"id": 1, "v": 1}, table="shop.plain")),
    record("s.shop.avro", 0, {"id": {"int": 1}}, avro("c", {"id": 1, "v": {"int": 5}, "price": {"bytes": "EtaH"}}, 10)),
    record("s.shop.avro", 1, {"id": 2}, avro("c", {"id": 2, "v": None, "name": {"string": "x"}}, 20)),
    record("s.shop.avro", 2, {"id": 2}, avro("d", {"id": 2}, 30)),
    record("s.shop.avro", 3, {"id": 3}, envelope("c", {"id": 3, "v": {"int": 7}}, pos=40, table="shop.avro")),
    record("s.shop.avro", 4, {"id": 4}, envelope("c", {"id": 4, "v": {"a": 7}}, pos=50, table="shop.avro")),
    record("s.shop.avro", 5, {"id": 5}, envelope("c", {"id": 5, "v": 9}, pos=60, table="shop.avro")),
    record("s.shop.cloud", 0, {"id": 1}, cloud("c", {"id": 1, "v": 2}, 20)),
    record("s.shop.cloud", 1, {"id": 1}, cloud("u", {"id": 1, "v": 1}, 10, with_schema=True)),
    record("s.shop.cloud", 2, {"id": 2}, cloud("c", {"id": 2, "v": 2}, 30, with_schema=True)),
    record("s.shop.cloud", 3, {"id": 2}, cloud("d", {"id": 2, "v": 2}, 40)),
    record("s.shop.cloud", 4, {"id": 2}, None),
    record("s.shop.cloud_by_offset", 0, {"id": 1}, cloud("c", {"id": 1, "v": 1}, None, "cloud_by_offset")),
    record("s.shop.cloud_by_offset", 1, {"id": 1}, cloud("u", {"id": 1, "v": 2}, None, "cloud_by_offset")),
    record("s.event.order", 0, '"17"', '"{\\"total\\": 1.50}"', **event(1)),
    record("s.event.order", 1, '"17"', {"total": 2}, **event(2)),
    record("s.event.order", 2, '"17"', {"total": 2}, **event(2)),
    record("s.event.order", 3, '"17"', None, **event(3)),
    record("s.event.order", 4, '"17"', {"total": 3}),
    record("carts", 0, '"1"', '"first"', **event(1)),
    record("carts", 1, '"1"', '"second"', **event(2)),
    record("carts", 2, '"2"', '"other"', **event(3)),
    record("carts", 3, '"2"', None, **event(4)),
    record("s.event.blob", 0, '"1"', None, bad_value=b"\xff\x00", **event(1)),
    record("s.shop.log", 0, {"id": 1}, envelope("r", {"id": 1, "v": 1}, pos=4, table="shop.log")),
    record("s.shop.log", 1, {"id": 2}, envelope("c", {"id": 2, "v": 2}, pos=5, table="shop.log")),
    record("s.shop.log", 2, {"id": 2}, envelope("u", {"id": 2, "v": 3}, pos=6, table="shop.log")),
    record("s.shop.log", 3, {"id": 2}, envelope("d", None, {"id": 2, "v": 3}, pos=7, table="shop.log")),
    record("s.shop.log", 4, {"id": 2}, None),
    record(
        "s.shop.signals", 0, {"id": "x"}, envelope("c", {"id": "x"}, table="shop.signals", **(POSTGRES | {"lsn": 1}))
    ),
    record("s.shop.odd", 0, {"id": 1}, {"id": 1, "op": "buy", "source": "web", "ddl": "x", "__deleted": "false"}),
    record("s.shop.kept", 0, {"id": 1}, {"id": 1, "v": 1}),
    record("s.shop.kept", 1, {"id": 1}, None),
    record(
        "s.shop.docs", 0, {"id": '{"$oid": "a"}'}, document("c", '{"_id": {"$oid": "a"}, "n": {"$numberLong": "5"}}')
    ),
    record("s.shop.docs", 1, {"id": '{"$oid": "a"}'}, document("u", '{"_id": {"$oid": "a"}, "n": 6}')),
    record("s.shop.docs", 2, {"id": '{"$oid": "b"}'}, document("c", '{"_id": {"$oid": "b"}, "n": 1}')),
    record("s.shop.docs", 3, {"id": '{"$oid": "b"}'}, document("d", None)),
    record("s.shop.docs", 4, {"id": '{"$oid": "a"}'}, document("u", None)),
]
SECOND = [
    record("s.shop.avro", 6, {"id": 1}, avro("u", {"id": 1, "v": {"int": 6}, "price": {"bytes": "EtaI"}}, 70)),
    record("s.event.order", 5, '"17"', '"{\\"total\\": 1.50}"', **event(1)),
    record("s.event.order", 6, '"18"', "[]", **event(6)),
]


@dataclass
class Lakeful:
    """What two batches left behind."""

    spark: SparkSession
    at: Refinement
    accounts: tuple[dict[str, Account], ...]

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The live rows, sorted by the first column."""
        rows = self.at.silver.read(self.spark, self.at.lake.silver("s", table)).where("NOT _deleted").collect()
        return sorted(tuple(row[column] for column in columns) for row in rows)

    def ignored(self, table: str) -> dict[str, int]:
        """How often each rule kept a record of the first batch out."""
        return dict(self.accounts[0][table].ignored)

    def reasons(self) -> dict[tuple[str, int], str]:
        """Why a record is a dead letter."""
        rows = self.at.bronze.read(self.spark, self.at.lake.dead_letters("s")).collect()
        return {(row["topic"], row["offset"]): row["reason"] for row in rows}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lakeful:
    folder = tmp_path_factory.mktemp("shapes")
    (folder / "s.yaml").write_text(FILE)
    problems = Problems()
    source = load_sources(folder, "", {}, {}, problems)[0][0]
    problems.raise_if_any()
    return taken(exact_session(spark), source, folder, FIRST, SECOND)


def taken(spark: SparkSession, source: SourceSpec, folder: Path, *batches: list[Record]) -> Lakeful:
    memory = MemoryFormat()
    at = Refinement(source, memory, memory, MemoryControl(), Lake(str(folder)))
    accounts = []
    for batch in batches:
        at.bronze.append(bronze(spark, batch), at.lake.bronze("s"), None)
        told = silver.refine(spark, at)
        assert [(a.table, a.residue, a.error) for a in told if a.residue or a.error] == []
        assert sum(account.read for account in told) == len(batch)
        accounts.append({account.table: account for account in told})
    return Lakeful(spark, at, tuple(accounts))


def test_json_made_from_avro_ends_as_any_other(lake: Lakeful) -> None:
    """A5: wrapped rows, columns, keys and fields of ``source``, beside records without any; in one topic."""
    found = [
        (key, v, None if price is None else str(price)) for key, v, price in lake.rows("shop.avro", "id", "v", "price")
    ]
    assert found == [(1, 6, "123.4568"), (3, 7, None), (5, 9, None)]
    assert lake.rows("shop.plain", "id", "v") == [(1, 1)]


def test_cloud_events_are_ordered_by_the_position_in_their_attributes(lake: Lakeful) -> None:
    """A6: with and without a schema around the data; the tombstone is none of its rows."""
    assert lake.rows("shop.cloud", "id", "v") == [(1, 2)]
    assert lake.ignored("s/shop.cloud") == {"tombstone": 1}


def test_cloud_events_without_position_are_ordered_by_offset(lake: Lakeful) -> None:
    """Q8: for all records of the topic."""
    assert lake.rows("shop.cloud_by_offset", "id", "v") == [(1, 2)]


def test_the_outbox_router_fills_a_table_of_events(lake: Lakeful) -> None:
    """I1 to I3: one row per header ``id``, whenever the repetition comes; a NULL is none."""
    assert lake.rows("event.order", "id", "aggregate_id", "payload") == [
        ("e-1", "17", '{"total": 1.50}'),
        ("e-2", "17", '{"total":2}'),
        ("e-6", "18", "[]"),
    ]
    assert lake.rows("event.order", "id", "headers")[0][1] == {"kind": "placed"}
    assert lake.ignored("s/event.order") == {"outbox_duplicate": 1, "tombstone": 1}
    assert lake.accounts[1]["s/event.order"].ignored == {"outbox_duplicate": 1}


def test_an_event_occurs_once_whatever_its_id_is_called(exact: SparkSession, tmp_path: Path) -> None:
    """I1: also where the table's transform gives the column another name, and other tables have records beside it."""
    events = Declaration("event.order", outbox=Outbox("router"), transform=Transform(rename=(("id", "event id"),)))
    source = SourceSpec("s", ".*", tables=(events,))
    one = record("s.event.order", 0, '"17"', "[]", **event(1))
    again, two = replace(one, offset=1), record("s.event.order", 2, '"17"', "[]", **event(2))
    lake = taken(exact, source, tmp_path, [one], [again, two])
    assert lake.rows("event.order", "event_x20_id") == [("e-1",), ("e-2",)]
    assert lake.accounts[1]["s/event.order"].ignored == {"outbox_duplicate": 1}


def test_the_newest_event_per_aggregate_is_a_table_too(lake: Lakeful) -> None:
    """I3: keyed by the aggregate, an empty payload deletes it; the topic is the user's own."""
    assert lake.rows("event.cart", "aggregate_id", "payload", "id") == [("1", "second", "e-2")]


def test_payloads_of_bytes_are_bytes(lake: Lakeful) -> None:
    """I2: what is no text is no dead letter where it was declared."""
    assert [bytes(data) for _, data in lake.rows("event.blob", "id", "payload")] == [b"\xff\x00"]


def test_a_captured_outbox_table_is_a_log_of_its_inserts(lake: Lakeful) -> None:
    """I4: the application deletes its events again; the log keeps them."""
    assert lake.rows("shop.log", "id", "v") == [(1, 1), (2, 2)]
    assert lake.ignored("s/shop.log") == {"outbox_update": 1, "outbox_delete": 1, "tombstone": 1}


def test_rows_of_the_signal_table_are_no_rows(lake: Lakeful) -> None:
    """H4: by the name that the connector was given."""
    assert lake.ignored("topic s.shop.signals") == {"signal": 1}
    assert "shop.signals" not in lake.at.silver.tables(lake.spark, lake.at.lake.silver_root("s"))


def test_a_flattened_row_may_have_columns_of_any_name_by_declaration(lake: Lakeful) -> None:
    """A1: overridable, since a row with a column ``op`` looks like an envelope."""
    assert lake.rows("shop.odd", "id", "op", "source", "ddl") == [(1, "buy", "web", "x")]


def test_a_null_is_no_delete_where_deletes_are_declared_as_rows(lake: Lakeful) -> None:
    """F2, B6: the meaning of NULL comes from the configuration."""
    assert lake.rows("shop.kept", "id", "v") == [(1, 1)]
    assert lake.ignored("s/shop.kept") == {"tombstone": 1}


def test_documents_of_mongodb_are_rows_and_partial_updates_are_refused(lake: Lakeful) -> None:
    """K1 to K4: by offset."""
    assert lake.rows("shop.docs", "_id", "n") == [("a", 6)]


def test_what_cannot_be_read_is_a_dead_letter_with_its_reason(lake: Lakeful) -> None:
    """R4: an object in a column of numbers, an event without id, an update without its document."""
    assert lake.reasons() == {
        ("s.shop.avro", 4): "type_mismatch",
        ("s.event.order", 4): "key_missing",
        ("s.shop.docs", 4): "mongodb_partial_update",
    }
