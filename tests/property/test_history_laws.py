"""Every legal history of one key, delivered in every order: its intervals are those of the database (SCD 2).

The rule is the plain twin of ``transforms/history.py``; ``test_history_twins.py`` holds the two together.
"""

from __future__ import annotations

import random
import sys
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.intervals import (
    ALIVE,
    DEAD,
    Event,
    History,
    Interval,
    Steps,
    at_source,
    histories,
    of_all,
    replayed,
)

EVERY = [history for length in range(1, 5) for history in histories(length)]
SENT = (("insert", "truncate"), ALIVE)
"""Histories in which every value was sent at least once."""
LONGER = list(histories(5, (("insert",), ("update", "partial", "delete", "truncate"))))


def taken(records: list[Event] | tuple[Event, ...]) -> list[Interval]:
    """The intervals after these records, one at a time."""
    steps = Steps()
    for event in records:
        steps.take(event)
    return steps.intervals()


def test_every_order_of_every_history_ends_in_the_same_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    """P1, P2: whatever order the records come in, the table is what all of them together say."""
    deliveries = 0
    for history in [*EVERY, *LONGER]:
        expected = of_all(history)
        for order in permutations(history):
            deliveries += 1
            assert taken(order) == expected, order
    with capsys.disabled():
        sys.stdout.write(f"\n{len(EVERY) + len(LONGER):,} histories, {deliveries:,} deliveries: the same intervals\n")


def test_the_intervals_are_what_the_database_held() -> None:
    """Updates that change nothing begin none, values that were not sent are carried, deletes and truncates end one."""
    for length in range(1, 6):
        for history in histories(length, SENT):
            assert of_all(history) == at_source(history), history


def test_intervals_follow_each_other() -> None:
    """At each moment a key has at most one row, and an interval holds some time."""
    for history in EVERY:
        found = of_all(history)
        assert all(end is None or end > start for start, end, *_ in found)
        assert all(one[1] is not None and one[1] <= two[0] for one, two in pairwise(found))


def test_what_is_delivered_again_begins_no_interval() -> None:
    """P3, J1: a tail at equal places and new offsets leaves every interval as it was, in any order."""
    dice = random.Random(4)
    for history in (h for h in EVERY if len(h) <= 4):
        for start in range(len(history)):
            records = replayed(history, start)
            truncates = {e.place for e in history if e.kind == "truncate"}
            expected = [row for row in of_all(history) if row[1] is None or int(row[1][4:24], 16) not in truncates]
            found = taken(dice.sample(records, len(records)))
            assert [row for row in found if row in expected] == expected
            assert len(found) == len(of_all(history))


@given(st.data())
def test_longer_histories_in_any_order_with_copies(data: st.DataObject) -> None:
    """Up to 30 steps, tails replayed, records repeated."""
    history = drawn(data, data.draw(st.integers(1, 30)))
    records = replayed(history, data.draw(st.integers(0, len(history))))
    again = data.draw(st.lists(st.sampled_from(records), max_size=20))
    assert taken(data.draw(st.permutations([*records, *again]))) == of_all(records)


def drawn(data: st.DataObject, length: int) -> History:
    """A history in steps of the dice."""
    kinds: list[str] = []
    while len(kinds) < length:
        alive = bool(kinds) and kinds[-1] not in ("delete", "truncate")
        kinds.append(data.draw(st.sampled_from(ALIVE if alive else DEAD)))
    found: History = ()
    row: tuple[str, str] | None = None
    for at, kind in enumerate(kinds, 1):
        if kind in ("delete", "truncate"):
            row = None
        elif row is None:
            row = (str(at), str(at))
        elif kind not in ("same", "hollow"):
            row = (str(at), row[1])
        b = None if row is None or kind in ("arrive", "partial", "hollow") else row[1]
        found = (*found, Event(kind, at, at, row[0] if row else "", b))
    return found


def test_an_interval_ended_only_by_what_came_next_is_caught() -> None:
    """P13: a late row between two others must end the one before it, and be ended by the one behind it."""

    def appended(records: tuple[Event, ...]) -> list[tuple[str, str | None]]:
        found: list[tuple[str, str | None]] = []
        for event in records:
            if found and found[-1][1] is None:
                found[-1] = (found[-1][0], event.seq)
            if not event.ends:
                found.append((event.seq, None))
        return found

    history = next(h for h in EVERY if [e.kind for e in h] == ["insert", "update", "update"])
    late = (history[0], history[2], history[1])
    assert appended(late) != [row[:2] for row in of_all(history)] == appended(history)


def test_one_truncate_watermark_is_not_enough() -> None:
    """P13, T1: silver needs the newest truncate only; a row that lived between two of them ended at the second."""
    history = next(h for h in EVERY if [e.kind for e in h] == ["insert", "truncate", "insert", "truncate"])
    steps = Steps()
    for event in history:
        steps.take(event)
    steps.truncates = frozenset({max(steps.truncates)})
    assert steps.intervals() != of_all(history)
