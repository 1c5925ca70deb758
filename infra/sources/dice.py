"""Seeded choices that are the same on every Python.

Only ``random.Random.random`` promises the same sequence across versions (its siblings ``choice``, ``shuffle`` and
``randrange`` changed before), so everything here is built on that.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Dice:
    """A stream of choices; the same seed gives the same stream."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def between(self, lowest: int, highest: int) -> int:
        """A whole number, both ends included."""
        return lowest + int(self._random.random() * (highest - lowest + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.between(0, len(items) - 1)]

    def pick_early(self, items: Sequence[T]) -> T:
        """One of the items; the first ones are drawn far more often."""
        return items[int(self._random.random() * self._random.random() * len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in another order."""
        deck = list(items)
        for last in range(len(deck) - 1, 0, -1):
            other = self.between(0, last)
            deck[last], deck[other] = deck[other], deck[last]
        return deck

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different items."""
        return self.shuffled(items)[:count]

    def digits(self, pattern: str) -> str:
        """The pattern with a digit for each ``#``."""
        return "".join(str(self.between(0, 9)) if character == "#" else character for character in pattern)

    def cents(self, lowest: int, highest: int) -> Decimal:
        """An amount of money with two decimals between two numbers of cents."""
        return money(self.between(lowest, highest))


def money(cents: int) -> Decimal:
    """Cents as an exact amount with two decimals."""
    return Decimal(cents).scaleb(-2)
