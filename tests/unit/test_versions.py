"""A condition over a column that has had several types reads the value that a row has, of whichever type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.errors import TableStopped
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import EQUAL
from replicator.spec import Declaration, Transform
from replicator.transforms.table_transform import versions
from replicator.transforms.table_transform.binding import InvalidTransform, bind
from tests.builders import made
from tests.unit.test_schema_change import World, change
from tests.unit.test_transforms import _CHANGES, KEY, NAME

pytestmark = pytest.mark.spark


def world(spark: SparkSession, folder: Path, **steps: Any) -> World:
    return World(spark, folder, Declaration("shop.orders", transform=Transform(**steps)))


PASSES = "cast(v AS string) IN ('7', 'yes')"
MEANT = {"where": PASSES, "as_deletes": f"NOT ({PASSES})"}
"""The same rows, by either option."""


@pytest.mark.parametrize("option", MEANT)
def test_a_row_is_judged_by_the_value_that_it_has(exact: SparkSession, tmp_path: Path, option: str) -> None:
    """Behind a change of type as before it; a value that is NULL in both is NULL. A row written again by another type
    is judged by that one. One batch or several, and a rebuild, end alike.
    """
    told = [
        change(0, 1, {"v": ("int32", 7)}, "c"),
        change(1, 2, {"v": ("int32", 8)}, "c"),
        change(2, 3, {"v": ("string", "yes")}, "c"),
        change(3, 4, {"v": ("string", "no")}, "c"),
        change(4, 5, {"v": ("string", "7")}, "c"),
        change(5, 1, {"v": ("string", "no")}),
        change(6, 2, {"v": ("string", "yes")}),
        change(7, 6, {"v": ("string", None)}, "c"),
    ]
    wanted = {2: "yes", 3: "yes", 5: "7"} | ({6: None} if option == "as_deletes" else {})
    for number, sizes in enumerate(([8], [2, 3, 3])):
        here = world(exact, tmp_path / str(number), **{option: MEANT[option]})
        rest = iter(told)
        for size in sizes:
            account = here.take(*[next(rest) for _ in range(size)])
            assert (account.error, account.dead_lettered) == (None, 0)
        assert {key: row["v__v2"] for key, row in here.shown().items()} == wanted
    assert rebuild(exact, here.at, "shop.orders", RebuildOptions(dry=True)).verdict == EQUAL


@pytest.fixture
def rows(exact: SparkSession) -> DataFrame:
    """Of two columns that had three types and two."""
    told = [
        (1, 1, None, None, "a", None),
        (2, None, "1", None, "a", None),
        (3, None, None, True, None, 5),
        (4, None, "2", None, None, 5),
        (5, None, None, None, "b", None),
    ]
    return made(exact, told, "id INT, v INT, v__v2 STRING, v__v3 BOOLEAN, w STRING, w__v2 INT")


def test_several_columns_of_several_types_are_asked_each_by_its_own(rows: DataFrame) -> None:
    """Whatever their order and that of their types; others stay as they are."""
    value = F.expr("coalesce(cast(v AS int) = 1, false) AND cast(w AS string) IN ('a', '5')")
    over = versions.implicit_versions(rows, value)
    assert over == {"v": ["v", "v__v2", "v__v3"], "w": ["w", "w__v2"]}
    for columns in (rows.columns[1:], rows.columns[:0:-1]):
        told = versions.evaluate(rows.select("id", *columns), value, "told", over)
        assert told.columns == ["id", *columns, "told"]
        assert [row["id"] for row in told.where("told").sort("id").collect()] == [1, 2, 3]
    assert versions.evaluate(rows, value, "told", over).drop("told").collect() == rows.collect()
    assert versions.implicit_versions(rows, F.expr("coalesce(v = 1, v__v2 = '1', v__v3)")) == {}
    assert versions.implicit_versions(rows, F.expr("id = 1")) == {}


def test_what_names_some_of_the_types_names_them_all(exact: SparkSession) -> None:
    """Half of the rows would be judged by NULL; the plain name alone is right, and says so. What a step makes of the
    columns, or a function, is a column like others.
    """
    changes = made(exact, [], _CHANGES.replace("total INT", "email__v2 INT, total INT"))

    def fit(**steps: Any) -> frozenset[str]:
        return bind(Transform(**steps), None, KEY, NAME, changes, ("id",)).filtered_by

    with pytest.raises(
        InvalidTransform, match="`where` reads a column that has had several types: it must also read email"
    ):
        fit(where="email__v2 = 1")
    assert fit(where="email = 'x' OR email__v2 = 1") == {"email", "email__v2"}
    assert fit(where="email = 'x'") == {"email", "email__v2"}
    assert fit(where="email = 'x'", derive=(("email", "upper(email)"),)) == {"email"}
    assert fit(where="total > 1") == {"total"}


def test_a_type_that_the_condition_cannot_take_stops_the_table(exact: SparkSession, tmp_path: Path) -> None:
    """D: loud, and what was there stays as it is."""
    here = world(exact, tmp_path, as_deletes="v")
    assert here.take(change(0, 1, {"v": ("boolean", False)}, "c")).error is None
    account = here.take(change(1, 2, {"v": ("string", "yes")}, "c"))
    assert isinstance(account.error, TableStopped)
    assert "it returns string over v__v2, not a boolean: handle each type explicitly" in str(account.error)
    assert set(here.shown()) == {1}
