"""The history of one key in plain Python: what a database did, what its changes say, and two ways to its intervals.

``at_source`` watches the row itself; ``of_all`` knows every change and goes by the definition; ``Steps`` is the twin of
``transforms/history.py``, which takes changes as they come. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from replicator.transforms.row_state import State, from_change, merge_states

COLUMNS = ("a", "b")
DEAD = ("insert", "arrive", "truncate")
ALIVE = ("update", "partial", "same", "hollow", "delete", "truncate")
"""What may happen to a key without a row, and to one with. ``arrive``, ``partial`` and ``hollow`` do not send ``b``;
``same`` and ``hollow`` change nothing."""

Interval = tuple[str, str | None, str, str | None]
"""From, to, ``a``, ``b``; None: it still holds; a ``b`` that nobody knows."""


@dataclass(frozen=True)
class Event:
    """One record: what it is, its place and Kafka offset, and the row as it was then (None for a column not sent)."""

    kind: str
    place: int
    offset: int
    a: str = ""
    b: str | None = None

    @property
    def seq(self) -> str:
        """As ``position.seq`` writes it."""
        return f"0000{self.place:020x}{0:016x}{self.offset:016x}"

    @property
    def ends(self) -> bool:
        """Whether there is no row behind it."""
        return self.kind in ("delete", "truncate")

    def told(self) -> State:
        """What it says about the row."""
        return from_change(self.seq, COLUMNS, deleted=self.ends, unsent=("b",) if self.b is None else ())


History = tuple[Event, ...]


def histories(length: int, kinds: tuple[tuple[str, ...], tuple[str, ...]] = (DEAD, ALIVE)) -> Iterator[History]:
    """All that can happen to a key in so many steps, at places 1, 2, 3 and so on."""
    dead, alive = kinds

    def longer(past: History, row: tuple[str, str] | None) -> Iterator[History]:
        if len(past) == length:
            yield past
            return
        for kind in dead if row is None else alive:
            at = len(past) + 1
            after = _after(kind, row, str(at))
            b = None if kind in ("arrive", "partial", "hollow") or after is None else after[1]
            yield from longer((*past, Event(kind, at, at, after[0] if after else "", b)), after)

    return longer((), None)


def _after(kind: str, row: tuple[str, str] | None, new: str) -> tuple[str, str] | None:
    if kind in ("delete", "truncate"):
        return None
    if row is None:
        return (new, new)
    return row if kind in ("same", "hollow") else (new, row[1])


def replayed(history: History, start: int) -> History:
    """With all from ``start`` on delivered again: the same places, new offsets."""
    again = [Event(e.kind, e.place, e.offset + len(history) - start, e.a, e.b) for e in history[start:]]
    return (*history, *again)


def at_source(history: History) -> list[Interval]:
    """What the database held, by watching it; for histories in which each value was sent once."""
    found: list[Interval] = []
    row: tuple[str, str | None] | None = None
    for event in history:
        b = event.b if event.b is not None or row is None else row[1]
        after = None if event.ends else (event.a, b)
        if after == row:
            continue
        if row is not None:
            found[-1] = (found[-1][0], event.seq, *row)
        if after is not None:
            found.append((event.seq, None, *after))
        row = after
    return found


@dataclass
class Steps:
    """The row after each place, and all truncates: what a history table stores of a key."""

    states: dict[int, State] = field(default_factory=dict)
    starts: dict[int, str] = field(default_factory=dict)
    truncates: frozenset[str] = frozenset()
    events: dict[str, Event] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """One more record joins every step from its place on."""
        if event.kind == "truncate":
            self.truncates |= {event.seq}
            return
        self.events[event.seq] = event
        own, place = event.told(), event.place
        before = max((at for at in self.states if at <= place), default=None)
        self.states[place] = own if before is None else merge_states(self.states[before], own)
        for later in (at for at in self.states if at > place):
            self.states[later] = merge_states(self.states[later], own)
        self.starts[place] = min(event.seq, self.starts.get(place, event.seq))

    def intervals(self) -> list[Interval]:
        """What the table shows."""
        steps = [(self.starts[at], self._cleared(self.states[at])) for at in sorted(self.states)]
        return shown(steps, self.truncates, self.events)

    def _cleared(self, held: State) -> State:
        return reduce(merge_states, (gone(at) for at in self.truncates if at < held.seq), held)


def gone(seq: str) -> State:
    """What a truncate says."""
    return from_change(seq, COLUMNS, deleted=True)


def of_all(records: Iterable[Event]) -> list[Interval]:
    """The definition: after each place the row is what all records up to it make."""
    every = list(records)
    truncates = frozenset(event.seq for event in every if event.kind == "truncate")
    events = {event.seq: event for event in every if event.kind != "truncate"}
    steps = []
    for place in sorted({event.place for event in events.values()}):
        mine = [event.seq for event in events.values() if event.place == place]
        so_far = [event.told() for event in events.values() if event.place <= place]
        so_far += [gone(at) for at in truncates if at < max(mine)]
        steps.append((min(mine), reduce(merge_states, so_far)))
    return shown(steps, truncates, events)


def shown(steps: Sequence[tuple[str, State]], truncates: frozenset[str], events: dict[str, Event]) -> list[Interval]:
    """Intervals of steps: one ends where another row begins, or none is."""
    found: list[Interval] = []
    last: State | None = None
    for start, held in steps:
        cut = None if last is None else min((at for at in truncates if last.seq < at < held.seq), default=None)
        if cut is not None:
            _end(found, cut)
        row = None if held.deleted else _row(held, events)
        open_row = found[-1][2:] if found and found[-1][1] is None else None
        if row != open_row:
            _end(found, start)
            if row is not None:
                found.append((start, None, *row))
        last = held
    if last is not None:
        cut = min((at for at in truncates if at > last.seq), default=None)
        if cut is not None:
            _end(found, cut)
    return found


def _end(found: list[Interval], at: str) -> None:
    if found and found[-1][1] is None:
        found[-1] = (found[-1][0], at, *found[-1][2:])


def _row(held: State, events: dict[str, Event]) -> tuple[str, str | None]:
    place = held.places["b"]
    known = place and not place.endswith("-")
    return events[held.places["a"]].a, events[place].b if known else None
