"""Orders and their lines."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from infra.sources.northwind.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.sources.dice import Dice
    from infra.sources.shape import Row, Value

FIRST, LAST = 10248, 11077
LATER = 11075
"""The order that the scenario inserts live; the rows at the start lack it."""
ORDERS = tuple(number for number in range(FIRST, LAST + 1) if number != LATER)
"""829."""
LINES = 2152
IDLE = ("FISSA", "PARIS")
"""Customers without orders."""

_OF_ALFKI = (10643, 10692, 10702, 10835, 10952, 11011)
_BUYERS = {FIRST: "VINET", LAST: "RATTC", **dict.fromkeys(_OF_ALFKI, "ALFKI")}
_FIRST_LINES = ((11, Decimal(14), 12), (42, Decimal("9.8"), 10), (72, Decimal("34.8"), 5))
"""Product, price and quantity of order 10248, which the scenario reads."""
_LINES_OF_LAST, _MOST_LINES = 25, 6
_FIRST_DAY, _LAST_DAY = date(1996, 7, 4), date(1998, 5, 6)
_UNSHIPPED, _YOUNG = 20, 60
_DISCOUNTS = (*(Decimal(0),) * 8, *map(Decimal, ("0.05", "0.1", "0.15", "0.2", "0.25")))


def orders(dice: Dice, customers: Sequence[Mapping[str, Value]]) -> tuple[Row, ...]:
    """829 orders in the order of their dates; all customers but two have one, 20 of the youngest are not shipped."""
    homes = {str(customer["customer_id"]): customer for customer in customers}
    buyers = _buyers(dice, [code for code in homes if code not in IDLE])
    days = (_LAST_DAY - _FIRST_DAY).days
    ages = sorted([0, days, *(dice.between(0, days) for _ in ORDERS[2:])])
    unshipped = {LAST, *dice.sample(ORDERS[-_YOUNG:-1], _UNSHIPPED - 1)}
    return tuple(
        _order(dice, number, _FIRST_DAY + timedelta(days=age), homes[buyers[number]], shipped=number not in unshipped)
        for number, age in zip(ORDERS, ages, strict=True)
    )


def lines(dice: Dice, products: Sequence[Row]) -> tuple[Row, ...]:
    """2,152 order lines by order and product, 1 to 6 per order and 25 in the last; a third has a discount."""
    prices = {int(str(product[0])): Decimal(str(product[5])) for product in products}
    rows: list[Row] = [(FIRST, product, price, quantity, Decimal(0)) for product, price, quantity in _FIRST_LINES]
    for order, count in _line_counts(dice).items():
        for product in sorted(dice.sample(sorted(prices), count)):
            price = (prices[product] * dice.pick((Decimal("0.8"), Decimal(1)))).quantize(Decimal("0.01"))
            rows.append((order, product, price, dice.pick_early(range(1, 131)), dice.pick(_DISCOUNTS)))
    return tuple(rows)


def _buyers(dice: Dice, customers: Sequence[str]) -> dict[int, str]:
    """Order -> customer: each at least once, some of them very often."""
    others = [code for code in customers if code != "ALFKI"]
    free = [number for number in ORDERS if number not in _BUYERS]
    often = dice.shuffled(others)
    drawn = dice.shuffled([*others, *(dice.pick_early(often) for _ in range(len(free) - len(others)))])
    return _BUYERS | dict(zip(free, drawn, strict=True))


def _line_counts(dice: Dice) -> dict[int, int]:
    """Lines of every order but the first."""
    counts = {order: dice.between(1, 4) for order in ORDERS[1:-1]}
    while missing := LINES - len(_FIRST_LINES) - _LINES_OF_LAST - sum(counts.values()):
        order = dice.pick(ORDERS[1:-1])
        counts[order] = min(max(counts[order] + (1 if missing > 0 else -1), 1), _MOST_LINES)
    return counts | {LAST: _LINES_OF_LAST}


def _order(dice: Dice, number: int, ordered: date, customer: Mapping[str, Value], *, shipped: bool) -> Row:
    told: dict[str, Value] = {
        "order_id": number,
        "employee_id": dice.between(1, 9),
        "order_date": ordered,
        "required_date": ordered + timedelta(days=dice.pick((14, 28, 28, 28, 42))),
        "shipped_date": ordered + timedelta(days=dice.between(1, 30)) if shipped else None,
        "ship_via": dice.between(1, 3),
        "freight": dice.cents(50, 30_000),
        "customer_id": customer["customer_id"],
        "ship_name": customer["company_name"],
    }
    told |= {f"ship_{part}": customer[part] for part in ("address", "city", "region", "postal_code", "country")}
    return SHAPES["orders"].row(told | (_AS_TOLD if number == FIRST else {}))


_AS_TOLD: dict[str, Value] = {
    "employee_id": 5,
    "required_date": date(1996, 8, 1),
    "shipped_date": date(1996, 7, 16),
    "ship_via": 3,
    "freight": Decimal("32.38"),
}
"""What the scenario reads of order 10248."""
