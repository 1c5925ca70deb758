"""Bronze -> silver in memory: what becomes of records that no rule of the happy path covers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import Residue, SchemaRefused
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.table import batch as batches_of_silver
from replicator.stages.tick.source_state import SourceState
from tests.builders import UNSENT, Record, bronze, envelope, record, wrapped

pytestmark = pytest.mark.spark

ORDERS = "s.shop.orders"


@dataclass
class Silver:
    """A source's silver in memory."""

    spark: SparkSession
    at: Refinement

    def take(self, *records: Record) -> dict[str, Account]:
        """One batch; every record must be accounted for and no table may stop."""
        self.at.bronze.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        accounts = silver.refine(self.spark, self.at)
        assert [(a.table, a.residue, a.error) for a in accounts if a.residue or a.error] == []
        assert sum(account.read for account in accounts) == len(records)
        return {account.table: account for account in accounts}

    def tables(self) -> tuple[str, ...]:
        """Which tables there are."""
        return self.at.silver.tables(self.spark, self.at.lake.silver_root("s"))

    def rows(self, table: str = "shop.orders") -> dict[int, tuple[Any, ...]]:
        """(v, _deleted) by id."""
        rows = self.at.silver.read(self.spark, self.at.lake.silver("s", table)).collect()
        return {row["id"]: (row["v"], row["_deleted"]) for row in rows}

    def reasons(self) -> dict[int, str]:
        """Why a record is a dead letter, by offset."""
        rows = self.at.bronze.read(self.spark, self.at.lake.dead_letters("s")).collect()
        return {row["offset"]: row["reason"] for row in rows}


@pytest.fixture
def lake(exact: SparkSession, tmp_path: Path) -> Silver:
    return silver_of(exact, tmp_path)


def silver_of(exact: Any, folder: Path, keys: tuple[str, ...] = ()) -> Silver:
    tables = (Declaration("shop.orders", (Column("id", "int"), Column("v", "int")), keys),)
    memory, control = MemoryFormat(), MemoryControl()
    return Silver(exact, Refinement(SourceSpec("s", ".*", tables=tables), memory, memory, control, Lake(str(folder))))


def row(key: Any, value: Any) -> dict[str, Any]:
    return {"id": key, "v": value}


def test_poison_is_a_dead_letter_and_blocks_nobody(lake: Silver) -> None:
    """R4, R5: each with its reason, and the good ones around it are applied."""
    nested = json.dumps(envelope("c", row(8, "DEEP"), pos=9)).replace('"DEEP"', "[" * 5000 + "]" * 5000)
    poison = {
        10: (record(ORDERS, 10, {"id": 1}, "{oops"), "malformed_json"),
        25: (record(ORDERS, 25, {"id": 1}, json.dumps(envelope("c", row(1, 1))) + " trailing"), "malformed_json"),
        26: (record(ORDERS, 26, {"id": 1}, json.dumps(envelope("c", row(1, 1))) * 2), "malformed_json"),
        27: (
            record(ORDERS, 27, {"id": 1}, '{"a": "' + "[" * 1500 + '", "b": "\\"' + "{" * 1500 + '"'),
            "malformed_json",
        ),
        28: (record(ORDERS, 28, {"id": 1}, '{"a": "\\"", "b": ' + "[{}," * 1500), "too_deep"),
        11: (record(ORDERS, 11, {"id": 1}, "[1]"), "unknown_shape"),
        12: (record(ORDERS, 12, {"id": 1}, {"x": 1}), "unknown_shape"),
        13: (record(ORDERS, 13, {"id": 1}, envelope("z", row(1, 1))), "unknown_op"),
        14: (record(ORDERS, 14, {"id": 1}, None, bad_value=b"\xff"), "invalid_utf8"),
        15: (record(ORDERS, 15, None, envelope("c", row(1, 1))), "key_missing"),
        16: (record(ORDERS, 16, {"id": None}, envelope("c", row(1, 1))), "key_undecodable"),
        17: (record(ORDERS, 17, {"id": "x"}, envelope("c", row(1, 1))), "key_undecodable"),
        24: (record(ORDERS, 24, "no json", envelope("c", row(1, 1))), "key_undecodable"),
        18: (record(ORDERS, 18, {"id": 1}, envelope("c", None)), "after_missing"),
        19: (record(ORDERS, 19, {"id": 1}, envelope("c", row(1, "x"))), "type_mismatch"),
        20: (record(ORDERS, 20, {"id": 1}, envelope("c", row(1, 1 << 40))), "integer_overflow"),
        21: (record(ORDERS, 21, {"id": 1}, envelope("c", row(1, 1), file="")), "position_missing"),
        22: (record(ORDERS, 22, {"id": 1}, envelope("c", row(1, 1), pos="x")), "position_malformed"),
        23: (record(ORDERS, 23, {"id": 1}, envelope("c", row(1, 1), db="")), "unknown_table"),
    }
    good = [record(ORDERS, at, {"id": at}, envelope("c", row(at, at), pos=100 + at)) for at in range(3)]
    deep = record(ORDERS, 30, {"id": 8}, nested)
    accounts = lake.take(*good[:2], *[each for each, _ in poison.values()], deep, good[2])
    assert lake.rows() == {0: (0, False), 1: (1, False), 2: (2, False)}
    found = lake.reasons()
    assert found.pop(30) == "too_deep"
    assert found == {at: reason for at, (_, reason) in poison.items()}
    assert (accounts["s/shop.orders"].applied, accounts["s/shop.orders"].dead_lettered) == (3, len(poison) + 1)


