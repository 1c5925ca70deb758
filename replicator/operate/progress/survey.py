"""The facts that are asked of a lake, and of what lies before and behind it, whoever answers.

Spark answers for every lake (``operate/status.py``); ``operate/progress/arrow_survey.py`` for those that can be read
without it, in a tenth of the time.
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
    """What the rows of a table come to: how many users see and how many they do not, the greatest ``_seq`` (''
    where there is none), the time of the newest change, epoch milliseconds UTC, and how many of those that users see
    lack a value which nobody knows.
    """

    rows: int
    hidden: int = 0
    seq: str = ""
    newest_ms: int | None = None
    unknown: int = 0

    def with_(self, other: Tally) -> Tally:
        """Of these rows and others."""
        newest = max((ms for ms in (self.newest_ms, other.newest_ms) if ms is not None), default=None)
        rows, hidden, unknown = self.rows + other.rows, self.hidden + other.hidden, self.unknown + other.unknown
        return Tally(rows, hidden, max(self.seq, other.seq), newest, unknown)


class Survey(Protocol):
    """One look at a lake and at what lies before and behind it. Raises TableMissing for rows of a table that is not
    there; what else goes wrong is the reader's own.
    """

    @property
    def lake(self) -> Lake:
        """Where tables are."""

    @property
    def facts(self) -> ControlReader:
        """The lake's control rows."""

    @property
    def models(self) -> Sequence[Model]:
        """What the configuration has of gold."""

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """What serves it."""

    def folders(self, folder: str) -> Sequence[str]:
        """Names of the folders below ``folder``."""

    def tables(self, folder: str) -> Sequence[str]:
        """Names of the folders below ``folder`` that hold a table, sorted."""

    def version(self, table: Table) -> int | None:
        """The newest version, None if the table is missing."""

    def identity(self, table: Table) -> str | None:
        """An id that changes when the table is dropped and made again; None if the table is missing."""

    def progress(self, table: Table, application: str) -> Progress | None:
        """What the table's own commits record about this input."""

    def records(self, table: Table, time: str = "timestamp") -> Tally:
        """The rows of bronze, newest by Kafka's clock; of another table that lies beside it by its column ``time``."""

    def rows(self, table: Table) -> Tally:
        """The rows of silver: those that are not deleted are shown."""

    def intervals(self, table: Table) -> Tally:
        """The rows of a history: intervals are shown."""

    def model(self, table: Table) -> Tally:
        """The rows of gold; newest by ``updated_at``, if that is a time."""

    def ahead(self, source: str) -> int | None:
        """Records, or objects, of a source that bronze lacks; None when nobody can say. Raises Unreachable where they
        come from is silent.
        """

    def waiting(self, source: str) -> Waiting | None:
        """What silver does not show yet, since transactions are not whole."""

    def added(self, source: str, after: Mapping[str, int], upto: int, waits: Waiting | None) -> int | None:
        """Records of the topics of ``after`` that came to bronze after those versions and up to ``upto``, without those
        that wait; None when that history is gone.
        """
