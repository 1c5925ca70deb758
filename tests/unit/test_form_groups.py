"""Forms of records with other columns are decoded as one where that says the same of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.debezium.logical_types import Field
from replicator.debezium.schema import Form
from replicator.debezium.type_parser import parse_type
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from replicator.stages.table import ordering, schema_change
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick import tick_split, ticks
from replicator.transforms.columns.layout import Layout
from replicator.transforms.decode import DecodeOptions, decode
from replicator.transforms.form_groups import group_forms
from tests.builders import Record, bronze, record

LAYOUT = Layout({"id": "int", "a": "int", "b": "string", "c": "string"}, ("id",))
KEY = (Field("id", parse_type("int")),)


def form(number: int, /, **columns: str) -> Form:
    fields = tuple(Field(name, parse_type(kind), default=[]) for name, kind in columns.items())
    return Form(number, ("after",), (), fields, KEY, fields)


def ids(*forms: Form) -> list[tuple[int, ...]]:
    return [each.ids for each in group_forms(forms, LAYOUT)]


def test_forms_that_agree_are_one_with_the_columns_of_all() -> None:
    """E8: a column that a record does not name is NULL. Forms without a row, as of deletes, stay apart."""
    some = form(1, id="int", a="int"), form(2, id="int", b="string"), form(3), form(4, c="string", id="int", a="int")
    assert ids(*some) == [(1, 2, 4), (3,)]
    assert [field.name for field in group_forms(some, LAYOUT)[0].form.fields] == ["id", "a", "b", "c"]


@pytest.mark.parametrize(
    "other",
    [
        form(2, id="int", a="string"),
        form(2, id="int", A="int"),
        form(2, a="int"),
        form(2, id="int", c="int"),
        replace(form(2, id="int", a="int"), raw=frozenset({"a"})),
        replace(form(2, id="int", a="int"), path=("payload", "after")),
        replace(form(2, id="int", a="int"), key_fields=()),
    ],
    ids=["type", "case", "key", "misfit", "raw", "path", "keys"],
)
def test_forms_that_do_not_agree_stay_apart(other: Form) -> None:
    """A column of another type or case, one that the table cannot follow, a key or a row that stands elsewhere."""
    assert ids(form(1, id="int", a="int"), other) == [(1,), (2,)]


def test_rows_whose_key_is_made_of_their_columns_stay_apart() -> None:
    """Append-only tables: which columns a record has is a part of which row it is."""
    one, other = (replace(form(n, id="int"), appended=True) for n in (1, 2))
    assert ids(one, other) == [(1,), (2,)]


@pytest.mark.spark
def test_documents_with_other_columns_each_are_decoded_at_once(exact: SparkSession, tmp_path: Path) -> None:
    """One plan for all of them, in which every document has its own values, and no other."""
    declared = Declaration("shop.docs", (Column("_id", "string"), *(Column(f"f{bit}", "int") for bit in range(5))))
    format_ = MemoryFormat()
    source = SourceSpec("s", ".*", tables=(declared,))
    at = Refinement(source, format_, format_, MemoryControl(), Lake(str(tmp_path)), 1.0)
    at.bronze.append(bronze(exact, map(document, range(32))), at.lake.bronze("s"), None)
    with ticks.read_next(exact, at) as tick:
        assert tick is not None
        shared = tick_split.split_by_table(tick)
        [share] = shared.shares
        assert len(share.rows) == 32
        rows = share.changes_in(shared.records)
        forms, _ = forms_of.from_groups(share.rows, rows, share.declaration, None)
        ordered = ordering.order_records(share, rows)
        layout = schema_change.plan_change(share, ordered, forms, None).plan.layout
        changes = decode(ordered, forms, layout, share.name, DecodeOptions())
        assert "Union" not in str(changes._jdf.queryExecution().analyzed().toString())
    [account] = silver.refine(exact, at)
    assert (account.error, account.applied) == (None, 32)
    stored = at.silver.read(exact, at.lake.silver("s", "shop.docs")).collect()
    assert {row["_id"]: {c: row[c] for c in row.asDict() if c[0] == "f"} for row in stored} == {
        str(number): {f"f{bit}": fields(number).get(f"f{bit}") for bit in range(5)} for number in range(32)
    }


def fields(number: int) -> dict[str, int]:
    return {f"f{bit}": number * 10 + bit for bit in range(5) if number >> bit & 1}


def document(number: int) -> Record:
    source: dict[str, Any] = {"connector": "mongodb", "name": "s", "db": "shop", "collection": "docs", "ts_ms": 1}
    after = ",".join(f'"{name}":{value}' for name, value in {"_id": number, **fields(number)}.items())
    value = {"before": None, "after": f"{{{after}}}", "source": source, "op": "c"}
    return record("s.shop.docs", number, {"id": str(number)}, value)
