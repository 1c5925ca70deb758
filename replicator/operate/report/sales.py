"""Sales by customer, from order lines: the figures of two charts and a table."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

COLUMNS = frozenset({"customer_id", "order_id", "quantity", "revenue"})
"""The columns of a gold model that holds order lines, one row each."""

MOST_CUSTOMERS = 1_000
"""The number of customers that are shown individually at most."""

_EXACT = T.DecimalType(28, 6)


@dataclass(frozen=True)
class Customer:
    """The purchases of one customer. ``id`` is None for lines without a customer.

    ``revenue`` is the exact sum over ``lines``, in the currency of the lines; ``quantity`` the number of pieces;
    ``orders`` the number of distinct orders. ``lines`` is at least 1.
    """

    id: str | None
    revenue: Decimal
    orders: int
    lines: int
    quantity: Decimal

    @property
    def average_quantity(self) -> Decimal:
        """Pieces per line."""
        return self.quantity / self.lines

    @property
    def average_revenue(self) -> Decimal:
        """Revenue per line."""
        return self.revenue / self.lines


@dataclass(frozen=True)
class Total:
    """The number of customers, and their exact sums. An order whose lines name two customers counts for both."""

    customers: int
    revenue: Decimal
    orders: int
    lines: int


@dataclass(frozen=True)
class Sales:
    """The sales of one model: the ``total`` of all customers, and the MOST_CUSTOMERS largest, by revenue in descending
    order.
    """

    model: str
    total: Total
    customers: tuple[Customer, ...]

    def largest_revenue(self, count: int) -> Decimal:
        """Return the exact revenue of the ``count`` largest customers together."""
        return sum((customer.revenue for customer in self.customers[:count]), Decimal(0))

    def share(self, count: int) -> Decimal | None:
        """Return the share of the revenue of the ``count`` largest customers, 0 to 1; None without any revenue."""
        return self.largest_revenue(count) / self.total.revenue if self.total.revenue else None

    def promising(self, count: int, beside: int) -> tuple[Customer, ...]:
        """Return the ``count`` customers with the highest revenue per line, excluding the ``beside`` largest customers:
        few orders, expensive items.
        """
        others = self.customers[beside:]
        return tuple(sorted(others, key=lambda customer: customer.average_revenue, reverse=True)[:count])


def by_customer(lines: DataFrame) -> DataFrame:
    """Return one row per customer_id of the order lines: ``id, revenue, orders, lines, quantity``.

    *lines* has COLUMNS. Sums are decimals; a line whose quantity or revenue is NULL counts as a line and adds nothing
    to the sums.
    """
    kinds = dict(lines.dtypes)
    return lines.groupBy(F.col("customer_id").cast("string").alias("id")).agg(
        _sum("revenue", kinds["revenue"]),
        F.count_distinct("order_id").alias("orders"),
        F.count("*").alias("lines"),
        _sum("quantity", kinds["quantity"]),
    )


def build(model: str, lines: DataFrame) -> Sales:
    """Return the sales of a model that has COLUMNS."""
    customers = by_customer(lines)
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("revenue", "orders", "lines")]
    [total] = customers.agg(F.count("*").alias("customers"), *sums).collect()
    largest = customers.orderBy(F.col("revenue").desc(), "id").limit(MOST_CUSTOMERS).collect()
    return Sales(model, Total(**total.asDict()), tuple(Customer(**row.asDict()) for row in largest))


def _sum(column: str, kind: str) -> Column:
    """Return the exact sum; a decimal keeps its own scale."""
    value = F.col(column) if kind.startswith("decimal") else F.col(column).cast(_EXACT)
    return F.coalesce(F.sum(value), F.lit(Decimal(0))).alias(column)
