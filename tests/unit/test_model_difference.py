"""A gold model's rows now against the rows it had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from replicator.transforms.model import ROW_NUMBER, compare, count_keys
from tests.builders import made

pytestmark = pytest.mark.spark

ROWS = "id INT, part STRING, price DECIMAL(10,2), note STRING"


def rows(session: SparkSession, *values: tuple[Any, ...], ddl: str = ROWS) -> DataFrame:
    return made(session, list(values), ddl)


def difference(stored: DataFrame | None, fresh: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows to write."""
    found = compare(stored, fresh, key)
    return found.rows.where(found.differs).drop(ROW_NUMBER)


def test_only_rows_that_differ_are_written(exact: SparkSession) -> None:
    """Added, changed and gone; a NULL that stays is no change, one that comes or goes is."""
    stored = rows(exact, (1, "a", None, "same"), (2, "a", None, "old"), (3, "a", None, "gone"), (4, "a", None, None),
                  (5, "a", None, "x"), (1, "b", None, "same"))  # fmt: skip
    fresh = rows(exact, (1, "a", None, "same"), (2, "a", None, "new"), (4, "a", None, "x"), (5, "a", None, None),
                 (6, "a", None, "added"), (1, "b", None, "same"))  # fmt: skip
    expected = rows(
        exact,
        (2, "a", None, "new", "upsert"), (3, "a", None, None, "delete"), (4, "a", None, "x", "upsert"),
        (5, "a", None, None, "upsert"), (6, "a", None, "added", "upsert"),
        ddl=f"{ROWS}, _op STRING",
    )  # fmt: skip
    found = difference(stored, fresh, ["id", "part"])
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_before_the_first_build_everything_is_written(exact: SparkSession) -> None:
    """There is nothing to compare with."""
    found = difference(None, rows(exact, (1, "a", None, "x")), ["id", "part"])
    expected = rows(exact, (1, "a", None, "x", "upsert"), ddl=f"{ROWS}, _op STRING")
    assert_df_equality(found, expected, ignore_nullable=True)


def test_equal_rows_make_an_empty_difference(exact: SparkSession) -> None:
    """Columns are matched by name: their order in the table is its own affair."""
    stored = rows(exact, ("x", 1, "a", None), ddl="note STRING, id INT, part STRING, price DECIMAL(10,2)")
    assert difference(stored, rows(exact, (1, "a", None, "x")), ["id", "part"]).isEmpty()


def test_a_key_that_repeats_or_holds_null_is_told(exact: SparkSession) -> None:
    """A model has one row per key; every part of the key is there."""
    some = rows(exact, (1, "a", None, ""), (1, "a", None, ""), (2, None, None, ""), (3, "a", None, ""))
    found = count_keys(some, ["id", "part"])
    assert sorted((row["count"], row["broken"]) for row in found.collect()) == [(1, False), (1, True), (2, True)]
