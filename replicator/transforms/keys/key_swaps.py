"""Key swaps: which row holds a key while one transaction moves rows between keys, from all events of the key
(debezium.md C5).

If keys are checked only at the end of a transaction, several rows may hold one key within it, and a record of the key
does not say which row it is about. Pure Python over the events of one key; key changes are rare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

INSERT, WRITE, DELETE = "insert", "write", "delete"
SWAP, AMBIGUOUS = "key_swap", "key_swap_ambiguous"


class Event(NamedTuple):
    """One record of a key. ``place`` is its position without the Kafka offset, None if there is no usable position.

    ``kind``: INSERT adds a row, WRITE sets its values, DELETE removes one. ``image`` are the row's values as text after
    the event (for a DELETE before it), None if they are not all known. ``is_full``: the image of a DELETE is certainly
    the complete row (E9). ``own`` identifies a PostgreSQL record independently of its position in a redelivery
    (``position.transaction_lsn``), None where the place does.
    """

    seq: str
    place: str | None
    transaction: str | None
    kind: str
    image: str | None
    is_full: bool
    own: str | None = None


def verdicts(events: Iterable[Event], held: Sequence[str | None] = ()) -> dict[str, str]:
    """The reason per ``_seq`` of each DELETE that must not be applied.

    SWAP: another row holds the key, the one that was written last. AMBIGUOUS: another row may hold it, and the records
    do not tell which. ``held`` are the images of the rows that held the key before all events.
    """
    by_seq = {event.seq: event for event in sorted(events, key=lambda event: event.image is not None)}
    events, firsts = sorted(by_seq.values(), key=lambda event: event.seq), dict[tuple[str | None, str], str]()
    for event in events:
        firsts.setdefault((event.own, event.kind), event.seq)
    rows, found = list(held), dict[str, str]()
    shown = rows[-1] if rows else None
    transaction: str | None = None
    in_order = groupby(sorted(events, key=lambda event: _first(event, firsts)), _place)
    for again in (once for _, sent in in_order for once in _group_repetitions(list(sent))):
        event = next((each for each in again if each.image is not None), again[0])
        if event.transaction is None or event.transaction != transaction:
            del rows[:-1]  # after a transaction a key has at most one row
        transaction = event.transaction
        if event.kind == DELETE:
            verdict = _take_row(rows, event, shown)
            found |= {} if verdict is None else {each.seq: verdict for each in again}
            continue
        shown = event.image
        rows[:] = [*rows, shown] if event.kind == INSERT else [shown] if len(rows) < 2 else [None] * len(rows)
    return found


def _place(event: Event) -> str:
    """What a redelivery of a record or change has in common with the first delivery."""
    return event.own or event.place or event.seq


def _group_repetitions(events: Sequence[Event]) -> list[list[Event]]:
    """The changes of one place, each with its redeliveries. In some databases a whole transaction has one place: a
    redelivery is then a run of events that repeats the changes through to the last one sent.
    """
    found: list[list[Event]] = []
    alike: defaultdict[tuple[str | None, ...], set[int]] = defaultdict(set)
    at = 0
    while at < len(events):
        kind, image = events[at].kind, events[at].image
        places = alike[kind,] if image is None else alike[kind, image] | alike[kind, None]
        start = next((place for place in sorted(places) if _is_run(found, place, events, at)), None)
        if start is None:
            start = len(found)
            found.append([])
        for place in range(start, len(found)):
            event = events[at]
            found[place].append(event)
            alike[event.kind,].add(place)
            alike[event.kind, event.image].add(place)
            at += 1
    return found


def _is_run(found: Sequence[Sequence[Event]], start: int, events: Sequence[Event], at: int) -> bool:
    """Whether the events from ``at`` on repeat all changes from ``start`` on, one by one."""
    size = len(found) - start
    are_same = (_is_same(found[start + each][-1], events[at + each]) for each in range(size))
    return size <= len(events) - at and all(are_same)


def _is_same(one: Event, other: Event) -> bool:
    """Whether two events may be the same; an unknown image equals any."""
    return one.kind == other.kind and (None in (one.image, other.image) or one.image == other.image)


def _first(event: Event, firsts: Mapping[tuple[str | None, str], str]) -> str:
    """The ``_seq`` of the first delivery of a change."""
    return event.seq if event.own is None else firsts[event.own, event.kind]


def _take_row(rows: list[str | None], event: Event, shown: str | None) -> str | None:
    """Remove the row of a DELETE from ``rows``; return the verdict, None if the DELETE is to be applied."""
    is_known = event.image is not None and event.image in rows
    at = rows.index(event.image) if is_known else rows.index(None) if None in rows else 0
    del rows[at : at + 1]
    if not rows:
        return None
    if not is_known and not event.is_full:
        rows[:] = [None] * len(rows)
        return AMBIGUOUS
    return SWAP if None in rows or shown in rows else AMBIGUOUS
