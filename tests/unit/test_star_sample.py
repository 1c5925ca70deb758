"""conf/star on generated orders: type 2, facts as of their time, the unknown member, the calendar, balances."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from infra.sources.classicmodels.rows import generate
from infra.sources.classicmodels.shapes import SHAPES
from replicator import settings
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import checks
from replicator.spec import INCREMENTAL, Model, ModelColumn
from replicator.stages import gold, silver
from replicator.stages.gold import RefreshResult
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from tests.builders import bronze, envelope, exact_session, made, record

pytestmark = pytest.mark.spark

CONF = settings.load(Path(__file__).parents[2] / "conf" / "star", "local", {})
SOURCE, VERSIONS, SALES, LIMITS = CONF.sources[0], "dim_customer_versions", "fact_sales", "fact_credit_limits"
SNAPSHOT = datetime(2005, 6, 1, tzinfo=timezone.utc)
CUSTOMERS = "dbserver1/classicmodels.customers__history"
STATES = Model(
    "states",
    "SELECT customerNumber AS customer, __START_AT AS began, __END_AT AS ended, city FROM {states}",
    {"states": CUSTOMERS},
    ("customer", "began"),
    tuple(ModelColumn(name, "text") for name in ("customer", "began", "ended", "city")),
    lineage={"states": ("customer",)},
    refresh=INCREMENTAL,
)
CITIES = Model(
    "cities",
    "SELECT o.orderNumber AS id, o.customerNumber AS customer, h.city FROM {orders} o LEFT JOIN {states} h ON "
    "h.customerNumber = o.customerNumber AND h.__START_TIME <= o.orderDate "
    "AND (h.__END_TIME IS NULL OR o.orderDate < h.__END_TIME)",
    {"orders": "dbserver1/classicmodels.orders", "states": CUSTOMERS},
    ("id",),
    tuple(ModelColumn(name, "text") for name in ("id", "customer", "city")),
    lineage={"orders": ("id",), "states": ("customer",)},
    refresh=INCREMENTAL,
)
MODELS = (*CONF.models, STATES, CITIES)
"""The sample, and two models that read the history itself and are refreshed by affected rows."""

Rows = list[dict[str, Any]]


@dataclass
class Sample:
    """Events of the sample source, silver with its history, and the star over them; in memory."""

    spark: SparkSession
    position: int = 0
    offsets: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        format_, control, lake = MemoryFormat(), MemoryControl(), Lake("memory")
        self.silver = Refinement(SOURCE, format_, format_, control, lake)
        self.at = Warehouse(format_, MemoryFormat(), MemoryControl(), lake, full_share=9.0, full_bytes=0)
        self.exact = exact_session(self.spark)

    def take(self, table: str, op: str, rows: Iterable[Mapping[str, Any]], at: datetime) -> None:
        """Changes of one kind, committed at one moment."""
        name, records = f"classicmodels.{table}", []
        for row in rows:
            self.position += 4
            shown = {column: wire(value) for column, value in row.items()}
            sides = {"before": shown} if op == "d" else {"after": shown}
            told = envelope(op, pos=self.position, table=name, ts_ms=millis(at), **sides)
            key = {column: shown[column] for column in SHAPES[table].key}
            records.append(record(f"dbserver1.{name}", self.offsets[name], key, told))
            self.offsets[name] += 1
        self.silver.bronze.append(bronze(self.exact, records), self.silver.lake.bronze("dbserver1"), None)

    def build(self) -> dict[str, RefreshResult]:
        """Silver and gold; nothing may stop or warn."""
        assert [each.error for each in silver.refine(self.exact, self.silver) if each.error] == []
        built = gold.refresh(self.spark, MODELS, self.at)
        assert [each for each in built if each.error or each.warnings] == []
        return {each.model: each for each in built}

    def rows(self, model: str) -> Rows:
        return rows_of(self.spark, self.at, model)

    def compare_with_a_star_made_anew(self) -> None:
        other = replace(self.at, gold=MemoryFormat(), control=MemoryControl())
        bare = [replace(model, checks=()) for model in MODELS]
        assert [each.error for each in gold.refresh(self.spark, bare, other)] == [None] * len(MODELS)
        for model in MODELS:
            assert self.rows(model.name) == rows_of(self.spark, other, model.name), model.name


def rows_of(spark: SparkSession, at: Warehouse, model: str) -> Rows:
    return sorted((row.asDict() for row in at.gold.read(spark, at.lake.gold(model)).collect()), key=str)


def millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def wire(value: Any) -> Any:
    """As Debezium's default modes write it."""
    if isinstance(value, Decimal):
        return base64.b64encode(int(value.scaleb(2)).to_bytes(8, "big", signed=True)).decode()
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=timezone.utc)


