"""Every legal history of one key up to six changes, delivered in every order (debezium.md M2 to M4, P1).

The rule is ``transforms/row_state.py``, the plain twin of the Column expressions of ``merge.py`` (compared in
``test_twins.py``). A register's position tells which change its value is from: positions say all there is to compare.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.transforms.row_state import State, from_change, merge_states

COLUMNS = ("a", "b")
DEAD, ALIVE = ("insert", "arrive"), ("update", "partial", "delete")
"""What may happen to a key without a row, and to one with; ``arrive`` and ``partial`` do not tell column ``b``."""

Change = tuple[str, str]
History = tuple[Change, ...]
Join = Callable[[State, State], State]


def histories(length: int) -> list[History]:
    """All that a database can do to one key in so many steps, at positions 10, 20, 30 and so on."""
    found: list[tuple[str, ...]] = [()]
    for _ in range(length):
        found = [(*past, step) for past in found for step in (ALIVE if is_alive(past) else DEAD)]
    return [tuple((kind, f"{10 * at:02}") for at, kind in enumerate(kinds, 1)) for kinds in found]


def is_alive(kinds: Sequence[str]) -> bool:
    return bool(kinds) and kinds[-1] != "delete"


EVERY = [history for length in range(1, 7) for history in histories(length)]


def told(change: Change) -> State:
    """What one change says about the row."""
    kind, seq = change
    unsent = ("b",) if kind in ("arrive", "partial") else ()
    return from_change(seq, COLUMNS, deleted=kind == "delete", unsent=unsent)


def delivered(history: History, joined: Join = merge_states, tell: Callable[[Change], State] = told) -> Iterator[State]:
    """What the table holds after each order of delivery; common beginnings are joined once."""
    states = [tell(change) for change in history]

    def rest(held: State | None, left: frozenset[int]) -> Iterator[State]:
        if held is not None and not left:
            yield held
        for at in left:
            yield from rest(states[at] if held is None else joined(held, states[at]), left - {at})

    return rest(None, frozenset(range(len(states))))


def shown(held: State) -> tuple[bool, dict[str, str | None]]:
    """What a reader sees: is there a row, and from which change each value is; None is NULL and flagged."""
    known = {c: place if place and not place.endswith("-") else None for c, place in held.places.items()}
    return not held.deleted, {} if held.deleted else known


def at_source(history: History) -> tuple[bool, dict[str, str | None]]:
    """The same, of the database itself: a value stays until it is set anew, and ends with its row."""
    row: dict[str, str | None] = {}
    for kind, seq in history:
        if kind == "delete":
            row = {}
        else:
            kept = row.get("b") if kind in ("partial", "arrive") else seq
            row = {"a": seq, "b": kept}
    return bool(row), row


def test_every_order_of_every_history_ends_as_the_source_did(capsys: pytest.CaptureFixture[str]) -> None:
    """M4: 516 histories, 251,726 deliveries; each ends in one state, which shows what the database holds."""
    deliveries = 0
    for history in EVERY:
        ends = list(delivered(history))
        deliveries += len(ends)
        assert all(end == ends[0] for end in ends), history
        assert shown(ends[0]) == at_source(history), history
    assert (len(EVERY), deliveries) == (516, 251_726)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(EVERY)} histories, {deliveries:,} deliveries: every one ends as the source did\n")


def test_joining_is_idempotent_commutative_and_associative() -> None:
    """M2, for all states that parts of short histories leave behind."""
    for history in (h for h in EVERY if len(h) <= 4):
        states = [told(change) for change in history]
        assert all(merge_states(one, one) == one for one in states)
        assert all(merge_states(one, two) == merge_states(two, one) for one, two in permutations(states, 2))
        for one, two, three in permutations(states, 3):
            assert merge_states(merge_states(one, two), three) == merge_states(one, merge_states(two, three))


@given(st.data())
def test_longer_histories_replayed_and_doubled_end_the_same(data: st.DataObject) -> None:
    """P1, P3: up to 40 changes, any of them delivered several times, in any order."""
    kinds: list[str] = []
    for _ in range(data.draw(st.integers(1, 40))):
        kinds.append(data.draw(st.sampled_from(ALIVE if is_alive(kinds) else DEAD)))
    history = tuple((kind, f"{at:03}") for at, kind in enumerate(kinds, 1))
    again = data.draw(st.lists(st.sampled_from(history), max_size=20))
    order = data.draw(st.permutations([*history, *again]))
    held = told(order[0])
    for change in order[1:]:
        held = merge_states(held, told(change))
    assert shown(held) == at_source(history)


def test_the_histories_are_legal() -> None:
    """An insert follows a delete or nothing, everything else follows a row."""
    for history in EVERY:
        kinds = [kind for kind, _ in history]
        assert kinds[0] in DEAD
        assert all((after in DEAD) == (before == "delete") for before, after in pairwise(kinds))
