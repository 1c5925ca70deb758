"""Tables in Delta. Progress is the ``txn`` action of the commit that holds the rows (app id = the input's id).

Silver has deletion vectors; gold has none and no column mapping, so that Athena reads it. Both keep a change data feed
from creation (architecture section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import failpoints, gateway, names
from replicator.errors import StaleWriter, TableMissing
from replicator.formats import control, delta_commit, delta_files, delta_merge, delta_upkeep
from replicator.formats.delta_log import AddedFile, Log
from replicator.formats.delta_merge import SIDES, Merging
from replicator.formats.turns import Turns, in_turn
from replicator.spec import Applied, Arrival, Evolution, Kept, Maintained, Progress, Table
from replicator.transforms import merge
from replicator.transforms.reshape import OURS, reshaped

_LOG = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}
_SILVER = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
_REWRITTEN_BYTES = 8 << 20
"""Up to here a table is written anew rather than merged into."""
_TXN_APP, _TXN_VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"


class DeltaFormat:
    """``TableFormat`` on Delta. One writer per table; on object stores one driver per lake (stack.md 1.2)."""

    def __init__(self, *, rewritten_bytes: int = _REWRITTEN_BYTES) -> None:
        self._logs: dict[str, Log] = {}
        self._rewritten_bytes = rewritten_bytes
        self._turns = Turns()

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or now; of small tables without Delta's planning."""
        snapshot = self._snapshot(spark, table)
        if snapshot is None:
            raise TableMissing(f"table {table.name} does not exist yet", where=table.location)
        is_newest = version in (None, int(snapshot.version()))
        files = self._log(table).plain_files(spark, snapshot) if is_newest else None
        if files is not None:
            return _rows(spark, table, snapshot, files)
        reader = spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(table.location)

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""
        snapshot = self._snapshot(spark, table)
        return None if snapshot is None else int(snapshot.version())

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Sub-folders with a Delta log."""
        return tuple(
            child for child in control.folders(spark, folder) if control.exists(spark, f"{folder}/{child}/_delta_log")
        )

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """Delta's own table id."""
        snapshot = self._snapshot(spark, table)
        return None if snapshot is None else str(snapshot.metadata().id())

    def kept(self, spark: SparkSession, table: Table) -> Kept:
        """From the log, which also tells readers where the files are."""
        snapshot = self._snapshot(spark, table)
        if snapshot is None:
            raise TableMissing(f"table {table.name} does not exist yet", where=table.location)
        parted = tuple(_partitions(snapshot))
        return Kept("delta", int(snapshot.protocol().minReaderVersion()), partition_by=parted)

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes of the newest version, as the log adds up."""
        state = self._log(table).state(spark)
        return 0 if state is None else state.size

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """Distinct keys in the change data feed of (after, upto]; None when it is gone or broken by a new schema."""
        try:
            images = self._images(spark, table, after, upto)
        except PySparkException:  # the log names files that a VACUUM took
            return None
        if images is not None:
            return images.distinct()
        if self._has_lost_files(spark, table, after, upto):
            return None
        feed = spark.read.format("delta").option("readChangeFeed", "true")
        try:
            rows = feed.option("startingVersion", after + 1).option("endingVersion", upto).load(table.location)
        except (PySparkException, Py4JJavaError):
            return None
        return rows.select(*map(names.spark, table.keys)).distinct()

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """From the log's ``add`` actions."""
        commits = self._log(table).commits(spark, after, upto)
        if commits is None:
            return None
        files = (file for commit in commits for file in commit.files if file.is_new)
        return [Arrival(file.partition, file.version, file.size) for file in files]

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """The files of those commits, read as they are: appended tables have no deletion vectors. None where some were
        written together with others and are removed.
        """
        commits = self._log(table).commits(spark, min(after.values()), upto)
        if commits is None:
            return None
        files = [f.path for c in commits for f in c.files if f.is_new and f.version > after.get(f.partition, upto)]
        schema = self.read(spark, table).schema
        if not files:
            return gateway.frame(spark, (), schema)
        try:
            return delta_files.read(spark, table.location, files, schema)
        except PySparkException:
            return None

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows; with a progress that the table has already, do nothing."""
        spark = rows.sparkSession
        before = self.version(spark, table)
        if progress is not None and self._covered(spark, table, progress):
            return Applied(0, 0, 0, before if before is not None else -1)
        self._insert(rows, table, progress, _LOG)
        return self._inserted(spark, table, before)

    @in_turn
    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """MERGE by the rule of ``transforms/merge.py``; the first batch of a table is a plain write."""
        spark = changes.sparkSession
        before = self.version(spark, table)
        if before is None:
            self._insert(changes, table, progress, _SILVER)
            applied = self._inserted(spark, table, before)
            self._describe(spark, table)
            return applied
        self._describe(spark, table)
        if self._covered(spark, table, progress):
            return Applied(0, 0, 0, before)
        snapshot = self._snapshot(spark, table)
        stored = delta_files.schema(snapshot).names
        inserts = {column: SIDES.of_change(column) for column in stored}
        if table.complete:  # the newest change wins whole (debezium.md M6)
            condition, updates = merge.is_newer(SIDES), inserts
        else:
            condition, updates = merge.changes_something(SIDES), merge.joined(stored, table.keys, SIDES)
        return self._merge(table, snapshot, Merging(changes, table.keys, updates, inserts, condition), progress)

    @in_turn
    def put(self, difference: DataFrame, table: Table, progress: Progress) -> Applied:
        """Write exactly this difference; an empty one commits the progress alone."""
        spark = difference.sparkSession
        before = self.version(spark, table)
        upserts = difference.where(F.col("_op") == "upsert").drop("_op")
        if before is None:
            self._insert(upserts, table, progress, _LOG)
            return self._inserted(spark, table, before)
        if self._covered(spark, table, progress):
            return Applied(0, 0, 0, before)
        if difference.isEmpty():
            self._insert(upserts.limit(0), table, progress, _LOG)
            return self._inserted(spark, table, before)
        values = {column: SIDES.of_change(column) for column in upserts.columns}
        is_delete = SIDES.of_change("_op") == "delete"
        merging = Merging(difference, table.keys, values, values, ~is_delete, is_delete, ~is_delete)
        return self._merge(table, self._snapshot(spark, table), merging, progress)

    @in_turn
    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """Add columns by ALTER TABLE; widen and move by rewriting the table in one commit, since this line of Delta
        cannot widen decimals in place.
        """
        rows = self.read(spark, table)
        wanted = reshaped(rows, evolution)
        if any(kind != dict(wanted.dtypes)[column] for column, kind in rows.dtypes):
            writer = wanted.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            writer.partitionBy(*_partitions(self._snapshot(spark, table))).save(table.location)
            return
        last = [column for column in rows.columns if column not in OURS][-1]
        for column, kind in evolution.added:
            if column not in rows.columns:
                spark.sql(
                    f"ALTER TABLE delta.{names.spark(table.location)} "
                    f"ADD COLUMN {names.spark(column)} {kind} AFTER {names.spark(last)}"
                )
                last = column

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """The ``txn`` action of this input."""
        state = self._log(table).state(spark)
        version = None if state is None else state.transactions.get(input)
        return None if version is None else Progress(input, version)

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
        """OPTIMIZE, then VACUUM."""
        if self.version(spark, table) is None:
            raise TableMissing(f"table {table.name} does not exist yet", where=table.location)
        before = control.usage(spark, table.location)
        with self._turns.of(table):
            delta_upkeep.optimize(spark, table.location)
        failpoints.hit("delta.optimized")
        delta_upkeep.vacuum(spark, table.location, keep_hours)
        return Maintained(*before, *control.usage(spark, table.location))

    def _images(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """The keys of rows that commits changed, from the files that hold those; None where Delta's feed must tell."""
        snapshot = self._snapshot(spark, table)
        commits = self._log(table).commits(spark, after, upto)
        if snapshot is None or commits is None or _partitions(snapshot) or not delta_files.are_plain(snapshot):
            return None
        files = [path for commit in commits for path in commit.changed or ()]
        if len(files) > delta_files.FEW or any(commit.changed is None for commit in commits):
            return None
        columns = delta_files.schema(snapshot)
        keys = StructType([columns[key] for key in table.keys])
        return delta_files.read(spark, table.location, files, keys) if files else gateway.frame(spark, (), keys)

    def _has_lost_files(self, spark: SparkSession, table: Table, after: int, upto: int) -> bool:
        """Whether a VACUUM took what the feed needs, which Delta would find out in the middle of a query. The oldest
        files go first.
        """
        commits = self._log(table).commits(spark, after, upto) or ()
        oldest = next((commit for commit in commits if commit.files or commit.removed), None)
        if oldest is None:
            return False
        needed = oldest.changed or [*oldest.removed, *(file.path for file in oldest.files)]
        return not all(control.exists(spark, path) for path in needed)

    def _merge(self, table: Table, snapshot: Any, merging: Merging, progress: Progress) -> Applied:
        """All of a small table is written anew, a large one is left to Delta's MERGE."""
        spark, before = merging.changes.sparkSession, int(snapshot.version())
        files = self._rewritable(spark, table, snapshot)
        if files is None:
            with _transaction(spark, progress):
                delta_merge.statement(DeltaTable.forPath(spark, table.location), merging).execute()
            return self._merged(spark, table, before)
        stored = _rows(spark, table, snapshot, files)
        with gateway.checkpointed(delta_merge.settled(stored, merging)) as settled:
            counts = {row["action"]: row["count"] for row in settled.groupBy("action").count().collect()}
            metrics = {metric: counts.get(action, 0) for action, metric in delta_merge.METRICS.items()}
            replaced = [file.action for file in files]
            delta_commit.rewrite(delta_merge.images(settled), replaced, snapshot, progress, metrics)
        return self._merged(spark, table, before)

    def _rewritable(self, spark: SparkSession, table: Table, snapshot: Any) -> Sequence[AddedFile] | None:
        """The files of a table that is small enough to be written anew, and whose change feed can be."""
        if _partitions(snapshot) or _property(snapshot, "delta.enableChangeDataFeed") != "true":
            return None
        files = self._log(table).plain_files(spark, snapshot)
        return None if files is None or sum(file.size for file in files) > self._rewritten_bytes else files

    def _insert(self, rows: DataFrame, table: Table, progress: Progress | None, properties: Mapping[str, str]) -> None:
        spark = rows.sparkSession
        snapshot = self._snapshot(spark, table)
        if snapshot is not None and progress is not None and _same(rows.schema, delta_files.schema(snapshot)):
            delta_commit.append(rows, snapshot, progress)
            return
        options = dict(properties)
        if progress is not None:
            options |= {"txnAppId": progress.input, "txnVersion": str(progress.version)}
        writer = rows.write.format("delta").mode("append").options(**options)
        (writer.partitionBy(*table.partition_by) if table.partition_by else writer).save(table.location)

    def _describe(self, spark: SparkSession, table: Table) -> None:
        """Set the properties that the table lacks: a writer's options can name none but Delta's own."""
        snapshot = self._snapshot(spark, table) if table.properties else None
        if snapshot is None:
            return
        missing = {name: value for name, value in table.properties if _property(snapshot, name) != value}
        if missing:
            told = ", ".join(f"'{name}' = '{value}'" for name, value in missing.items())
            spark.sql(f"ALTER TABLE delta.{names.spark(table.location)} SET TBLPROPERTIES ({told})")

    def _covered(self, spark: SparkSession, table: Table, progress: Progress) -> bool:
        recorded = self.progress(spark, table, progress.input)
        return recorded is not None and recorded.version >= progress.version

    def _inserted(self, spark: SparkSession, table: Table, before: int | None) -> Applied:
        version, metrics = self._committed(spark, table, before)
        return Applied(metrics.get("numOutputRows", 0), 0, 0, version)

    def _merged(self, spark: SparkSession, table: Table, before: int | None) -> Applied:
        version, metrics = self._committed(spark, table, before)
        inserted, updated, deleted = (metrics.get(f"numTargetRows{w}", 0) for w in ("Inserted", "Updated", "Deleted"))
        return Applied(inserted, updated, deleted, version)

    def _committed(self, spark: SparkSession, table: Table, before: int | None) -> tuple[int, dict[str, int]]:
        """The version and metrics of the commit just made. Delta skips a write it takes for a repetition: that must
        never pass for success (reliability.md section 3, 6).
        """
        version = self.version(spark, table)
        if version is None or (before is not None and version <= before):
            raise StaleWriter(f"the commit to {table.name} left no new version", where=table.location)
        commits = Log(table.location, table.partition_by).commits(spark, version - 1, version)
        return version, commits[0].metrics if commits else {}

    def _log(self, table: Table) -> Log:
        return self._logs.setdefault(table.location, Log(table.location, table.partition_by))

    def _snapshot(self, spark: SparkSession, table: Table) -> Any | None:
        return self._log(table).snapshot(spark)


