"""Seeded rows for all eight tables: the counts, keys and odd values that the scenario speaks of, all invented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.sources.classicmodels import goods, trade
from infra.sources.classicmodels.parties import parties
from infra.sources.dice import Dice

if TYPE_CHECKING:
    from infra.sources.shape import Rows

SEED = 20030106
_IDLE_CUSTOMERS = 24


def generate(seed: int = SEED) -> Rows:
    """Rows of every table, in the order in which foreign keys allow them to be inserted.

    3,864 rows: customers 122, employees 23, offices 7, orders 326, orderdetails 2,996, payments 273, productlines 7,
    products 110. The same seed gives the same rows on every Python. What is there on purpose: blanks around values,
    quotes, line feeds, names outside ASCII, post codes with a leading zero, NULLs (14 orders without a ship date),
    one product that nobody orders, 24 customers without orders, and every key that the lab's steps name.
    """
    dice = Dice(seed)
    people = parties(dice, _IDLE_CUSTOMERS)
    catalogue = goods.products(dice)
    never_ordered = dice.pick(catalogue)
    return {
        "productlines": goods.productlines(),
        "products": tuple(sorted(catalogue)),
        "offices": people.offices,
        "employees": people.employees,
        "customers": people.customers,
        "payments": trade.payments(dice, people.buyers),
        "orders": trade.orders(dice, people.buyers),
        "orderdetails": trade.lines(dice, [product for product in catalogue if product is not never_ordered]),
    }
