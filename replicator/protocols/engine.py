"""What answers questions to a lake: Spark, DuckDB, Athena."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

Dialect = Literal["spark", "duckdb", "athena"]


class Answer(Protocol):
    """The rows of one query, in the order of the query. They are read once, by one of the three methods, and no further
    than somebody asks; a long answer need not fit into memory.
    """

    @property
    def columns(self) -> Sequence[str]:
        """Their names; a join may have two of one name."""
        ...

    def texts(self) -> Iterator[Sequence[str | None]]:
        """Every row as texts: as Spark casts to STRING, bytes in Base64, what is nested as JSON; None for NULL."""
        ...

    def objects(self) -> Iterator[str]:
        """Every row as a JSON object; decimals are numbers with all their digits."""
        ...

    def batches(self) -> pa.RecordBatchReader:
        """The rows with their types."""
        ...


class Engine(Protocol):
    """Answers queries, and only those: it changes no table, whatever the query says.

    ``databases`` are the names of two parts that it does not know by itself, as ``catalog.tables`` makes them: they are
    replaced by the names of its views before it is asked. ``guards_itself``: its own parser, which knows more than any
    other of its SQL, refuses what is no query.
    """

    @property
    def dialect(self) -> Dialect:
        """The SQL that it understands."""
        ...

    @property
    def guards_itself(self) -> bool:
        """Whether it refuses by itself what is no query."""
        ...

    @property
    def databases(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """``(database, table)`` in small letters -> the views that are called so."""
        ...

    def ask(self, query: str, limit: int | None) -> Answer:
        """The answer to one query in its dialect, of which nobody will read more than ``limit`` rows (None: all).

        Raises ConfigError for a query that it refuses, Unreachable where something does not answer.
        """
        ...

    def summary(self) -> str | None:
        """What the last answer took, for people; None where there is nothing to tell."""
        ...
