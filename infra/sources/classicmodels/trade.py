"""Orders, their lines, and payments."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from infra.sources.classicmodels import words
from infra.sources.classicmodels.parties import LAB_CUSTOMER
from infra.sources.dice import Dice, money

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infra.sources.shape import Row, Value

ORDERS = range(10100, 10426)
LINES = 2996
_MOST_LINES = 18
_FIRST_DAY, _LAST_DAY = date(2003, 1, 6), date(2005, 5, 31)
_ENDINGS = (
    # status of orders that did not simply arrive, how many, how many of them were never shipped
    ("Cancelled", 6, 4),
    ("On Hold", 4, 4),
    ("Resolved", 4, 0),
    ("Disputed", 3, 0),
)
_IN_PROCESS = 6


def orders(dice: Dice, buyers: Sequence[int]) -> tuple[Row, ...]:
    """326 orders in the order of their dates: every buyer has one, 14 have no ship date; the newest are in process."""
    customers = _customers(dice, buyers, len(ORDERS))
    if customers[0] == LAB_CUSTOMER:  # the lab moves the first order to that customer
        other = next(index for index, customer in enumerate(customers) if customer != LAB_CUSTOMER)
        customers[0], customers[other] = customers[other], customers[0]
    endings = _endings(dice)
    days = (_LAST_DAY - _FIRST_DAY).days
    ages = sorted([0, days, *(dice.between(0, days) for _ in ORDERS[2:])])
    return tuple(
        _order(dice, number, _FIRST_DAY + timedelta(days=age), endings.get(number, ("Shipped", True)), customer)
        for number, age, customer in zip(ORDERS, ages, customers, strict=True)
    )


def lines(dice: Dice, products: Sequence[Row]) -> tuple[Row, ...]:
    """2,996 order lines, 1 to 18 per order, 4 in the first; each product is ordered, none below its purchase price."""
    deck = _deal(dice, products)
    rows = []
    for order, count in zip(ORDERS, _line_counts(dice), strict=True):
        chosen: dict[Value, Row] = {}
        while len(chosen) < count:
            product = next(deck)
            chosen.setdefault(product[0], product)
        for number, product in enumerate(chosen.values(), start=1):
            rows.append((order, product[0], dice.between(6, 60), _price(dice, product), number))
    return tuple(rows)


def payments(dice: Dice, buyers: Sequence[int]) -> tuple[Row, ...]:
    """273 payments, at least one per buyer."""
    days = (_LAST_DAY - _FIRST_DAY).days
    rows: list[Row] = []
    for index, customer in enumerate(sorted(_customers(dice, buyers, 273))):
        letters = "".join(dice.pick("ABCDEFGHJKLMNOPQRSTUVWXY") for _ in range(2))
        check = f"{letters}{100_000 + index * 3_173 % 900_000}"  # 3,173 and 900,000 share no factor: no number twice
        paid = _FIRST_DAY + timedelta(days=dice.between(0, days))
        rows.append((customer, check, paid, dice.cents(61_545, 6_000_000)))
    return tuple(rows)


def _customers(dice: Dice, buyers: Sequence[int], count: int) -> list[int]:
    """``count`` buyers: each at least once, some of them very often."""
    often = dice.shuffled(buyers)
    return dice.shuffled([*buyers, *(dice.pick_early(often) for _ in range(count - len(buyers)))])


def _endings(dice: Dice) -> dict[int, tuple[str, bool]]:
    """Order number -> (status, was it shipped), for orders whose status is not plain ``Shipped``."""
    plain, newest = ORDERS[1:-_IN_PROCESS], ORDERS[-_IN_PROCESS:]
    endings = dict.fromkeys(newest, ("In Process", False))
    chosen = iter(dice.sample(plain, sum(count for _, count, _ in _ENDINGS)))
    for status, count, unshipped in _ENDINGS:
        endings.update({next(chosen): (status, index >= unshipped) for index in range(count)})
    return endings


def _order(dice: Dice, number: int, ordered: date, ending: tuple[str, bool], customer: int) -> Row:
    status, was_shipped = ending
    required = ordered + timedelta(days=dice.between(6, 10))
    shipped = ordered + timedelta(days=dice.between(1, 7)) if was_shipped else None
    comments = dice.pick(words.COMMENTS) if dice.between(1, 4) == 1 else None
    return (number, ordered, required, shipped, status, comments, customer)


def _line_counts(dice: Dice) -> list[int]:
    counts = [4, *(dice.between(1, _MOST_LINES) for _ in ORDERS[1:])]
    while missing := LINES - sum(counts):
        step = 1 if missing > 0 else -1
        index = dice.between(1, len(counts) - 1)
        counts[index] = min(max(counts[index] + step, 1), _MOST_LINES)
    return counts


def _deal(dice: Dice, products: Sequence[Row]) -> Iterator[Row]:
    """All products in some order, then again in another, without end."""
    while True:
        yield from dice.shuffled(products)


def _price(dice: Dice, product: Row) -> Decimal:
    """80 to 100 % of the list price, which is above the purchase price."""
    list_price = product[-1]
    assert isinstance(list_price, Decimal)  # noqa: S101 (the column's type)
    return money(int(list_price * 100) * dice.between(80, 100) // 100)
