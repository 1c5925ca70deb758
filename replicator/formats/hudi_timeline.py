"""Hudi's timeline as values: the commits of this writer, read by the driver without a Spark job.

Hudi names commits by instants. Our commits also have a consecutive version number, in the commit's own metadata,
together with everything that must be atomic with the rows: progress, columns, the table's identity. Each commit repeats
all of it, so the newest one has the table's state although Hudi archives and cleans older ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from replicator.errors import TableStopped
from replicator.formats import control, hudi_instant, hudi_ordering
from replicator.jvm import gateway
from replicator.spec import Progress, TableDetail

METADATA_KEY = "replicator.commit"
"""The key of our metadata in a commit."""

TOKEN_KEY = "replicator.token"  # noqa: S105 - of a lease
"""The key of the writer's token in a commit (decision 0026)."""

_COMPLETED = re.compile(r"[0-9]+[.](commit|deltacommit|replacecommit)|timeline")
"""The name of the file that completes a commit in tables of version 6; a later version, to which another writer may
upgrade a table, has a folder for them.
"""

_COMPLETION_TIMES = 8
"""The first table version whose incremental queries use the completion times of commits."""

_TABLE_SERVICES = ("COMPACT", "LOG_COMPACT", "CLUSTER", "ALTER_SCHEMA")
"""Hudi's operation types that change no row."""

_NULLS = ("nullable", "containsNull", "valueContainsNull")
"""The nullability attributes in Spark's JSON of a schema."""

RETAINED_COMMITS = 24
"""How many commits, of any kind, cleaning retains: their versions can be read."""