def test_a_bare_number_is_no_base64_nor_a_key(exact: SparkSession, tmp_path: Path) -> None:
    """Y2: `from_json` gives numbers and words as text, many of which are base64; in quotes they are."""
    columns = (Column("id", "decimal(10,0)"), Column("v", "bytes"))
    at = Refinement(
        SourceSpec("s", ".*", tables=(Declaration("shop.orders", columns),)),
        memory := MemoryFormat(),
        memory,
        MemoryControl(),
        Lake(str(tmp_path)),
    )
    lake = Silver(exact, at)
    sent = {
        0: ("BNI=", "1234"),
        1: (1234, "AA=="),
        2: (True, "AA=="),
        3: ("Aw==", 1234),
        4: ("BA==", True),
        5: ("BQ==", "true"),
    }
    lake.take(
        *[record(ORDERS, at, {"id": key}, envelope("c", row(key, v), pos=10 + at)) for at, (key, v) in sent.items()],
        record(ORDERS, 6, {"id": 1234}, envelope("d", None, row(1234, None), pos=30)),
        record(ORDERS, 7, None, envelope("d", None, row(1234, None), pos=40)),
    )
    assert lake.reasons() == {
        1: "key_undecodable",
        2: "key_undecodable",
        3: "type_mismatch",
        4: "type_mismatch",
        6: "key_undecodable",
        7: "key_missing",
    }
    assert lake.rows() == {
        1234: (bytearray(bytes.fromhex("d76df8")), False),
        5: (bytearray(bytes.fromhex("b6bb9e")), False),
    }


def test_a_decimal_of_a_schema_block_may_be_a_number(exact: SparkSession, tmp_path: Path) -> None:
    """A2: what `decimal.format=NUMERIC` sends is the number itself, with all its digits; in quotes it is base64."""
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "field": "v", "optional": True}
    decimal["parameters"] = {"scale": "16", "connect.decimal.precision": "36"}
    fields = [{"type": "int32", "field": "id"}, decimal]
    block = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}, {"field": "op"}]}
    key = {"type": "struct", "fields": [{"type": "int32", "field": "id"}]}
    lake = Silver(exact, replace(silver_of(exact, tmp_path).at, source=SourceSpec("s", ".*")))

    def sent(at: int, text: str) -> Record:
        value = json.dumps(wrapped(envelope("c", row(at, "@"), pos=10 + at), block)).replace('"@"', text)
        return record(ORDERS, at, wrapped({"id": at}, key), value)

    exact_text = "12345678901234567890.1234567890123450"
    texts = [exact_text, "1234", '"BNI="', "true", "0.12345678901234567", "null"]
    lake.take(*[sent(at, text) for at, text in enumerate(texts)])
    assert {key: v for key, (v, _) in lake.rows().items()} == {
        0: Decimal(exact_text),
        1: Decimal(1234),
        2: Decimal("1.234E-13"),
        5: None,
    }
    assert lake.reasons() == {3: "type_mismatch", 4: "decimal_scale"}


TIMED = {
    "t": ("int32", "Time"),
    "nt": ("int64", "NanoTime"),
    "mt": ("int64", "MicroTime"),
    "ts": ("int64", "Timestamp"),
}


def _typed(at: int, kinds: dict[str, Any], values: dict[str, Any]) -> Record:
    """A change with schema blocks; a kind is a Connect type and a name of ``io.debezium.time``, or a whole block."""
    fields: list[dict[str, Any]] = [{"type": "int32", "field": "id"}]
    for name, kind in kinds.items():
        told = kind if isinstance(kind, dict) else {"type": kind[0], "name": f"io.debezium.time.{kind[1]}"}
        fields.append({**told, "field": name, "optional": True})
    block = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}, {"field": "op"}]}
    of_key = {"type": "struct", "fields": fields[:1]}
    value = wrapped(envelope("c", {"id": at, **values}, pos=10 + at), block)
    return record(ORDERS, at, wrapped({"id": at}, of_key), value)


def _untyped(at: int, **values: Any) -> Record:
    return record(ORDERS, at, {"id": at}, envelope("c", {"id": at, **values}, pos=10 + at))


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    told = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": told}


