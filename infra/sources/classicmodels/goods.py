"""Product lines and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.sources.classicmodels import words
from infra.sources.dice import Dice, money

if TYPE_CHECKING:
    from infra.sources.shape import Row


def productlines() -> tuple[Row, ...]:
    """Seven lines; their HTML and image are always NULL."""
    return tuple((name, description, None, None) for name, _, _, description in words.LINES)


def products(dice: Dice) -> tuple[Row, ...]:
    """110 products, unsorted; the list price is at most 214.30 and the purchase price 40 to 70 % of it."""
    serials = iter(dice.sample(range(1000, 5000), sum(count for _, count, _, _ in words.LINES)))
    return tuple(
        _product(dice, line, kinds, next(serials)) for line, count, kinds, _ in words.LINES for _ in range(count)
    )


def _product(dice: Dice, line: str, kinds: tuple[str, ...], serial: int) -> Row:
    scale = "1:700" if line in {"Ships", "Planes"} else dice.pick(words.SCALES)
    name = f"{dice.between(1903, 1998)} {dice.pick(words.MAKERS)} {dice.pick(kinds)}"
    first, second = dice.sample(words.FEATURES, 2)
    description = f"A {name} in {scale}, with {first} and {second}.\nShips in a box; décor may differ."
    list_price = dice.between(3319, 21430)
    buy_price = list_price * dice.between(40, 70) // 100
    code = f"S{scale[2:]}_{serial}"
    vendor, stock = dice.pick(words.VENDORS), dice.between(0, 9999)
    return (code, name, line, scale, vendor, description, stock, money(buy_price), money(list_price))
