"""Everything that can go wrong, as one tree.

    ReplicatorError                    exit 1
    ├── ConfigError                    exit 2   a file or flag is wrong; a retry changes nothing
    │   ├── JarsMissing                         a JAR is absent or differs from its lock
    │   ├── JavaUnsuitable                      no Java 17 or 21
    │   ├── LoginRefused                        a database or Kafka lets no such login in; one that goes on tries again
    │   ├── StoreRefused                        the object store refuses the driver's keys, or they lack a right
    │   ├── BadRecording                        a line of a recorded file is no Kafka record
    │   └── VersionMissing                      a table was not there then, or that version is not kept any more
    ├── Unreachable                    exit 3   a service does not answer; retry later
    ├── LakeBusy                       exit 3   another driver writes this lake (F-W1); retry later
    ├── AtWork                         exit 3   somebody is writing what is to be read together; retry in a moment
    ├── LeaseLost                      exit 3   another driver writes by now, this one must not (F-W2); retry later
    ├── ConnectorFailed                exit 1   a Debezium task stopped for good; its trace says why
    ├── TableMissing                   exit 1   nobody has written this table yet
    ├── NoControlRow                   exit 1   an object below _replicator is cut off, or somebody else's
    └── TableStopped                   exit 1   one table stops, the others go on (debezium.md R6)
        ├── TopicsMissing                       no topic matches what the source names
        ├── OffsetsLost                         Kafka dropped records before we read them (F-K2)
        ├── SourceRewound                       the source's order went back: restored, reset, replaced (J4)
        ├── PartitionsGrew                      more partitions where only offsets tell the order (Q8)
        ├── TopicDeleted                        the topic is not there any more
        ├── TopicRecreated                      the topic is another one now (J5, F-K3)
        ├── CheckpointBehindTable               the bronze checkpoint is not the one that wrote it (F-C2)
        ├── CheckpointDamaged                   a file of the bronze checkpoint cannot be read (F-C1)
        ├── BronzeReplaced                      bronze is another one, or an older copy, than was read (F-C6)
        ├── ObjectRefused                       an object changed after it was read, or is too large
        ├── EngineFailed                        Spark, a disk or a library failed at it; one that goes on tries again
        ├── ValueRefused                        an expression cannot be computed for some row
        ├── StaleWriter                         a commit did not happen: another writer was there
        ├── DeadLetterShare                     too many rejects in one batch (R5)
        ├── Residue                             the account does not add up (R1)
        ├── SchemaRefused                       a change of types that silver cannot follow (G3)
        ├── TransformChanged                    the rows at rest were made by another transform
        ├── ChangesLost                         versions that a feed has not sent yet are not kept any more
        ├── WouldLose                           a rebuild would take away what bronze does not have any more
        ├── ChecksFailed                        a model breaks its own rule
        ├── CatalogRefused                      the catalog cannot have this table, or has another of its name
        └── TargetRefused                       the serving database said no, for good
            └── TargetMoved        exit 3   it is not what the rows were made for any more; other rows will do

An error says what happened, where, and how to mend it. It carries no row values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from replicator.spec import Applied, Table


_ENDS = (".", "?", "!", ":", ";", ",")
"""What a sentence ends with: how to mend it is another one."""


class ReplicatorError(Exception):
    """Root of the tree: one sentence of *what*, an optional *where*, and what to do (*mend*)."""

    exit_code: ClassVar[int] = 1
    retry: ClassVar[bool] = False

    def __init__(self, what: str, *, where: str | None = None, mend: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        place = f" [{self.where}]" if self.where else ""
        advice = f" {self.mend}" if self.mend else ""
        end = "." if advice and not place and not self.what.endswith(_ENDS) else ""
        return f"{self.what}{end}{place}{advice}"


class ConfigError(ReplicatorError):
    """A configuration file, a flag or an argument is wrong."""

    exit_code = 2


class JarsMissing(ConfigError):
    """A JAR is missing from the cache or its SHA-256 is not the lock's."""


class JavaUnsuitable(ConfigError):
    """No Java, or one that this Spark line does not run on."""


class LoginRefused(ConfigError):
    """A database, or Kafka, answers, and lets nobody in as the configuration says: it means another user, password or
    database.
    """


class StoreRefused(ConfigError):
    """An object store answers, and does not let the driver do what it asks for: keys that do not hold (any more), or
    that lack a right; or it has no such bucket.
    """


class BadRecording(ConfigError):
    """A line of a recorded file is not a Kafka record as ``kcat -J`` prints it."""


class VersionMissing(ConfigError):
    """The version or the time that was asked for is none that the table has, or none that it still has: then ``oldest``
    is the first one behind it that is left, where somebody has looked.
    """

    def __init__(
        self, what: str, *, where: str | None = None, mend: str | None = None, oldest: int | None = None
    ) -> None:
        super().__init__(what, where=where, mend=mend)
        self.oldest = oldest


