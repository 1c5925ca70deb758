"""Checks of gold models: which rows break them, and what becomes of a build that they break."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import ChecksFailed, ConfigError, EngineFailed, TableStopped
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import checks, plan
from replicator.operate.rebuild import RebuildOptions
from replicator.operate.rebuild_all import rebuild_model
from replicator.operate.rebuilding.rebuild_result import REPLACED
from replicator.spec import INCREMENTAL, Model, ModelColumn, Progress
from replicator.spec.rules import (
    WARN,
    AcceptedValues,
    Check,
    Expression,
    NotNull,
    Relationship,
    RowCountChange,
    SemiAdditive,
    Unique,
)
from replicator.stages import gold, tuning
from replicator.stages.gold import RefreshResult
from replicator.stages.models import model_checks
from replicator.stages.models.model_parents import Parents
from replicator.stages.models.warehouse import Warehouse
from tests.builders import made

pytestmark = pytest.mark.spark

ROWS = "id INT, status STRING, `un it` STRING, price DECIMAL(10,2), place STRING, day DATE, parent INT"
RULES = {
    "not_null(status)": NotNull("status"),
    "unique(status, un it)": Unique(("status", "un it")),
    "accepted_values(price)": AcceptedValues("price", (1, 2.5, "3.00")),
    "relationship(parent -> parents.id)": Relationship("parent", "parents", "id"),
    "relationship(parent -> m.id)": Relationship("parent", "m", "id"),
    "expression(price > 1)": Expression("price > 1"),
    "semi_additive(price)": SemiAdditive("price", ("place",), "day"),
}
MONTHS = SemiAdditive("price", ("place",), "day", "month")


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> SparkSession:
    """A session for little data."""
    return tuning.session_for(spark, 0)


def checked(*rules: Any, severity: str = "fail") -> tuple[Check, ...]:
    return tuple(Check(str(rule), rule, severity) for rule in rules)


def columns(*names: str) -> tuple[ModelColumn, ...]:
    return tuple(ModelColumn(name, "text") for name in names)


def test_each_kind_of_check_finds_the_rows_that_break_it(small: SparkSession) -> None:
    """A NULL breaks not_null only; values compare in the column's type; a model may refer to itself."""
    day = date(2024, 1, 31)
    rows = made(small, [
        (1, "open", "a", Decimal("1.00"), "x", day, 1),
        (2, "open", "a", Decimal("2.50"), "x", date(2024, 2, 29), 9),
        (3, None, "a", Decimal("3.00"), "y", day, None),
        (4, None, "a", Decimal("4.00"), "y", day, 2),
        (5, "shut", None, None, "z", None, 2),
        (6, "shut", None, Decimal("2.50"), "z", date(2024, 1, 1), 2),
        (7, "gone", "b", Decimal("2.50"), "z", date(2024, 4, 2), 2),
    ], ROWS)  # fmt: skip
    parents = made(small, [(1,), (2,)], "id INT")
    model = Model("m", "", {}, ("id",), (), checks=checked(*RULES.values(), MONTHS, RowCountChange(max_drop=0.1)))
    found = [(v.check.name, v.rows, v.keys) for v in model_checks.check_stored(model, rows, Parents(lambda _: parents))]
    told = {name: (count, [key.removeprefix("id=") for key in keys]) for name, count, keys in found[:-1]}
    assert told == {
        "not_null(status)": (2, ["3", "4"]),
        "accepted_values(price)": (1, ["4"]),
        "expression(price > 1)": (1, ["1"]),
        "unique(status, un it)": (2, ["1", "2"]),
        "relationship(parent -> parents.id)": (1, ["2"]),
        "relationship(parent -> m.id)": (1, ["2"]),
        "semi_additive(price)": (3, ["3", "4", "5"]),
    }
    assert found[-1] == ("semi_additive(price)", 4, ("id=3", "id=4", "id=5"))


def test_keys_are_shown_as_spark_writes_them(small: SparkSession) -> None:
    """A date that Python does not have names its row, too, and ends no run of other models."""
    rows = small.sql("SELECT DATE'9999-12-31' + INTERVAL 1 DAY AS day, TIMESTAMP'2024-03-31 02:30:00' AS at, 1 AS n")
    model = Model("m", "", {}, ("day", "at"), (), checks=checked(Expression("n > 1")))
    [found] = model_checks.check_stored(model, rows, Parents(lambda _: rows))
    assert str(found) == "expression(n > 1): 1 row fails (day=+10000-01-01 at=2024-03-31 02:30:00)"


