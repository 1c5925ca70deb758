"""Schema change policies: what can change in the columns of a table, and what a policy allows (types.md section 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replicator import names

ADDED, WIDENED, VERSIONED, MOVED = "added", "widened", "versioned", "moved"
UNTYPED, UNREACHABLE = "untyped", "unreachable"


@dataclass(frozen=True)
class ColumnChange:
    """A change of one source column, from one type to another.

    ``kind`` is ``added`` (``before`` is empty), ``widened``, ``versioned`` (a column of its own for the new type),
    ``moved`` (the types swap columns because an older record came late: ``before`` and ``after`` are columns), or one
    that no policy allows: ``untyped`` (records without a type for a column that has one), ``unreachable`` (two exact
    numeric types that no DECIMAL holds).
    """

    kind: str
    column: str
    before: str
    after: str

    @property
    def can_be_approved(self) -> bool:
        """Whether the table could follow the change if allowed to."""
        return self.kind not in (UNTYPED, UNREACHABLE)

    def __str__(self) -> str:
        return f"column {names.decode(self.column)} {self._told()}"

    def _told(self) -> str:
        if self.kind == ADDED:
            return f"is new, of type {self.after}"
        if self.kind == WIDENED:
            return f"widens from {self.before} to {self.after}"
        if self.kind == MOVED:
            return f"changes from {self.before} to {self.after}: an older record has another type"
        if self.kind == UNTYPED:
            return f"is {self.before} in the table and has no type in some records"
        reason = "and no type holds both" if self.kind == UNREACHABLE else "which is not a widening"
        return f"changed from {self.before} to {self.after}, {reason}"


@dataclass(frozen=True)
class Policy:
    """What may change without approval: under ``evolve`` everything, under ``fail`` what needs no new version of a
    column, under ``freeze`` nothing.

    ``approved`` changes are always allowed.
    """

    name: str = "evolve"
    approved: frozenset[ColumnChange] = frozenset()

    def allows(self, change: ColumnChange) -> bool:
        """Whether the table follows this change."""
        by_itself = {"evolve": (ADDED, WIDENED, VERSIONED), "fail": (ADDED, WIDENED), "freeze": ()}
        return change.can_be_approved and (change.kind in by_itself[self.name] or change in self.approved)

    def allows_new(self, columns: Iterable[str]) -> frozenset[str]:
        """The columns that may be added to the table, whatever their types."""
        approved = {change.column for change in self.approved if change.kind == ADDED}
        return frozenset(column for column in columns if self.name != "freeze" or column in approved)


DEFAULT_POLICY = Policy()