@dataclass(frozen=True)
class CommitMetadata:
    """Our metadata of a commit. Constant per table: its ``identity``, ``kind`` (COPY_ON_WRITE, MERGE_ON_READ), ``keys``
    and partition columns. Per commit: the ``version`` number, the ``progress`` by input, the ``columns`` as Spark's
    JSON of a schema, how many rows it ``deleted``, and whether all rows were ``rewritten``.
    """

    identity: str
    kind: str
    keys: tuple[str, ...]
    partition_by: tuple[str, ...]
    version: int
    progress: Mapping[str, int]
    columns: str
    deleted: int = 0
    rewritten: bool = False

    @property
    def schema(self) -> StructType:
        """The columns with their metadata. All nested fields are nullable: that one was not in the rows of one commit
        does not bind later ones, and Spark does not cast a nullable value to a non-nullable type.
        """
        return StructType.fromJson(_with_nullable(json.loads(self.columns)))

    def following(
        self, rows: StructType, progress: Progress | None, *, deleted: int, rewritten: bool
    ) -> CommitMetadata:
        """The metadata of the next commit, with these columns and this progress, if any."""
        return replace(
            self,
            version=self.version + 1,
            progress={**self.progress, **({} if progress is None else {progress.input: progress.version})},
            columns=rows.json(),
            deleted=deleted,
            rewritten=rewritten,
        )

    def text(self) -> str:
        """The JSON to store in the commit."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True)
class Commit:
    """A completed commit of ours: its metadata (``note``), the instants when it was ``begun`` (which is its name) and
    ``done`` by Hudi's clock, and the bytes that it ``wrote`` by partition values.
    """

    note: CommitMetadata
    begun: str
    done: str
    wrote: Mapping[tuple[str, ...], int] = field(default_factory=dict)


class ForeignCommit(Enum):
    """A commit that is not ours: maintenance, which changes no row, or a write by another writer."""

    UPKEEP = 1
    WRITE = 2


class Timeline:
    """The timeline of the table at one location. Commits never change, so those read once are cached."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._known: dict[str, Commit | ForeignCommit] = {}
        self._clean, self._cleaned, self._by_completion = "", "", False

    @property
    def retained(self) -> Sequence[Commit]:
        """The commits of ours, as of the last :meth:`commits`, whose files all exist: among the last
        ``RETAINED_COMMITS`` of the timeline, or fewer if another writer has cleaned the table.
        """
        last = list(self._known.items())[-RETAINED_COMMITS:]
        return [each for begun, each in last if isinstance(each, Commit) and begun >= self._cleaned]

    @property
    def ours(self) -> list[Commit]:
        """The commits of ours as of the last :meth:`commits`, oldest first."""
        return [each for each in self._known.values() if isinstance(each, Commit)]

    @property
    def readable(self) -> Sequence[Commit]:
        """The commits whose versions can be read: those with all files, and always the newest."""
        kept, newest = [*self.retained], self.ours[-1:]
        return kept if kept[-1:] == newest else [*kept, *newest]

    def at(self, version: int) -> Commit | None:
        """The readable commit of this version, None if there is none."""
        return next((each for each in self.readable if each.note.version == version), None)

    def between(self, after: int, upto: int) -> list[Commit] | None:
        """The commits of the versions (after, upto]; None if some of their files are gone, or another writer wrote rows
        in between: what that deleted is unknown.
        """
        found = [each for each in self.retained if after < each.note.version <= upto]
        if len(found) != upto - after:
            return None
        beside: list[ForeignCommit] = []
        for each in self._known.values():
            if isinstance(each, ForeignCommit):
                beside.append(each)
            elif each.note.version > upto:
                break
            elif each.note.version <= after:
                beside = []
            elif ForeignCommit.WRITE in beside:
                return None
        return found

    def span(self, first: Commit, last: Commit) -> tuple[str, str]:
        """The instants that bound an incremental query: exclusive, before ``first``; inclusive, at ``last``."""
        before = [each for each in self.ours if each.begun < first.begun]
        if self._by_completion:
            return before[-1].done if before else "000", last.done
        return before[-1].begun if before else "000", last.begun

    def refuse(self) -> None:
        """Raise TableStopped if we must not commit after what :meth:`commits` saw last: all commits are another
        writer's; or the newest commit is ahead of this machine's clock, by which Hudi names commits, so that ours would
        be ordered before it and never be seen.
        """
        if self._known and not self.ours:
            raise TableStopped(
                "the existing Hudi table was written by another program, perhaps with other keys",
                where=self._location,
                fix="Move it away, or give the lake another root: the next run builds the table from bronze.",
            )
        ahead = hudi_instant.parse_utc(max(self._known, default="")) - datetime.now(timezone.utc)
        if ahead > timedelta():
            raise TableStopped(
                f"the table's newest commit is {ahead.total_seconds():.0f} seconds ahead of this machine's clock",
                where=self._location,
                fix="Nothing was written. Synchronize the clocks of the machines that write the lake, then run again.",
            )

    def is_begun(self, spark: SparkSession) -> bool:
        """Whether the table has a completed commit, by the file names of its timeline."""
        return control.has_file_matching(spark, f"{self._location}/.hoodie", _COMPLETED)

    def exists(self, spark: SparkSession) -> bool:
        """Whether there is a Hudi table. If a writer died while replacing the table's properties file, only its backup
        exists, which Hudi reads as well.
        """
        noted = f"{self._location}/.hoodie/hoodie.properties"
        return any(control.exists(spark, place) for place in (noted, f"{noted}.backup"))

    def commits(self, spark: SparkSession) -> Sequence[Commit]:
        """Refresh the timeline; return the commits of ours that Hudi has not archived, oldest first, empty if there is
        no table.
        """
        if not self.exists(spark):
            self._known = {}
            return ()
        client = self._client(spark)
        timeline = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        found: dict[str, Commit | ForeignCommit] = {}
        for instant in timeline.getInstants():
            begun = str(instant.requestedTime())
            found[begun] = self._known[begun] if begun in self._known else _read_commit(timeline, instant)
        self._known = found
        self._load_cleaning(client)
        self._by_completion = int(client.getTableConfig().getTableVersion().versionCode()) >= _COMPLETION_TIMES
        return self.ours

    def instants(self, spark: SparkSession) -> set[str]:
        """The instants of everything that the timeline has not archived, completed or not."""
        return {str(each.requestedTime()) for each in self._client(spark).getActiveTimeline().getInstants()}

    def order_by_commit(self, spark: SparkSession) -> None:
        """See ``hudi_ordering``."""
        hudi_ordering.order_by_commit(spark, self._client(spark))

    def detail(self, spark: SparkSession, *, merge_on_read: bool) -> TableDetail:
        """The table's version, type and partition columns, and the sorted paths of its partitions."""
        client, hudi = self._client(spark), gateway.of(spark).org.apache.hudi.common
        properties = client.getTableConfig()
        version, fields = int(properties.getTableVersion().versionCode()), properties.getPartitionFields()
        columns = tuple(map(str, fields.get())) if fields.isPresent() else ()
        if not columns:  # Hudi would list the table's own folder as a partition
            return TableDetail("hudi", version, merge_on_read)
        context = hudi.engine.HoodieLocalEngineContext(client.getStorageConf())
        options = hudi.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        paths = hudi.fs.FSUtils.getAllPartitionPaths(context, client, options)
        return TableDetail("hudi", version, merge_on_read, columns, tuple(sorted(map(str, paths))))

    def _load_cleaning(self, client: Any) -> None:
        """Load the first commit whose files the newest cleaning retained."""
        newest = client.getActiveTimeline().getCleanerTimeline().filterCompletedInstants().lastInstant()
        if not newest.isPresent() or self._clean == (begun := str(newest.get().requestedTime())):
            return
        cleaning = client.getActiveTimeline().readCleanMetadata(newest.get())
        self._clean = begun
        self._cleaned = str(cleaning.getEarliestCommitToRetain() or cleaning.getLastCompletedCommitTimestamp() or "")

    def _client(self, spark: SparkSession) -> Any:
        jvm = gateway.of(spark)
        hadoop = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(storage).setBasePath(self._location).build()


def _read_commit(timeline: Any, instant: Any) -> Commit | ForeignCommit:
    metadata = timeline.readCommitMetadata(instant)
    text = metadata.getMetadata(METADATA_KEY)
    if text is None:
        return ForeignCommit.UPKEEP if str(metadata.getOperationType()) in _TABLE_SERVICES else ForeignCommit.WRITE
    wrote: dict[tuple[str, ...], int] = {}
    for path, written in dict(metadata.getPartitionToWriteStats()).items():
        size = sum(int(each.getTotalWriteBytes()) for each in written)
        wrote[_values(str(path))] = size
    return Commit(
        _parse_metadata(json.loads(text)), str(instant.requestedTime()), str(instant.getCompletionTime()), wrote
    )


def _with_nullable(json_: Any) -> Any:
    """A schema's JSON with all fields, elements and values nullable."""
    if isinstance(json_, list):
        return [_with_nullable(each) for each in json_]
    if not isinstance(json_, dict):
        return json_
    return {k: v if k == "metadata" else True if k in _NULLS else _with_nullable(v) for k, v in json_.items()}


def _parse_metadata(found: dict[str, Any]) -> CommitMetadata:
    lists = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
    return CommitMetadata(**(found | lists))


def _values(path: str) -> tuple[str, ...]:
    """The values of a partition path such as ``customer_id=ALFKI/order_id=10643``."""
    return tuple(unquote(part.partition("=")[2]) for part in path.split("/") if part)