@dataclass(frozen=True)
class Trade:
    """Generated orders of the two customers that order most, with their lines."""

    customers: Rows
    orders: Rows
    lines: Rows

    @staticmethod
    def of_the_busiest() -> Trade:
        every = {name: [SHAPES[name].record(row) for row in rows] for name, rows in generate().items()}
        counted = Counter(order["customerNumber"] for order in every["orders"])
        busiest = [number for number, _ in counted.most_common(2)]
        customers = [row for number in busiest for row in every["customers"] if row["customerNumber"] == number]
        orders = [row for row in every["orders"] if row["customerNumber"] in busiest]
        numbers = {order["orderNumber"] for order in orders}
        return Trade(customers, orders, [row for row in every["orderdetails"] if row["orderNumber"] in numbers])

    def days(self, customer: Mapping[str, Any]) -> list[date]:
        mine = [row["orderDate"] for row in self.orders if row["customerNumber"] == customer["customerNumber"]]
        return sorted(set(mine))


def test_the_star_with_histories(spark: SparkSession) -> None:
    """An order has its customer as of its day; one whose customer is late has the unknown one until it comes, and after
    a deletion; what is kept up to date equals a star made anew, and all checks are kept.
    """
    sample, trade = Sample(spark), Trade.of_the_busiest()
    mover, late = trade.customers
    days = trade.days(mover)
    assert len(days) > 3
    moved, left = midnight(days[1]), midnight(days[-1])
    day_of = {order["orderNumber"]: order["orderDate"] for order in trade.orders}

    sample.take("orders", "r", trade.orders, SNAPSHOT)
    sample.take("orderdetails", "r", trade.lines, SNAPSHOT)
    sample.take("customers", "r", [mover], datetime(2003, 1, 1, tzinfo=timezone.utc))
    assert {name: each.action for name, each in sample.build().items()} == dict.fromkeys(
        [model.name for model in MODELS], "first build"
    )
    [known] = [row for row in sample.rows(VERSIONS) if row["customer_key"] == mover["customerNumber"]]
    sales = sample.rows(SALES)
    assert len(sales) == len(trade.lines)
    assert {row["customer_version_key"] for row in sales if row["customer_key"] == late["customerNumber"]} == {"-1"}
    assert {row["customer_version_key"] for row in sales if row["customer_key"] == mover["customerNumber"]} == {
        known["customer_version_key"]
    }

    richer = mover["creditLimit"] + 1000
    sample.take("customers", "c", [late], SNAPSHOT)
    sample.take("customers", "u", [{**mover, "city": "Elsewhere", "creditLimit": richer}], moved)
    built = sample.build()
    assert {name for name, each in built.items() if each.action == "incremental"} == {SALES, "states", "cities"}
    assert set(built) == {VERSIONS, SALES, LIMITS, "states", "cities"}
    sample.compare_with_a_star_made_anew()
    states = {row["customer_version_key"]: row for row in sample.rows(VERSIONS)}
    assert Counter(row["customer_key"] for row in states.values()) == {
        -1: 1, mover["customerNumber"]: 2, late["customerNumber"]: 1,
    }  # fmt: skip
    for row in sample.rows(SALES):
        state = states[row["customer_version_key"]]
        assert state["customer_key"] == row["customer_key"]
        if row["customer_key"] == mover["customerNumber"]:
            assert (state["city"] == "Elsewhere") == (midnight(day_of[row["order_key"]]) >= moved)

    sample.take("customers", "d", [{**mover, "city": "Elsewhere", "creditLimit": richer}], left)
    built = sample.build()
    assert {name for name, each in built.items() if each.action == "incremental"} == {SALES, "states", "cities"}
    sample.compare_with_a_star_made_anew()
    unknown = {row["order_key"] for row in sample.rows(SALES) if row["customer_version_key"] == "-1"}
    assert unknown == {
        row["orderNumber"] for row in trade.orders
        if row["customerNumber"] == mover["customerNumber"] and midnight(row["orderDate"]) >= left
    }  # fmt: skip

    limits = {row["month_end"]: row["credit_limit"] for row in sample.rows(LIMITS)
              if row["customer_key"] == mover["customerNumber"]}  # fmt: skip
    assert limits == {
        day: richer if midnight(day) + timedelta(days=1) > moved else mover["creditLimit"]
        for day in month_ends(min(day_of.values()), left.date())
    }
    looked = list(checks.run_checks(spark, checks.select_models(CONF.models, []), sample.at.gold, sample.at.lake))
    assert [each.model for each in looked if each.passed] == [model.name for model in CONF.models if model.checks]
    assert [str(verdict) for each in looked for verdict in each.verdicts if not verdict.passed] == []
    assert sum(len(each.verdicts) for each in looked) == 11
    assert_the_calendar(sample.rows("dim_date"))


