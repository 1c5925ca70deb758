"""The facts about a lake, its sources and its targets that a status needs, independent of the engine that reads them.

Spark reads every lake (``operate/status.py``); ``operate/progress/arrow_survey.py`` reads those that need no Spark, in
a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from replicator.lake import Lake
    from replicator.operate.progress.waiting import Waiting
    from replicator.protocols import ControlReader, Sink
    from replicator.spec import Model, Progress, Table


@dataclass(frozen=True)
class Tally:
    """A summary of a table's rows: the number of ``rows`` that users see and of those that they do not (``hidden``),
    the greatest ``_seq`` ('' if there is none), the time of the newest change in epoch milliseconds UTC, and the number
    of visible rows with an unknown value (``unknown``).
    """

    rows: int
    hidden: int = 0
    seq: str = ""
    newest_ms: int | None = None
    unknown: int = 0

    def plus(self, other: Tally) -> Tally:
        """Return the summary of these rows and others together."""
        newest = max((ms for ms in (self.newest_ms, other.newest_ms) if ms is not None), default=None)
        rows, hidden, unknown = self.rows + other.rows, self.hidden + other.hidden, self.unknown + other.unknown
        return Tally(rows, hidden, max(self.seq, other.seq), newest, unknown)


class Survey(Protocol):
    """One view of a lake, its sources and its targets. Raises TableMissing for the rows of a missing table; other
    errors are those of the reader.
    """

    @property
    def lake(self) -> Lake:
        """The locations of the tables."""

    @property
    def facts(self) -> ControlReader:
        """The lake's control rows."""

    @property
    def models(self) -> Sequence[Model]:
        """The configured gold models."""

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """The configured sinks, by name."""

    def folders(self, folder: str) -> Sequence[str]:
        """Return the names of the folders below ``folder``."""

    def tables(self, folder: str) -> Sequence[str]:
        """Return the names of the folders below ``folder`` that hold a table, sorted."""

    def version(self, table: Table) -> int | None:
        """Return the newest version; None if the table is missing."""

    def identity(self, table: Table) -> str | None:
        """Return an id that changes when the table is dropped and created again; None if the table is missing."""

    def progress(self, table: Table, application: str) -> Progress | None:
        """Return the progress of this input that the table's own commits record."""

    def records(self, table: Table, time: str = "timestamp") -> Tally:
        """Summarize the rows of bronze, newest by Kafka's clock; of another table of bronze's layer, newest by its
        column ``time``.
        """

    def rows(self, table: Table) -> Tally:
        """Summarize the rows of silver: those that are not deleted are visible."""

    def intervals(self, table: Table) -> Tally:
        """Summarize the rows of a history: intervals are visible."""

    def model(self, table: Table) -> Tally:
        """Summarize the rows of gold; newest by ``updated_at``, if that is a time."""

    def backlog(self, source: str) -> int | None:
        """Return the number of a source's records, or objects, that bronze lacks; None when that is not known. Raises
        Unreachable if the source does not respond.
        """

    def waiting(self, source: str) -> Waiting | None:
        """Return the records that silver does not show yet because their transactions are incomplete."""

    def added(self, source: str, after: Mapping[str, int], upto: int, waits: Waiting | None) -> int | None:
        """Return the number of records of the topics of ``after`` that bronze received after those versions and up to
        ``upto``, without those that wait; None when the history is no longer available.
        """
