"""Who holds a key while one transaction moves rows about, told from all that happened to the key (debezium.md C5).

Where keys are checked at the end of a transaction, several rows may hold one key in its midst, and a record of such a
key does not say of which of them it speaks. Pure Python over the events of one key; key changes are rare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

INSERT, WRITE, DELETE = "insert", "write", "delete"
SWAP, AMBIGUOUS = "key_swap", "key_swap_ambiguous"


class Event(NamedTuple):
    """One record of a key. ``place`` is its position without the Kafka offset, None where positions tell nothing.

    ``kind``: INSERT adds a row, WRITE says what a row is now, DELETE takes one away. ``image`` is what the row became,
    of a DELETE what it was: its values as a text, None where they are not all known. ``whole``: the image of a DELETE
    can be nothing but the whole row (E9). ``own`` is what a record of PostgreSQL has wherever it stands when it is sent
    again (``position.own``), None where its place tells that.
    """

    seq: str
    place: str | None
    transaction: str | None
    kind: str
    image: str | None
    whole: bool
    own: str | None = None


def verdicts(events: Iterable[Event], held: Sequence[str | None] = ()) -> dict[str, str]:
    """``_seq`` of each DELETE that is not to be applied -> why.

    SWAP: another row holds the key, and it is the one that was written last. AMBIGUOUS: another row may hold it, and
    which one the records do not tell. ``held`` are the images of the rows that held the key before all events.
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
            del rows[:-1]  # at the end of a transaction a key has one row at most
        transaction = event.transaction
        if event.kind == DELETE:
            verdict = _take_row(rows, event, shown)
            found |= {} if verdict is None else {each.seq: verdict for each in again}
            continue
        shown = event.image
        rows[:] = [*rows, shown] if event.kind == INSERT else [shown] if len(rows) < 2 else [None] * len(rows)
    return found


def _place(event: Event) -> str:
    """What is the same when a record occurs twice, or the source sent a change once more."""
    return event.own or event.place or event.seq


def _group_repetitions(events: Sequence[Event]) -> list[list[Event]]:
    """The changes of one place, each with its repetitions. Of some databases a whole transaction has one: what was sent
    again is then known by its going through to the end of what had been sent.
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
    """Whether all changes from one on are sent again, one by one, by the events from there on."""
    size = len(found) - start
    is_told = (_is_same(found[start + each][-1], events[at + each]) for each in range(size))
    return size <= len(events) - at and all(is_told)


def _is_same(one: Event, other: Event) -> bool:
    """One that does not tell its row is taken for the other."""
    return one.kind == other.kind and (None in (one.image, other.image) or one.image == other.image)


def _first(event: Event, firsts: Mapping[tuple[str | None, str], str]) -> str:
    """Where a change stood when it was sent first."""
    return event.seq if event.own is None else firsts[event.own, event.kind]


def _take_row(rows: list[str | None], event: Event, shown: str | None) -> str | None:
    """Take the row of a DELETE out of ``rows``; the verdict, None where it is to be applied."""
    is_known = event.image is not None and event.image in rows
    at = rows.index(event.image) if is_known else rows.index(None) if None in rows else 0
    del rows[at : at + 1]
    if not rows:
        return None
    if not is_known and not event.whole:
        rows[:] = [None] * len(rows)
        return AMBIGUOUS
    return SWAP if None in rows or shown in rows else AMBIGUOUS
