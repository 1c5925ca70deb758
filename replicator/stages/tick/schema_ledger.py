"""The schema history of a silver table: one control row per table, written before the schema evolution that it
describes.

Writing it twice has no effect: each change is in it once, and a first sighting can only get lower.
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
    """The schema history of one table.

    ``changes`` maps each change to the least ``_seq`` of the records that brought it; ``since`` has the least ``_seq``
    at which a column has a type family, for columns with several; ``approved`` are changes that a user approved;
    ``left_out`` are new columns, by stored name, that were withheld from the table and that it does not have yet, or
    only in part; ``written`` has the encodings of columns whose types the records state
    (``transforms/columns/encodings.py``). ``bronze`` is the id of the bronze table that all this refers to.
    """

    bronze: str
    changes: Mapping[ColumnChange, str] = field(default_factory=dict)
    since: Mapping[tuple[str, str], str] = field(default_factory=dict)
    approved: frozenset[ColumnChange] = frozenset()
    left_out: frozenset[str] = frozenset()
    written: Encodings = field(default_factory=dict)

    def recorded(self, changes: Iterable[tuple[ColumnChange, str]]) -> Ledger:
        """Return the ledger with these changes, each with its ``_seq``."""
        known = dict(self.changes)
        for change, seq in changes:
            known[change] = min(seq, known.get(change, seq))
        return replace(self, changes=known)

    def with_sightings(self, since: Mapping[tuple[str, str], str]) -> Ledger:
        """Return the ledger with these sightings, where they are earlier."""
        return replace(self, since={p: min(seq, self.since.get(p, seq)) for p, seq in {**self.since, **since}.items()})

    def with_approved(self, changes: Iterable[ColumnChange]) -> Ledger:
        """Return the ledger with these changes approved."""
        return replace(self, approved=self.approved | frozenset(changes))

    def with_left_out(self, columns: Iterable[str]) -> Ledger:
        """Return the ledger with columns that are withheld from the table."""
        return replace(self, left_out=self.left_out | frozenset(columns))

    def without_columns(self, columns: Iterable[str]) -> Ledger:
        """Return the ledger without columns that the table has completely by now."""
        return replace(self, left_out=self.left_out - frozenset(columns))

    def with_encodings(self, encodings: Encodings) -> Ledger:
        """Return the ledger with the encodings of further records."""
        return replace(self, written=combine(self.written, encodings))

    def value(self) -> dict[str, Any]:
        """Return the control row."""
        return {
            "bronze": self.bronze,
            "changes": [{"at": seq, **_change_to_row(change)} for change, seq in self.changes.items()],
            "since": _by_column(self.since),
            "approved": sorted((_change_to_row(change) for change in self.approved), key=str),
            "left_out": sorted(self.left_out),
            "written": _by_column(self.written),
        }


def load(control: Control, path: str, bronze: str) -> Ledger:
    """Load the ledger of a table made from this bronze; empty if there is none, or if it refers to another bronze."""
    row = control.get(path)
    if row is None or row["bronze"] != bronze:
        return Ledger(bronze)
    changes = {_parse_change(each): str(each["at"]) for each in row["changes"]}
    approved, left_out = frozenset(map(_parse_change, row["approved"])), frozenset(row["left_out"])
    return Ledger(
        bronze, changes, _parse_columns(row["since"]), approved, left_out, _parse_columns(row.get("written", {}))
    )


def _by_column(values: Mapping[tuple[str, str], str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for (column, family), each in sorted(values.items()):
        found.setdefault(column, {})[family] = each
    return found


def _parse_columns(columns: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str], str]:
    return {(column, family): each for column, found in columns.items() for family, each in found.items()}


def _change_to_row(change: ColumnChange) -> dict[str, str]:
    return {"change": change.kind, "column": change.column, "from": change.before, "to": change.after}


def _parse_change(row: Mapping[str, str]) -> ColumnChange:
    return ColumnChange(row["change"], row["column"], row["from"], row["to"])
