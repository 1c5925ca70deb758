"""The rules that a gold model's rows are held to, as frozen values. Standard library only.

Each kind says which rows break it; a NULL breaks :class:`NotNull` and nothing else, as in SQL's own constraints.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

WARN, FAIL = "warn", "fail"
"""What becomes of a model with rows that break a check: it is built and told of, or left as it was."""

STEPS = ("day", "week", "month")
"""How far apart the moments of a balance may lie."""


@dataclass(frozen=True)
class NotNull:
    """The column is NULL in no row."""

    column: str

    def __str__(self) -> str:
        return f"not_null({self.column})"


@dataclass(frozen=True)
class Unique:
    """No two rows agree in all the columns; rows with a NULL in one of them agree with none."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"unique({', '.join(self.columns)})"


@dataclass(frozen=True)
class AcceptedValues:
    """The column holds one of the values, which are compared in its own type: one that is none of them breaks it."""

    column: str
    values: tuple[object, ...]

    def __str__(self) -> str:
        return f"accepted_values({self.column})"


@dataclass(frozen=True)
class Relationship:
    """Each value of the column is in the column ``field`` of the model ``to``."""

    column: str
    to: str
    field: str

    def __str__(self) -> str:
        return f"relationship({self.column} -> {self.to}.{self.field})"


@dataclass(frozen=True)
class Expression:
    """A condition of Spark SQL over the model's columns is false in no row."""

    sql: str

    def __str__(self) -> str:
        return f"expression({self.sql})"


@dataclass(frozen=True)
class RowCountChange:
    """One build takes away at most the share ``max_drop`` of the rows and adds at most ``max_growth`` of them; None:
    any share. The first build and one over an empty table have nothing to compare with.
    """

    max_drop: float | None = None
    max_growth: float | None = None

    def __str__(self) -> str:
        return "row_count_change"


@dataclass(frozen=True)
class SemiAdditive:
    """``measure`` is a balance: it may be summed over everything but the moments ``over``, where the last of a period
    counts. So each combination of the columns ``by`` has one row per moment, neither is NULL, and with ``every`` (one
    of STEPS) no moment is missing between its first and its last.
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
    """A rule under the name that messages have for it, else its own text; ``severity`` is WARN or FAIL."""

    name: str
    rule: Rule
    severity: str = FAIL

    def __str__(self) -> str:
        return self.name if self.severity == FAIL else f"{self.name} ({self.severity})"

    @property
    def digest(self) -> str:
        """Changes with what is checked, and with what a broken row leads to."""
        return hashlib.sha256(repr((self.rule, self.severity)).encode()).hexdigest()


def columns(rule: Rule) -> tuple[str, ...]:
    """The model's columns that a rule names; those of an expression are Spark's to find."""
    if isinstance(rule, Unique):
        return rule.columns
    if isinstance(rule, SemiAdditive):
        return (rule.measure, *rule.by, rule.over)
    return (rule.column,) if isinstance(rule, (NotNull, AcceptedValues, Relationship)) else ()