class Unreachable(ReplicatorError):
    """A service does not answer: Kafka, Connect, Postgres, the object store."""

    exit_code = 3
    retry = True


class LakeBusy(ReplicatorError):
    """Another driver holds the lease of a stage of this lake, and keeps it up."""

    exit_code = 3
    retry = True


class AtWork(ReplicatorError):
    """What must be read as of one moment is being written, by a driver that need not wait for readers."""

    exit_code = 3
    retry = True


class LeaseLost(ReplicatorError):
    """This driver was silent for too long, or was shut out: it may not write any more."""

    exit_code = 3
    retry = True


class ConnectorFailed(ReplicatorError):
    """A connector or its task is FAILED in Kafka Connect and stays so until it is mended and restarted."""


NO_LAKE = (Unreachable, StoreRefused)
"""What keeps a lake away as a whole: it is not about one of its tables, and none of them need be tried."""

SHUT = (*NO_LAKE, LoginRefused)
"""What keeps any service away so."""


class TableMissing(ReplicatorError):
    """The table was never written."""

    @classmethod
    def of(cls, table: Table) -> TableMissing:
        """Said of a table that is nowhere."""
        return cls(f"table {table.name} does not exist yet", where=table.location)


class NoControlRow(ReplicatorError):
    """An object below ``_replicator`` is not what was written there: cut off, somebody else's, or of a version of ours
    that this one does not know.
    """

    @classmethod
    def at(cls, path: str, what: str = "a control row is no JSON object") -> NoControlRow:
        """Said of the one at that path."""
        checksum = f".{path.rpartition('/')[2]}.crc"
        mend = (
            f"Put it back from a copy of the lake, and remove {checksum} beside it where that is; what it says, and of "
            "which commits, is in docs/architecture.md (Control rows). Do not just remove it: without it some of that "
            "is not known any more."
        )
        return cls(what, where=path, mend=mend)


class TableStopped(ReplicatorError):
    """One table stops with no progress moved; the others go on. ``code`` is the name in debezium.md R6."""

    code: ClassVar[str] = "TABLE_STOPPED"

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"


class TopicsMissing(TableStopped):
    """No topic, or no object of one, has a name that the source's pattern matches: a wrong prefix, or a connector that
    never ran.
    """

    code = "TOPICS_MISSING"


class OffsetsLost(TableStopped):
    """Retention removed records that were never read: a new snapshot of their tables has the rows."""

    code = "OFFSETS_LOST"
    MEND: ClassVar[str] = (
        "To let the other topics go on, `exclude` its table. To go on behind the gap, `replicator rebuild --checkpoint "
        "SOURCE --accept-gap`, then a new snapshot of the table: `replicator connect snapshot` with --remove-missing, "
        "which finds what was deleted meanwhile."
    )
    ENDED: ClassVar[str] = "`exclude` its table and the others go on; to have it again, use a new topic prefix."

    @classmethod
    def next(cls, topic: str, partition: int, wanted: int, has: tuple[int, int], where: str) -> OffsetsLost:
        """Said of the record that was to be read next, where Kafka ``has`` a first offset and one behind the last. Of a
        log that ends before it nothing is passed over: its offsets will be of other records.
        """
        return cls(
            f"of topic {topic}, partition {partition}, record {wanted} was to be read next; the earliest that Kafka "
            f"has is {has[0]}, and its log ends before {has[1]}",
            where=where,
            mend=cls.ENDED if wanted > has[1] else cls.MEND,
        )


class SourceRewound(TableStopped):
    """A new change stands below what its partition had reached: a backup, a reset log, another server."""

    code = "SOURCE_REWOUND"


class PartitionsGrew(TableStopped):
    """A topic whose records only their offsets order has more partitions: keys may have moved between them."""

    code = "PARTITIONS_GREW"


class TopicDeleted(TableStopped):
    """A topic that was read is there no more: nobody knows whether all of it was."""

    code = "TOPIC_DELETED"


class TopicRecreated(TableStopped):
    """The topic was deleted and created again: offsets mean something else now."""

    code = "TOPIC_RECREATED"

    @classmethod
    def of(cls, topic: str, where: str) -> TopicRecreated:
        """Said of a topic."""
        return cls(
            f"topic {topic} was deleted and created again: its offsets start anew",
            where=where,
            mend="To let the other topics go on, `exclude` its table. To have it again, use a new topic prefix, or a "
            "lake with a new root.",
        )


class CheckpointBehindTable(TableStopped):
    """The streaming checkpoint is fresh, restored or foreign: Delta would skip its batches silently."""

    code = "CHECKPOINT_BEHIND_TABLE"


class CheckpointDamaged(TableStopped):
    """A file of the streaming checkpoint is not what Spark wrote: truncated, zeroed, garbage."""

    code = "CHECKPOINT_DAMAGED"
    MEND: ClassVar[str] = "Have the checkpoint made anew of what bronze has: `replicator rebuild --checkpoint SOURCE`."


