"""TPC-C in memory: a shop that is filled and then trades, and tells each change of a row as it happens.

NewOrder, Payment and Delivery come 45 : 43 : 4 (the two that only read are left out). What is skewed is as in TPC-C:
customers and items by its NURand, districts and the warehouse are hot, orders are inserted last and read last, and new
orders are deleted.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from benchmarks.cdc_ch.tables import (
    CUSTOMER,
    DISTRICT,
    GROWN_CUSTOMER,
    HISTORY,
    ITEM,
    NEWORDER,
    ORDERLINE,
    ORDERS,
    STOCK,
    WAREHOUSE,
    Kept,
)

Row = list[Any]
Tell = Callable[[Kept, str, Row, Row | None], None]
"""Takes a table, ``c``, ``u`` or ``d``, the row (of a delete: as it was), and before an update the row as it was."""

DISTRICTS = 10
_NEW_ORDER, _PAYMENT = 45 / 92, 88 / 92
_BEGINNING = 1_767_225_600_000_000  # 2026-01-01 UTC
_STEP = 850  # microseconds between two commits: some 22,000 events a second
_LOYAL = 3  # payments
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -."
_SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")


@dataclass(frozen=True)
class Scale:
    """How large the shop is when it opens: customers are per district, items are what each warehouse has."""

    warehouses: int
    customers: int
    items: int


class Shop:
    """All rows. Seeded: the same seed makes the same rows and the same trade. With a ``skew`` districts and items are
    drawn by Zipf's law with that exponent, the first of them most often.
    """

    def __init__(self, scale: Scale, seed: int, skew: float = 0.0) -> None:
        self._rng = random.Random(seed)
        self._words = "".join(self._rng.choices(_LETTERS, k=1 << 16))
        self._scale = scale
        self._ranks = {count: _zipf(count, skew) for count in (DISTRICTS, scale.items) if skew}
        self._customers = CUSTOMER
        self.now = _BEGINNING
        self.warehouse: dict[int, Row] = {}
        self.district: dict[tuple[int, int], Row] = {}
        self.customer: dict[tuple[int, int, int], Row] = {}
        self.history: list[Row] = []
        self.neworder: dict[tuple[int, int], deque[int]] = {}
        self.orders: dict[tuple[int, int, int], Row] = {}
        self.orderline: dict[tuple[int, int, int], list[Row]] = {}
        self.item: dict[int, Row] = {}
        self.stock: dict[tuple[int, int], Row] = {}
        self._fill()

    def rows(self) -> Iterator[tuple[Kept, Iterator[Sequence[Any]]]]:
        """What every table holds now."""
        yield WAREHOUSE, iter(self.warehouse.values())
        yield DISTRICT, iter(self.district.values())
        yield self._customers, iter(self.customer.values())
        yield HISTORY, iter(self.history)
        yield NEWORDER, ((*place, order) for place, waiting in self.neworder.items() for order in waiting)
        yield ORDERS, iter(self.orders.values())
        yield ORDERLINE, (line for lines in self.orderline.values() for line in lines)
        yield ITEM, iter(self.item.values())
        yield STOCK, iter(self.stock.values())

    def grow(self) -> Kept:
        """Customers get a column, without a value until they pay. Returns the table as it is now."""
        for customer in self.customer.values():
            customer.append(None)
        self._customers = GROWN_CUSTOMER
        return self._customers

    def trade(self, tell: Tell) -> None:
        """One transaction."""
        self.now += 1 + self._below(2 * _STEP)
        which = self._rng.random()
        if which < _NEW_ORDER:
            self._new_order(tell)
        elif which < _PAYMENT:
            self._payment(tell)
        else:
            self._delivery(tell)

    def _new_order(self, tell: Tell) -> None:
        w, d = 1 + self._below(self._scale.warehouses), self._district()
        c = self._skewed(1023, self._scale.customers)
        district = self.district[w, d]
        before, order = district.copy(), district[9]
        district[9] += 1
        tell(DISTRICT, "u", district, before)
        count = 5 + self._below(11)
        self.orders[w, d, order] = [w, d, order, c, self.now, None, count, 1]
        tell(ORDERS, "c", self.orders[w, d, order], None)
        self.neworder[w, d].append(order)
        tell(NEWORDER, "c", [w, d, order], None)
        lines = self.orderline[w, d, order] = []
        for number in range(1, count + 1):
            i, quantity = self._item(), 1 + self._below(10)
            stock = self.stock[w, i]
            before = stock.copy()
            stock[2] += -quantity if stock[2] >= quantity + 10 else 91 - quantity
            stock[13] += quantity
            stock[14] += 1
            tell(STOCK, "u", stock, before)
            lines.append([w, d, order, number, i, w, None, quantity, quantity * self.item[i][3], stock[2 + d]])
            tell(ORDERLINE, "c", lines[-1], None)

    def _payment(self, tell: Tell) -> None:
        w, d = 1 + self._below(self._scale.warehouses), self._district()
        c, amount = self._skewed(1023, self._scale.customers), 100 + self._below(499_901)
        warehouse, district, customer = self.warehouse[w], self.district[w, d], self.customer[w, d, c]
        before = warehouse.copy()
        warehouse[7] += amount
        tell(WAREHOUSE, "u", warehouse, before)
        before = district.copy()
        district[8] += amount
        tell(DISTRICT, "u", district, before)
        before = customer.copy()
        customer[15] -= amount
        customer[16] += amount
        customer[17] += 1
        if customer[12] == "BC":
            customer[19] = f"{c} {d} {w} {amount} {customer[19]}"[:500]
        if self._customers is GROWN_CUSTOMER:
            customer[20] = "gold" if customer[17] > _LOYAL else "plain"
        tell(CUSTOMER, "u", customer, before)
        self._remember(w, d, c, amount)
        tell(HISTORY, "c", self.history[-1], None)

    def _delivery(self, tell: Tell) -> None:
        w, carrier = 1 + self._below(self._scale.warehouses), 1 + self._below(10)
        for d in range(1, DISTRICTS + 1):
            if not self.neworder[w, d]:
                continue
            number = self.neworder[w, d].popleft()
            tell(NEWORDER, "d", [w, d, number], None)
            order = self.orders[w, d, number]
            before = order.copy()
            order[5] = carrier
            tell(ORDERS, "u", order, before)
            total = 0
            for line in self.orderline[w, d, number]:
                before = line.copy()
                line[6] = self.now
                total += line[8]
                tell(ORDERLINE, "u", line, before)
            customer = self.customer[w, d, order[3]]
            before = customer.copy()
            customer[15] += total
            customer[18] += 1
            tell(CUSTOMER, "u", customer, before)

    def _fill(self) -> None:
        for i in range(1, self._scale.items + 1):
            self.item[i] = [
                i,
                1 + self._below(10_000),
                self._text(14, 24),
                100 + self._below(9_901),
                self._text(26, 50),
            ]
        for w in range(1, self._scale.warehouses + 1):
            self.warehouse[w] = [w, self._text(6, 10), *self._address(), self._below(2_001), 30_000_000]
            for i in self.item:
                infos = [self._text(24, 24) for _ in range(DISTRICTS)]
                self.stock[w, i] = [w, i, 10 + self._below(91), *infos, 0, 0, 0, self._text(26, 50)]
            for d in range(1, DISTRICTS + 1):
                self._fill_district(w, d)

    def _fill_district(self, w: int, d: int) -> None:
        count = self._scale.customers
        self.district[w, d] = [w, d, self._text(6, 10), *self._address(), self._below(2_001), 3_000_000, count + 1]
        for c in range(1, count + 1):
            self.customer[w, d, c] = self._customer(w, d, c)
            self._remember(w, d, c, 1_000)
        buyers = self._rng.sample(range(1, count + 1), count)
        waiting = count * 3 // 10
        self.neworder[w, d] = deque(range(count - waiting + 1, count + 1))
        for number, c in enumerate(buyers, 1):
            is_delivered, lines = number <= count - waiting, 5 + self._below(11)
            carrier = 1 + self._below(10) if is_delivered else None
            self.orders[w, d, number] = [w, d, number, c, self.now, carrier, lines, 1]
            self.orderline[w, d, number] = [
                self._old_line(w, d, number, line, is_delivered=is_delivered) for line in range(1, lines + 1)
            ]

    def _old_line(self, w: int, d: int, order: int, number: int, *, is_delivered: bool) -> Row:
        item, amount = 1 + self._below(self._scale.items), 0 if is_delivered else 1 + self._below(999_999)
        return [w, d, order, number, item, w, self.now if is_delivered else None, 5, amount, self._text(24, 24)]

    def _customer(self, w: int, d: int, c: int) -> Row:
        last = "".join(_SYLLABLES[digit] for digit in ((c - 1) // 100 % 10, (c - 1) // 10 % 10, (c - 1) % 10))
        credit = "BC" if self._below(10) == 0 else "GC"
        names, phone = (self._text(8, 16), "OE", last), f"{self._below(10**16):016}"
        money = (credit, 5_000_000, self._below(5_001), -1_000, 1_000, 1, 0)
        return [w, d, c, *names, *self._address(), phone, self.now, *money, self._text(300, 500)]

    def _remember(self, w: int, d: int, c: int, amount: int) -> None:
        self.history.append([len(self.history) + 1, c, d, w, d, w, self.now, amount, self._text(12, 24)])

    def _address(self) -> tuple[str, str, str, str]:
        return self._text(10, 20), self._text(10, 20), self._text(2, 2), f"{self._below(10_000):04}11111"

    def _text(self, shortest: int, longest: int) -> str:
        """Some of TPC-C's letters; as hard to compress as any."""
        length = shortest + self._below(longest - shortest + 1)
        start = self._below(len(self._words) - length)
        return self._words[start : start + length]

    def _district(self) -> int:
        return self._ranked(DISTRICTS) if self._ranks else 1 + self._below(DISTRICTS)

    def _item(self) -> int:
        return self._ranked(self._scale.items) if self._ranks else self._skewed(8191, self._scale.items)

    def _ranked(self, count: int) -> int:
        shares = self._ranks[count]
        return 1 + bisect_left(shares, self._rng.random() * shares[-1])

    def _skewed(self, width: int, count: int) -> int:
        """TPC-C's NURand, 1 to ``count``; its mask is no wider than the range."""
        mask = min(width, (1 << max(1, count.bit_length() - 2)) - 1)
        return (self._below(mask + 1) | (1 + self._below(count))) % count + 1

    def _below(self, count: int) -> int:
        return int(self._rng.random() * count)


def _zipf(count: int, exponent: float) -> list[float]:
    """The sum of the shares of the ranks up to each."""
    return list(accumulate(rank**-exponent for rank in range(1, count + 1)))
