"""Recorded events applied by the plain rule, with the order and the rule exchangeable: for controls that must fail.

``replicator/transforms/row_state.py`` joins; this reads envelopes of MariaDB and PostgreSQL whose columns are whole
numbers and texts. It knows neither key changes nor truncates, which no control needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replicator.transforms.row_state import State, from_change, merge_states
from tests.builders import UNSENT

Record = Mapping[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change of one row at its place; ``row`` is None for a delete."""

    key: str
    seq: str
    row: Row | None


Place = Callable[[Record, str], str]
"""Where a record's change stands, given the greatest place of a streamed change before it; without the offset."""


@dataclass(frozen=True)
class Rule:
    """What can be done wrong: where a change stands, what of a batch is kept, what one change says, how two states
    meet, and whether a deleted row stays.
    """

    place: Place
    kept: Callable[[Sequence[Change]], Sequence[Change]] = lambda batch: batch
    told: Callable[[Change, Sequence[str]], State] = lambda change, columns: from_change(
        change.seq,
        columns,
        deleted=change.row is None,
        unsent=[c for c in columns if (change.row or {}).get(c) == UNSENT],
    )
    joined: Callable[[State, State], State] = merge_states
    forgets_deletes: bool = False


def in_commit_order(record: Record, before: str) -> str:
    """Q4, Q5: file and position, or last commit and own LSN; a snapshot row above everything before it."""
    source = body(record)["source"]
    if source["connector"] == "mariadb":
        place = f"{int(source['file'].rsplit('.', 1)[1]):010}{source['pos']:020}"
    else:
        commit, _ = json.loads(source["sequence"])
        own = 0 if body(record)["op"] == "r" else source["lsn"]
        place = f"{int(commit or own):020}{own:020}"
    return max(place, before) if body(record)["op"] == "r" else place


RIGHT = Rule(in_commit_order)


def body(record: Record) -> dict[str, Any]:
    """The envelope; empty for a tombstone."""
    return dict(json.loads(record["payload"] or "{}"))


def changes(records: Sequence[Record], rule: Rule) -> dict[int, Change]:
    """The changes by offset: what a record's place is does not depend on the batch that it comes in."""
    found, before = {}, ""
    for record in records:
        told = body(record)
        if not told:
            continue
        place = rule.place(record, before)
        before = max(before, place)
        row = None if told["op"] == "d" else told["after"]
        found[record["offset"]] = Change(record["key"], f"{place}{record['offset']:020}", row)
    return found


def applied(batches: Iterable[Sequence[Change]], rule: Rule) -> dict[str, Row]:
    """The live rows in the end, by key; a value that is not known is None."""
    held: dict[str, State] = {}
    rows: dict[str, Row | None] = {}
    for batch in batches:
        columns = sorted({column for change in batch for column in change.row or ()})
        for change in rule.kept(batch):
            rows[change.seq] = change.row
            told = rule.told(change, columns)
            was = held.get(change.key)
            held[change.key] = told if was is None else rule.joined(_with(was, columns), _with(told, [*was.places]))
            if rule.forgets_deletes and held[change.key].deleted:
                del held[change.key]
    return {
        key: {column: (rows.get(place) or {}).get(column) for column, place in left.places.items()}
        for key, left in held.items()
        if not left.deleted
    }


def _with(one: State, columns: Sequence[str]) -> State:
    """The state with every column: what it never heard of stands at its default (M3)."""
    default = f"{one.seq}-" if one.deleted else one.seq
    return replace(one, places={**dict.fromkeys(columns, default), **one.places})
