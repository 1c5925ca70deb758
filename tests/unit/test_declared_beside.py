"""What a declaration says of columns whose records carry a schema block (types.md Y3, sections 2 and 5)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from replicator.debezium.event_reader import EventReader
from replicator.debezium.event_reader import KafkaRecord as Told
from replicator.debezium.jsontext import dumps
from replicator.debezium.logical_types import Field
from replicator.debezium.schema import Example, build_form, refine_types
from replicator.debezium.type_parser import parse_type
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from tests.builders import Record, bronze, envelope, record, wrapped

ORDERS = "s.shop.orders"
SNAPSHOT, STREAM = {"type": "int16"}, {"type": "boolean"}
COLUMNS = (Column("id", "bigint", unsigned=True), Column("paid", "boolean"))


def sent(at: int, key: int, paid: object, kind: dict[str, str]) -> Record:
    """An order whose key is a BIGINT UNSIGNED and whose ``paid`` is a TINYINT(1)."""
    of_key = {"type": "int64", "field": "id"}
    fields = [of_key, {**kind, "field": "paid", "optional": True}]
    block = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}, {"field": "op"}]}
    value = wrapped(envelope("c", {"id": key, "paid": paid}, pos=10 + at), block)
    return record(ORDERS, at, wrapped({"id": key}, {"type": "struct", "fields": [of_key]}), value)


def source(*columns: Column) -> SourceSpec:
    return SourceSpec("s", ".*", tables=(Declaration("shop.orders", columns),))


@pytest.mark.parametrize(
    ("described", "declared", "meant"),
    [
        ("bigint", "bigint unsigned", "bigint unsigned"),
        ("smallint", "boolean", "boolean"),
        ("int", "boolean", "int"),
        ("bigint", "string", "bigint"),
        ("string", "date", "string"),
        ("boolean", "smallint", "boolean"),
        ("string", "bytes_hex", "bytes_hex"),
        ("string", "bytes_base64", "bytes_base64"),
        ("string", "bytes_base64url", "bytes_base64url"),
        ("string", "bytes", "string"),
        ("string", "decimal_string(10,2)", "decimal_string(10,2)"),
        ("string", "decimal(10,2)", "string"),
        ("string", "variable_decimal_string", "variable_decimal_string"),
        ("variable_decimal", "variable_decimal(10,2)", "variable_decimal(10,2)"),
        ("variable_decimal", "variable_decimal_string(10,2)", "variable_decimal"),
        ("decimal(10,2)", "decimal_string(12,4)", "decimal(10,2)"),
        ("bytes", "bytes_hex", "bytes"),
        ("array<string>", "array<decimal_string(10,2)>", "array<decimal_string(10,2)>"),
    ],
)
def test_a_schema_block_decides_but_for_what_it_cannot_say(described: str, declared: str, meant: str) -> None:
    """Y3; section 5: a BIGINT UNSIGNED comes as a signed one; section 2: a snapshot says int16 of a TINYINT(1), what is
    written in a text is a string, and a decimal whose values have their scale has no digits.
    """
    [field] = refine_types([Field("c", parse_type(described))], {"c": parse_type(declared)})
    assert str(field.logical) == meant


@pytest.mark.spark
def test_a_declared_column_has_one_type_in_snapshot_and_stream(exact: Any, tmp_path: Path) -> None:
    """Section 5, in keys too: 2^64 more than what came, where that is negative; section 2: 0 and 1 are false and true,
    and another number is a dead letter.
    """
    memory = MemoryFormat()
    at = Refinement(source(*COLUMNS), memory, memory, MemoryControl(), Lake(str(tmp_path)))
    batches = [
        [sent(0, 1, 1, SNAPSHOT), sent(1, -1, 0, SNAPSHOT), sent(2, 5, 7, SNAPSHOT)],
        [sent(3, 2, True, STREAM), sent(4, -2, None, STREAM), sent(5, -1, True, STREAM)],
    ]
    accounts = []
    for batch in batches:
        memory.append(bronze(exact, batch), at.lake.bronze("s"), None)
        accounts += silver.refine(exact, at)
    assert [(each.error, each.dead_lettered, each.warnings) for each in accounts] == [(None, 1, ()), (None, 0, ())]
    rows = memory.read(exact, at.lake.silver("s", "shop.orders"))
    assert rows.select("id", "paid").dtypes == [("id", "decimal(20,0)"), ("paid", "boolean")]
    told = {row["id"]: row["paid"] for row in rows.collect()}
    assert told == {Decimal(1): True, Decimal(2**64 - 1): True, Decimal(2): True, Decimal(2**64 - 2): None}


@pytest.mark.spark
def test_texts_are_what_they_are_declared_and_what_is_overruled_is_told_once(exact: Any, tmp_path: Path) -> None:
    """Section 2: binary and decimal modes that write texts; Y3: the block decides the rest, with a warning as the table
    is made.
    """
    columns = (Column("id", "int"), Column("b", "bytes_hex"), Column("n", "decimal_string(10,2)"), Column("v", "int"))
    memory = MemoryFormat()
    at = Refinement(source(*columns), memory, memory, MemoryControl(), Lake(str(tmp_path)))
    kinds = {"id": "int32", "b": "string", "n": "string", "v": "int64"}
    fields = [{"type": kind, "field": name, "optional": True} for name, kind in kinds.items()]
    block = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}, {"field": "op"}]}
    warnings = []
    for key in (1, 2):
        row = {"id": key, "b": "0aff", "n": "12.50", "v": 7}
        value = wrapped(envelope("c", row, pos=10 + key), block)
        memory.append(bronze(exact, [record(ORDERS, key, {"id": key}, value)]), at.lake.bronze("s"), None)
        [account] = silver.refine(exact, at)
        assert account.error is None
        warnings.append(account.warnings)
    rows = memory.read(exact, at.lake.silver("s", "shop.orders"))
    types_ = [("id", "int"), ("b", "binary"), ("n", "decimal(10,2)"), ("v", "bigint")]
    assert rows.select("id", "b", "n", "v").dtypes == types_
    assert {(bytes(row["b"]), row["n"]) for row in rows.collect()} == {(b"\x0a\xff", Decimal("12.50"))}
    assert warnings == [("v: declared, but the records' own schemas give other types",), ()]


def test_an_event_is_told_with_the_declared_values() -> None:
    """`tail` shows what silver holds; what is neither 0 nor 1 as it came."""
    reader = EventReader(source(*COLUMNS))
    rows = []
    for paid in (1, 7, None):
        kept = sent(0, -1, paid, SNAPSHOT)
        texts = [None if text is None else text.encode() for text in (kept.key, kept.value)]
        event = reader.event(Told(ORDERS, 0, 0, None, *texts))
        rows.append((dumps(event.key), dumps(event.after)))
    key = '{"id":18446744073709551615}'
    assert rows == [(key, f'{key[:-1]},"paid":{paid}}}') for paid in ("true", "7", "null")]


def test_letters_beyond_ascii_that_differ_by_case_are_of_two_columns() -> None:
    """G4, Y3: a table has both, so the type of one is not taken for the other's."""
    example = Example(1, False, False, False, "{}", '{"id": 1}', ("id",), ("id", "\u00c9", "\u00e9", "NAME"))
    known = {"id": "int", "\u00c9": "int", "\u00e9": "date", "name": "double"}
    form = build_form(example, Declaration(""), {name: parse_type(kind) for name, kind in known.items()})
    found = {field.name: str(field.logical) for field in form.fields}
    assert found == {"id": "int", "\u00c9": "int", "\u00e9": "date", "NAME": "double"}
    assert not form.raw