def warehouse(tables: MemoryFormat) -> Warehouse:
    """All layers in one format."""
    return Warehouse(tables, tables, control=MemoryControl(), lake=Lake("memory"), full_share=2.0, full_bytes=0)


@dataclass
class Shop:
    """Two tables of silver, customers and orders, and the models over them; all in memory."""

    spark: SparkSession
    models: list[Model]
    at: Warehouse = field(default_factory=lambda: warehouse(MemoryFormat()))
    batch: int = 0

    def write(self, table: str, rows: Iterable[tuple[Any, ...]] = (), gone: Iterable[int] = ()) -> None:
        """Rows (id, number, text) of a table, and ids that are deleted."""
        self.batch += 1
        told = [(*row, f"{self.batch:03}", False, None, self.batch, "upsert") for row in rows]
        told += [(key, None, None, f"{self.batch:03}", True, None, self.batch, "upsert") for key in gone]
        ddl = "id INT, number INT, text STRING, _seq STRING, _deleted BOOLEAN, _column_seq MAP<STRING,STRING>"
        frame = made(self.spark, told, f"{ddl}, _source_ts_ms BIGINT, _op STRING")
        frame = frame.withMetadata("id", {"key": 0, "name": "id"})
        self.at.silver.put(frame, self.at.lake.silver("s", f"db.{table}", ("id",)), Progress("bronze", self.batch))

    def build(self) -> dict[str, RefreshResult]:
        return {built.model: built for built in gold.refresh(self.spark, self.models, self.at)}

    def rows(self, model: str = "orders") -> list[tuple[Any, ...]]:
        found: DataFrame = self.at.gold.read(self.spark, self.at.lake.gold(model))
        return sorted(tuple(row) for row in found.collect())


def orders(*held: Check) -> Model:
    sql = "SELECT id, number AS customer, text AS status FROM {orders}"
    return Model(
        "orders", sql, {"orders": "s/db.orders"}, ("id",), columns("id", "customer", "status"),
        lineage={"orders": ("id",)}, refresh=INCREMENTAL, checks=held,
    )  # fmt: skip


CUSTOMERS = Model(
    "customers", "SELECT id, text AS name FROM {c}", {"c": "s/db.customers"}, ("id",), columns("id", "name"),
    lineage={"c": ("id",)}, refresh=INCREMENTAL,
)  # fmt: skip


def test_of_models_that_do_not_read_each_other_those_with_most_inputs_begin() -> None:
    """A fact takes longest: beside it the dimensions have time. No model comes before one that it reads."""
    fact = replace(orders(), name="fact", inputs={"orders": "s/db.orders", "c": "s/db.customers"})
    behind = replace(CUSTOMERS, name="behind", inputs={"fact": "fact"})
    waves = gold.waves([CUSTOMERS, orders(), fact, behind])
    assert [[each.name for each in wave] for wave in waves] == [["fact", "customers", "orders"], ["behind"]]


def test_a_check_that_fails_leaves_gold_as_it_was_and_other_models_go_on(small: SparkSession) -> None:
    """The error names the check, how many rows break it and some of their keys, and no other value; the next build
    sees the same rows again. A parent that comes with the same batch is built first.
    """
    rules = [Relationship("customer", "customers", "id"), NotNull("status"), Unique(("status",))]
    shop = Shop(small, [orders(*checked(*rules)), CUSTOMERS])
    assert [[each.name for each in wave] for wave in gold.waves([CUSTOMERS, shop.models[0]])] == [
        ["customers"],
        ["orders"],
    ]
    shop.models.reverse()
    shop.write("customers", [(1, 0, "secret")])
    shop.write("orders", [(10, 1, "a"), (11, 1, "b")])
    assert [built.error for built in shop.build().values()] == [None, None]
    shop.write("customers", [(2, 0, "secret")])
    shop.write("orders", [(12, 2, "b"), (13, 3, None), (14, 2, "c")])
    for _ in range(2):
        error = shop.build()["orders"].error
        assert isinstance(error, ChecksFailed)
        assert error.what == (
            "not_null(status): 1 row fails (id=13); relationship(customer -> customers.id): 1 row fails "
            "(id=13); unique(status): 2 rows fail (id=11, id=12)"
        )
    assert shop.rows() == [(10, 1, "a"), (11, 1, "b")]
    assert [row[0] for row in shop.rows("customers")] == [1, 2]
    shop.write("orders", [(12, 2, "d")], gone=[13])
    assert shop.build()["orders"].error is None
    assert shop.rows() == [(10, 1, "a"), (11, 1, "b"), (12, 2, "d"), (14, 2, "c")]


