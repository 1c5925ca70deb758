"""A source that exists as what it holds and what Debezium would have written of it, both grown by the same dice.

Source ``shop`` has two tables, ``till`` has one; people of ``shop`` are there where they are asked for. In every batch
orders, sales and people come, change and go, and a record is broken. In every second one, orders are truncated; in the
others customers change. Sometimes orders get one more column.

Where transactions are told (``whole``), each changes some rows of ``shop``, and the last of a batch has not arrived
whole: its end, or what it did to one table, is sent with the next batch.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.builders import envelope

CUSTOMERS, ORDERS, SALES, PEOPLE = "shop.customers", "shop.orders", "till.sales", "shop.people"
TABLES = (CUSTOMERS, ORDERS, SALES)
"""What every origin has."""
ENDS = "shop.transaction"
"""The topic of transactions."""
SOURCE_OF = {CUSTOMERS: "shop", ORDERS: "shop", SALES: "till", PEOPLE: "shop"}
KEYS = {CUSTOMERS: 6, ORDERS: 9, SALES: 7, PEOPLE: 5}
"""So many keys are in use at most: what is deleted comes back."""
EVOLVES_EVERY = 5

Row = dict[str, Any]
Rows = dict[str, dict[int, Row]]
"""By table and key."""


@dataclass(frozen=True)
class Sent:
    """One record as Kafka would hold it."""

    topic: str
    offset: int
    key: str | None
    value: str


@dataclass
class _Transaction:
    """``id`` is '' outside of any."""

    id: str
    counts: Counter[str] = field(default_factory=Counter)

    def event(self, table: str) -> dict[str, Any]:
        """What the next event of it tells."""
        self.counts[table] += 1
        return {"id": self.id, "total_order": self.counts.total(), "data_collection_order": self.counts[table]}


class Origin:
    """``rows`` is what every table holds now, ``sent`` all records so far, ``broken`` those that nobody can apply.

    ``shown`` is what may be seen of it: the rows behind the last transaction that was sent whole. ``states`` are those
    of ``shop`` behind every transaction.
    """

    def __init__(self, seed: int, *, whole: bool = False, tables: tuple[str, ...] = TABLES) -> None:
        self.whole, self.tables = whole, tables
        self.states: list[Rows] = []
        self._withheld: list[Sent] = []
        self._transaction = _Transaction("")
        self._dice = random.Random(seed)
        self.rows: Rows = {table: {} for table in tables}
        self.sent: list[Sent] = []
        self.broken: list[Sent] = []
        self.batches = 0
        self._columns: dict[str, list[str]] = defaultdict(list)
        self._offsets: Counter[str] = Counter()
        self._pos = 4
        self.shown = self.rows

    def batch(self) -> list[Sent]:
        """What happens next."""
        self.batches += 1
        before = len(self.sent)
        self.rest()
        if self.batches % EVOLVES_EVERY == 2:
            self._columns[ORDERS].append(f"note{self.batches}")
        if self.whole:
            self._break()
            turns = list(self._turns())
            self._in_transactions([turn for turn in turns if turn[0] != SALES])
            self._take(turn for turn in turns if turn[0] == SALES)
        else:
            self._take(self._turns())
            self._break()
        return self.sent[before:]

    def rest(self) -> list[Sent]:
        """What has not arrived yet of the last transaction."""
        late, self._withheld = self._withheld, []
        self.sent += late
        self.shown = self.rows
        return late

    def columns(self, table: str) -> list[str]:
        """Its columns by now."""
        own = {CUSTOMERS: ["id", "name"], ORDERS: ["id", "customer", "total"], SALES: ["id", "ordered", "amount"]}
        own[PEOPLE] = ["id", "name", "nick", "points"]
        return own[table] + self._columns[table]

    def _turns(self) -> Iterator[tuple[str, int, int]]:
        """Tables, each with the number of the turn and the key that is its."""
        for table in self.tables:
            keys = KEYS[table]
            if table == CUSTOMERS and self.batches % 2 == 0:
                continue
            changed = [1, 2, 3, *(self._dice.randint(1, keys) for _ in range(4))]  # some keys change in every batch
            yield from ((table, turn, key) for turn, key in enumerate(changed))

    def _in_transactions(self, turns: list[tuple[str, int, int]]) -> None:
        self._dice.shuffle(turns)
        while turns:
            some, turns = turns[:3], turns[3:]
            before, first = self._state(), len(self.sent)
            self._transaction = _Transaction(f"0-1-{len(self.states) + 1}")
            self._tell("BEGIN")
            self._take(some)
            self._tell("END")
            self._transaction = _Transaction("")
            self.states.append({table: rows for table, rows in self._state().items() if table != SALES})
        late = self._dice.choice(sorted({each.topic for each in self.sent[first:]}))
        self._withheld = [each for each in self.sent[first:] if each.topic == late]
        self.sent[first:] = [each for each in self.sent[first:] if each.topic != late]
        self.shown = {**before, SALES: self.rows[SALES]}

    def _state(self) -> Rows:
        return {table: dict(rows) for table, rows in self.rows.items()}

    def _tell(self, status: str) -> None:
        now = self._transaction
        counts = [{"data_collection": table, "event_count": count} for table, count in now.counts.items()]
        told = {
            "status": status,
            "id": now.id,
            "ts_ms": 1_700_000_000_000 + self._pos,
            "event_count": now.counts.total(),
        }
        self._append(ENDS, json.dumps({"id": now.id}), json.dumps(told | {"data_collections": counts or None}))

    def _take(self, turns: Iterable[tuple[str, int, int]]) -> None:
        for table, turn, key in turns:
            if table == ORDERS and turn == 3 and self.batches % 2 == 0:
                self._truncate(table)
            self._change(table, key)

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
        if self._transaction.id:
            told["transaction"] = self._transaction.event(table)
        topic, known = f"{source}.{table}", None if key is None else json.dumps({"id": key})
        self._append(topic, known, json.dumps(told, ensure_ascii=False))

    def _break(self) -> None:
        table = self._dice.choice(self.tables)
        self._append(f"{SOURCE_OF[table]}.{table}", '{"id": 1}', json.dumps({"op": "?", "n": self._dice.random()}))
        self.broken.append(self.sent[-1])

    def _append(self, topic: str, key: str | None, value: str) -> None:
        self.sent.append(Sent(topic, self._offsets[topic], key, value))
        self._offsets[topic] += 1