def _undeclared(lake: Silver) -> Silver:
    """In a process of its own."""
    return replace(lake, at=replace(lake.at, source=SourceSpec("s", ".*"), state=SourceState()))


def _values(lake: Silver, *columns: str, table: str = "shop.orders") -> dict[int, tuple[Any, ...]]:
    rows = lake.at.silver.read(lake.spark, lake.at.lake.silver("s", table)).collect()
    return {row["id"]: tuple(row[column] for column in columns) for row in rows}


@pytest.mark.parametrize("batches", [1, 2])
def test_values_without_a_schema_mean_what_they_meant_with_one(lake: Silver, batches: int) -> None:
    """A3: `schemas.enable=false` afterwards changes no value, in the same batch and in a later process; so for a column
    that came later.
    """
    unsigned = {"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}
    kinds = {**TIMED, "p": _decimal(10, 2), "u": unsigned}
    sent = {"t": 36672345, "nt": 36672345678901, "mt": 36672345678, "ts": 1041847872345, "p": "AJY=", "u": -1}
    late = {**kinds, "late": ("int32", "Time")}
    with_blocks = [_typed(1, kinds, sent), _typed(2, late, {**sent, "late": 5})]
    without = [_untyped(3, **sent), _untyped(4, **sent, late=5)]
    lake = _undeclared(lake)
    if batches == 1:
        lake.take(*with_blocks, *without)
    else:
        for each in (*with_blocks, *without):
            lake = _undeclared(lake)
            lake.take(each)
    [first, second, third, fourth] = [row for _, row in sorted(_values(lake, *kinds, "late").items())]
    assert first == third
    assert second == fourth
    assert (first[0], first[1], first[4], first[5]) == (36672345000, 36672345678, Decimal("1.50"), Decimal(2**64 - 1))
    assert fourth[-1] == 5000


def test_a_declared_unsigned_column_is_one_beside_a_schema_block(exact: SparkSession, tmp_path: Path) -> None:
    """Types.md section 5: the block says no more than int64, and from 2^63 on values come negative; also in a key."""
    columns = (Column("id", "bigint", unsigned=True), Column("v", "bigint unsigned"), Column("w", "bigint unsigned"))
    at = replace(
        silver_of(exact, tmp_path).at, source=SourceSpec("s", ".*", tables=(Declaration("shop.orders", columns),))
    )
    lake = Silver(exact, at)
    fields = [{"type": "int64", "field": "id"}, {"type": "int64", "field": "v"}, {"type": "int32", "field": "w"}]
    block = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}, {"field": "op"}]}
    key = {"type": "struct", "fields": fields[:1]}
    lake.take(record(ORDERS, 0, wrapped({"id": -1}, key), wrapped(envelope("c", {"id": -1, "v": -2, "w": 3}), block)))
    assert _values(lake, "v", "w") == {Decimal(2**64 - 1): (Decimal(2**64 - 2), 3)}


@pytest.mark.parametrize("apart", [False, True])
def test_a_key_is_as_unsigned_as_its_column(exact: SparkSession, tmp_path: Path, apart: bool) -> None:
    """Types.md section 5: Debezium propagates the source's type to the row's schema, not to the key's. The key of a
    delete that is a null has no row beside it.
    """
    table = Declaration("shop.orders", (), deletes="tombstone")
    lake = Silver(exact, replace(silver_of(exact, tmp_path).at, source=SourceSpec("s", ".*", tables=(table,))))
    unsigned = {"type": "int64", "field": "id", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}
    block = {"type": "struct", "fields": [unsigned, {"type": "string", "field": "v"}]}
    key = {"type": "struct", "fields": [{"type": "int64", "field": "id"}]}
    sent = [
        record(ORDERS, 0, wrapped({"id": -1}, key), wrapped({"id": -1, "v": "a"}, block)),
        record(ORDERS, 1, wrapped({"id": -2}, key), wrapped({"id": -2, "v": "b"}, block)),
        record(ORDERS, 2, wrapped({"id": -2}, key), None),
    ]
    for batch in [sent[:2], sent[2:]] if apart else [sent]:
        lake.take(*batch)
    last, one_before = Decimal(2**64 - 1), Decimal(2**64 - 2)
    assert _values(lake, "v", "_deleted") == {last: ("a", False), one_before: (None, True)}