def test_a_check_that_fails_keeps_new_columns_from_the_table_as_well(small: SparkSession) -> None:
    """Gold is as it was in its columns too: publishing would show a column that nobody has filled."""
    shop = Shop(small, [orders()])
    shop.write("orders", [(10, 1, "a")])
    assert shop.build()["orders"].error is None
    sql = "SELECT id, number AS customer, text AS status, NULLIF(text, 'b') AS more FROM {orders}"
    grown = replace(orders(*checked(NotNull("more"))), sql=sql, columns=columns("id", "customer", "status", "more"))
    shop.models = [grown]
    shop.write("orders", [(11, 1, "b")])
    assert isinstance(shop.build()["orders"].error, ChecksFailed)
    assert shop.rows() == [(10, 1, "a")]
    shop.write("orders", [(11, 1, "c")])
    assert shop.build()["orders"].error is None
    assert shop.rows() == [(10, 1, "a", "a"), (11, 1, "c", "c")]


def test_a_build_looks_at_what_it_writes_and_a_new_check_at_everything(small: SparkSession) -> None:
    """Rows at rest were looked at before; a check that only warns is told with the rows that it was broken by."""
    shop = Shop(small, [orders(*checked(AcceptedValues("status", ("a", "b")), severity=WARN))])
    shop.write("orders", [(1, 1, "a"), (2, 2, "odd")])
    assert shop.build()["orders"].warnings == ("accepted_values(status): 1 row fails (id=2)",)
    shop.write("orders", [(3, 3, "b"), (1, 1, "b")])
    assert shop.build()["orders"].warnings == ()
    shop.models = [orders(*checked(AcceptedValues("status", ("a", "b")), Expression("customer < 3"), severity=WARN))]
    built = shop.build()["orders"]
    assert (built.action, built.reason) == ("incremental", "only its checks changed")
    assert built.warnings == ("expression(customer < 3): 1 row fails (id=3)",)
    assert shop.build() == {}
    shop.models = [orders(*checked(Expression("customer < 3")))]
    assert isinstance(shop.build()["orders"].error, ChecksFailed)
    shop.models = [orders(*checked(Expression("customer <")))]
    error = shop.build()["orders"].error
    assert isinstance(error, ConfigError)
    assert "check expression(customer <) is invalid" in error.what


def test_too_many_rows_that_come_or_go_stop_a_build(small: SparkSession) -> None:
    """Updates are no growth; the first build has nothing to compare with."""
    shop = Shop(small, [orders(*checked(RowCountChange(max_drop=0.5, max_growth=0.5)))])
    shop.write("orders", [(key, 1, "a") for key in range(10)])
    assert shop.build()["orders"].error is None
    shop.write("orders", [(key, 2, "b") for key in range(15)])
    assert shop.build()["orders"].error is None
    shop.write("orders", gone=range(8))
    error = shop.build()["orders"].error
    assert isinstance(error, ChecksFailed)
    assert error.what == "row_count_change: from 15 to 7 rows, more than 50% fewer"
    shop.write("orders", [(key, 1, "c") for key in range(30)])
    error = shop.build()["orders"].error
    assert isinstance(error, ChecksFailed)
    assert error.what == "row_count_change: from 15 to 30 rows, more than 50% more"
    shop.models = [replace(shop.models[0], checks=checked(RowCountChange(max_growth=1)))]
    assert shop.build()["orders"].error is None
    assert len(shop.rows()) == 30


