"""Seeded rows for all eleven tables: the counts, keys and odd values that the scenario speaks of, all invented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.sources.dice import Dice
from infra.sources.northwind import goods, parties, trade
from infra.sources.northwind.shapes import SHAPES

if TYPE_CHECKING:
    from infra.sources.shape import Rows

SEED = 19960704


def generate(seed: int = SEED) -> Rows:
    """Rows of every table, in the order in which foreign keys allow them to be inserted.

    829 orders with 2,152 lines, of 91 customers (two without orders), 77 products in 8 categories of 29 suppliers, 9
    employees in 49 of 53 territories of 4 regions, 6 shippers. The same seed gives the same rows on every Python. What
    is there on purpose: every key that the scenario's steps name, 20 orders without a ship date, an order of 25 lines,
    names outside ASCII, quotes, backslashes and line feeds (they end up in JSON inside JSON), NULLs.
    """
    dice = Dice(seed)
    field = parties.field(dice)
    customers = parties.customers(dice)
    products = goods.products(dice, parties.SUPPLIERS)
    return {
        "categories": goods.categories(),
        "suppliers": parties.suppliers(dice),
        "products": products,
        "region": field.region,
        "territories": field.territories,
        "employees": field.employees,
        "employee_territories": field.employee_territories,
        "customers": customers,
        "shippers": parties.shippers(dice),
        "orders": trade.orders(dice, [SHAPES["customers"].record(row) for row in customers]),
        "order_details": trade.lines(dice, products),
    }
