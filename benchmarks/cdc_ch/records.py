"""Changes of rows -> Debezium's events of them, as its PostgreSQL connector sends them with schemas off.

A position is the record's LSN behind the last commit's (``source.sequence``); all events of a transaction have its
``txId`` and its time. A delete is followed by a tombstone.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.cdc_ch import partitioner
from benchmarks.cdc_ch.tables import KNOWN, Kept

SOURCE, SCHEMA = "shop", "public"
"""The connector's prefix, and the schema of its tables."""

UNSENT = "__debezium_unavailable_value"
_FIRST_LSN = 26_000_000_000
_BYTES = 180  # of the log, for each change
_FLUSHED = 400  # a connector that starts again sends up to so many records again
_TEXT = KNOWN["customer"].names.index("c_data")
_STALLED = 300  # a partition that is slow stays behind for about so many records


class Event(NamedTuple):
    """An event without the time at which it is sent: the value is ``head`` and that time; a tombstone has no head."""

    table: str
    key: str
    head: str | None
    position: int
    at: int


class Sent(NamedTuple):
    """A record as brokers have it: ``at`` is when it was sent, in ms; ``position`` rises with the source's log."""

    table: str
    partition: int
    offset: int
    key: str
    value: str | None
    at: int
    position: int


@dataclass(frozen=True)
class Wire:
    """How events are written: whether they hold the row ``before`` an update (REPLICA IDENTITY FULL), and whether the
    long text of a customer is left out of updates that do not change it (``toast``).
    """

    before: bool = False
    toast: bool = False


class Log:
    """The source's log: gives each change its place. ``events`` are those of the transaction that is under way."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._rows = {name: table.writer() for name, table in KNOWN.items()}
        self._keys = {name: table.key_writer() for name, table in KNOWN.items()}
        self._lsn = self._last_commit = _FIRST_LSN
        self._transaction = 700
        self.events: list[Event] = []
        self.now = 0

    def grow(self, table: Kept) -> None:
        """From now on rows of the table have these columns."""
        self._rows[table.name] = table.writer()

    def tell(self, table: Kept, op: str, row: list[Any], before: list[Any] | None) -> None:
        """One change of a row; of a delete PostgreSQL logs the key, or with REPLICA IDENTITY FULL the row."""
        key = self._keys[table.name](row)
        after, old = "null", "null"
        if op == "d":
            is_key = len(row) == table.width or self._wire.before
            old = self._rows[table.name](row if is_key else self._key_only(table, row))
        else:
            after = self._rows[table.name](self._unsent(table, row, before))
            if before is not None and self._wire.before:
                old = self._rows[table.name](before)
        self._lsn += _BYTES
        self.events.append(self._event(table.name, op, key, old, after))
        if op == "d":
            self.events.append(Event(table.name, key, None, self._lsn, self.now // 1000))

    def snapshot(self, table: Kept, row: list[Any]) -> Event:
        """A row that was there before."""
        return self._event(table.name, "r", self._keys[table.name](row), "null", self._rows[table.name](row), "true")

    def commit(self) -> list[Event]:
        """The events of the transaction, which ends."""
        done, self.events = self.events, []
        self._lsn += _BYTES
        self._last_commit = self._lsn
        self._transaction += 1
        return done

    def _event(self, table: str, op: str, key: str, before: str, after: str, snapshot: str = "false") -> Event:
        us, lsn = self.now, self._lsn
        head = (
            f'{{"before":{before},"after":{after},"source":{{"version":"3.7.0.Final","connector":"postgresql",'
            f'"name":"{SOURCE}","ts_ms":{us // 1000},"snapshot":"{snapshot}","db":"{SOURCE}",'
            f'"sequence":"[\\"{self._last_commit}\\",\\"{lsn}\\"]","ts_us":{us},"ts_ns":{us}000,"schema":"{SCHEMA}",'
            f'"table":"{table}","txId":{self._transaction},"lsn":{lsn},"xmin":null}},"transaction":null,"op":"{op}",'
            '"ts_ms":'
        )
        return Event(table, key, head, lsn, us // 1000)

    def _unsent(self, table: Kept, row: list[Any], before: list[Any] | None) -> list[Any]:
        if self._wire.toast and table.name == "customer" and before is not None and row[_TEXT] == before[_TEXT]:
            return [*row[:_TEXT], UNSENT, *row[_TEXT + 1 :]]
        return row

    @staticmethod
    def _key_only(table: Kept, row: list[Any]) -> list[Any]:
        return [*row[: table.width], *[None] * (len(row) - table.width)]


def redelivered(transactions: Iterable[list[Event]], share: float, rng: random.Random) -> Iterator[Event]:
    """Every event in the source's order; now and then the connector starts again, and the last ones come once more.

    So many that ``share`` of what was sent came again.
    """
    recent: deque[Event] = deque(maxlen=_FLUSHED)
    sent = again = 0
    for events in transactions:
        yield from events
        recent.extend(events)
        sent += len(events)
        if again < share * sent and rng.random() < 0.2:
            count = min(len(recent), 20 + int(rng.random() * (_FLUSHED - 20)))
            lost = list(recent)[-count:]
            yield from lost
            again += count


class Brokers:
    """Topics of so many partitions each: gives records their partition (by key) and offset.

    ``late`` counts records that others have overtaken.
    """

    def __init__(self, partitions: int, rng: random.Random) -> None:
        self._partitions, self._rng = partitions, rng
        self._offsets: Counter[tuple[str, int]] = Counter()
        self.late = 0

    def deliver(self, events: Iterable[Event], disorder: float = 0.0) -> Iterator[Sent]:
        """Records in the order in which they can be read.

        The share ``disorder`` comes late: one partition at a time is slow for a while, the others go on. Within a
        partition the order stays, as Kafka keeps it.
        """
        slow: tuple[str, int] | None = None
        waiting: list[Event] = []
        until = 0
        for count, event in enumerate(events, 1):
            place = (event.table, self._partition(event.key))
            if slow is not None and count > until:
                yield from map(self._sent, waiting)
                self.late += len(waiting)
                slow, waiting = None, []
            if slow is None and self.late < disorder * count:
                slow, until = place, count + _STALLED // 2 + int(self._rng.random() * _STALLED)
            if place == slow:
                waiting.append(event)
            else:
                yield self._sent(event)
        yield from map(self._sent, waiting)
        self.late += len(waiting)

    def _partition(self, key: str) -> int:
        return partitioner.partition(key, self._partitions)

    def _sent(self, event: Event) -> Sent:
        partition = self._partition(event.key)
        offset = self._offsets[event.table, partition]
        self._offsets[event.table, partition] += 1
        at = event.at + 5
        value = None if event.head is None else f"{event.head}{at}}}"
        return Sent(event.table, partition, offset, event.key, value, at, event.position)


def topic(table: str) -> str:
    """The topic of a table's events."""
    return f"{SOURCE}.{SCHEMA}.{table}"