def test_a_gap_that_a_deletion_leaves_in_a_balance_is_seen(small: SparkSession) -> None:
    """The other balances of what a build touches are looked at too."""
    sql = "SELECT id, number AS account, to_date(text) AS day FROM {orders}"
    rule = SemiAdditive("id", ("account",), "day", "day")
    shop = Shop(
        small, [replace(orders(*checked(rule, severity=WARN)), sql=sql, columns=columns("id", "account", "day"))]
    )
    shop.write("orders", [(day, 1, f"2024-02-{day}") for day in (27, 28, 29)] + [(1, 2, "2024-02-01")])
    assert shop.build()["orders"].warnings == ()
    shop.write("orders", gone=[28])
    assert shop.build()["orders"].warnings == ("semi_additive(id): 1 row fails (id=29)",)


def test_children_of_a_parent_that_left_are_seen_without_a_change_of_theirs(small: SparkSession) -> None:
    """The child's build looks at rows at rest that refer to what left since, and computes nothing; a warning is told
    once, a failure until it is fixed. Rows of other parents, and a parent that only changed, are no news.
    """
    by_key, by_name = Relationship("customer", "customers", "id"), Relationship("status", "customers", "name")
    warned = Check("by name", by_name, WARN)
    shop = Shop(small, [CUSTOMERS, orders(Check("by key", by_key, WARN), warned)])
    shop.write("customers", [(key, 0, name) for key, name in ((1, "a"), (2, "b"), (3, "c"), (4, "d"))])
    shop.write("orders", [(10, 1, "a"), (11, 2, "b"), (12, 2, "b"), (13, None, "c")])
    assert shop.build()["orders"].warnings == ()
    shop.write("customers", [(1, 9, "a")], gone=[2, 4])
    told = plan.plan_models(small, shop.models, shop.at, {"orders"})
    assert [(each.action, each.reason) for each in told] == [(INCREMENTAL, "parents first")]
    built = shop.build()["orders"]
    assert (built.action, built.reason) == (INCREMENTAL, "only models that its checks reference changed: customers")
    assert (built.rows, built.applied.written) == (0, 0)
    assert built.warnings == (
        "by key: 2 rows fail (id=11, id=12)",
        "by name: 2 rows fail (id=11, id=12)",
    )
    assert shop.build() == {}
    shop.write("customers", [(3, 0, "C")])
    assert shop.build()["orders"].warnings == ("by name: 3 rows fail (id=11, id=12, id=13)",)
    shop.models[1] = orders(Check("by key", by_key))
    shop.write("orders", gone=[11, 12])
    assert shop.build()["orders"].error is None
    shop.write("customers", gone=[1])
    for _ in range(2):
        error = shop.build()["orders"].error
        assert isinstance(error, ChecksFailed)
        assert error.what == "by key: 1 row fails (id=10)"
    assert [row[0] for row in shop.rows("customers")] == [3]
    shop.write("orders", [(10, 3, "c")])
    assert shop.build()["orders"].error is None
    assert shop.build() == {}


def test_children_of_a_parent_that_was_copied_back_are_all_looked_at(small: SparkSession) -> None:
    """F-C5: it has come to the version that was looked at, by another commit, in which a row left."""
    shop = Shop(small, [CUSTOMERS, orders(Check("by key", Relationship("customer", "customers", "id"), WARN))])
    shop.write("customers", [(1, 0, "a"), (2, 0, "b")])
    shop.write("orders", [(10, 1, "a"), (11, 2, "b")])
    shop.build()
    assert isinstance(shop.at.gold, MemoryFormat)
    tables, place = shop.at.gold._tables, shop.at.lake.gold("customers").location
    kept = deepcopy(tables[place])
    shop.write("customers", [(1, 9, "a")])
    shop.build()
    tables[place] = kept
    shop.write("customers", gone=[2])
    built = shop.build()["orders"]
    assert (built.rows, built.warnings) == (0, ("by key: 1 row fails (id=11)",))
    assert shop.build() == {}


