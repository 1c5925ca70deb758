"""Tables in Hudi. Progress stands in the metadata of the commit that holds the rows (``hudi_timeline.Note``).

What a row becomes is decided by ``transforms/merge.py`` before Hudi sees it, as for every format: rows arrive joined,
and Hudi's own merging by ``_seq`` is a second guard (debezium.md M8). Its index is global where the key does not hold
the partition, so that a row whose partition changes moves instead of being there twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import gateway, names
from replicator.errors import StaleWriter, TableMissing, TableStopped
from replicator.formats import control, hudi_options
from replicator.formats.hudi_timeline import KEY, RETAINED, Commit, Note, Timeline
from replicator.spec import Applied, Arrival, Evolution, Kept, Progress, Table
from replicator.transforms import merge
from replicator.transforms.reshape import reshaped

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
_GONE = "_hoodie_is_deleted"


class HudiFormat:
    """``TableFormat`` on Hudi, copy on write or merge on read as a new table says. One writer per table."""

    def __init__(self) -> None:
        self._timelines: dict[str, Timeline] = {}

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or now; without Hudi's own columns."""
        commits = self._commits(spark, table)
        if not commits:
            raise TableMissing(f"table {table.name} does not exist yet", where=table.location)
        commit = commits[-1] if version is None else _at(commits, version)
        if commit is None:
            raise TableMissing(f"version {version} of table {table.name} is not kept any more", where=table.location)
        reader = spark.read.format("hudi")
        if commit is not commits[-1]:
            reader = reader.option("as.of.instant", commit.begun)
        return _shaped(reader.load(table.location), commit)

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""
        commits = self._commits(spark, table)
        return commits[-1].note.version if commits else None

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Sub-folders with a table of Hudi's."""
        children = control.folders(spark, folder)
        return tuple(child for child in children if Timeline(f"{folder}/{child}").exists(spark))

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """A random id, made when the table was."""
        commits = self._commits(spark, table)
        return commits[-1].note.identity if commits else None

    def kept(self, spark: SparkSession, table: Table) -> Kept:
        """From Hudi's properties of the table, and its own list of partitions."""
        commits = self._commits(spark, table)
        if not commits:
            raise TableMissing(f"table {table.name} does not exist yet", where=table.location)
        return self._timelines[table.location].kept(spark, merge_on_read=commits[-1].note.kind == MERGE_ON_READ)

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes that the commits on the timeline wrote: of a table that is rewritten often more than it holds."""
        return sum(sum(commit.wrote.values()) for commit in self._commits(spark, table))

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """From what the commits say that they wrote."""
        commits = _between(self._commits(spark, table), after, upto)
        if commits is None:
            return None
        return [Arrival(part, each.note.version, size) for each in commits for part, size in each.wrote.items()]

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """By Hudi's incremental query."""
        commits = self._commits(spark, table)
        lowest = min(after.values())
        fresh = _between(commits, lowest, upto)
        if fresh is None:
            return None
        rows = self._incremental(spark, table, commits, fresh)
        wanted = F.lit(False)
        for part, version in after.items():
            same = F.lit(True)
            for column, value in zip(table.partition_by, part, strict=True):
                same = same & (F.col(names.spark(column)) == value)
            begun = [each.begun for each in fresh if each.note.version > version]
            wanted = wanted | (same & F.col("_hoodie_commit_time").isin(*begun))
        return _shaped(rows.where(wanted), commits[-1])

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """By Hudi's incremental query; keys that are gone are those that only the older version has. None where that
        version is gone, or all rows were written anew in between.
        """
        commits = self._commits(spark, table)
        fresh = _between(commits, after, upto)
        if fresh is None or any(each.note.rewritten for each in fresh):
            return None
        keys = [F.col(names.spark(key)) for key in table.keys]
        changed = self._incremental(spark, table, commits, fresh).select(*keys)
        if any(each.note.deleted for each in fresh):
            if _at(commits, after) is None:
                return None
            gone = self.read(spark, table, after).select(*keys).exceptAll(self.read(spark, table, upto).select(*keys))
            changed = changed.unionByName(gone)
        return changed.distinct()

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows; with a progress that the table has already, do nothing."""
        spark = rows.sparkSession
        commits = self._commits(spark, table)
        if progress is not None and _covers(commits, progress):
            return Applied(0, 0, 0, commits[-1].note.version)
        with gateway.checkpointed(rows) as kept:
            count = kept.count()
            note = self._write(_in_order(kept, commits), table, hudi_options.INSERT, progress, commits)
        return Applied(count, 0, 0, note.version)

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """The changed rows, joined with those at rest by the rule of ``transforms/merge.py``, in one upsert."""
        spark = changes.sparkSession
        commits = self._commits(spark, table)
        if not commits:
            return self.append(changes, table, progress)
        if _covers(commits, progress):
            return Applied(0, 0, 0, commits[-1].note.version)
        with gateway.checkpointed(changes) as kept:
            stored = self._of_keys(spark, table, kept)
            joined = _met(stored, kept, table.keys)
            return self._put(joined, table, progress, commits)

    def put(self, difference: DataFrame, table: Table, progress: Progress) -> Applied:
        """Write exactly this difference; an empty one commits the progress alone."""
        spark = difference.sparkSession
        commits = self._commits(spark, table)
        if not commits:
            return self.append(difference.where(F.col("_op") == "upsert").drop("_op"), table, progress)
        if _covers(commits, progress):
            return Applied(0, 0, 0, commits[-1].note.version)
        with gateway.checkpointed(difference) as kept:
            there = self._of_keys(spark, table, kept).select(*map(names.spark, table.keys), F.lit(True).alias("_there"))
            told = kept.join(there, list(table.keys), how="left")
            action = (
                F.when(F.col("_op") == "upsert", F.when(F.col("_there"), F.lit("update")).otherwise("insert"))
                .when(F.col("_there"), F.lit("delete"))
                .alias("_action")
            )
            return self._put(told.withColumn("_action", action).drop("_op", "_there"), table, progress, commits)

    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """All rows anew in one commit."""
        commits = self._commits(spark, table)
        rows = self.read(spark, table)
        wanted = reshaped(rows, evolution)
        if wanted.schema != rows.schema:
            self._write(wanted, table, hudi_options.OVERWRITE, None, commits)

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """What the newest commit says about this input."""
        commits = self._commits(spark, table)
        version = commits[-1].note.progress.get(input) if commits else None
        return None if version is None else Progress(input, version)

    def _commits(self, spark: SparkSession, table: Table) -> Sequence[Commit]:
        return self._timelines.setdefault(table.location, Timeline(table.location)).commits(spark)

    def _of_keys(self, spark: SparkSession, table: Table, rows: DataFrame) -> DataFrame:
        keys = rows.select(*map(names.spark, table.keys))
        return self.read(spark, table).join(keys, list(table.keys), how="left_semi")

    def _incremental(
        self, spark: SparkSession, table: Table, commits: Sequence[Commit], fresh: Sequence[Commit]
    ) -> DataFrame:
        """What these commits wrote, with Hudi's columns."""
        if not fresh:
            return spark.read.format("hudi").load(table.location).limit(0)
        at = commits.index(fresh[0])
        begin = commits[at - 1].completed if at else "000"
        reader = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
        reader = reader.option("hoodie.datasource.read.begin.instanttime", begin)
        return reader.option("hoodie.datasource.read.end.instanttime", fresh[-1].completed).load(table.location)

    def _put(self, rows: DataFrame, table: Table, progress: Progress, commits: Sequence[Commit]) -> Applied:
        """Rows with their ``_action``: ``insert``, ``update``, ``delete``; NULL: nothing."""
        with gateway.checkpointed(rows.where(F.col("_action").isNotNull())) as kept:
            counts = {row["_action"]: row["count"] for row in kept.groupBy("_action").count().collect()}
            deleted = counts.get("delete", 0)
            gone = F.when(F.col("_action") == "delete", F.lit(True)).alias(_GONE)
            written = _in_order(kept, commits, *([gone] if deleted else []))
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
    ) -> Note:
        """One commit. Raises StaleWriter when another writer came between, TableStopped where the table is not ours."""
        kind = MERGE_ON_READ if table.merge_on_read else COPY_ON_WRITE
        last = commits[-1].note if commits else Note(str(uuid4()), kind, -1, {}, "")
        moved = {} if progress is None else {progress.input: progress.version}
        columns = rows.drop(_GONE).schema.json()
        note = Note(
            last.identity,
            last.kind,
            last.version + 1,
            {**last.progress, **moved},
            columns,
            deleted,
            rewritten=operation == hudi_options.OVERWRITE,
        )
        if list(self._commits(rows.sparkSession, table)[-1:]) != list(commits[-1:]):
            raise StaleWriter("another writer has changed the table meanwhile", where=table.name)
        if self._timelines[table.location].is_foreign:
            raise TableStopped(
                "a table of Hudi's lies there that somebody else has written, perhaps with other keys",
                where=table.location,
                mend="Move it away, or give the lake another root: the next run builds the table from bronze.",
            )
        options = hudi_options.write(table, rows.columns, last.kind, operation) | {KEY: note.text()}
        rows.write.format("hudi").options(**options).mode("append").save(table.location)
        return note


