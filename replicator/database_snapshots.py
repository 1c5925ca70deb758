"""A database, or what serves a model, as of one moment: how its rows are asked for, and how values travel as texts.

Implementations are in ``databases/`` and ``sinks/``; ``verify`` is who looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from replicator.errors import TableMissing
from replicator.spec import Model, Progress

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def missing_table(table: str, where: str) -> TableMissing:
    """Said of a table that silver has and the database there has not."""
    mend = "Dropped or renamed there, or not shown to this login? `exclude` in the source's file leaves it out."
    return TableMissing(f"the database has no table {table}", where=where, mend=mend)


@dataclass(frozen=True)
class DatabaseColumn:
    """A column as a database has it: ``type`` in the database's own words, with length and precision."""

    name: str
    type: str
    nullable: bool = True


class ColumnCodec(Protocol):
    """How a column travels: ``sql`` asks the database for its text, ``value`` makes the value of it, ``meaning`` says
    how such texts are compared (``transforms/comparison/canonical.py``).
    """

    @property
    def sql(self) -> str:
        """An expression of the database's; the column's quoted name goes where ``{}`` stands."""

    @property
    def meaning(self) -> str:
        """'', or what a text means."""

    @property
    def ordered(self) -> str:
        """An expression whose order in the database is that of the value in Spark; '' where there is none."""

    @property
    def may_not_fit(self) -> bool:
        """Whether the database may hold what is no value of that type; ``value`` makes NULL of it."""

    def value(self, text: Column) -> Column:
        """The value of a text."""


TextColumns = Sequence[tuple[str, str]]
"""Columns by name, each with the expression that tells its text."""

ValueFilter = tuple[Sequence[tuple[str, str]], Sequence[tuple[Any, ...]]]
"""Columns by name with the expressions that are ordered, and the values that they have in Spark, row by row."""

RangeFilter = tuple[tuple[str, str], Sequence[tuple[Any, Any]]]
"""A column by name with the expression that is ordered, and intervals: above the first value up to the second, None
where there is no such end.
"""


class DatabaseSnapshot(Protocol):
    """A database as of one moment: whatever is read through it belongs together, however long that takes.

    All methods raise Unreachable when the connection is lost, TableStopped when the database refuses. ``position`` is
    how far its log was at that moment, in its own words; '' where it does not say.
    """

    @property
    def position(self) -> str:
        """For people."""

    def columns(self, table: str) -> Sequence[DatabaseColumn]:
        """The columns of ``<database or schema>.<table>``, in their order. Raises TableMissing."""

    def told(self, held: DatabaseColumn, kind: DataType) -> ColumnCodec | None:
        """How a value of the column becomes one of that type of Spark's; None where nobody can say (types.md Y6)."""

    def rows(
        self,
        table: str,
        texts: TextColumns,
        among: ValueFilter | None,
        chunk: int,
        within: RangeFilter | None = None,
    ) -> Iterator[list[tuple[str | None, ...]]]:
        """All rows, those whose values are ``among`` some, or those that are ``within`` intervals, up to ``chunk`` at a
        time, in no order.
        """

    def later(self, seq: Column) -> Column:
        """Whether a ``_seq`` is of a change behind this moment for certain; false where that cannot be told."""


class Database(Protocol):
    """A database whose rows can be read as of one moment."""

    @property
    def where(self) -> str:
        """Its address, for messages."""

    def read_snapshot(self) -> AbstractContextManager[DatabaseSnapshot]:
        """A look at this moment, in a transaction of its own that reads only. Raises Unreachable."""


@dataclass(frozen=True)
class TargetColumn:
    """A column of a target: ``value`` of gold, of that ``kind``, is what it must show; ``told`` how it shows that, None
    where nobody can compare it, since its ``type`` there writes values in its own way.
    """

    name: str
    value: Column
    kind: DataType
    told: ColumnCodec | None
    type: str


class TargetReadback(Protocol):
    """The target of one model as of one moment; ``progress`` is what its ledger says."""

    @property
    def progress(self) -> Progress | None:
        """None if nothing was ever published."""

    @property
    def snapshot(self) -> DatabaseSnapshot:
        """The database, in the same transaction."""

    @property
    def table(self) -> str:
        """The target's name there."""

    def shown(self, rows: DataFrame) -> Sequence[TargetColumn]:
        """What rows of the model must look like there, column by column. Raises TargetRefused as publishing does."""


@runtime_checkable
class ReadableSink(Protocol):
    """A sink whose target can be read back."""

    def look(self, model: Model) -> AbstractContextManager[TargetReadback]:
        """A look at this moment. Raises Unreachable."""
