"""The rule of ``merge.py`` for one row in plain Python (debezium.md section M): to explain a row, never to make one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    """What some changes of one key leave behind: the row's ``seq``, whether it is deleted, and a position per column
    ('' where no change told its value).
    """

    seq: str
    deleted: bool
    places: Mapping[str, str]


def from_change(seq: str, columns: Sequence[str], *, deleted: bool = False, unsent: Collection[str] = ()) -> State:
    """What one change leaves behind; ``unsent`` are the columns that it does not know."""
    if deleted:
        return State(seq, deleted, dict.fromkeys(columns, f"{seq}-"))
    return State(seq, deleted, {column: "" if column in unsent else seq for column in columns})


def merge_states(one: State, other: State) -> State:
    """Each register takes the greater position (M2). Both have the same columns."""
    newer = max(one, other, key=lambda each: each.seq)
    places = {column: max(place, other.places[column]) for column, place in one.places.items()}
    return State(newer.seq, newer.deleted, places)


def is_unknown(place: str) -> bool:
    """Whether the value at a position is not known: it was never seen, or went with a deleted row."""
    return not place or place.endswith("-")
