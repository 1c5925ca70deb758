"""Categories and products."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from infra.sources.northwind import words

if TYPE_CHECKING:
    from infra.sources.dice import Dice
    from infra.sources.shape import Row

PRODUCTS = 77
_DEAREST = 38
"""The product that costs most; only dear ones make lines of more than a thousand."""


def categories() -> tuple[Row, ...]:
    """8 categories without pictures."""
    return tuple((number, name, text, None) for number, (name, text, _, _) in enumerate(words.CATEGORIES, start=1))


def products(dice: Dice, suppliers: int) -> tuple[Row, ...]:
    """77 products of so many suppliers, at 2.50 to 263.50."""
    kinds = [
        (number, f"{origin} {kind}", packed)
        for number, (_, _, sold, packed) in enumerate(words.CATEGORIES, start=1)
        for kind in sold
        for origin in words.ORIGINS
    ]
    chosen = enumerate(dice.sample(kinds, PRODUCTS), start=1)
    return tuple(_product(dice, number, kind, dice.between(1, suppliers)) for number, kind in chosen)


def _product(dice: Dice, number: int, kind: tuple[int, str, str], supplier: int) -> Row:
    category, name, packed = kind
    price = Decimal("263.50") if number == _DEAREST else Decimal(dice.pick_early(range(10, 500))) / 4
    stock, coming, least = dice.between(0, 125), dice.pick((0, 0, 10, 40, 70)), dice.pick((0, 5, 10, 25))
    return (number, name, supplier, category, packed, price, stock, coming, least, int(dice.between(1, 10) == 1))
