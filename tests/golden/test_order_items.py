"""Order items in gold, out of the recorded outbox of the published rows: the scenario's figures, to the cent."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator import settings
from replicator.formats.memory import MemoryFormat
from replicator.stages import gold
from replicator.stages.models.warehouse import Warehouse
from tests.builders import exact_session
from tests.golden.run import Run
from tests.golden.test_recordings import stream

pytestmark = pytest.mark.spark

CONF = Path(__file__).parents[2] / "conf" / "northwind"
SNAPSHOT, STEPS = 829, 834
"""Records up to the end of the snapshot, and of the scenario's two steps."""


@pytest.fixture(scope="module")
def told(spark: SparkSession, recorded: Path, tmp_path_factory: Any) -> list[list[dict[str, Any]]]:
    """Rows of order_items after the snapshot and after the steps; as configured, but kept in memory."""
    conf = settings.load(CONF, "local", {})
    demo = conf.source("demo")
    plain = tuple(replace(table, format="", partition_by=()) for table in demo.tables)
    run = Run(exact_session(spark), tmp_path_factory.mktemp("outbox"), replace(demo, tables=plain))
    at = Warehouse(run.at.silver, MemoryFormat(), run.at.control, run.at.lake)
    records, found = stream(recorded, "northwind.demo"), []
    for batch in (records[:SNAPSHOT], records[SNAPSHOT:STEPS]):
        run.take(batch)
        assert [built.error for built in gold.refresh(spark, conf.models, at)] == [None]
        rows = at.gold.read(spark, at.lake.gold("order_items", conf.models[0].key)).collect()
        found.append([row.asDict() for row in rows])
    return found


def figures(items: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Lines, orders, customers, quantity, gross, revenue, lines with a discount."""
    gross = sum(item["quantity"] * item["unit_price"] for item in items)
    orders, customers = ({item[column] for item in items} for column in ("order_id", "customer_id"))
    quantity, revenue = (sum(item[column] for item in items) for column in ("quantity", "revenue"))
    return len(items), len(orders), len(customers), quantity, gross, revenue, sum(i["discount"] > 0 for i in items)


def cents(amount: Decimal) -> Decimal:
    """Half a cent is a cent."""
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


def test_the_figures_are_the_scenarios(told: list[list[dict[str, Any]]]) -> None:
    """Before and after the ship date of 11077 and the insert of 11075."""
    gross, revenue = Decimal("1353872.59"), Decimal("1265294.9395")
    assert figures(told[0]) == (2152, 829, 89, 51_275, gross, revenue, 835)
    assert figures(told[1]) == (2155, 830, 89, 51_317, gross + 586, revenue + Decimal("498.1"), 838)


def test_three_customers_lead_and_twenty_hold_the_majority(told: list[list[dict[str, Any]]]) -> None:
    """Revenue by customer, as the dashboard shows it."""
    revenue: dict[str, Decimal] = {}
    for item in told[0]:
        revenue[item["customer_id"]] = revenue.get(item["customer_id"], Decimal(0)) + item["revenue"]
    ranked = sorted(revenue, key=lambda customer: -revenue[customer])
    leading = {customer: cents(revenue[customer]) for customer in ranked[:3]}
    assert leading == {
        "QUICK": Decimal("110277.31"),
        "ERNSH": Decimal("104874.98"),
        "SAVEA": Decimal("104361.95"),
    }
    assert ranked[19] == "RICSU"
    top = sum((revenue[customer] for customer in ranked[:20]), Decimal(0))
    assert (cents(top), round(100 * top / sum(revenue.values()), 1)) == (Decimal("798305.03"), Decimal("63.1"))
