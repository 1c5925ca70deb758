"""The schema of a batch against the schema of its table: no Spark needed."""

from __future__ import annotations

import pytest

from replicator.debezium.logical import Field, parse_logical
from replicator.debezium.schema import Form
from replicator.errors import ConfigError, SchemaRefused
from replicator.spec import Evolution
from replicator.transforms import evolve

SYSTEM = {"_seq": "string", "_deleted": "boolean", "_column_seq": "map<string,string>", "_source_ts_ms": "bigint"}


def form(columns: dict[str, str], keys: tuple[str, ...] = ("id",)) -> Form:
    """A form whose row has these columns and whose Kafka key has those of them."""
    fields = tuple(Field(name, parse_logical(kind)) for name, kind in columns.items())
    key_fields = tuple(field for field in fields if field.name in keys)
    return Form(id=1, path=("after",), key_path=(), fields=fields, key_fields=key_fields)


def test_a_new_table_gets_the_columns_of_its_first_batch() -> None:
    """Types as Spark spells them, the key from the records; nothing has to evolve."""
    layout, evolution = evolve.plan("t", [form({"id": "int", "price": "decimal(10,2)", "day": "date"})], None, ())
    assert dict(layout.types) == {"id": "int", "price": "decimal(10,2)", "day": "date"}
    assert layout.keys == ("id",)
    assert not evolution


def test_a_new_column_is_added_behind_the_others() -> None:
    """Silver evolves by union, and system columns are no columns of the source (G3)."""
    stored = {"id": "int", "old": "string"} | SYSTEM
    layout, evolution = evolve.plan("t", [form({"id": "int", "note": "string"})], stored, ("id",))
    assert list(layout.types) == ["id", "old", "note"]
    assert evolution == Evolution(added=(("note", "string"),))


@pytest.mark.parametrize(
    ("stored", "incoming", "wide"),
    [
        ("smallint", "int", "int"),
        ("int", "bigint", "bigint"),
        ("float", "double", "double"),
        ("decimal(10,2)", "decimal(14,4)", "decimal(14,4)"),
    ],
)
def test_a_type_widens(stored: str, incoming: str, wide: str) -> None:
    """Types.md section 8: the wider type holds every value of both."""
    layout, evolution = evolve.plan("t", [form({"id": "int", "v": incoming})], {"id": "int", "v": stored} | SYSTEM, ())
    assert layout.types["v"] == wide
    assert evolution == Evolution(widened=(("v", wide),))


def test_a_narrower_batch_leaves_the_table_alone() -> None:
    """A late record with the older, narrower type fits where it is."""
    stored = {"id": "int", "v": "decimal(14,4)"} | SYSTEM
    layout, evolution = evolve.plan("t", [form({"id": "int", "v": "decimal(10,2)"})], stored, ())
    assert layout.types["v"] == "decimal(14,4)"
    assert not evolution


def test_two_forms_of_one_batch_meet_in_the_wider_type() -> None:
    """A change of schema in the middle of a batch (G2)."""
    forms = [form({"id": "int", "v": "decimal(10,2)"}), form({"id": "int", "v": "decimal(14,4)", "w": "int"})]
    for order in (forms, forms[::-1]):
        layout, _ = evolve.plan("t", order, None, ())
        assert dict(layout.types) == {"id": "int", "v": "decimal(14,4)", "w": "int"}


@pytest.mark.parametrize(
    ("stored", "incoming"),
    [
        ("int", "string"),
        ("string", "int"),
        ("date", "timestamp"),
        ("decimal(10,2)", "decimal(10,4)"),
        ("double", "int"),
    ],
)
def test_a_type_that_cannot_be_reached_by_widening_stops_the_table(stored: str, incoming: str) -> None:
    """G3: never a silent conversion; the message names the column."""
    with pytest.raises(SchemaRefused, match="column v changed") as caught:
        evolve.plan("t", [form({"id": "int", "v": incoming})], {"id": "int", "v": stored} | SYSTEM, ())
    assert caught.value.mend


def test_another_key_stops_the_table() -> None:
    """Rows of two keys cannot be told apart in one table."""
    stored = {"id": "int", "other": "int"} | SYSTEM
    with pytest.raises(SchemaRefused, match="the key was id and is now other"):
        evolve.plan("t", [form({"id": "int", "other": "int"}, keys=("other",))], stored, ("id",))


def test_two_keys_in_one_batch_stop_the_table() -> None:
    """There is no order that makes both right."""
    with pytest.raises(SchemaRefused, match="the key changed"):
        evolve.plan("t", [form({"id": "int"}), form({"id": "int", "k": "int"}, keys=("k",))], None, ())


def test_a_declared_key_wins_where_records_name_none() -> None:
    """A table without a Kafka key can be declared one."""
    layout, _ = evolve.plan("t", [form({"id": "int", "v": "int"}, keys=())], None, ("id",))
    assert layout.keys == ("id",)


def test_columns_that_differ_by_case_only_are_refused() -> None:
    """In the batch, or between the batch and the table (G4)."""
    with pytest.raises(ConfigError):
        evolve.plan("t", [form({"id": "int", "V": "int", "v": "int"})], None, ())
    with pytest.raises(ConfigError):
        evolve.plan("t", [form({"id": "int", "V": "int"})], {"id": "int", "v": "int"} | SYSTEM, ())


@pytest.mark.parametrize("name", evolve.RESERVED)
def test_a_source_column_never_takes_the_place_of_ours(name: str) -> None:
    """N-3: a column that is called like one of ours is kept beside it, and its name comes back."""
    from replicator import names

    stored = evolve.stored_name(name)
    assert stored not in evolve.RESERVED
    assert names.decode(stored) == name


def test_a_hostile_column_is_stored_encoded() -> None:
    """Architecture 9.1."""
    layout, _ = evolve.plan("t", [form({"id": "int", "a.b c": "int"})], None, ())
    assert list(layout.types) == ["id", "a_x2e_b_x20_c"]
