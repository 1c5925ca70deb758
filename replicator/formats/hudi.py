"""``TableFormat`` on Hudi. Progress is in the metadata of the commit that holds the rows
(``hudi_timeline.CommitMetadata``).

As for every format, ``transforms/merge.py`` decides what a row becomes: rows arrive merged, and Hudi keeps the one that
was committed last (``hudi_ordering``). Its index is global where the key does not contain the partition columns, so
that a row whose partition changes is moved instead of duplicated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names, time_travel
from replicator.errors import SchemaRefused, TableMissing
from replicator.formats import (
    control,
    hudi_incremental,
    hudi_instant,
    hudi_maintenance,
    hudi_options,
    hudi_rows,
    hudi_write,
)
from replicator.formats.hudi_timeline import RETAINED_COMMITS, Commit, CommitMetadata, Timeline
from replicator.formats.table_locks import TableLocks, with_table_lock
from replicator.jvm import gateway
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail
from replicator.transforms.columns.reshape import apply_evolution


class HudiFormat:
    """``TableFormat`` on Hudi, copy on write or merge on read as declared for a new table. One writer per table."""

    def __init__(self, *, fence: Fence = UNFENCED) -> None:
        self._timelines: dict[str, Timeline] = {}
        self._turns = TableLocks()
        self._fence = fence

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or the newest; without Hudi's own columns."""
        timeline = self._timeline(spark, table)
        if not timeline.ours:
            raise TableMissing.of(table)
        newest = timeline.ours[-1]
        commit = newest if version is None else timeline.at(version)
        if commit is None:
            raise TableMissing(f"version {version} of table {table.name} is no longer retained", where=table.location)
        reader = spark.read.format("hudi").options(**hudi_options.READ)
        if commit is not newest:
            reader = reader.option("as.of.instant", commit.begun)
        return hudi_rows.to_table_schema(reader.load(table.location), commit)

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""
        commits = self._commits(spark, table)
        return commits[-1].note.version if commits else None

    def version_at(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
        """By the completion times of commits whose files are still retained."""
        timeline = self._timeline(spark, table)
        if not timeline.ours:
            raise TableMissing.of(table)
        kept = [CommittedVersion(each.note.version, hudi_instant.parse(spark, each.done)) for each in timeline.readable]
        why = f"A table in Hudi keeps its last {RETAINED_COMMITS} commits, unless another program cleans it."
        return time_travel.select(table, kept, when, why)

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Sub-folders with encoded names whose timeline has a completed commit: a writer that died during its first
        commit leaves none.
        """
        children = filter(names.is_encoded, control.list_folders(spark, folder))
        return tuple(child for child in children if Timeline(f"{folder}/{child}").is_begun(spark))

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """A random id, assigned when the table is created."""
        commits = self._commits(spark, table)
        return commits[-1].note.identity if commits else None

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """The instant by which Hudi names the commit."""
        commit = self._timeline(spark, table).at(version)
        return None if commit is None else commit.begun

    def detail(self, spark: SparkSession, table: Table) -> TableDetail:
        """From Hudi's table properties and its list of partitions."""
        timeline = self._timeline(spark, table)
        if not timeline.ours:
            raise TableMissing.of(table)
        return timeline.detail(spark, merge_on_read=timeline.ours[-1].note.kind == hudi_options.MERGE_ON_READ)

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes that the commits on the timeline wrote: more than the table holds if it is rewritten often."""
        return sum(sum(commit.wrote.values()) for commit in self._commits(spark, table))

    def count(self, spark: SparkSession, table: Table) -> int:
        """By reading the table: the timeline has what was written, not what is there."""
        return self.read(spark, table).count()

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """From the write statistics of the commits."""
        fresh = self._timeline(spark, table).between(after, upto)
        return None if fresh is None else hudi_incremental.arrivals(fresh)

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:  # noqa: ARG002
        """Never known: each commit rewrites files."""
        return upto

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """By Hudi's incremental query."""
        timeline = self._timeline(spark, table)
        fresh = timeline.between(min(after.values()), upto)
        return None if fresh is None else hudi_incremental.added(spark, table, timeline, fresh, after)

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """By Hudi's incremental query; deleted keys are those that only the older version has. None if that version is
        no longer readable, or all rows were rewritten in between.
        """
        timeline = self._timeline(spark, table)
        fresh = timeline.between(after, upto)
        if fresh is None or any(each.note.rewritten for each in fresh):
            return None
        keys = [F.col(names.quote_spark(key)) for key in table.keys]
        changed = hudi_incremental.read_commits(spark, table, timeline, fresh).select(*keys)
        if any(each.note.deleted for each in fresh):
            if timeline.at(after) is None:
                return None
            gone = self.read(spark, table, after).select(*keys).exceptAll(self.read(spark, table, upto).select(*keys))
            changed = changed.unionByName(gone)
        return changed.distinct()

    def changed_rows(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:  # noqa: ARG002
        """Not known: the files also hold rows that did not change."""
        return None

    @with_table_lock
    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows; do nothing if the table has this progress already."""
        spark = rows.sparkSession
        commits = self._commits(spark, table)
        if progress is not None and _is_applied(commits, progress):
            return Applied(0, 0, 0, commits[-1].note.version)
        with gateway.local_checkpoint(rows) as kept:
            count = kept.count()
            written = hudi_rows.to_table_schema(kept, commits[-1]) if commits else kept
            note = self._write(written, table, hudi_options.INSERT, progress, commits)
        return Applied(count, 0, 0, note.version)

    @with_table_lock
    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """Merge the changes with the stored rows by the rule of ``transforms/merge.py``, and upsert the result."""
        spark = changes.sparkSession
        commits = self._commits(spark, table)
        if not commits:
            return self.append(changes, table, progress)
        if _is_applied(commits, progress):
            return Applied(0, 0, 0, commits[-1].note.version)
        with gateway.local_checkpoint(changes) as kept:
            stored = self._read_keys(spark, table, kept)
            joined = hudi_rows.merge_actions(stored, kept, table.keys)
            return self._put(joined, table, progress, commits)

    @with_table_lock
    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:  # noqa: ARG002 - repeated rows are written again
        """Write exactly this difference; an empty one commits the progress alone."""
        spark = difference.sparkSession
        commits = self._commits(spark, table)
        if not commits:
            return self.append(difference.where(F.col("_op") == "upsert").drop("_op"), table, progress)
        if _is_applied(commits, progress):
            return Applied(0, 0, 0, commits[-1].note.version)
        with gateway.local_checkpoint(difference) as kept:
            return self._put(
                hudi_rows.difference_actions(self._read_keys(spark, table, kept), kept, table.keys),
                table,
                progress,
                commits,
            )

    @with_table_lock
    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """Overwrite all rows in one commit; Hudi fixes a table's key and partition columns at creation."""
        spark = rows.sparkSession
        commits = self._commits(spark, table)
        if not commits:
            return self.append(rows, table, progress)
        last = commits[-1].note
        if _is_applied(commits, progress):
            return Applied(0, 0, 0, last.version)
        if (table.keys, table.partition_by) != (last.keys, last.partition_by):
            raise SchemaRefused(
                "the key and the partitions of a table in Hudi cannot be changed",
                where=table.name,
                fix="Delete the table's folder: the next run rebuilds it, and readers find no table until then.",
            )
        with gateway.local_checkpoint(rows) as kept:
            count = kept.count()
            note = self._write(kept, table, hudi_options.OVERWRITE, progress, commits)
        return Applied(count, 0, 0, note.version)

    @with_table_lock
    def drop(self, spark: SparkSession, table: Table) -> None:
        """Delete the folder and the cached timeline."""
        control.remove(spark, table.location)
        self._timelines.pop(table.location, None)

    @with_table_lock
    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """Rewrite all rows in one commit."""
        commits = self._commits(spark, table)
        rows = self.read(spark, table)
        wanted = apply_evolution(rows, evolution)
        if wanted.schema != rows.schema:
            self._write(wanted, table, hudi_options.OVERWRITE, None, commits)

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """The progress of this input in the newest commit."""
        commits = self._commits(spark, table)
        version = commits[-1].note.progress.get(input) if commits else None
        return None if version is None else Progress(input, version)

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """The progress of all inputs in the newest commit."""
        commits = self._commits(spark, table)
        return dict(commits[-1].note.progress) if commits else {}

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:  # noqa: ARG002
        """Run compaction and clustering as Hudi plans them, then cleaning: the files of the last ``RETAINED_COMMITS``
        commits stay, however old they are.
        """
        commits = self._commits(spark, table)
        if not commits:
            raise TableMissing.of(table)
        before = control.usage(spark, table.location)
        with self._turns.of(table):
            self._fence.check()
            hudi_maintenance.run(spark, table.location, commits[-1].note.kind)
        return Maintained(*before, *control.usage(spark, table.location))

    def _timeline(self, spark: SparkSession, table: Table) -> Timeline:
        """The table's timeline, refreshed."""
        timeline = self._timelines.setdefault(table.location, Timeline(table.location))
        timeline.commits(spark)
        return timeline

    def _commits(self, spark: SparkSession, table: Table) -> Sequence[Commit]:
        return self._timeline(spark, table).ours

    def _read_keys(self, spark: SparkSession, table: Table, rows: DataFrame) -> DataFrame:
        keys = rows.select(*map(names.quote_spark, table.keys))
        return self.read(spark, table).join(keys, list(table.keys), how="left_semi")

    def _put(self, rows: DataFrame, table: Table, progress: Progress, commits: Sequence[Commit]) -> Applied:
        """Write rows by their ``_action``: ``insert``, ``update``, ``delete`` or NULL for none."""
        with gateway.local_checkpoint(rows.where(F.col("_action").isNotNull())) as kept:
            counts = {row["_action"]: row["count"] for row in kept.groupBy("_action").count().collect()}
            deleted = counts.get("delete", 0)
            gone = F.when(F.col("_action") == "delete", F.lit(True)).alias(hudi_write.IS_DELETED)
            written = hudi_rows.to_table_schema(kept, commits[-1], *([gone] if deleted else []))
            note = self._write(written, table, hudi_options.UPSERT, progress, commits, deleted=deleted)
        return Applied(counts.get("insert", 0), counts.get("update", 0), deleted, note.version)

    def _write(
        self,
        rows: DataFrame,
        table: Table,
        operation: str,
        progress: Progress | None,
        commits: Sequence[Commit],
        *,
        deleted: int = 0,
    ) -> CommitMetadata:
        timeline = self._timelines[table.location]
        return hudi_write.write(rows, table, timeline, operation, progress, commits, self._fence, deleted=deleted)


def _is_applied(commits: Sequence[Commit], progress: Progress) -> bool:
    return bool(commits) and commits[-1].note.progress.get(progress.input, -1) >= progress.version
