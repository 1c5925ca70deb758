"""The merge rule of ``merge.py`` for one row in plain Python (debezium.md section M): explains rows, writes none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    """The merged state of some changes of one key: the row's ``seq``, whether it is deleted, and a position per column
    ('' if no change had its value).
    """

    seq: str
    deleted: bool
    places: Mapping[str, str]


def from_change(seq: str, columns: Sequence[str], *, deleted: bool = False, unsent: Collection[str] = ()) -> State:
    """The state after one change; ``unsent`` are the columns that it does not know."""
    if deleted:
        return State(seq, deleted, dict.fromkeys(columns, f"{seq}-"))
    return State(seq, deleted, {column: "" if column in unsent else seq for column in columns})


def merge_states(one: State, other: State) -> State:
    """Each register takes the greater position (M2). Both have the same columns."""
    newer = max(one, other, key=lambda each: each.seq)
    places = {column: max(place, other.places[column]) for column, place in one.places.items()}
    return State(newer.seq, newer.deleted, places)


def is_unknown(place: str) -> bool:
    """Whether the value at a position is unknown: it was never seen, or was deleted with its row."""
    return not place or place.endswith("-")
