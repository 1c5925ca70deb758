"""Tables in Hudi. Progress stands in the metadata of the commit that holds the rows (``hudi_timeline.Note``).

What a row becomes is decided by ``transforms/merge.py`` before Hudi sees it, as for every format: rows arrive joined,
and Hudi keeps what was committed last (``hudi_order``). Its index is global where the key does not hold the partition,
so that a row whose partition changes moves instead of being there twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names, time_travel
from replicator.errors import SchemaRefused, TableMissing
from replicator.formats import control, hudi_incremental, hudi_maintenance, hudi_options, hudi_rows, hudi_write
from replicator.formats.hudi_timeline import RETAINED_COMMITS, Commit, CommitMetadata, Timeline, parse_instant
from replicator.formats.table_locks import TableLocks, with_table_lock
from replicator.jvm import gateway
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail
from replicator.transforms.columns.reshape import apply_evolution


class HudiFormat:
    """``TableFormat`` on Hudi, copy on write or merge on read as a new table says. One writer per table."""

    def __init__(self, *, fence: Fence = UNFENCED) -> None:
        self._timelines: dict[str, Timeline] = {}
        self._turns = TableLocks()
        self._fence = fence

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or now; without Hudi's own columns."""
        timeline = self._timeline(spark, table)
        if not timeline.ours:
            raise TableMissing.of(table)
        newest = timeline.ours[-1]
        commit = newest if version is None else timeline.at(version)
        if commit is None:
            raise TableMissing(f"version {version} of table {table.name} is not kept any more", where=table.location)
        reader = spark.read.format("hudi").options(**hudi_options.READ)
        if commit is not newest:
            reader = reader.option("as.of.instant", commit.begun)
        return hudi_rows.to_table_schema(reader.load(table.location), commit)

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""
        commits = self._commits(spark, table)
        return commits[-1].note.version if commits else None

    def moment(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
        """By when commits were completed, of those whose files are kept."""
        timeline = self._timeline(spark, table)
        if not timeline.ours:
            raise TableMissing.of(table)
        kept = [CommittedVersion(each.note.version, parse_instant(spark, each.done)) for each in timeline.readable]
        why = f"A table in Hudi keeps its last {RETAINED_COMMITS} commits, unless somebody else cleans it."
        return time_travel.select(table, kept, when, why)

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Sub-folders of encoded names with a table of Hudi's that has a commit: a writer that died within its first
        one leaves none.
        """
        children = filter(names.is_encoded, control.list_folders(spark, folder))
        return tuple(child for child in children if Timeline(f"{folder}/{child}").is_begun(spark))

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """A random id, made when the table was."""
        commits = self._commits(spark, table)
        return commits[-1].note.identity if commits else None

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """The instant that Hudi names the commit by."""
        commit = self._timeline(spark, table).at(version)
        return None if commit is None else commit.begun

    def kept(self, spark: SparkSession, table: Table) -> TableDetail:
        """From Hudi's properties of the table, and its own list of partitions."""
        timeline = self._timeline(spark, table)
        if not timeline.ours:
            raise TableMissing.of(table)
        return timeline.kept(spark, merge_on_read=timeline.ours[-1].note.kind == hudi_options.MERGE_ON_READ)

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes that the commits on the timeline wrote: of a table that is rewritten often more than it holds."""
        return sum(sum(commit.wrote.values()) for commit in self._commits(spark, table))

    def count(self, spark: SparkSession, table: Table) -> int:
        """By reading it: the timeline has what was written, not what there is."""
        return self.read(spark, table).count()

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """From what the commits say that they wrote."""
        fresh = self._timeline(spark, table).between(after, upto)
        return None if fresh is None else hudi_incremental.arrivals(fresh)

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:  # noqa: ARG002
        """Never known: each commit writes files anew."""
        return upto

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """By Hudi's incremental query."""
        timeline = self._timeline(spark, table)
        fresh = timeline.between(min(after.values()), upto)
        return None if fresh is None else hudi_incremental.added(spark, table, timeline, fresh, after)

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """By Hudi's incremental query; keys that are gone are those that only the older version has. None where that
        version is gone, or all rows were written anew in between.
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
        """Not told: files have the rows that did not change as well."""
        return None

    @with_table_lock
    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows; with a progress that the table has already, do nothing."""
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
        """The changed rows, joined with those at rest by the rule of ``transforms/merge.py``, in one upsert."""
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
    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:  # noqa: ARG002 - they are written once more
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
        """All rows in one commit; Hudi notes the key and the partitions of a table once and for all."""
        spark = rows.sparkSession
        commits = self._commits(spark, table)
        if not commits:
            return self.append(rows, table, progress)
        last = commits[-1].note
        if _is_applied(commits, progress):
            return Applied(0, 0, 0, last.version)
        if (table.keys, table.partition_by) != (last.keys, last.partition_by):
            raise SchemaRefused(
                "a table in Hudi keeps the key and the partitions that it was made with",
                where=table.name,
                mend="Remove the table's folder: the next run builds it again, and readers find no table until then.",
            )
        with gateway.local_checkpoint(rows) as kept:
            count = kept.count()
            note = self._write(kept, table, hudi_options.OVERWRITE, progress, commits)
        return Applied(count, 0, 0, note.version)

    @with_table_lock
    def drop(self, spark: SparkSession, table: Table) -> None:
        """The folder, and what is remembered of its timeline."""
        control.remove(spark, table.location)
        self._timelines.pop(table.location, None)

    @with_table_lock
    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """All rows anew in one commit."""
        commits = self._commits(spark, table)
        rows = self.read(spark, table)
        wanted = apply_evolution(rows, evolution)
        if wanted.schema != rows.schema:
            self._write(wanted, table, hudi_options.OVERWRITE, None, commits)

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """What the newest commit says about this input."""
        commits = self._commits(spark, table)
        version = commits[-1].note.progress.get(input) if commits else None
        return None if version is None else Progress(input, version)

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """What the newest commit says about all."""
        commits = self._commits(spark, table)
        return dict(commits[-1].note.progress) if commits else {}

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:  # noqa: ARG002
        """Compaction and clustering as Hudi plans them, then cleaning: the files of the last ``RETAINED_COMMITS``
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
        """As it is now."""
        timeline = self._timelines.setdefault(table.location, Timeline(table.location))
        timeline.commits(spark)
        return timeline

    def _commits(self, spark: SparkSession, table: Table) -> Sequence[Commit]:
        return self._timeline(spark, table).ours

    def _read_keys(self, spark: SparkSession, table: Table, rows: DataFrame) -> DataFrame:
        keys = rows.select(*map(names.quote_spark, table.keys))
        return self.read(spark, table).join(keys, list(table.keys), how="left_semi")

    def _put(self, rows: DataFrame, table: Table, progress: Progress, commits: Sequence[Commit]) -> Applied:
        """Rows with their ``_action``: ``insert``, ``update``, ``delete``; NULL: nothing."""
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
