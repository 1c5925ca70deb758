"""Three small promises: where records come from, how a table is kept, how rows are served.

Their docstrings are the contract; ``tests/contract`` holds every implementation to them, the in-memory
ones included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from replicator.landed import Landed
from replicator.spec import Applied, Arrival, Evolution, Kept, Maintained, Model, Moment, Progress, Table, Token

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession


class Held(Protocol):
    """What bronze has of a stream."""

    def has(self, batch: int) -> bool:
        """Whether the stream's batch of that number is there."""

    def ends(self, topics: Sequence[str] | None = None) -> Mapping[tuple[str, int], int]:
        """The offset after the last record of each partition of these topics, or of all, that it has any of."""

    def ids(self) -> Mapping[str, str]:
        """Kafka's id of the incarnation of each topic that its last record came from."""


class Source(Protocol):
    """Where records come from."""

    def read(self, spark: SparkSession) -> DataFrame:
        """One row per Kafka record: ``topic, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY,
        value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>``; streaming or bounded.

        Reading twice gives the same records for the same offsets. Raises Unreachable when the service does
        not answer, BadRecording when a file holds something else.
        """

    def topic_ids(self, spark: SparkSession) -> Mapping[str, str | None]:
        """Kafka's id of each topic's present incarnation (J5), None from a broker that has none; empty for files."""

    def end_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """The offset after the last record, per (topic, partition): what there is to read. Raises Unreachable."""

    def resume(self, spark: SparkSession, checkpoint: str, held: Held) -> None:
        """Make a stream's checkpoint go on with the topics that there are now, before the stream starts: those that are
        read no more are left out, those that came begin where ``held`` ends. Repeating it changes nothing.

        Raises TopicDeleted, OffsetsLost where what was to be read is gone, Unreachable.
        """

    def refuse_lost(self, spark: SparkSession, checkpoint: str, held: Held) -> None:
        """Say what is gone, once a stream has stopped because something is that it was to read next.

        Raises TopicDeleted, TopicRecreated, OffsetsLost with topic, partition and offsets, Unreachable; nothing where
        it cannot be told.
        """


class Broker(Protocol):
    """What keeps a source's topics, each partition from some offset on."""

    def offered(self, spark: SparkSession, held: Held) -> Mapping[tuple[str, int], tuple[int, int]]:
        """The first offset that is there, and the one after the last, of each partition of topics that are to be read.

        Raises TopicDeleted and TopicRecreated where ``held`` has another topic than there is, Unreachable.
        """


class Listing(Protocol):
    """What lay where records land, at one moment."""

    @property
    def objects(self) -> Sequence[Landed]:
        """Objects of the source's topics, in no order."""

    @property
    def strange(self) -> Sequence[str]:
        """Paths of what has no name that a sink gives, sorted."""

    def read(self, objects: Sequence[Landed]) -> DataFrame:
        """One row per object: the fields of ``Landed``, and ``content BINARY``; none for one that has gone since or
        cannot be read.
        """


class Landing(Protocol):
    """Where records land as objects: files that a sink connector names (``replicator/landed.py``) and never changes.

    Objects are added at any time and in any order; old ones may go.
    """

    def listed(self, spark: SparkSession) -> Listing:
        """What is there now, seen once: reading it later lists nothing again. Raises Unreachable."""