def test_a_parent_that_lost_a_file_is_not_taken_for_a_check_that_is_refused(
    small: SparkSession, tmp_path: Path
) -> None:
    """Nobody has to look for what is wrong with the check: the parent's file is named, with the way out."""
    tables = DeltaFormat()
    at = Warehouse(tables, tables, MemoryControl(), Lake(str(tmp_path)), full_share=2.0, full_bytes=0)
    shop = Shop(small, [CUSTOMERS, orders(*checked(Relationship("customer", "customers", "id")))], at)
    shop.write("customers", [(1, 0, "a")])
    shop.write("orders", [(10, 1, "a")])
    assert [built.error for built in shop.build().values()] == [None, None]
    folder = Path(at.lake.gold("customers").location)
    [file] = folder.glob("*.parquet")
    file.unlink()
    shop.write("orders", [(11, 1, "b")])
    error = shop.build()["orders"].error
    assert isinstance(error, EngineFailed), error
    assert file.name in str(error)
    assert f"remove the folder {folder}" in str(error.fix)


def test_a_row_that_left_its_own_model_leaves_no_child_unseen(small: SparkSession) -> None:
    """A model that refers to itself: of the rows that go, and of those that get another value."""
    shop = Shop(small, [orders(*checked(Relationship("customer", "orders", "id"), severity=WARN))])
    shop.write("orders", [(1, None, "a"), (2, 1, "b"), (3, 2, "c"), (4, 1, "d")])
    assert shop.build()["orders"].warnings == ()
    shop.write("orders", gone=[1])
    assert shop.build()["orders"].warnings == ("relationship(customer -> orders.id): 2 rows fail (id=2, id=4)",)


@pytest.mark.parametrize(
    "rule", [NotNull("more"), AcceptedValues("more", (1,)), Relationship("more", "orders", "more")]
)
def test_a_table_that_was_built_before_its_model_got_a_column_is_not_checked(small: SparkSession, rule: Any) -> None:
    """`checks` says that gold runs first, as it does where a relationship names a column that its parent lacks: the
    files of the models are right.
    """
    shop = Shop(small, [orders()])
    shop.write("orders", [(1, 1, "a")])
    shop.build()
    sql = "SELECT id, number AS customer, text AS status, 1 AS more FROM {orders}"
    wider = replace(orders(*checked(rule)), sql=sql, columns=columns("id", "customer", "status", "more"))
    [found] = checks.run_checks(small, [wider], shop.at.gold, shop.at.lake)
    assert isinstance(found.error, TableStopped)
    assert "gold table orders lacks columns of its model: more [orders] Run gold first." in str(found.error)
    child = Model("child", "SELECT id, number FROM {orders}", {"orders": "s/db.orders"}, ("id",),
                  columns("id", "number"), checks=checked(Relationship("number", "orders", "more")))  # fmt: skip
    stopped = gold.refresh(small, [child], shop.at)[0].error
    assert isinstance(stopped, TableStopped)
    assert str(stopped).endswith("Run gold, and fix what stopped model orders.")


def test_a_rebuild_holds_all_rows_to_the_checks_and_tells_the_warnings(small: SparkSession) -> None:
    """As a build does, the share of rows that come or go included; the next build has nothing to look at, and
    `checks` finds the same rows; one that cannot be computed is told with its model.
    """
    odd, bound = Check("odd", AcceptedValues("status", ("a",)), WARN), Check("share", RowCountChange(max_drop=0.5))
    model = orders(odd, bound)
    shop = Shop(small, [model])
    shop.write("orders", [(1, 1, "a"), (2, 2, "b"), (3, 3, "a")])
    shop.build()
    told = ("odd: 1 row fails (id=2)",)
    wider = replace(model, sql="SELECT id, number AS customer, text AS status, 1 AS more FROM {orders}")
    shop.models = [wider]
    done = rebuild_model(small, wider, shop.at, RebuildOptions(), gold.keys_of(shop.models))
    assert (done.verdict, done.warnings) == (REPLACED, told)
    assert shop.build() == {}
    [looked] = checks.run_checks(small, [wider], shop.at.gold, shop.at.lake)
    assert str(next(each for each in looked.verdicts if each.check == odd)) == told[0]
    divides = replace(wider, checks=checked(Expression("1 / (id - 2) < 9")))
    fails, beside = checks.run_checks(small, [divides, wider], shop.at.gold, shop.at.lake)
    assert "DIVIDE_BY_ZERO" in str(fails.error)
    assert beside == looked
    shop.write("orders", gone=[1, 3])
    with pytest.raises(ChecksFailed, match="share: from 3 to 1 rows, more than 50% fewer"):
        rebuild_model(small, wider, shop.at, RebuildOptions(), {})
    assert len(shop.rows()) == 3
