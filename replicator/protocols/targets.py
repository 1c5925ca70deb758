"""The contracts of targets: sinks that serve rows, and outlets that receive events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from replicator.spec import Applied, Model, Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Difference:
    """What one target must change to equal its model at ``progress``.

    ``rows`` holds the model's columns and ``_op`` (``upsert`` or ``delete``; of a delete only the key counts), one
    row per key. ``complete`` says that ``rows`` are the whole model: keys that are not in it must go. Else they are
    what changed ``since`` a progress that the ledger had (None: whatever it has of the same input).
    """

    model: Model
    rows: DataFrame
    progress: Progress
    complete: bool = False
    since: Progress | None = None

    def applies_to(self, recorded: Progress | None) -> bool:
        """Whether this difference makes a target equal to the model if its ledger records this progress."""
        if recorded is None or self.complete:
            return self.complete
        return recorded.input == self.progress.input and (self.since is None or recorded.covers(self.since))


class Sink(Protocol):
    """How rows are served.

    The class of a kind of target has ``at(*, host, port, database, user, password, sslmode, options, fence, brief)``,
    which returns the sink of an entry of ``targets`` without connecting. A ``brief`` one is for read-only looks: it
    tries once and times out soon. Raises ConfigError for settings that the kind does not support.
    """

    def check_connection(self, models: Sequence[Model] = ()) -> str:
        """Connect, and describe the server and its address in a few words. Raises Unreachable, and ConfigError if a
        privilege is missing that every publication needs, or that of these models.
        """

    def progress(self, model: Model) -> Progress | None:
        """What the target's own ledger records for this model. None if nothing was ever published, or if the target
        lacks a column of the model or has rounded its values so far: the whole model must be sent then.
        """

    def invalidate(self, model: Model) -> None:
        """Record that the model's table may have other rows than its progress says: :meth:`progress` is None until a
        complete difference was published, and that removes whatever the model does not have. Nothing changes for a
        table to which nothing was ever published. Raises Unreachable, LoginRefused, TargetRefused.
        """

    def publish(self, differences: Sequence[Difference]) -> dict[str, Applied]:
        """All differences in one transaction with their ledger rows: readers see all of it or nothing.

        Models that others reference come first for upserts and last for deletes. A difference whose progress
        is already in the ledger is skipped, unless :meth:`progress` says None. After a lost answer to COMMIT the
        ledger decides. Creates the schema and tables that are missing, adds columns and widens types, in the
        transaction of the rows that have them. Returns what was written, per model name. Raises Unreachable when
        a retry can help, TargetRefused (naming the model) when it cannot, or not with these rows (TargetMoved).

        With a fence: its token is in the same transaction. StaleWriter where a later writer of the same lake has
        published there, LeaseLost where the lease is gone; nothing of the batch is visible then.
        """


class Outlet(Protocol):
    """A cluster that receives events for other teams: at least once, those of one key in order."""

    def identity(self, topic: str) -> str | None:
        """A globally unique id that changes when the topic is dropped and recreated; None if the cluster has no such
        ids. Raises Unreachable as :meth:`send`.
        """

    def send(self, events: DataFrame, topic: str) -> None:
        """Send all events (``key STRING, value STRING, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, place
        STRING``), those of one key in the order of ``place``. A null value is a tombstone.

        Returns when each is acknowledged by as many brokers as the topic requires. If it raises, any of the events may
        have arrived: send all of them again. Raises Unreachable if Kafka does not answer or has no such topic,
        TargetRefused if it will never accept one of the events.
        """
