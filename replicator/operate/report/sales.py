"""Order lines -> what every customer bought: the two charts of the item table."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

COLUMNS = frozenset({"customer_id", "order_id", "quantity", "revenue"})
"""What a gold model has that holds order lines, one row each."""

MOST_CUSTOMERS = 1_000
"""How many are shown one by one."""

_EXACT = T.DecimalType(28, 6)


@dataclass(frozen=True)
class Customer:
    """What one customer bought. ``id`` is None for lines without a customer.

    ``revenue`` is the exact sum over ``lines``, in the money of the lines; ``quantity`` the pieces; ``orders`` how many
    different orders the lines belong to. ``lines`` is at least 1.
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
        """Money per line."""
        return self.revenue / self.lines


@dataclass(frozen=True)
class Total:
    """All customers together: how many there are, and their exact sums. An order whose lines name two customers counts
    for both.
    """

    customers: int
    revenue: Decimal
    orders: int
    lines: int


@dataclass(frozen=True)
class Sales:
    """The sales of one model: ``total`` of all customers, and the MOST_CUSTOMERS largest, the largest revenue first."""

    model: str
    total: Total
    customers: tuple[Customer, ...]

    def largest_revenue(self, count: int) -> Decimal:
        """Of the ``count`` largest customers together, exact."""
        return sum((customer.revenue for customer in self.customers[:count]), Decimal(0))

    def share(self, count: int) -> Decimal | None:
        """Which part of all revenue the ``count`` largest customers have, 0 to 1; None without any revenue."""
        return self.largest_revenue(count) / self.total.revenue if self.total.revenue else None

    def promising(self, count: int, beside: int) -> tuple[Customer, ...]:
        """The ``count`` customers with the dearest lines, beside the ``beside`` largest: few orders, dear items."""
        others = self.customers[beside:]
        return tuple(sorted(others, key=lambda customer: customer.average_revenue, reverse=True)[:count])


def by_customer(lines: DataFrame) -> DataFrame:
    """One row per customer_id of the order lines: ``id, revenue, orders, lines, quantity``.

    *lines* has COLUMNS. Sums are decimals; a line whose quantity or revenue is NULL adds nothing but itself.
    """
    kinds = dict(lines.dtypes)
    return lines.groupBy(F.col("customer_id").cast("string").alias("id")).agg(
        _sum("revenue", kinds["revenue"]),
        F.count_distinct("order_id").alias("orders"),
        F.count("*").alias("lines"),
        _sum("quantity", kinds["quantity"]),
    )


def build(model: str, lines: DataFrame) -> Sales:
    """The sales of a model that has COLUMNS."""
    customers = by_customer(lines)
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("revenue", "orders", "lines")]
    [total] = customers.agg(F.count("*").alias("customers"), *sums).collect()
    largest = customers.orderBy(F.col("revenue").desc(), "id").limit(MOST_CUSTOMERS).collect()
    return Sales(model, Total(**total.asDict()), tuple(Customer(**row.asDict()) for row in largest))


def _sum(column: str, kind: str) -> Column:
    """The exact sum; a decimal keeps its own scale."""
    value = F.col(column) if kind.startswith("decimal") else F.col(column).cast(_EXACT)
    return F.coalesce(F.sum(value), F.lit(Decimal(0))).alias(column)
