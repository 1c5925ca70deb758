"""Hudi's timeline as values: what each commit of ours was, read by the driver alone, without a Spark job.

Hudi names commits by instants. Ours have a number besides, which rises by one, in the commit's own metadata with
everything that must be true together with the rows: progress, columns, the table's identity. Each commit repeats all of
it, so the newest one tells the table's state although Hudi archives and cleans older ones.
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
from replicator.formats import control, hudi_ordering
from replicator.jvm import gateway
from replicator.spec import Progress, TableDetail

METADATA_KEY = "replicator.commit"
"""Of the metadata of a commit of ours."""

TOKEN_KEY = "replicator.token"  # noqa: S105 - of a lease
"""There as well: the token of the writer that made it (decision 0026)."""

_COMPLETED = re.compile(r"[0-9]+[.](commit|deltacommit|replacecommit)|timeline")
"""The name of the file that completes a commit, in tables of version 6; a later version, which a table becomes when
somebody else writes it, has a folder for them.
"""

_COMPLETION_TIMES = 8
"""The first version of a table that Hudi asks by the times at which commits were completed."""

_TABLE_SERVICES = ("COMPACT", "LOG_COMPACT", "CLUSTER", "ALTER_SCHEMA")
"""What Hudi calls commits that change no row."""

_NULLS = ("nullable", "containsNull", "valueContainsNull")
"""What Spark's JSON of a schema says of NULL."""

RETAINED_COMMITS = 24
"""So many commits back, of any kind, a version can be read; cleaning keeps their files."""


@dataclass(frozen=True)
class CommitMetadata:
    """What a commit says of itself: the table's ``identity``, ``kind`` (COPY_ON_WRITE, MERGE_ON_READ), ``keys`` and
    partition columns, which stay; the number of the ``version``, the ``progress`` by input, the ``columns`` as Spark's
    JSON of a schema, how many rows it ``deleted``, and whether it wrote all of them anew.
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
        """The columns with what is noted about them. Whatever is nested may be NULL: that it could not be in the rows
        of one commit says nothing of later ones, and Spark casts no such value away.
        """
        return StructType.fromJson(_with_nullable(json.loads(self.columns)))

    def following(
        self, rows: StructType, progress: Progress | None, *, deleted: int, rewritten: bool
    ) -> CommitMetadata:
        """What the next commit says, which writes rows of these columns and has come to this progress, if to any."""
        return replace(
            self,
            version=self.version + 1,
            progress={**self.progress, **({} if progress is None else {progress.input: progress.version})},
            columns=rows.json(),
            deleted=deleted,
            rewritten=rewritten,
        )

    def text(self) -> str:
        """For the commit's metadata."""
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True)
class Commit:
    """A completed commit of ours: its ``note``, when it was ``begun`` and ``done`` by Hudi's clock, of which the first
    names it, and what it ``wrote``: bytes by partition (the values of its columns).
    """

    note: CommitMetadata
    begun: str
    done: str
    wrote: Mapping[tuple[str, ...], int] = field(default_factory=dict)


class ForeignCommit(Enum):
    """A commit that is not ours: upkeep, which changes no row, or a write of somebody else's."""

    UPKEEP = 1
    WRITE = 2


