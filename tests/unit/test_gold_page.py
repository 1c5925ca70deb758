"""The SQL and YAML that docs/gold.md shows beside the sample, over rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from replicator import testing
from tests import readme

pytestmark = pytest.mark.spark

PAGE = "docs/gold.md"
MODELS = Path(__file__).parents[2] / "conf" / "models"
ORDERS = "orderNumber INT, customerNumber INT, orderDate DATE, requiredDate DATE, shippedDate DATE"
LINES = "orderNumber INT, orderLineNumber SMALLINT, productCode STRING, quantityOrdered INT, priceEach DECIMAL(10,2)"
PRICES = "price_key STRING, product_key STRING, buy_price DECIMAL(10,2), valid_from TIMESTAMP, valid_to TIMESTAMP"
LINE_ROWS = [(order, 1, product, 2, Decimal("10.00")) for order, product in ((1, "A"), (1, "B"), (2, "A"), (3, "B"))]


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str, str, str], testing.Project]:
    """With one model more, of that name, SQL and YAML, beside those of the sample."""

    def made(name: str, sql: str, described: str) -> testing.Project:
        shutil.copytree(MODELS.parent, tmp_path / "conf", ignore=shutil.ignore_patterns("star", "aws", "northwind"))
        (tmp_path / "conf" / "models" / f"{name}.sql").write_text(sql, encoding="utf-8")
        (tmp_path / "conf" / "models" / f"{name}.yaml").write_text(described, encoding="utf-8")
        return testing.Project(tmp_path / "conf", env="local")

    return made


def block(language: str, holding: str) -> str:
    """The one of the page that holds a text."""
    [found] = [text for text in readme.shown(language, PAGE) if holding in text]
    return found


def test_lines_that_the_fact_leaves_out_are_told_with_what_they_lack(project: Any) -> None:
    """All others are in the fact, and not here."""
    own = project("lines_left_out", block("sql", "order_missing"), block("yaml", "order_missing"))
    rows = own.spark.createDataFrame
    with pytest.warns(UserWarning, match="every line is in the fact: 3 rows fail"):
        built = own.model(
            "lines_left_out",
            orders=rows([(1, 103, None, None, None), (3, 103, None, None, None)], ORDERS),
            orderdetails=rows(LINE_ROWS, LINES),
            products=rows([("A",)], "productCode STRING"),
        )
    assert {tuple(row) for row in built.collect()} == {
        (1, "B", False, True),
        (2, "A", True, False),
        (3, "B", False, True),
    }


def test_a_new_price_leaves_the_profit_of_what_was_ordered_before(project: Any) -> None:
    """The price of the order's day counts: from inclusive, to exclusive."""
    sql = (MODELS / "fact_orders.sql").read_text(encoding="utf-8").replace("p.buyPrice", "v.buy_price")
    sql = sql.replace(", p._source_ts_ms", "").replace(
        "  d.quantityOrdered ", "  v.price_key,\n  d.quantityOrdered ", 1
    )
    joined = "INNER JOIN {products} AS p ON p.productCode = d.productCode"
    assert joined in sql
    described = yaml.safe_load((MODELS / "fact_orders.yaml").read_text(encoding="utf-8"))
    del described["inputs"]["products"], described["lineage"], described["references"], described["publish"]
    described["inputs"]["prices"] = "dim_customers"  # any model: its rows are given
    described["columns"]["price_key"] = {"type": "char(32)", "description": "Which price."}
    own = project(
        "fact_then", sql.replace(joined, block("sql", "{prices}")), yaml.safe_dump(described, sort_keys=False)
    )
    rows = own.spark.createDataFrame
    first, new, last = (datetime(*day, tzinfo=timezone.utc) for day in ((1900, 1, 1), (2005, 6, 1), (9999, 12, 31)))
    prices = [
        ("a1", "A", Decimal("4.00"), first, new),
        ("a2", "A", Decimal("7.00"), new, last),
    ]
    days = [(1, 103, date(2005, 5, 31), None, None), (2, 103, date(2005, 6, 1), None, None)]
    built = own.model(
        "fact_then", orders=rows(days, ORDERS), orderdetails=rows(LINE_ROWS, LINES), prices=rows(prices, PRICES)
    )
    found = {(row["order_key"], row["price_key"], row["profit"]) for row in built.collect()}
    assert found == {(1, "a1", Decimal("12.00")), (2, "a2", Decimal("6.00"))}