def month_ends(first: date, until: date) -> list[date]:
    """Ends of months that lie at or behind *first*, and are over before *until* ends or is reached."""
    every = [first + timedelta(days=number) for number in range((until - first).days)]
    return [day for day in every if (day + timedelta(days=1)).day == 1]


def assert_the_calendar(rows: Rows) -> None:
    assert len(rows) == 365 + 366 + 365 + 365
    by_day = {row["full_date"]: row for row in rows}
    for day, row in by_day.items():
        year, week, weekday = day.isocalendar()
        assert (row["iso_year"], row["iso_week"], row["iso_weekday"]) == (year, week, weekday)
        assert row["date_key"] == int(f"{day:%Y%m%d}")
        assert (row["quarter"], row["month_name"]) == ((day.month + 2) // 3, f"{day:%B}")
        assert (row["is_weekend"], row["is_month_end"]) == (weekday > 5, (day + timedelta(days=1)).day == 1)
    assert by_day[date(2005, 1, 1)]["iso_year"] == 2004


def test_a_surrogate_key_is_the_same_in_another_engine_and_tells_every_two_parts_apart(spark: SparkSession) -> None:
    """docs/gold.md: a digest of the parts as a JSON array: NULL, an empty text and a separator are themselves."""
    parts = [("a", "b"), ("a,b", None), (None, "a,b"), ("", None), (None, ""), (None, None), ("null", None),
             ('a","b', ""), ("a", '","b'), ("\\", "/"), ("Zürich 😀", "\n\t"), ("a|b", ""), ("a", "|b")]  # fmt: skip
    rows = made(spark, parts, "x STRING, y STRING").selectExpr("x", "y", "md5(to_json(array(x, y))) AS k").collect()
    assert len({row["k"] for row in rows}) == len(parts)
    for row in rows:
        [(other,)] = duckdb.execute(
            "SELECT md5(to_json([?::VARCHAR, ?::VARCHAR])::VARCHAR)", [row["x"], row["y"]]
        ).fetchall()
        assert other == row["k"], (row["x"], row["y"])
