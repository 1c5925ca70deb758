"""The tree of all errors.

    ReplicatorError                    exit 1
    ├── ConfigError                    exit 2   a file or flag is wrong; a retry changes nothing
    │   ├── JarsMissing                         a JAR is absent or differs from its lock
    │   ├── JavaUnsuitable                      no Java 17 or 21
    │   ├── LoginRefused                        a database or Kafka refuses the login; a continuous run retries
    │   ├── StoreRefused                        the object store refuses the driver's keys, or they lack a right
    │   ├── BadRecording                        a line of a recorded file is not a Kafka record
    │   └── VersionMissing                      a table did not exist then, or that version is no longer retained
    ├── Unreachable                    exit 3   a service does not answer; retry later
    ├── LakeBusy                       exit 3   another driver writes this lake (F-W1); retry later
    ├── AtWork                         exit 3   what must be read consistently is being written; retry in a moment
    ├── LeaseLost                      exit 3   another driver took over; this one must not write (F-W2); retry later
    ├── ConnectorFailed                exit 1   a Debezium task stopped for good; its trace says why
    ├── TableMissing                   exit 1   the table was never written
    ├── NoControlRow                   exit 1   an object below _replicator is truncated, or foreign
    └── TableStopped                   exit 1   one table stops, the others go on (debezium.md R6)
        ├── TopicsMissing                       no topic matches what the source names
        ├── OffsetsLost                         Kafka dropped records before they were read (F-K2)
        ├── SourceRewound                       the source's order went back: restored, reset, replaced (J4)
        ├── PartitionsGrew                      more partitions where only offsets define the order (Q8)
        ├── TopicDeleted                        the topic no longer exists
        ├── TopicRecreated                      the topic was deleted and created again (J5, F-K3)
        ├── CheckpointBehindTable               the bronze checkpoint is not the one that wrote it (F-C2)
        ├── CheckpointDamaged                   a file of the bronze checkpoint cannot be read (F-C1)
        ├── BronzeReplaced                      bronze is another table, or an older copy, than was read (F-C6)
        ├── ObjectRefused                       an object changed after it was read, or is too large
        ├── EngineFailed                        Spark, a disk or a library failed; a continuous run retries
        ├── ValueRefused                        an expression cannot be computed for some row
        ├── StaleWriter                         a commit did not happen: another writer was there
        ├── DeadLetterShare                     too many rejects in one batch (R5)
        ├── Residue                             the record counts do not add up (R1)
        ├── SchemaRefused                       a change of types that silver cannot follow (G3)
        ├── TransformChanged                    the stored rows were made by another transform
        ├── ChangesLost                         versions that a feed has not sent yet are no longer retained
        ├── WouldLose                           a rebuild would remove what bronze no longer has
        ├── ChecksFailed                        a model breaks its own rule
        ├── CatalogRefused                      the catalog cannot have this table, or has another of its name
        └── TargetRefused                       the serving database refused, for good
            └── TargetMoved        exit 3   the target is no longer what the rows were made for; retry with other rows

An error says what happened, where, and how to fix it. It carries no row values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from replicator.spec import Applied, Table


_ENDS = (".", "?", "!", ":", ";", ",")
"""Punctuation after which ``fix`` follows as a new sentence without a further period."""


class ReplicatorError(Exception):
    """Root of the tree: *what* happened in one sentence, optionally *where*, and how to fix it (*fix*).

    ``exit_code`` is the exit code of the process; ``retry`` says whether a later attempt may succeed unchanged.
    """

    exit_code: ClassVar[int] = 1
    retry: ClassVar[bool] = False

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        place = f" [{self.where}]" if self.where else ""
        advice = f" {self.fix}" if self.fix else ""
        end = "." if advice and not place and not self.what.endswith(_ENDS) else ""
        return f"{self.what}{end}{place}{advice}"


class ConfigError(ReplicatorError):
    """A configuration file, a flag or an argument is wrong."""

    exit_code = 2


class JarsMissing(ConfigError):
    """A JAR is missing from the cache, or its SHA-256 differs from the lock."""


class JavaUnsuitable(ConfigError):
    """No Java was found, or only one that this Spark line does not run on."""


class LoginRefused(ConfigError):
    """A database or Kafka answers, but refuses the configured login: the user, the password or the
    database is wrong.
    """


class StoreRefused(ConfigError):
    """An object store answers, but refuses the operation: the keys are invalid or expired, they lack a right, or the
    bucket does not exist.
    """


class BadRecording(ConfigError):
    """A line of a recorded file is not a Kafka record as ``kcat -J`` prints it."""


class VersionMissing(ConfigError):
    """The table never had the requested version or time, or no longer retains it. In the latter case ``oldest`` is the
    first later version that is still retained, where that was determined.
    """

    def __init__(
        self, what: str, *, where: str | None = None, fix: str | None = None, oldest: int | None = None
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.oldest = oldest


class Unreachable(ReplicatorError):
    """A service does not answer: Kafka, Connect, Postgres, the object store."""

    exit_code = 3
    retry = True


class LakeBusy(ReplicatorError):
    """Another driver holds the lease of a stage of this lake and keeps renewing it."""

    exit_code = 3
    retry = True


class AtWork(ReplicatorError):
    """Data that must be read as of one moment is being written, by a driver that does not wait for readers."""

    exit_code = 3
    retry = True


class LeaseLost(ReplicatorError):
    """This driver was silent for too long, or its lease was revoked: it may no longer write."""

    exit_code = 3
    retry = True


class ConnectorFailed(ReplicatorError):
    """A connector or its task is FAILED in Kafka Connect and stays so until it is fixed and restarted."""


NO_LAKE = (Unreachable, StoreRefused)
"""Errors that concern a lake as a whole: no other table of it needs to be tried."""

SHUT = (*NO_LAKE, LoginRefused)
"""Errors that concern any service as a whole."""


class TableMissing(ReplicatorError):
    """The table was never written."""

    @classmethod
    def of(cls, table: Table) -> TableMissing:
        """Return the error for a table that does not exist."""
        return cls(f"table {table.name} does not exist yet", where=table.location)


class NoControlRow(ReplicatorError):
    """An object below ``_replicator`` is not a valid control row: truncated, foreign, or of a format version that this
    release does not know.
    """

    @classmethod
    def at(cls, path: str, what: str = "control row is not a JSON object") -> NoControlRow:
        """Return the error for the control row at ``path``."""
        checksum = f".{path.rpartition('/')[2]}.crc"
        fix = (
            f"Restore it from a backup of the lake, and delete {checksum} next to it if that exists; "
            "docs/architecture.md (Control rows) describes its contents and the commits that it belongs to. Do not "
            "just delete it: some of its contents cannot be recovered."
        )
        return cls(what, where=path, fix=fix)


class TableStopped(ReplicatorError):
    """One table stops and makes no progress; the others go on. ``code`` is the name in debezium.md R6."""

    code: ClassVar[str] = "TABLE_STOPPED"

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"


class TopicsMissing(TableStopped):
    """No topic, or no object of one, matches the source's pattern: the prefix is wrong, or the connector never ran."""

    code = "TOPICS_MISSING"


