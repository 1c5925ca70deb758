"""The rules for the rows of a gold model, as frozen dataclasses. Standard library only.

Each class says which rows violate it; a NULL violates :class:`NotNull` and no other rule, as in SQL's own constraints.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

WARN, FAIL = "warn", "fail"
"""Severities. With rows that violate a check, a model is built with a warning, or not built."""

STEPS = ("day", "week", "month")
"""The intervals between consecutive moments of a balance."""


@dataclass(frozen=True)
class NotNull:
    """The column is NULL in no row."""

    column: str

    def __str__(self) -> str:
        return f"not_null({self.column})"


@dataclass(frozen=True)
class Unique:
    """No two rows have equal values in all the columns; a row with a NULL in one of them equals no other."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"unique({', '.join(self.columns)})"


@dataclass(frozen=True)
class AcceptedValues:
    """Every value of the column is one of ``values``, which are cast to the column's type."""

    column: str
    values: tuple[object, ...]

    def __str__(self) -> str:
        return f"accepted_values({self.column})"


@dataclass(frozen=True)
class Relationship:
    """Every value of the column occurs in the column ``field`` of the model ``to``."""

    column: str
    to: str
    field: str

    def __str__(self) -> str:
        return f"relationship({self.column} -> {self.to}.{self.field})"


@dataclass(frozen=True)
class Expression:
    """A Spark SQL condition over the model's columns that is false in no row."""

    sql: str

    def __str__(self) -> str:
        return f"expression({self.sql})"


@dataclass(frozen=True)
class RowCountChange:
    """One build removes at most the share ``max_drop`` of the rows and adds at most ``max_growth`` of them; None is
    unlimited. Not checked in the first build and for an empty table.
    """

    max_drop: float | None = None
    max_growth: float | None = None

    def __str__(self) -> str:
        return "row_count_change"


@dataclass(frozen=True)
class SemiAdditive:
    """``measure`` is a balance: it may be summed over every dimension but time, ``over``, where the last moment of a
    period counts. Each combination of the columns ``by`` therefore has one row per moment, neither is NULL, and with
    ``every`` (one of STEPS) no moment is missing between its first and its last.
    """

    measure: str
    by: tuple[str, ...]
    over: str
    every: str | None = None

    def __str__(self) -> str:
        return f"semi_additive({self.measure})"


Rule = NotNull | Unique | AcceptedValues | Relationship | Expression | RowCountChange | SemiAdditive


@dataclass(frozen=True)
class Check:
    """A rule with the name that messages use, by default the rule's own text; ``severity`` is WARN or FAIL."""

    name: str
    rule: Rule
    severity: str = FAIL

    def __str__(self) -> str:
        return self.name if self.severity == FAIL else f"{self.name} ({self.severity})"

    @property
    def digest(self) -> str:
        """A hash that changes with the rule and with the severity."""
        return hashlib.sha256(repr((self.rule, self.severity)).encode()).hexdigest()


def columns(rule: Rule) -> tuple[str, ...]:
    """Return the model's columns that a rule names; those of an expression are only known to Spark."""
    if isinstance(rule, Unique):
        return rule.columns
    if isinstance(rule, SemiAdditive):
        return (rule.measure, *rule.by, rule.over)
    return (rule.column,) if isinstance(rule, (NotNull, AcceptedValues, Relationship)) else ()
