"""Figures of the star schema: the sizes of the dimensions, and sums of the order lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

COLUMNS: Mapping[str, frozenset[str]] = {
    "dim_customers": frozenset({"customer_key", "country"}),
    "dim_products": frozenset({"product_key", "product_line"}),
    "fact_orders": frozenset(
        {"order_key", "customer_key", "product_key", "order_date", "quantity_ordered", "product_price", "profit"}
    ),
}
"""The three models and the columns of each that are read."""

# `grouping_id` has a bit, the first column's highest, for each column that a row sums over
_SUMMED_OVER = {"product_line": 0b011, "country": 0b101, "month": 0b110, "all": 0b111}
_EXACT = T.DecimalType(18, 4)


@dataclass(frozen=True)
class Part:
    """Fact rows that share ``name`` (None: their dimension row is missing): their number and their sums.

    ``revenue`` is quantity x price, ``profit`` the fact's own, both exact; ``quantity`` is in pieces.
    """

    name: str | None
    orders: int
    lines: int
    quantity: Decimal
    revenue: Decimal
    profit: Decimal


@dataclass(frozen=True)
class Star:
    """The numbers of dimension rows, the sums over all facts, and the sums by product line and country (in descending
    order of revenue) and by month (in order of time).
    """

    customers: int
    products: int
    whole: Part
    product_lines: tuple[Part, ...]
    countries: tuple[Part, ...]
    months: tuple[Part, ...]


def parts(customers: DataFrame, products: DataFrame, orders: DataFrame) -> DataFrame:
    """Return one row per product line, country and month (``yyyy-MM``) of the fact, and one for all of it.

    The arguments have COLUMNS of dim_customers, dim_products and fact_orders. Columns: ``summed_over`` (see
    _SUMMED_OVER), ``product_line, country, month``, of which at most one is not NULL, and the sums of ``Part``. Facts
    without a dimension row are included, with NULL for its column.
    """
    named = (
        orders.join(products.select("product_key", "product_line"), "product_key", how="left")
        .join(customers.select("customer_key", "country"), "customer_key", how="left")
        .withColumn("month", F.date_format("order_date", "yyyy-MM"))
    )
    quantity = F.col("quantity_ordered").cast(_EXACT)
    sums = {
        "quantity": quantity,
        "revenue": quantity * F.col("product_price").cast(_EXACT),
        "profit": F.col("profit").cast(_EXACT),
    }
    return (
        named.cube("product_line", "country", "month")
        .agg(
            F.grouping_id().alias("summed_over"),
            F.count_distinct("order_key").alias("orders"),
            F.count("*").alias("lines"),
            *[F.coalesce(F.sum(value), F.lit(Decimal(0))).alias(name) for name, value in sums.items()],
        )
        .where(F.col("summed_over").isin(list(_SUMMED_OVER.values())))
    )


def build(customers: DataFrame, products: DataFrame, orders: DataFrame) -> Star:
    """Return the figures of the three models."""
    found = parts(customers, products, orders).collect()
    [whole] = _parts(found, "all") or [Part(None, 0, 0, Decimal(0), Decimal(0), Decimal(0))]
    return Star(
        customers.count(),
        products.count(),
        whole,
        tuple(sorted(_parts(found, "product_line"), key=_by_revenue)),
        tuple(sorted(_parts(found, "country"), key=_by_revenue)),
        tuple(sorted(_parts(found, "month"), key=lambda part: part.name or "")),
    )


def _parts(rows: Iterable[Row], by: str) -> list[Part]:
    return [
        Part(
            None if by == "all" else row[by],
            *(row[name] for name in ("orders", "lines", "quantity", "revenue", "profit")),
        )
        for row in rows
        if row["summed_over"] == _SUMMED_OVER[by]
    ]


def _by_revenue(part: Part) -> tuple[Decimal, str]:
    return -part.revenue, part.name or ""
