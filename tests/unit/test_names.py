"""Names that survive paths, columns and SQL."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator import names
from replicator.errors import ConfigError

HOSTILE = [
    "a.b", "Odd Names.é", "_x2e_", "__x2e_", "_x5f_", "_x2e", "_x2é", "_x2eé", "_x2e.", "x2e_", "_", "___", "._", "_.",
    "é_x", "名前", "🚚", "a`b", 'a"b', "a'b;--", "../..", "a/b", "\x00", "\n", "\ud800", "_x2E_", "%2e", " lead",
    "trail ",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_comes_back(name: str) -> None:
    """Nothing that a source can call a column is lost."""
    assert names.decode(names.encode(name)) == name


@given(st.text(min_size=1) | st.text(alphabet="_x2e5f.é", min_size=1, max_size=12))
def test_every_name_comes_back(name: str) -> None:
    """The encoder is reversible, and so two names never share a path."""
    assert names.decode(names.encode(name)) == name


@given(st.text(min_size=1))
def test_an_encoded_name_is_letters_digits_and_underscores(name: str) -> None:
    """What no file system, no Delta column and no catalog refuses."""
    assert re.fullmatch("[A-Za-z0-9_]+", names.encode(name))


@given(st.from_regex(r"[A-Za-z][A-Za-z0-9]*(_[A-Z0-9]+)*", fullmatch=True))
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    """Paths and columns can be read."""
    assert names.encode(name) == name


@given(st.text(min_size=1).filter(lambda t: "." not in t), st.text(min_size=1))
def test_a_table_name_comes_back_in_two_parts(schema: str, table: str) -> None:
    """The first dot separates, every other one is part of the table's name."""
    encoded = names.encode_table(f"{schema}.{table}")
    assert encoded.count(".") == 1
    assert names.decode_table(encoded) == f"{schema}.{table}"


@pytest.mark.parametrize("name", ["x_xff_", "_xe9_", "a_xc3__x28_b"])
def test_a_name_that_nobody_encoded_stays_as_it_is(name: str) -> None:
    """A folder that somebody else made beside ours: it ended every look at its lake with a trace of Python's."""
    assert names.decode(name) == name
    assert names.decode(names.encode(name)) == name


@given(st.text(min_size=1), st.text(min_size=1))
def test_what_was_encoded_is_known_as_such(schema: str, table: str) -> None:
    """Each of its parts."""
    assert names.is_encoded(names.encode_table(f"{names.encode(schema)}.{table}"))
    assert names.is_encoded(names.encode(table))


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "orders-bak", "orders (copy)", "x_xff_", "_x41_", "é"])
def test_what_nobody_encoded_is_known_as_such(name: str) -> None:
    """What :func:`encode` gives back for its meaning is another name."""
    assert not names.is_encoded(name)


def test_an_empty_name_is_refused() -> None:
    """There is no column and no folder without a name."""
    with pytest.raises(ConfigError, match="empty"):
        names.encode("")


def test_names_that_differ_by_case_only_are_refused() -> None:
    """No table format keeps Id and id apart (G4)."""
    names.refuse_case_conflict(["id", "name", "id"], "table t")
    with pytest.raises(ConfigError, match="'Id' and 'id'"):
        names.refuse_case_conflict(["Id", "name", "id"], "table t")


def test_quotes_are_doubled() -> None:
    """An identifier never ends where its owner did not say so."""
    assert names.quote_spark("a`b.c") == "`a``b.c`"
    assert names.quote_postgres('s"x', "t") == '"s""x"."t"'


def test_of_many_names_a_sentence_has_the_first() -> None:
    """Six hundred columns are no sentence; how many more there are is."""
    assert names.shorten_list(["a", "b", "c"]) == "a, b, c"
    assert names.shorten_list([f"c{at}" for at in range(602)], limit=3) == "c0, c1, c2 and 599 more"