class BronzeReplaced(TableStopped):
    """The table's progress names another input table than the one that is there, or a version that it does not have
    any more; or bronze itself has records from elsewhere, or lacks batches that its checkpoint has done.
    """

    code = "BRONZE_REPLACED"

    @classmethod
    def under_silver(cls, source: str, read: int, upto: int) -> BronzeReplaced:
        """Said of a bronze that lacks versions which silver has read."""
        return cls(
            f"silver has read bronze up to version {read}, and bronze is at {upto}: it is an older copy",
            where=source,
            mend="Bring the newest bronze back, or silver of the same time; else give the lake a new root.",
        )

    @classmethod
    def gone(cls, source: str, where: str) -> BronzeReplaced:
        """Said of a bronze that is not there, while silver has tables of the source."""
        return cls(
            f"there is no bronze of {source}, and silver has tables that were made from it",
            where=where,
            mend="Bring it back, or name the right lake. To read all of Kafka anew, remove the source's checkpoint as "
            "well, then `replicator run bronze` and `replicator rebuild --all`.",
        )


class ObjectRefused(TableStopped):
    """Objects that cannot be taken: they were replaced after they were read, or are too large. All others were."""

    code = "OBJECT_REFUSED"


class EngineFailed(TableStopped):
    """Spark, what it stands on or a format's library failed at the table: its disk is full, a file of it is gone. What
    cures that happens elsewhere.
    """

    code = "ENGINE_FAILED"


class ValueRefused(TableStopped):
    """Spark cannot compute an expression, of a model's SQL mostly, for some row: with the same rows it comes to the
    same end.
    """

    code = "VALUE_REFUSED"


class StaleWriter(TableStopped):
    """A commit left no new version: somebody else wrote, or the progress was already there."""

    code = "STALE_WRITER"


class DeadLetterShare(TableStopped):
    """More rejects in one batch than the policy allows."""

    code = "DEAD_LETTER_SHARE"


class Residue(TableStopped):
    """read != applied + superseded + dead-lettered + ignored."""

    code = "RESIDUE"


class SchemaRefused(TableStopped):
    """The records' types cannot be reached from the table's by widening."""

    code = "SCHEMA_REFUSED"


class TransformChanged(TableStopped):
    """What a table's ``transform`` says, does or is keyed with is not what made the rows that it has."""

    code = "TRANSFORM_CHANGED"


class WouldLose(TableStopped):
    """A rebuild would take rows or values away that bronze cannot prove to be wrong: it does not reach back to them."""

    code = "WOULD_LOSE"


class ChangesLost(TableStopped):
    """What changed in a table since a feed's last event cannot be told any more, or it is another table by now."""

    code = "CHANGES_LOST"


class ChecksFailed(TableStopped):
    """A gold model breaks a rule that it declares: its key is not unique, a column is NULL. A few keys of such rows are
    named, and nothing else of them.
    """

    code = "CHECKS_FAILED"


class CatalogRefused(TableStopped):
    """The catalog has a table of that name which is somebody else's, or cannot hold or read this one."""

    code = "CATALOG_REFUSED"


class TargetRefused(TableStopped):
    """The serving database refused the rows or the statement; a retry would be refused again.

    Of a whole batch: ``refused`` holds each refused or waiting model's own error, ``applied`` what was committed
    for the others.
    """

    code = "TARGET_REFUSED"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        mend: str | None = None,
        refused: Mapping[str, TargetRefused] | None = None,
        applied: Mapping[str, Applied] | None = None,
    ) -> None:
        super().__init__(what, where=where, mend=mend)
        self.refused = dict(refused or {})
        self.applied = dict(applied or {})

    @classmethod
    def waits(cls, model: str, cause: str) -> TargetRefused:
        """The error of a model that references one that was refused."""
        what = f"model {model} references {cause}, which was refused, and waits for it."
        return cls(what, where=model, mend=f"Mend {cause} first.")


class TargetMoved(TargetRefused):
    """The target is not any more what the rows were made for, as behind a standby that took over: the next publication
    makes others.
    """

    code = "TARGET_MOVED"
    exit_code = 3
    retry = True


MENDED_ELSEWHERE = (TargetRefused, EngineFailed, StaleWriter)
"""What stops a table and no record is to blame for: it is mended in the target, on a disk, by another writer's end."""


def first_line(error: BaseException) -> str:
    """What an error that is not ours says, in one line: of Spark's parser the first one is empty, and of its analyser
    it ends with a semicolon.
    """
    lines = (line.strip().rstrip(";") for line in str(error).splitlines())
    return next(filter(None, lines), type(error).__name__)


def exit_code(errors: Collection[ReplicatorError]) -> int:
    """What a command ends with that went on after these: 0 without any, 1 where a table stopped, else 2 where a service
    lets nobody in, and 3 where another try may cure all.
    """
    known = (error.exit_code if error.retry or isinstance(error, SHUT) else 1 for error in errors)
    return min(known, default=0)