class TableFormat(Protocol):
    """How a table is kept: every method is safe to repeat, and a crash leaves the old table readable."""

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or now. Raises TableMissing."""

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""

    def moment(self, spark: SparkSession, table: Table, when: int | datetime) -> Moment:
        """The version of that number, or the newest one committed at or before that time (with a zone): :meth:`read`
        can read it.

        Versions are committed one after the other, at times that rise with them. Raises TableMissing, and
        VersionMissing where it is not there yet, or not any more.
        """

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Names of the folders below ``folder`` that hold a table, sorted; none if the folder is missing."""

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """An id that changes when the table is dropped and made again; None if the table is missing."""

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """What no other commit has that ever made a version of this number: a table that is copied back, identity and
        all, goes on with numbers that it had (reliability.md F-C5). Of the newest version it costs nothing again.

        None where the version is not there, or where nothing tells.
        """

    def kept(self, spark: SparkSession, table: Table) -> Kept:
        """How the newest version lies there, for a catalog. Raises TableMissing."""

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes of the newest version, 0 if the table is missing: how heavy work on it will be."""

    def count(self, spark: SparkSession, table: Table) -> int:
        """Rows of the newest version, deleted ones included. Raises TableMissing."""

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """What the commits of (after, upto] appended, by partition; cheap. None when that history is gone."""

    def whole_from(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:
        """The oldest version, not before ``after``, behind which nothing was taken out of the table's files up to
        ``upto``: each version from there on can be read as ``upto`` can. ``upto`` itself where nobody knows. Cheap.
        """

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """Rows that commits after a partition's version and up to ``upto`` appended to the partitions of ``after``.

        None when that history is gone. For tables that are only ever appended to.
        """

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """Distinct ``table.keys`` of rows that differ between two versions (a superset is allowed).

        None when the history no longer reaches back to ``after``: the caller then compares everything.
        """

    def changed_rows(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """The rows that the version ``upto`` has under those keys, as far as they are the newest of their key in what
        was written since ``after``: for tables of one row per key.

        None where that is not to be had without reading the table.
        """

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows, creating the table. With a progress: at most once per (input, version or higher)."""

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """Join changes into silver by the rule of ``transforms/merge.py``, progress in the same commit.

        At most one change per key: columns of the table, ``_seq``, ``_deleted``, ``_column_seq``, ``_source_ts_ms``.
        Older changes change nothing; deleted keys stay as rows; a progress already recorded makes it a no-op.
        """

    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
        """Write a difference as decided by the caller: rows with ``_op`` ``upsert`` or ``delete``, one per key.

        Only the keys of the difference appear in ``changed_keys`` afterwards; an empty difference still
        commits the progress. A delete of a key that is not there is none. With ``repeats`` there may be rows that the
        table has as they are: a format that looks at those anyway passes them over, and does not count them.
        """

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """Put these rows, with their columns and what is noted about them, in the place of all that the table has, and
        part it as ``table.partition_by`` says. One commit: readers see the old rows or the new ones, never none.

        One row per key. The table keeps its identity, its versions go on, and what it records of other inputs stays; a
        missing one is made. ``inserted`` counts all rows. :meth:`changed_keys` over it tells every key or None; a
        progress already recorded makes it a no-op. Raises SchemaRefused where a table of the format keeps its key or
        its partitions.
        """

    def drop(self, spark: SparkSession, table: Table) -> None:
        """Remove the table with all its versions; nothing happens if it is not there."""

    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """Add columns (behind the table's own, before the system columns), widen types and move columns to other
        names, in ``_column_seq`` too; existing rows keep their values, new columns are NULL there, columns what is
        known of their source. Repeating it changes nothing.
        """

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """What the table's own commits record about this input; None if nothing."""

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """How far each input is that the table's own commits record; none if the table is missing."""

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
        """Write small files together, and remove files that no version younger than ``keep_hours`` needs.

        Rows, progress and what :meth:`changed_keys` tells of younger versions stay. A writer of the same process may
        be at work on the table meanwhile: one of the two waits. Killed half-way, it has changed nothing that a reader
        sees, and is gone on with or taken back by the next write or maintenance. Raises TableMissing.
        """


class Facts(Protocol):
    """Small facts that no table's commit can hold, as JSON objects by path (architecture section 2, idea 3)."""

    def get(self, path: str) -> dict[str, Any] | None:
        """The object, None if nothing was ever written."""

    def under(self, folder: str) -> tuple[str, ...]:
        """Names of the objects directly below a folder, sorted, without the ``.json`` of their paths."""


class Control(Facts, Protocol):
    """The same where they are made: written before the commit that makes them count; a later write replaces an earlier
    one.
    """

    def put(self, path: str, value: Mapping[str, Any]) -> None:
        """Write the whole object at once."""

    def remove(self, path: str) -> None:
        """Forget the object; nothing happens if it is not there."""


class Fence(Protocol):
    """Whether this process may still write: it holds the leases of the stages that it works on (decision 0026)."""

    @property
    def token(self) -> Token | None:
        """What its commits carry, so that a later writer's target can tell them from its own; None without leases."""

    def check(self) -> None:
        """Raises LeaseLost unless every lease is held; asked before work that ends in a commit, and again right before
        the commit.
        """

    def refuse_if_lost(self) -> None:
        """Raises LeaseLost where that is known already, without asking; for those who wait."""


@dataclass(frozen=True)
class Unfenced:
    """``Fence`` of a process that holds no lease: it reads only, or nobody else writes the lake."""

    token: Token | None = None

    def check(self) -> None:
        """Nothing can be lost."""

    def refuse_if_lost(self) -> None:
        """Nothing is."""


UNFENCED = Unfenced()


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

    def has_footing(self, recorded: Progress | None) -> bool:
        """Whether they make a target equal to the model whose ledger has this recorded."""
        if recorded is None or self.complete:
            return self.complete
        return recorded.input == self.progress.input and (self.since is None or recorded.covers(self.since))


class Sink(Protocol):
    """How rows are served.

    The class of a kind of target has ``at(*, host, port, database, user, password, sslmode, options)``: the sink of an
    entry of ``targets``, not reached yet. It raises ConfigError for what the kind does not take.
    """

    def answers(self) -> str:
        """In a few words what answers there and where. Raises Unreachable, and ConfigError where a right is lacking
        that every publication needs.
        """

    def progress(self, model: Model) -> Progress | None:
        """What the target's own ledger records for this model; None if nothing was ever published, or if the target
        lacks a column of the model or kept its values rounded so far: the whole model must come then.
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
    """A cluster that takes events for others: at least once, those of one key in their order."""

    def identity(self, topic: str) -> str | None:
        """An id that changes when the topic is dropped and made again, and that no other cluster's has; None where this
        one gives none. Raises Unreachable as :meth:`send`.
        """

    def send(self, events: DataFrame, topic: str) -> None:
        """All events, which have ``key STRING, value STRING, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, place
        STRING``: those of one key in the order of ``place``. A null value is a tombstone.

        Comes back when every one is kept by as many brokers as the topic asks for; a second call begins after that.
        Where it raises, any of them may be there: sending all again is the way on. Raises Unreachable when Kafka does
        not answer or has no such topic, TargetRefused when it will never take one of them.
        """
