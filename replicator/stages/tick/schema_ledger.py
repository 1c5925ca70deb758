"""How a silver table's columns came to be: a control row per table, written before the evolution it tells of.

Writing it again changes nothing: a change is in it once, and a first sighting only goes down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from replicator.protocols import Control
from replicator.transforms.columns.encodings import Encodings, combine
from replicator.transforms.columns.policy import ColumnChange


@dataclass(frozen=True)
class Ledger:
    """The schema's history of one table.

    ``changes`` holds each change with the least ``_seq`` of the records that brought it; ``since`` the least ``_seq``
    at which a column has a family of types, for columns with several; ``approved`` what somebody let pass;
    ``left_out`` new columns that the table was kept from, by stored name, and does not have yet or only in part;
    ``written`` how records write the columns that they say the types of (``transforms/columns/encodings.py``).
    ``bronze`` is the id of the table that all this is about.
    """

    bronze: str
    changes: Mapping[ColumnChange, str] = field(default_factory=dict)
    since: Mapping[tuple[str, str], str] = field(default_factory=dict)
    approved: frozenset[ColumnChange] = frozenset()
    left_out: frozenset[str] = frozenset()
    written: Encodings = field(default_factory=dict)

    def recorded(self, changes: Iterable[tuple[ColumnChange, str]]) -> Ledger:
        """With these changes, each at its ``_seq``."""
        known = dict(self.changes)
        for change, at in changes:
            known[change] = min(at, known.get(change, at))
        return replace(self, changes=known)

    def seen(self, since: Mapping[tuple[str, str], str]) -> Ledger:
        """With these sightings, where they are earlier."""
        return replace(self, since={p: min(at, self.since.get(p, at)) for p, at in {**self.since, **since}.items()})

    def with_approved(self, changes: Iterable[ColumnChange]) -> Ledger:
        """With these changes approved."""
        return replace(self, approved=self.approved | frozenset(changes))

    def with_left_out(self, columns: Iterable[str]) -> Ledger:
        """With columns that the table is kept from."""
        return replace(self, left_out=self.left_out | frozenset(columns))

    def filled(self, columns: Iterable[str]) -> Ledger:
        """Without columns that the table has whole by now."""
        return replace(self, left_out=self.left_out - frozenset(columns))

    def noting(self, told: Encodings) -> Ledger:
        """With how further records write their columns."""
        return replace(self, written=combine(self.written, told))

    def value(self) -> dict[str, Any]:
        """As a control row."""
        return {
            "bronze": self.bronze,
            "changes": [{"at": at, **_change_to_row(change)} for change, at in self.changes.items()],
            "since": _by_column(self.since),
            "approved": sorted((_change_to_row(change) for change in self.approved), key=str),
            "left_out": sorted(self.left_out),
            "written": _by_column(self.written),
        }


def load(control: Control, path: str, bronze: str) -> Ledger:
    """The ledger of a table made from this bronze; an empty one if it is about another, or nothing ever changed."""
    row = control.get(path)
    if row is None or row["bronze"] != bronze:
        return Ledger(bronze)
    changes = {_parse_change(each): str(each["at"]) for each in row["changes"]}
    approved, left_out = frozenset(map(_parse_change, row["approved"])), frozenset(row["left_out"])
    return Ledger(
        bronze, changes, _parse_columns(row["since"]), approved, left_out, _parse_columns(row.get("written", {}))
    )


def _by_column(told: Mapping[tuple[str, str], str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for (column, family), each in sorted(told.items()):
        found.setdefault(column, {})[family] = each
    return found


def _parse_columns(told: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str], str]:
    return {(column, family): each for column, found in told.items() for family, each in found.items()}


def _change_to_row(change: ColumnChange) -> dict[str, str]:
    return {"change": change.kind, "column": change.column, "from": change.before, "to": change.after}


def _parse_change(told: Mapping[str, str]) -> ColumnChange:
    return ColumnChange(told["change"], told["column"], told["from"], told["to"])