@pytest.mark.parametrize("block", [None, {"type": "struct"}])
def test_a_column_called_as_a_metadata_field_is_one_where_it_is_declared(
    exact: SparkSession, tmp_path: Path, block: Any
) -> None:
    """F4: fields that describe the change are there only if asked for, and no column of the row is one of them."""
    columns = (Column("id", "int"), Column("v", "int"), Column("__v", "int"))
    at = replace(
        silver_of(exact, tmp_path).at, source=SourceSpec("s", ".*", tables=(Declaration("shop.orders", columns),))
    )
    lake = Silver(exact, at)
    sent = {"id": 1, "v": 2, "__v": 3, "__deleted": "false", "__op": "c"}
    if block is not None:
        block = block | {"fields": [{"type": "int32", "field": name} for name in ("id", "v", "__v")]}
        block["fields"] += [{"type": "string", "field": name} for name in ("__deleted", "__op")]
    lake.take(record(ORDERS, 0, {"id": 1}, sent if block is None else wrapped(sent, block)))
    stored = lake.at.silver.read(exact, lake.at.lake.silver("s", "shop.orders"))
    assert [name for name in stored.columns if name.startswith("__")] == ["__v"]
    assert _values(lake, "v", "__v") == {1: (2, 3)}


def test_a_column_that_was_written_in_several_ways_stops_the_table_without_a_schema(lake: Silver) -> None:
    """A3: nobody can tell which of them is meant, though the column has one type at rest."""
    lake = _undeclared(lake)
    lake.take(_typed(1, {"p": _decimal(10, 2), "t": ("int32", "Time")}, {"p": "AJY=", "t": 1}))
    lake.take(_typed(2, {"p": _decimal(10, 4), "t": ("int64", "MicroTime")}, {"p": "AJY=", "t": 1}))
    for column, value in {"p": "AJY=", "t": 1}.items():
        lake.at.bronze.append(bronze(lake.spark, [_untyped(3, **{column: value})]), lake.at.lake.bronze("s"), None)
        [account] = silver.refine(lake.spark, _undeclared(lake).at)
        assert isinstance(account.error, SchemaRefused)
        assert "Declare its type" in str(account.error.fix)


def test_a_table_of_which_nothing_was_noted_is_not_guessed_at(lake: Silver) -> None:
    """A3: a table that was made before: its BIGINT may be anything, until records with a schema have come."""
    lake = _undeclared(lake)
    lake.take(_typed(1, {"t": ("int32", "Time")}, {"t": 1}))
    path = lake.at.lake.schema("s", "shop.orders")
    lake.at.control.put(path, {k: v for k, v in (lake.at.control.get(path) or {}).items() if k != "written"})
    lake = _undeclared(lake)
    lake.at.bronze.append(bronze(lake.spark, [_untyped(2, t=1)]), lake.at.lake.bronze("s"), None)
    [account] = silver.refine(lake.spark, lake.at)
    assert isinstance(account.error, SchemaRefused)
    typed = _typed(3, {"t": ("int32", "Time")}, {"t": 1})
    lake.at.bronze.append(bronze(lake.spark, [typed]), lake.at.lake.bronze("s"), None)
    [account] = silver.refine(lake.spark, lake.at)
    assert account.error is None
    assert _values(lake, "t") == {1: (1000,), 2: (1000,), 3: (1000,)}


def test_what_nobody_describes_is_never_guessed_to_be_a_decimal_or_a_date(lake: Silver) -> None:
    """A2, R4: no record is `schema_missing`: it is read by its declaration, or else as the text or the number that was
    sent, with a warning that names the columns.
    """
    sent = {"id": 1, "price": "EtaH", "day": 12058}
    declared = (Column("id", "int"), Column("price", "decimal(7,4)"), Column("day", "date"))
    found = []
    for columns in ((), declared):
        source = SourceSpec("s", ".*", tables=(Declaration("shop.orders", columns),))
        own = replace(lake, at=replace(lake.at, source=source, silver=MemoryFormat(), bronze=MemoryFormat()))
        own = replace(own, at=replace(own.at, state=SourceState(), control=MemoryControl()))
        account = own.take(record(ORDERS, 0, {"id": 1}, envelope("c", sent)))["s/shop.orders"]
        found.append((_values(own, "price", "day"), ["day, id, price" in each for each in account.warnings]))
    assert found == [({1: ("EtaH", 12058)}, [True]), ({1: (Decimal("123.4567"), date(2003, 1, 6))}, [])]


def test_nobody_is_told_to_declare_what_debezium_added(lake: Silver) -> None:
    """F4: fields of a flattened record that begin with `__` are no columns of the row, unless they are declared: who
    declared them as the warning said would get them as columns.
    """
    told = {"id": 1, "v": 2, "__op": "c", "__deleted": "false", "__source_pos": 10}
    account = _undeclared(lake).take(record(ORDERS, 0, {"id": 1}, told))["s/shop.orders"]
    assert account.warnings == ("no types are known for id, v: they were inferred; declare them",)