class Timeline:
    """The timeline of the table at one location. Commits never change, so those read once are kept."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._known: dict[str, Commit | ForeignCommit] = {}
        self._clean, self._cleaned, self._by_completion = "", "", False

    @property
    def retained(self) -> Sequence[Commit]:
        """Those of what :meth:`commits` found last whose files are all there: the last ``RETAINED_COMMITS``, or fewer
        where somebody else has cleaned the table.
        """
        last = list(self._known.items())[-RETAINED_COMMITS:]
        return [each for begun, each in last if isinstance(each, Commit) and begun >= self._cleaned]

    @property
    def ours(self) -> list[Commit]:
        """Commits of ours that :meth:`commits` found last, the oldest first."""
        return [each for each in self._known.values() if isinstance(each, Commit)]

    @property
    def readable(self) -> Sequence[Commit]:
        """Those whose versions can be read: whose files are all there, and the newest in any case."""
        kept, newest = [*self.retained], self.ours[-1:]
        return kept if kept[-1:] == newest else [*kept, *newest]

    def at(self, version: int) -> Commit | None:
        """The one of these that made this version."""
        return next((each for each in self.readable if each.note.version == version), None)

    def between(self, after: int, upto: int) -> list[Commit] | None:
        """The commits of the versions (after, upto]; None where files of theirs are gone, or somebody else wrote rows
        in between: what was deleted so, nobody tells.
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
        """The times of Hudi's clock behind which ``first`` is the first commit of ours, and up to which is ``last``."""
        before = [each for each in self.ours if each.begun < first.begun]
        if self._by_completion:
            return before[-1].done if before else "000", last.done
        return before[-1].begun if before else "000", last.begun

    def refuse(self) -> None:
        """Raise TableStopped where no commit of ours should come behind those that :meth:`commits` saw last: somebody
        else has written the table; or by this machine's clock, which Hudi names commits by, the newest one is still to
        come, so that one of ours would stand before it and nobody would see it.
        """
        if self._known and not self.ours:
            raise TableStopped(
                "a table of Hudi's lies there that somebody else has written, perhaps with other keys",
                where=self._location,
                mend="Move it away, or give the lake another root: the next run builds the table from bronze.",
            )
        ahead = _parse_utc_instant(max(self._known, default="")) - datetime.now(timezone.utc)
        if ahead > timedelta():
            raise TableStopped(
                f"the table's newest commit lies {ahead.total_seconds():.0f} seconds ahead of this machine's clock",
                where=self._location,
                mend="Nothing was written. Set the clocks of the machines that write the lake, then run again.",
            )

    def is_begun(self, spark: SparkSession) -> bool:
        """Whether it has a completed commit, by the names of its files."""
        return control.has_file_matching(spark, f"{self._location}/.hoodie", _COMPLETED)

    def exists(self, spark: SparkSession) -> bool:
        """Whether there is a table of Hudi's. Where a writer died while it wrote anew what is noted of the table, the
        copy that it had made of that is there, which Hudi reads as well.
        """
        noted = f"{self._location}/.hoodie/hoodie.properties"
        return any(control.exists(spark, place) for place in (noted, f"{noted}.backup"))

    def commits(self, spark: SparkSession) -> Sequence[Commit]:
        """Commits of ours that Hudi has not archived, the oldest first; none if there is no table."""
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

    def order_by_commit(self, spark: SparkSession) -> None:
        """See ``hudi_ordering``."""
        hudi_ordering.order_by_commit(spark, self._client(spark))

    def kept(self, spark: SparkSession, *, merge_on_read: bool) -> TableDetail:
        """How the table lies there, with the paths of its partitions, sorted."""
        client, hudi = self._client(spark), gateway.of(spark).org.apache.hudi.common
        properties = client.getTableConfig()
        version, told = int(properties.getTableVersion().versionCode()), properties.getPartitionFields()
        columns = tuple(map(str, told.get())) if told.isPresent() else ()
        if not columns:  # Hudi names the table's own folder, then
            return TableDetail("hudi", version, merge_on_read)
        context = hudi.engine.HoodieLocalEngineContext(client.getStorageConf())
        options = hudi.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        paths = hudi.fs.FSUtils.getAllPartitionPaths(context, client, options)
        return TableDetail("hudi", version, merge_on_read, columns, tuple(sorted(map(str, paths))))

    def _load_cleaning(self, client: Any) -> None:
        """From which commit on the newest cleaning has left all files."""
        newest = client.getActiveTimeline().getCleanerTimeline().filterCompletedInstants().lastInstant()
        if not newest.isPresent() or self._clean == (begun := str(newest.get().requestedTime())):
            return
        told = client.getActiveTimeline().readCleanMetadata(newest.get())
        self._clean = begun
        self._cleaned = str(told.getEarliestCommitToRetain() or told.getLastCompletedCommitTimestamp() or "")

    def _client(self, spark: SparkSession) -> Any:
        jvm = gateway.of(spark)
        hadoop = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(storage).setBasePath(self._location).build()


def _read_commit(timeline: Any, instant: Any) -> Commit | ForeignCommit:
    metadata = timeline.readCommitMetadata(instant)
    told = metadata.getMetadata(METADATA_KEY)
    if told is None:
        return ForeignCommit.UPKEEP if str(metadata.getOperationType()) in _TABLE_SERVICES else ForeignCommit.WRITE
    wrote: dict[tuple[str, ...], int] = {}
    for path, written in dict(metadata.getPartitionToWriteStats()).items():
        size = sum(int(each.getTotalWriteBytes()) for each in written)
        wrote[_values(str(path))] = size
    return Commit(
        _parse_metadata(json.loads(told)), str(instant.requestedTime()), str(instant.getCompletionTime()), wrote
    )


def parse_instant(spark: SparkSession, text: str) -> datetime:
    """A time by Hudi's clock, which it writes in a zone that it alone knows."""
    times = gateway.of(spark).org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator
    milliseconds = int(times.parseDateFromInstantTime(text).getTime())
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)


def _parse_utc_instant(instant: str) -> datetime:
    """When a commit of this name began, which is in UTC as ``hudi_options`` has it, to the millisecond."""
    return datetime.strptime(f"{instant or '1970010100'}0000000"[:17], "%Y%m%d%H%M%S%f").replace(tzinfo=timezone.utc)


def _with_nullable(told: Any) -> Any:
    """A schema's JSON, in which fields, elements and values may be NULL."""
    if isinstance(told, list):
        return [_with_nullable(each) for each in told]
    if not isinstance(told, dict):
        return told
    return {k: v if k == "metadata" else True if k in _NULLS else _with_nullable(v) for k, v in told.items()}


def _parse_metadata(told: dict[str, Any]) -> CommitMetadata:
    lists = {name: tuple(value) for name, value in told.items() if isinstance(value, list)}
    return CommitMetadata(**(told | lists))


def _values(path: str) -> tuple[str, ...]:
    """Of ``customer_id=ALFKI/order_id=10643``."""
    return tuple(unquote(part.partition("=")[2]) for part in path.split("/") if part)
