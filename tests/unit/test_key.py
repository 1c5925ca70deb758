"""A row's key as people type it, and as records spell it."""

from __future__ import annotations

import pytest

from replicator.errors import ConfigError
from replicator.operate import key


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
def test_a_key_is_typed_in_order_or_by_name(text, names, found):
    """`1`, `a,b`, `name=value,...`; double quotes hold a comma together."""
    assert key.parse(text, names) == found


@pytest.mark.parametrize(("text", "names"), [("1", ["x", "y"]), ("1,2", ["id"]), ("", ["id"]), ("x=1,x=2", ["x", "y"])])
def test_a_key_of_another_size_is_refused_with_the_columns_that_it_has(text, names):
    """The sentence names them all."""
    with pytest.raises(ConfigError, match=", ".join(names)):
        key.parse(text, names)


@pytest.mark.parametrize(
    ("spelling", "found"),
    [
        ('{"y":"b","x":1}', ("1", "b")),
        ('{"schema":{"type":"struct"},"payload":{"x":1,"y":"b"}}', ("1", "b")),
        ('{"x":1}', ()),
        ("1", ()),
        ("{oops", ()),
        (None, ()),
        ("[" * 100_000, ()),
    ],
)
def test_a_key_in_json_gives_its_parts_as_texts(spelling, found):
    """Wrapped or not; what is no key of the table gives nothing."""
    assert key.text(spelling, {"x": "", "y": ""}) == found


def test_whole_numbers_are_spelled_as_spark_spells_them():
    """``007`` is 7; what is no number is refused before anything is read."""
    kinds = {"x": "bigint", "y": "string"}
    assert key.typed({"x": "007", "y": "007"}, kinds) == {"x": "7", "y": "007"}
    with pytest.raises(ConfigError, match="whole numbers"):
        key.typed({"x": "a", "y": "a"}, kinds)