def test_a_field_that_nothing_describes_becomes_a_column_with_the_text_of_the_record(lake: Silver) -> None:
    """Types.md Y15, Y16: exactly as it stands there, whatever it is, and whatever comes behind it; the rows before have
    none. Each text begins a column, and the next record has the next text in it.
    """
    lake.take(record(ORDERS, 0, {"id": 1}, envelope("c", row(1, 1), pos=10)))
    texts = ["1.50", "123456789876543212345678987654321.110", '{"a":1.0}', "[1,2.0]", "true", '"x"', "null", "1e400"]
    turned = {2: texts, 3: [*texts[1:], texts[0]]}
    columns = [f"late_{number}" for number in range(len(texts))]
    for at, told in turned.items():
        value = json.dumps(envelope("c", row(at, 1) | dict.fromkeys(columns, "@"), pos=10 + at))
        lake.take(record(ORDERS, at, {"id": at}, value.replace('"@"', "%s") % tuple(told)))
    plain = {'"x"': "x", "null": None}
    wanted = {at: tuple(plain.get(text, text) for text in told) for at, told in turned.items()}
    assert _values(lake, *columns) == {1: (None,) * len(columns), **wanted}


def test_a_record_that_nothing_accounts_for_stops_its_table_before_anything_is_written(
    lake: Silver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: the next run has all of them."""
    lake.take(record(ORDERS, 0, {"id": 0}, envelope("c", row(0, 0), pos=10)))
    count = batches_of_silver.build

    def one_less(read: Any, made: DataFrame, *more: Any) -> Any:
        counted = count(read, made.where("id <> 2"), *more)
        return replace(counted, good=counted.good - 1)

    records = [record(ORDERS, at, {"id": at}, envelope("c", row(at, at), pos=10 + at)) for at in (1, 2, 3)]
    lake.at.bronze.append(bronze(lake.spark, [*records, record(ORDERS, 4, None, "{")]), lake.at.lake.bronze("s"), None)
    with monkeypatch.context() as patch:
        patch.setattr(batches_of_silver, "build", one_less)
        [account] = silver.refine(lake.spark, lake.at)
    assert (type(account.error), account.applied) == (Residue, 0)
    assert "1 of 4 records" in str(account.error)
    assert lake.rows() == {0: (0, False)}
    assert lake.at.bronze.version(lake.spark, lake.at.lake.dead_letters("s")) is None
    [account] = silver.refine(lake.spark, lake.at)
    assert (account.error, account.applied, account.dead_lettered) == (None, 3, 1)


def test_a_number_that_a_guessed_double_would_round_is_a_dead_letter(lake: Silver) -> None:
    """Y2, Y14: what the first records showed to be doubles; a declared double is as near as doubles are."""
    guessed = _undeclared(lake)
    guessed.take(_untyped(0, n=1.5))
    texts = ["9007199254740993", "9007199254740992", "0.30000000000000004", "-0.1234567890123456789", "1e300", '"1.5"']
    values = {
        at: json.dumps(envelope("c", {"id": at, "n": "@"}, pos=10 + at)).replace('"@"', text)
        for at, text in enumerate([*texts, '"NaN"', "1000000000000000000000"], 1)
    }
    guessed.take(*[record(ORDERS, at, {"id": at}, value) for at, value in values.items()])
    assert guessed.reasons() == dict.fromkeys((1, 4, 6), "type_mismatch")
    found = {key: n for key, (n,) in _values(guessed, "n").items()}
    assert str(found) == str(
        {0: 1.5, 2: 9007199254740992.0, 3: 0.30000000000000004, 5: 1e300, 7: float("nan"), 8: 1e21}
    )


def test_a_declared_key_is_found_in_the_row(exact: SparkSession, tmp_path: Path) -> None:
    """C1: without a Kafka key there is no key, unless the user says which columns are."""
    lake = silver_of(exact, tmp_path, ("id",))
    lake.take(
        record(ORDERS, 0, None, envelope("c", row(1, 1), pos=10)),
        record(ORDERS, 1, None, envelope("u", row(1, 2), pos=20)),
        record(ORDERS, 2, {"id": 2}, envelope("c", row(2, 2), pos=30)),
        record(ORDERS, 3, None, envelope("c", row(None, 2), pos=40)),
    )
    assert lake.rows() == {1: (2, False), 2: (2, False)}
    assert lake.reasons() == {3: "key_undecodable"}


def test_a_key_in_a_wrapper_without_a_schema_is_found_by_changes_and_deletes(
    exact: SparkSession, tmp_path: Path
) -> None:
    """A1: of what has no schema a converter writes ``"schema": null`` beside the payload; declared as a key or not."""
    ways = {"shop.told": ("id",), "shop.untold": ()}
    columns = (Column("id", "int"), Column("v", "int"))
    source = SourceSpec("s", ".*", tables=tuple(Declaration(table, columns, keys) for table, keys in ways.items()))
    lake = Silver(exact, replace(silver_of(exact, tmp_path).at, source=source))

    def sent(table: str, offset: int, key: int, op: str, **images: Any) -> Record:
        told = envelope(op, pos=10 + offset, table=table, **images)
        return record(f"s.{table}", offset, wrapped({"id": key}), wrapped(told))

    lake.take(*[sent(table, n, n, "c", after=row(n, n)) for table in ways for n in (1, 2)])
    lake.take(*[sent(table, 3, 1, "d", before=row(1, 1)) for table in ways])
    assert {table: lake.rows(table) for table in ways} == {table: {1: (None, True), 2: (2, False)} for table in ways}


def test_the_shard_that_a_routed_record_names_is_part_of_its_key(exact: SparkSession, tmp_path: Path) -> None:
    """C8: what the router puts into the key is a key column of the table, although no row has it."""
    shard = "__dbz__physicalTableIdentifier"
    lake = silver_of(exact, tmp_path)
    for offset, number in enumerate((1, 2)):
        key = {"id": 1, shard: f"s.shop.orders_{number}"}
        lake.take(record("s.shop.all", offset, key, envelope("c", row(1, number), table=f"shop.orders_{number}")))
    for number in (1, 2):
        table = f"shop.orders_{number}"
        [found] = lake.at.silver.read(exact, lake.at.lake.silver("s", table)).collect()
        assert (found["id"], found[shard], found["v"]) == (1, f"s.shop.orders_{number}", number)


def test_records_that_are_no_rows_are_ignored_by_name(lake: Silver) -> None:
    """R3: each rule is counted, wherever the record came from."""
    accounts = lake.take(
        record(ORDERS, 0, {"id": 1}, envelope("c", row(1, 1), pos=10)),
        record(ORDERS, 1, {"id": 1}, None),
        record(ORDERS, 2, {"id": 1}, "null"),
        record("s", 0, {"databaseName": "shop"}, {"source": {"name": "s"}, "ddl": "ALTER"}),
        record("__debezium-heartbeat.s", 0, {"serverName": "s"}, {"ts_ms": 1}),
        record("s.transaction", 0, {"id": "1"}, {"status": "END", "id": "1", "data_collections": None}),
    )
    ignored: Counter[str] = Counter()
    for account in accounts.values():
        ignored.update(account.ignored)
    assert ignored == {"tombstone": 2, "schema_change": 1, "heartbeat": 1, "transaction": 1}
    assert lake.rows() == {1: (1, False)}


def test_a_truncate_deletes_what_is_older_wherever_it_stands(lake: Silver) -> None:
    """T1, T2: present rows, rows of the same batch, and rows that arrive late; not what came after it."""
    lake.take(record(ORDERS, 0, {"id": 1}, envelope("c", row(1, 1), pos=10)))
    lake.take(
        record(ORDERS, 5, {"id": 4}, envelope("c", row(4, 4), pos=40)),
        record(ORDERS, 3, None, envelope("t", pos=30)),
        record(ORDERS, 2, {"id": 2}, envelope("c", row(2, 2), pos=20)),
    )
    lake.take(record(ORDERS, 1, {"id": 3}, envelope("c", row(3, 3), pos=15)))
    assert {key: held for key, held in lake.rows().items() if not held[1]} == {4: (4, False)}


def test_what_a_row_above_a_truncate_does_not_know_went_with_it(exact: SparkSession, tmp_path: Path) -> None:
    """T2, P12: the same bytes in whatever order and batches the three come, each way in a table of its own."""
    ways = {
        "shop.at_once": [[0, 1, 2]],
        "shop.in_order": [[0], [1], [2]],
        "shop.backwards": [[2], [1], [0]],
        "shop.truncate_last": [[0, 2], [1]],
    }

    def sent(table: str, number: int) -> Record:
        told = (
            envelope("c", {"id": 1, "v": 1, "b": "x"}, pos=10, table=table),
            envelope("t", pos=20, table=table),
            envelope("u", {"id": 1, "v": 2, "b": UNSENT}, pos=30, table=table),
        )
        return record(f"s.{table}", number, None if number == 1 else {"id": 1}, told[number])

    columns = (Column("id", "int"), Column("v", "int"), Column("b", "string"))
    source = SourceSpec("s", ".*", tables=tuple(Declaration(table, columns) for table in ways))
    lake = Silver(exact, replace(silver_of(exact, tmp_path).at, source=source))
    for step in range(3):
        parts = {table: batches[step] for table, batches in ways.items() if step < len(batches)}
        lake.take(*[sent(table, number) for table, part in parts.items() for number in part])
    cleared = {"b": f"0000{1:08x}{20:012x}{0:016x}{1:016x}-"}
    found = {table: _values(lake, "v", "b", "_column_seq", table=table) for table in ways}
    assert found == {table: {1: (2, None, cleared)} for table in ways}


def test_a_key_that_its_row_was_not_sent_with_is_the_records_own(exact: SparkSession, tmp_path: Path) -> None:
    """E6: a long text as the key, alone and beside a column that was not sent either, also in a second batch; of few
    columns and of many, where it is asked which are not known.
    """
    tables = {"shop.orders": 0, "shop.wide": 40}

    def columns(more: int) -> tuple[Column, ...]:
        return (Column("id", "string"), Column("v", "int"), Column("b", "string"), *_many(more))

    def _many(more: int) -> tuple[Column, ...]:
        return tuple(Column(f"c{at}", "int") for at in range(more))

    def sent(op: str, number: int, key: str, told: str, b: str) -> list[Record]:
        return [
            record(
                f"s.{table}",
                number,
                {"id": key},
                envelope(
                    op,
                    {"id": told, "v": number, "b": b, **{each.name: number for each in _many(more)}},
                    pos=10 * number + 10,
                    table=table,
                ),
            )
            for table, more in tables.items()
        ]

    declared = tuple(Declaration(table, columns(more)) for table, more in tables.items())
    source = SourceSpec("s", ".*", tables=declared)
    lake = Silver(exact, replace(silver_of(exact, tmp_path).at, source=source))
    lake.take(*sent("c", 0, "a", "a", "x"))
    lake.take(*sent("u", 1, "a", UNSENT, "y"))
    lake.take(*sent("u", 2, "a", UNSENT, UNSENT), *sent("c", 3, "c", "c", "z"))
    narrow: dict[Any, Any] = _values(lake, "v", "b")
    wide: dict[Any, Any] = _values(lake, "v", "b", "c0", "c39", table="shop.wide")
    assert (narrow, wide) == ({"a": (2, "y"), "c": (3, "z")}, {"a": (2, "y", 2, 2), "c": (3, "z", 3, 3)})


def test_a_null_in_a_flattened_topic_deletes_from_the_table_that_the_topic_carries(lake: Silver) -> None:
    """B6, F2: the table is what the rows say, whatever the topic is called."""
    flat = {"__op": "c", "__table": "orders", "__db": "shop"}
    lake.take(
        record("routed", 0, {"id": 1}, row(1, 1) | flat),
        record("routed", 1, {"id": 2}, row(2, 2) | flat),
        record("routed", 2, {"id": 1}, "null"),
        record("routed", 3, {"id": 2}, "{oops"),
    )
    lake.take(record("routed", 4, {"id": 1}, row(1, 3) | flat), record("routed", 5, {"id": 2}, None))
    assert lake.tables() == ("shop.orders",)
    assert lake.rows() == {1: (3, False), 2: (None, True)}
    assert lake.reasons() == {3: "malformed_json"}


def _marks(table: str) -> dict[str, str]:
    """What a flattened row says of its change, but for its place."""
    return {"__op": "u", "__table": table.removeprefix("shop."), "__db": "shop", "__file": "binlog.000001"}


def test_a_row_that_says_nothing_of_deletes_is_none_where_nulls_mean_nothing(
    exact: SparkSession, tmp_path: Path
) -> None:
    """B6, promise D: a connector that sends nulls as deletes from now on loses none of them unseen: behind envelopes
    and behind rows with a mark, in one batch with them and in the next; each in a table of its own.
    """
    ways = {f"shop.{first}_{second}": (first, second) for first in ("envelopes", "marked") for second in (0, 1)}
    columns = (Column("id", "int"), Column("v", "int"))
    source = SourceSpec("s", ".*", tables=tuple(Declaration(table, columns) for table in ways))
    lake = Silver(exact, replace(silver_of(exact, tmp_path).at, source=source))

    def before(table: str, first: str, at: int) -> Record:
        marked = row(at, 1) | _marks(table) | {"__deleted": "false", "__pos": 10 + at}
        told = marked if first == "marked" else envelope("c", row(at, 1), pos=10 + at, table=table)
        return record(f"s.{table}", at, {"id": at}, told)

    def after(table: str) -> list[Record]:
        unmarked = row(0, 2) | _marks(table) | {"__pos": 20}
        return [record(f"s.{table}", 2, {"id": 0}, unmarked), record(f"s.{table}", 3, {"id": 1}, None)]

    batches: list[list[Record]] = [[], []]
    for table, (first, second) in ways.items():
        batches[0] += [before(table, first, at) for at in range(2)]
        batches[second] += after(table)
    for batch in batches:
        lake.take(*batch)
    assert {table: lake.rows(table) for table in ways} == {table: {0: (1, False), 1: (1, False)} for table in ways}
    letters = lake.at.bronze.read(lake.spark, lake.at.lake.dead_letters("s")).collect()
    told = sorted((letter["topic"], letter["offset"], letter["reason"]) for letter in letters)
    assert told == sorted((f"s.{table}", 2, "unknown_shape") for table in ways)


def test_nulls_that_are_declared_to_delete_stop_a_table_of_envelopes(lake: Silver) -> None:
    """B6: what a null means comes from the configuration, and is not ignored against it."""
    lake.take(record(ORDERS, 0, {"id": 1}, envelope("c", row(1, 1), pos=10)))
    [declared] = lake.at.source.tables
    source = replace(lake.at.source, tables=(replace(declared, deletes="tombstone"),))
    sent = [
        record(ORDERS, 1, {"id": 1}, row(1, 2) | _marks("shop.orders") | {"__pos": 20}),
        record(ORDERS, 2, {"id": 1}, None),
    ]
    lake.at.bronze.append(bronze(lake.spark, sent), lake.at.lake.bronze("s"), None)
    [account] = silver.refine(lake.spark, replace(lake.at, source=source))
    assert "read with envelopes" in str(account.error)


def test_a_null_that_may_mean_two_tables_is_a_dead_letter(lake: Silver) -> None:
    """Promise D: a delete is never guessed, and never dropped."""
    flat = {"__op": "c", "__table": "orders", "__db": "shop"}
    lake.take(
        record("routed", 0, {"id": 1}, row(1, 1) | flat),
        record("routed", 1, {"id": 1}, row(1, 1) | flat | {"__table": "other"}),
        record("routed", 2, {"id": 1}, None),
    )
    assert lake.rows() == {1: (1, False)}
    assert lake.reasons() == {2: "unknown_table"}


def test_an_older_snapshot_row_of_a_later_batch_wins_only_where_nothing_was_newer(lake: Silver) -> None:
    """Q5: a snapshot row ranks above everything before it in its partition, in whatever batch that came."""
    lake.take(record(ORDERS, 0, {"id": 1}, envelope("c", row(1, 1), pos=50)))
    lake.take(record(ORDERS, 1, {"id": 1}, envelope("r", row(1, 2), pos=40)))
    assert lake.rows() == {1: (2, False)}
    lake.take(record(ORDERS, 2, {"id": 1}, envelope("u", row(1, 3), pos=60)))
    assert lake.rows() == {1: (3, False)}


@dataclass(frozen=True)
class _Sent:
    """A change of PostgreSQL's in a topic of two tables; without an LSN it is a row of an incremental snapshot."""

    table: str
    op: str
    key: int
    v: str
    sequence: tuple[int, int]
    lsn: int | None

    def record(self, offset: int, partition: int) -> Record:
        """In a partition that has keys of its own."""
        row = {"id": 100 * partition + self.key, "v": self.v}
        source = {
            "connector": "postgresql", "name": "p", "db": "d", "schema": "public", "table": self.table, "ts_ms": 1,
            "txId": 5, "snapshot": "incremental" if self.lsn is None else "false", "lsn": self.lsn,
            "sequence": json.dumps([str(each) for each in self.sequence], separators=(",", ":")),
        }  # fmt: skip
        value = {"before": None, "after": row, "source": source, "op": self.op}
        return record("p.multi", offset, {"id": row["id"]}, value, partition=partition)


SNAPSHOT_ROWS = {
    "behind another table": [
        _Sent("t", "u", 1, "old", (700, 750), 750),
        _Sent("u", "c", 1, "u", (800, 900), 900),
        _Sent("t", "r", 1, "new", (650, 700), None),
        _Sent("t", "u", 1, "old", (700, 750), 750),
    ],
    "behind what was lifted": [
        _Sent("t", "c", 9, "a", (100, 90), 150),
        _Sent("t", "u", 1, "old", (50, 90), 160),
        _Sent("t", "r", 1, "new", (50, 60), None),
    ],
}


def test_a_row_of_a_snapshot_stands_above_all_that_its_partition_had_passed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Q5: whichever table's that was, lifted (Q12) or not, and wherever batches are cut: each way in a partition."""
    ways = [(case, cut) for case, sent in SNAPSHOT_ROWS.items() for cut in range(len(sent))]
    tables, declared = MemoryFormat(), (Column("id", "int"), Column("v", "string"))
    source = SourceSpec("p", ".*", tables=tuple(Declaration(f"public.{name}", declared) for name in "tu"))
    at = Refinement(source, tables, tables, MemoryControl(), Lake(str(tmp_path)), 1.0)
    for second in (False, True):
        part = [
            each.record(offset, partition)
            for partition, (case, cut) in enumerate(ways)
            for offset, each in enumerate(SNAPSHOT_ROWS[case])
            if (offset >= cut) == second
        ]
        at.bronze.append(bronze(spark, part), at.lake.bronze("p"), None)
        assert [account.error for account in silver.refine(spark, at) if account.error] == []
    rows = at.silver.read(spark, at.lake.silver("p", "public.t")).where("id % 100 = 1").collect()
    held = {row["id"] // 100: (row["v"], row["_seq"]) for row in rows}
    ends = {case: {held[way] for way, (of, _) in enumerate(ways) if of == case} for case in SNAPSHOT_ROWS}
    assert {case: [v for v, _ in found] for case, found in ends.items()} == {case: ["new"] for case in SNAPSHOT_ROWS}
