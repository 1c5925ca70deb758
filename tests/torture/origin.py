"""A source that exists as what it holds and what Debezium would have written of it, both grown by the same dice.

Source ``shop`` has two tables, ``till`` has one. In every batch orders and sales come, change and go, and a record is
broken. In every second one, orders are truncated; in the others customers change. Sometimes orders get one more column.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from tests.builders import envelope

CUSTOMERS, ORDERS, SALES = "shop.customers", "shop.orders", "till.sales"
SOURCE_OF = {CUSTOMERS: "shop", ORDERS: "shop", SALES: "till"}
KEYS = {CUSTOMERS: 6, ORDERS: 9, SALES: 7}
"""So many keys are in use at most: what is deleted comes back."""
EVOLVES_EVERY = 5

Row = dict[str, Any]


@dataclass(frozen=True)
class Sent:
    """One record as Kafka would hold it."""

    topic: str
    offset: int
    key: str | None
    value: str


class Origin:
    """``rows`` is what every table holds now, ``sent`` all records so far, ``broken`` those that nobody can apply."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.rows: dict[str, dict[int, Row]] = {table: {} for table in SOURCE_OF}
        self.sent: list[Sent] = []
        self.broken: list[Sent] = []
        self.batches = 0
        self._columns: dict[str, list[str]] = defaultdict(list)
        self._offsets: Counter[str] = Counter()
        self._pos = 4

    def batch(self) -> list[Sent]:
        """What happens next."""
        self.batches += 1
        before = len(self.sent)
        if self.batches % EVOLVES_EVERY == 2:
            self._columns[ORDERS].append(f"note{self.batches}")
        for table, keys in KEYS.items():
            if table == CUSTOMERS and self.batches % 2 == 0:
                continue
            changed = [1, 2, 3, *(self._dice.randint(1, keys) for _ in range(4))]  # some keys change in every batch
            for turn, key in enumerate(changed):
                if table == ORDERS and turn == 3 and self.batches % 2 == 0:
                    self._truncate(table)
                self._change(table, key)
        self._break()
        return self.sent[before:]

    def columns(self, table: str) -> list[str]:
        """Its columns by now."""
        own = {CUSTOMERS: ["id", "name"], ORDERS: ["id", "customer", "total"], SALES: ["id", "ordered", "amount"]}
        return own[table] + self._columns[table]

    def _change(self, table: str, key: int) -> None:
        rows, before = self.rows[table], self.rows[table].get(key)
        if before is not None and self._dice.random() < 0.3:
            del rows[key]
            self._send(table, key, "d", before=before)
        else:
            rows[key] = self._row(table, key)
            self._send(table, key, "c" if before is None else "u", after=rows[key], before=before)

    def _row(self, table: str, key: int) -> Row:
        made = {column: self._dice.randint(1, 9) for column in self.columns(table)}
        texts = {column: f"{column} {self._dice.random():.9f} é" for column in made if column.startswith("n")}
        return made | texts | {"id": key}

    def _truncate(self, table: str) -> None:
        self.rows[table].clear()
        self._send(table, None, "t")

    def _send(self, table: str, key: int | None, op: str, **images: Row | None) -> None:
        self._pos += 10
        source = SOURCE_OF[table]
        told = envelope(op, pos=self._pos, table=table, name=source, ts_ms=1_700_000_000_000 + self._pos, **images)
        self._append(table, None if key is None else json.dumps({"id": key}), json.dumps(told, ensure_ascii=False))

    def _break(self) -> None:
        table = self._dice.choice(list(SOURCE_OF))
        self._append(table, '{"id": 1}', json.dumps({"op": "?", "n": self._dice.random()}))
        self.broken.append(self.sent[-1])

    def _append(self, table: str, key: str | None, value: str) -> None:
        topic = f"{SOURCE_OF[table]}.{table}"
        self.sent.append(Sent(topic, self._offsets[topic], key, value))
        self._offsets[topic] += 1