class OffsetsLost(TableStopped):
    """Retention removed records that were never read; a new snapshot of their tables restores the rows."""

    code = "OFFSETS_LOST"
    FIX: ClassVar[str] = (
        "To let the other topics continue, `exclude` its table. To continue after the gap, run `replicator rebuild "
        "--checkpoint SOURCE --accept-gap`, then take a new snapshot of the table: `replicator connect snapshot` "
        "with --remove-missing, which also finds rows deleted meanwhile."
    )
    ENDED: ClassVar[str] = (
        "`exclude` its table to let the others continue; to replicate it again, use a new topic prefix."
    )

    @classmethod
    def next(cls, topic: str, partition: int, wanted: int, has: tuple[int, int], where: str) -> OffsetsLost:
        """Return the error for the record at offset ``wanted``, which was to be read next, given the first offset that
        Kafka ``has`` and the one after its last. If the log ends before ``wanted``, skipping the gap is not offered:
        the topic's future offsets would belong to other records.
        """
        return cls(
            f"topic {topic}, partition {partition}: the next offset to read is {wanted}, but the earliest in Kafka is "
            f"{has[0]}, and its log ends before {has[1]}",
            where=where,
            fix=cls.ENDED if wanted > has[1] else cls.FIX,
        )


class SourceRewound(TableStopped):
    """A new change has a lower position than its partition had reached: a restored backup, a reset log, or another
    server.
    """

    code = "SOURCE_REWOUND"


class PartitionsGrew(TableStopped):
    """A topic whose records are ordered by offset alone got more partitions: keys may have moved between them."""

    code = "PARTITIONS_GREW"


class TopicDeleted(TableStopped):
    """A topic that was read no longer exists; whether all of it was read is unknown."""

    code = "TOPIC_DELETED"


class TopicRecreated(TableStopped):
    """The topic was deleted and created again: its offsets belong to other records now."""

    code = "TOPIC_RECREATED"

    @classmethod
    def of(cls, topic: str, where: str) -> TopicRecreated:
        """Return the error for a topic."""
        return cls(
            f"topic {topic} was deleted and recreated: its offsets start over",
            where=where,
            fix="To let the other topics continue, `exclude` its table. To replicate it again, use a new topic "
            "prefix, or a lake with a new root.",
        )


class CheckpointBehindTable(TableStopped):
    """The streaming checkpoint is fresh, restored or foreign: Delta would skip its batches silently."""

    code = "CHECKPOINT_BEHIND_TABLE"


class CheckpointDamaged(TableStopped):
    """A file of the streaming checkpoint is not what Spark wrote: truncated, zeroed, or garbage."""

    code = "CHECKPOINT_DAMAGED"
    FIX: ClassVar[str] = "Recreate the checkpoint from bronze: `replicator rebuild --checkpoint SOURCE`."


