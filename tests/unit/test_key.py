"""A row's key as people type it, and as records spell it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from replicator.errors import ConfigError
from replicator.operate.row import key


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("1", ["id"], {"id": "1"}),
        ("a,b", ["x", "y"], {"x": "a", "y": "b"}),
        ("y=b,x=a", ["x", "y"], {"x": "a", "y": "b"}),
        ("id=1", ["id"], {"id": "1"}),
        ("a=b", ["id"], {"id": "a=b"}),
        ('"a,b",c', ["x", "y"], {"x": "a,b", "y": "c"}),
        ("x=a=b,y=", ["x", "y"], {"x": "a=b", "y": ""}),
    ],
)
def test_a_key_is_typed_in_order_or_by_name(text: str, names: list[str], found: dict[str, str]) -> None:
    """`1`, `a,b`, `name=value,...`; double quotes hold a comma together."""
    assert key.parse(text, names) == found


@pytest.mark.parametrize(("text", "names"), [("1", ["x", "y"]), ("1,2", ["id"]), ("", ["id"]), ("x=1,x=2", ["x", "y"])])
def test_a_key_of_another_size_is_refused_with_the_columns_that_it_has(text: str, names: list[str]) -> None:
    """The sentence names them all."""
    with pytest.raises(ConfigError, match=", ".join(names)):
        key.parse(text, names)


def test_a_line_break_in_a_key_stands_in_double_quotes() -> None:
    """Elsewhere it would end the row of CSV that a key is written as."""
    assert key.parse('"name=a\nb",y=c', ["name", "y"]) == {"name": "a\nb", "y": "c"}
    with pytest.raises(ConfigError, match="in double quotes"):
        key.parse("a\nb", ["name"])


@pytest.mark.parametrize(
    ("spelling", "found"),
    [
        ('{"y":"b","x":1}', ("1", "b")),
        ('{"schema":{"type":"struct"},"payload":{"x":1,"y":"b"}}', ("1", "b")),
        ('{"Y":"b","X":1}', ("1", "b")),
        ('{"x":1}', ()),
        ("1", ()),
        ("{oops", ()),
        (None, ()),
        ("[" * 100_000, ()),
    ],
)
def test_a_key_in_json_gives_its_parts_as_texts(spelling: str | None, found: tuple[str, ...]) -> None:
    """Wrapped or not, in whichever case the source spells its names; what is no key of the table gives nothing."""
    assert key.parse_json(spelling, {"x": "", "y": ""}) == found


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("bigint", "007", "7"),
        ("bigint", "-7", "-7"),
        ("string", "007", "007"),
        ("decimal(10,2)", "1.5", "1.50"),
        ("decimal(10,2)", "1e1", "10.00"),
        ("boolean", "True", "true"),
        ("date", "2026-1-2", "2026-01-02"),
        ("timestamp", "2026-01-01T00:00:00Z", "2026-01-01 00:00:00"),
        ("timestamp", "2026-01-01 02:00:00.5+02:00", "2026-01-01 00:00:00.5"),
        ("timestamp_ntz", "2026-01-01T10:00", "2026-01-01 10:00:00"),
        ("double", "1.50", "1.5"),
        ("binary", "x", "x"),
    ],
)
def test_a_value_is_spelled_as_spark_spells_it(exact: SparkSession, kind: str, value: str, found: str) -> None:
    """Whichever way people write it."""
    assert key.cast_values(exact, {"x": value, "y": "'a"}, {"x": kind, "y": "string"}) == {"x": found, "y": "'a"}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("bigint", "a", "whole numbers"),
        ("bigint", "1.5", "whole numbers"),
        ("int", "99999999999999999999", "whole numbers"),
        ("decimal(10,2)", "1.555", r"values of decimal\(10,2\)"),
        ("decimal(10,2)", "", r"values of decimal\(10,2\)"),
        ("boolean", "2", "true and false"),
        ("date", "20454", "dates like"),
        ("date", "2026", "dates like"),
        ("date", "2026-02-30", "dates like"),
        ("timestamp", "1767225600000", "times like"),
        ("timestamp", "12:00", "times like"),
    ],
)
def test_a_value_of_another_type_is_refused(exact: SparkSession, kind: str, value: str, said: str) -> None:
    """It would be told that there is no such row, or the life of another one."""
    with pytest.raises(ConfigError, match=f"the key column x holds {said}.*, which '{value}' is not"):
        key.cast_values(exact, {"x": value}, {"x": kind})