def _at(commits: Sequence[Commit], version: int) -> Commit | None:
    """The commit of a version whose files are still there."""
    return next((commit for commit in commits[-RETAINED:] if commit.note.version == version), None)


def _between(commits: Sequence[Commit], after: int, upto: int) -> list[Commit] | None:
    """The commits of (after, upto]; None when some of them are gone."""
    found = [commit for commit in commits[-RETAINED:] if after < commit.note.version <= upto]
    return found if len(found) == upto - after else None


def _covers(commits: Sequence[Commit], progress: Progress) -> bool:
    return bool(commits) and commits[-1].note.progress.get(progress.input, -1) >= progress.version


def _shaped(rows: DataFrame, commit: Commit) -> DataFrame:
    """The columns that the commit names, in their order, with what is noted about them."""
    return rows.select(
        *[F.col(names.spark(field.name)).alias(field.name, metadata=field.metadata) for field in commit.note.schema]
    )


def _in_order(rows: DataFrame, commits: Sequence[Commit], *more: Column) -> DataFrame:
    """Rows in the columns of the table."""
    if not commits:
        return rows
    return rows.select(
        *[
            F.col(names.spark(field.name)).cast(field.dataType).alias(field.name, metadata=field.metadata)
            for field in commits[-1].note.schema
        ],
        *more,
    )


def _met(stored: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Changes joined with the rows at rest, one row per key that changes, with its ``_action``."""
    sides = merge.Sides()
    both = changes.alias(sides.change).join(stored.alias(sides.stored), merge.same_key(keys, sides), how="left")
    is_new = sides.of_stored("_seq").isNull()
    action = F.when(is_new, F.lit("insert")).when(merge.changes_something(sides), F.lit("update"))
    result = merge.joined(stored.columns, keys, sides)

    def pick(column: str) -> Column:
        change = sides.of_change(column)
        return change if column in keys else F.when(is_new, change).otherwise(result[column])

    return both.select(*[pick(column).alias(column) for column in stored.columns], action.alias("_action"))