class BronzeReplaced(TableStopped):
    """The table's progress names another input table than the existing one, or a version that it no longer has; or
    bronze itself has records from elsewhere, or lacks batches that its checkpoint has completed.
    """

    code = "BRONZE_REPLACED"

    @classmethod
    def under_silver(cls, source: str, read: int, upto: int) -> BronzeReplaced:
        """Return the error for a bronze table that lacks versions which silver has read."""
        return cls(
            f"silver has read bronze up to version {read}, but bronze is at version {upto}: it is an older copy",
            where=source,
            fix="Restore the newest bronze, or silver as of the same time; otherwise give the lake a new root.",
        )

    @classmethod
    def gone(cls, source: str, where: str) -> BronzeReplaced:
        """Return the error for a bronze table that does not exist although silver has tables of the source."""
        return cls(
            f"bronze of {source} does not exist, but silver has tables built from it",
            where=where,
            fix="Restore it, or specify the right lake. To read all of Kafka again, delete the source's checkpoint "
            "as well, then `replicator run bronze` and `replicator rebuild --all`.",
        )


class ObjectRefused(TableStopped):
    """Objects were not ingested because they were replaced after they were read, or are too large. All others were
    ingested.
    """

    code = "OBJECT_REFUSED"


class EngineFailed(TableStopped):
    """Spark, its infrastructure or a format's library failed at the table: a full disk, a missing file. The remedy lies
    outside of the table's records.
    """

    code = "ENGINE_FAILED"


class ValueRefused(TableStopped):
    """Spark cannot compute an expression, usually of a model's SQL, for some row; a retry with the same rows fails
    again.
    """

    code = "VALUE_REFUSED"


class StaleWriter(TableStopped):
    """A commit left no new version: another writer was there, or the progress was already recorded."""

    code = "STALE_WRITER"


class DeadLetterShare(TableStopped):
    """One batch has more rejects than the policy allows."""

    code = "DEAD_LETTER_SHARE"


class Residue(TableStopped):
    """The counts violate read = applied + superseded + dead-lettered + ignored."""

    code = "RESIDUE"


class SchemaRefused(TableStopped):
    """The records' types cannot be reached from the table's by widening."""

    code = "SCHEMA_REFUSED"


class TransformChanged(TableStopped):
    """A table's ``transform`` differs in text, behaviour or key from the one that made the stored rows."""

    code = "TRANSFORM_CHANGED"


class WouldLose(TableStopped):
    """A rebuild would remove rows or values that bronze cannot prove wrong, because it does not reach back to them."""

    code = "WOULD_LOSE"


class ChangesLost(TableStopped):
    """The changes of a table since a feed's last event can no longer be determined, or the table is another one now."""

    code = "CHANGES_LOST"


class ChecksFailed(TableStopped):
    """A gold model breaks a rule that it declares: its key is not unique, or a column is NULL. The message names a few
    keys of such rows and no other values.
    """

    code = "CHECKS_FAILED"


class CatalogRefused(TableStopped):
    """The catalog has a foreign table of that name, or cannot hold or read this one."""

    code = "CATALOG_REFUSED"


class TargetRefused(TableStopped):
    """The serving database refused the rows or the statement; a retry would be refused again.

    For a whole batch, ``refused`` holds the error of each model that was refused or waits for one that was, and
    ``applied`` what was committed for the others.
    """

    code = "TARGET_REFUSED"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        fix: str | None = None,
        refused: Mapping[str, TargetRefused] | None = None,
        applied: Mapping[str, Applied] | None = None,
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.refused = dict(refused or {})
        self.applied = dict(applied or {})

    @classmethod
    def waits(cls, model: str, cause: str) -> TargetRefused:
        """Return the error for a model that references a refused one."""
        what = f"model {model} references {cause}, which was refused, and waits for it."
        return cls(what, where=model, fix=f"Fix {cause} first.")


class TargetMoved(TargetRefused):
    """The target is no longer the one that the rows were made for, for example after a failover to a standby; the next
    publication makes new rows for it.
    """

    code = "TARGET_MOVED"
    exit_code = 3
    retry = True


FIXED_ELSEWHERE = (TargetRefused, EngineFailed, StaleWriter)
"""Errors that stop a table without any record being the cause: the remedy is in the target, on a disk, or the end of
another writer.
"""


def first_line(error: BaseException) -> str:
    """Return the message of a foreign error in one line: the first non-empty one, since the first line of Spark's
    parser is empty, without the semicolon with which its analyser ends it.
    """
    lines = (line.strip().rstrip(";") for line in str(error).splitlines())
    return next(filter(None, lines), type(error).__name__)


def exit_code(errors: Collection[ReplicatorError]) -> int:
    """Return the exit code of a command that went on after these errors: 0 without any, 1 if a table stopped, else 2 if
    a service refused the login, and 3 if a retry may succeed for all of them.
    """
    known = (error.exit_code if error.retry or isinstance(error, SHUT) else 1 for error in errors)
    return min(known, default=0)