def _rows(spark: SparkSession, table: Table, snapshot: Any, files: Sequence[AddedFile]) -> DataFrame:
    """The rows of files that alone are the table; Spark puts the columns of partitions behind all others."""
    columns = delta_files.schema(snapshot)
    rows = delta_files.read(spark, table.location, [file.path for file in files], columns)
    return rows.select(*map(names.spark, columns.names)) if _partitions(snapshot) else rows


def _property(snapshot: Any, name: str) -> str | None:
    found = snapshot.metadata().configuration().get(name)
    return str(found.get()) if found.isDefined() else None


def _partitions(snapshot: Any) -> list[str]:
    return [str(column) for column in gateway.each(snapshot.metadata().partitionColumns())]


def _same(rows: StructType, stored: StructType) -> bool:
    """Whether rows have the table's columns, in any order."""
    return {f.name: f.dataType.simpleString() for f in rows} == {f.name: f.dataType.simpleString() for f in stored}


@contextmanager
def _transaction(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """MERGE takes its ``txn`` from the session only: set it for one statement and take it back whatever happens."""
    spark.conf.set(_TXN_APP, progress.input)
    spark.conf.set(_TXN_VERSION, progress.version)
    try:
        yield
    finally:
        spark.conf.unset(_TXN_APP)
        spark.conf.unset(_TXN_VERSION)
