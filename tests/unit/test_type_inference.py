"""Types that nobody describes (types.md Y14, Y15): no Spark needed."""

from __future__ import annotations

import pytest

from replicator.debezium import type_inference
from replicator.debezium.logical_types import LogicalType


def settled(*values: str) -> str:
    """The type of a column whose values are spelled like this, one record each."""
    records = [f'{{"after":{{"v":{value}}}}}' for value in values]
    return (
        type_inference.resolve_types(type_inference.field_kinds(records, ("after",)))
        .get("v", LogicalType("nothing"))
        .name
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-7", "null"], "bigint"),
        (["9223372036854775807", "-9223372036854775808"], "bigint"),
        (["9223372036854775808"], "string"),
        (["1.5", "2e3"], "double"),
        (["1", "1.5"], "double"),
        (["1.5", "999999999999999"], "double"),
        (["1.5", "9007199254740993"], "string"),
        (["-9007199254740993", "1", "1.5"], "string"),
        (["1", "9007199254740993"], "bigint"),
        (["1.5", '"NaN"', '"-Infinity"', "2"], "double"),
        (['"Infinity"', "1"], "string"),
        (['"NaN"', '"x"', "1.5"], "string"),
        (['"NaN"'], "string"),
        (["0.1234567890123456"], "string"),
        (["1.5", "1234567890.1234567"], "string"),
        (["true", "false"], "boolean"),
        (["true", "1"], "string"),
        (['"2024-01-01"', '"12.50"'], "string"),
        (['"1"', "1"], "string"),
        (['{"a":1}', "[1]"], "string"),
        (["null"], "nothing"),
    ],
)
def test_a_column_gets_the_only_kind_that_was_seen(values: list[str], kind: str) -> None:
    """Never a decimal, a date or a time; what does not fit together is text."""
    assert settled(*values) == kind


def test_the_text_of_a_value_is_the_records_own() -> None:
    """Digits, zeros and spaces inside are kept exactly: nothing is parsed and written again."""
    text = ' { "after" : { "a" : 1.50 , "b":"x\\u0041", "c" : {"d": [1, 2]} , "e":null,"f": 1E+2 } , "z":0}'
    expected = {"a": "1.50", "b": '"x\\u0041"', "c": '{"d": [1, 2]}', "e": "null", "f": "1E+2"}
    assert type_inference.raw_fields(text, ("after",)) == expected


def test_where_there_is_no_row_there_are_no_fields() -> None:
    """Deletes and tombstones infer nothing."""
    for text in ('{"after":null}', '{"after":1}', "{}", '{"payload":{}}', "null", '{"after":{}}'):
        assert type_inference.raw_fields(text, ("after",)) == {}


def test_a_path_leads_through_a_wrapper() -> None:
    """The payload of a record whose schema is null."""
    assert type_inference.raw_fields('{"schema":null,"payload":{"after":{"id":7}}}', ("payload", "after")) == {
        "id": "7"
    }


def test_hostile_field_names_are_read() -> None:
    """Quotes, back-slashes and any Unicode in a name (G5)."""
    assert type_inference.raw_fields('{"a\\"b":1,"名":2,"":3}', ()) == {'a"b': "1", "名": "2", "": "3"}


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 990 + "]" * 990,
        '{"a":' * 990 + "1" + "}" * 990,
        '["]",{"}":"\\\\"},"\\"[",[]]',
        '{"a":[{}],"b":"}"}',
        "[]",
    ],
    ids=["lists", "objects", "brackets in texts", "mixed", "empty"],
)
def test_a_nested_value_ends_where_it_ends(raw: str) -> None:
    """R5: what Spark can still read is a value, however deep, and no record that stops its table."""
    assert type_inference.raw_fields(f'{{"a": {raw} , "b":1}}', ()) == {"a": raw, "b": "1"}
