"""A database, or the target of a model, as of one moment: how its rows are queried, and how values travel as texts.

Implementations are in ``databases/`` and ``sinks/``; ``verify`` uses them.
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
    """Return the error for a table that silver has and the database does not."""
    fix = "Was it dropped or renamed, or is it not visible to this login? `exclude` in the source's file leaves it out."
    return TableMissing(f"the database has no table {table}", where=where, fix=fix)


@dataclass(frozen=True)
class DatabaseColumn:
    """A column as a database has it; ``type`` is the database's own type name, with length and precision."""

    name: str
    type: str
    nullable: bool = True


class ColumnCodec(Protocol):
    """How a column's values travel: ``sql`` converts a value to text in the database, ``value`` converts the text to
    Spark's value, ``meaning`` says how such texts are compared (``transforms/comparison/canonical.py``).
    """

    @property
    def sql(self) -> str:
        """An expression in the database's SQL; ``{}`` stands for the column's quoted name."""

    @property
    def meaning(self) -> str:
        """The meaning of a text for comparison; '' if it has no special one."""

    @property
    def ordered(self) -> str:
        """An expression whose order in the database is that of the value in Spark; '' if there is none."""

    @property
    def may_not_fit(self) -> bool:
        """Whether the database may hold values outside of that type; ``value`` converts these to NULL."""

    def value(self, text: Column) -> Column:
        """The value of a text."""


TextColumns = Sequence[tuple[str, str]]
"""Columns by name, each with the expression that converts it to text."""

ValueFilter = tuple[Sequence[tuple[str, str]], Sequence[tuple[Any, ...]]]
"""Columns by name, each with its expression for the order, and the values that they have in Spark, row by row."""

RangeFilter = tuple[tuple[str, str], Sequence[tuple[Any, Any]]]
"""A column by name, with its expression for the order, and intervals: above the first value, up to and including the
second; None for an open end.
"""


class DatabaseSnapshot(Protocol):
    """A database as of one moment: all reads through it are consistent, however long they take.

    All methods raise Unreachable when the connection is lost, and TableStopped when the database refuses. ``position``
    is the position of the database's log at that moment, in its own notation; '' if it has none.
    """

    @property
    def position(self) -> str:
        """The position of the database's log, for display."""

    def columns(self, table: str) -> Sequence[DatabaseColumn]:
        """Return the columns of ``<database or schema>.<table>``, in their order. Raises TableMissing."""

    def codec(self, column: DatabaseColumn, kind: DataType) -> ColumnCodec | None:
        """Return how values of the column become values of that Spark type; None if no conversion is known (types.md
        Y6).
        """

    def rows(
        self,
        table: str,
        texts: TextColumns,
        among: ValueFilter | None,
        chunk: int,
        within: RangeFilter | None = None,
    ) -> Iterator[list[tuple[str | None, ...]]]:
        """Yield all rows, or those with the values in ``among``, or those in the intervals of ``within``: up to
        ``chunk`` at a time, in no order.
        """

    def is_after(self, seq: Column) -> Column:
        """Whether a ``_seq`` certainly belongs to a change after this moment; false if that cannot be determined."""


class Database(Protocol):
    """A database whose rows can be read as of one moment."""

    @property
    def where(self) -> str:
        """Its address, for messages."""

    def read_snapshot(self) -> AbstractContextManager[DatabaseSnapshot]:
        """Open a snapshot as of now, in a read-only transaction of its own. Raises Unreachable."""


@dataclass(frozen=True)
class TargetColumn:
    """A column of a target: ``value`` is the column of gold, of Spark type ``kind``, that it must show; ``codec`` is
    how values are read back, None if they cannot be compared because the database formats values of this ``type`` in
    its own way.
    """

    name: str
    value: Column
    kind: DataType
    codec: ColumnCodec | None
    type: str


class TargetReadback(Protocol):
    """The target of one model as of one moment; ``progress`` is what its ledger records."""

    @property
    def progress(self) -> Progress | None:
        """The published progress; None if nothing was ever published."""

    @property
    def snapshot(self) -> DatabaseSnapshot:
        """The database, in the same transaction."""

    @property
    def table(self) -> str:
        """The target's name in the database."""

    def as_served(self, rows: DataFrame) -> Sequence[TargetColumn]:
        """Return how rows of the model must appear in the target, column by column. Raises TargetRefused as publishing
        does.
        """


@runtime_checkable
class ReadableSink(Protocol):
    """A sink whose target can be read back."""

    def read_back(self, model: Model) -> AbstractContextManager[TargetReadback]:
        """Open the model's target as of now. Raises Unreachable."""
