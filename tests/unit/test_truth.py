"""Comparing two sets of rows by content."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from infra.truth import compare

KEY = ("id",)


def row(key: object, **columns: object) -> dict[str, object]:
    return {"id": key, **columns}


def test_the_same_rows_in_another_order_are_equal() -> None:
    """Order is no content; the report counts the rows."""
    left = [row(1, name="a"), row(2, name=None)]
    difference = compare(left, reversed(left), KEY)
    assert difference.equal
    assert str(difference) == "2 rows, equal"


def test_two_empty_sides_are_equal() -> None:
    """No rows expected, none there."""
    assert compare([], [], KEY).equal


def test_missing_and_unexpected_rows_are_told_by_key() -> None:
    """A key that only one side has."""
    difference = compare([row(1), row(2)], [row(2), row(3)], KEY)
    assert (difference.missing, difference.unexpected) == (((1,),), ((3,),))
    assert not difference.equal


def test_a_row_that_comes_twice_is_repeated_even_when_it_is_the_same() -> None:
    """A duplicate is never hidden by the key."""
    assert compare([row(1)], [row(1), row(1)], KEY).repeated == ((1,),)
    assert compare([row(1), row(1)], [row(1), row(1)], KEY).repeated == ((1,),)


def test_different_columns_are_named() -> None:
    """Key -> the columns whose values differ, in the order of the expected row."""
    difference = compare([row(1, a="x", b=1, c=None)], [row(1, a="y", b=1, c="")], KEY)
    assert difference.different == {(1,): ("a", "c")}


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, True),
        (1, 1.0),
        (Decimal("1.10"), 1.1),
        (Decimal(1), 1),
        (Decimal("1.10"), "1.10"),
        (date(2003, 1, 6), datetime(2003, 1, 6)),  # noqa: DTZ001 (what a reader without zones gives)
        ("a", "a "),
        ("a", "A"),
        (None, ""),
        (None, 0),
        ("é", "e\u0301"),
    ],
)
def test_a_value_of_another_type_or_spelling_is_different(expected: object, actual: object) -> None:
    """Nothing is made equal by rounding, casting, trimming or folding."""
    assert compare([row(1, value=expected)], [row(1, value=actual)], KEY).different == {(1,): ("value",)}


def test_decimals_are_compared_by_value() -> None:
    """A database may print more zeros than another."""
    assert compare([row(1, value=Decimal("1.10"))], [row(1, value=Decimal("1.1"))], KEY).equal


def test_a_column_that_the_actual_row_lacks_is_different_even_if_null_is_expected() -> None:
    """An absent column is not NULL."""
    assert compare([row(1, value=None)], [row(1)], KEY).different == {(1,): ("value",)}


def test_columns_that_only_the_actual_row_has_are_ignored() -> None:
    """Silver carries columns of its own."""
    assert compare([row(1)], [row(1, _seq="0")], KEY).equal


def test_keys_of_several_columns_and_null_keys_are_compared() -> None:
    """A key is the tuple of its columns, NULL included."""
    difference = compare([{"a": 1, "b": None}], [{"a": 1, "b": 2}], ("a", "b"))
    assert (difference.missing, difference.unexpected) == (((1, None),), ((1, 2),))


def test_the_report_names_keys_and_columns_but_no_values() -> None:
    """No row value reaches a log."""
    told = str(compare([row(1, name="secret"), row(2)], [row(1, name="other"), row(3)], KEY))
    assert told == (
        "2 rows, 2 expected: 1 missing (first: (2,)); 1 unexpected (first: (3,)); 1 different (first: (1,) in name)"
    )


def test_a_row_without_its_key_column_is_an_error() -> None:
    """The caller named a wrong key."""
    with pytest.raises(KeyError):
        compare([{"a": 1}], [], KEY)
