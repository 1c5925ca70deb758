"""``TableFormat`` on Delta Lake. Progress is the ``txn`` action of the commit that holds the rows (app id = the
input's id).

Silver uses deletion vectors. Gold uses none unless a model asks for them, and no column mapping, so that Athena can
read it. Both have the change data feed enabled from creation (architecture section 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import failpoints, names
from replicator.errors import TableMissing
from replicator.formats import (
    control,
    delta_appends,
    delta_cdf,
    delta_commit,
    delta_deletion_vectors,
    delta_evolve,
    delta_files,
    delta_log,
    delta_maintenance,
    delta_merge_strategies,
    delta_properties,
    delta_time_travel,
    delta_write,
)
from replicator.formats.delta_log import Log, partition_columns
from replicator.formats.delta_merge import SIDES, MergeSpec
from replicator.formats.delta_merge_strategies import DEFAULT_THRESHOLDS, MergeThresholds
from replicator.formats.delta_properties import WITH_FEED, WITH_VECTORS
from replicator.formats.table_locks import TableLocks, with_table_lock
from replicator.jvm import gateway
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail
from replicator.transforms import merge
from replicator.transforms.columns.reshape import apply_evolution
from replicator.transforms.comparison.comparable import is_different


class DeltaFormat:
    """``TableFormat`` on Delta. One writer per table; on object stores one driver per lake (stack.md 1.2)."""

    def __init__(self, thresholds: MergeThresholds = DEFAULT_THRESHOLDS, *, fence: Fence = UNFENCED) -> None:
        self._logs: dict[str, Log] = {}
        self._turns = TableLocks()
        self._thresholds, self._fence = thresholds, fence

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or the newest; small tables are read without Delta's
        planning.
        """
        snapshot = self._snapshot(spark, table)
        if snapshot is None:
            raise TableMissing.of(table)
        is_newest = version in (None, int(snapshot.version()))
        rows = self._read_small(spark, table, snapshot) if is_newest else None
        if rows is not None:
            return rows
        reader = spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(table.location)

    def version(self, spark: SparkSession, table: Table) -> int | None:
        """The newest version, None if the table is missing."""
        snapshot = self._snapshot(spark, table)
        return None if snapshot is None else int(snapshot.version())

    def version_at(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
        """By the modification times of the log's files, among versions whose files are still retained."""
        if self.version(spark, table) is None:
            raise TableMissing.of(table)
        return delta_time_travel.resolve_version(spark, table, when)

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:
        """Sub-folders with encoded names whose log has a commit: a writer that died during its first commit leaves an
        empty log.
        """
        children = filter(names.is_encoded, control.list_folders(spark, folder))
        return tuple(child for child in children if delta_log.has_commits(spark, f"{folder}/{child}"))

    def identity(self, spark: SparkSession, table: Table) -> str | None:
        """Delta's own table id."""
        snapshot = self._snapshot(spark, table)
        return None if snapshot is None else str(snapshot.metadata().id())

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:
        """The transaction id from the commit's file, or its time where another writer recorded no id."""
        return self._log(table).commit_id(spark, version)

    def detail(self, spark: SparkSession, table: Table) -> TableDetail:
        """Protocol and partition columns, from the log."""
        snapshot = self._snapshot(spark, table)
        if snapshot is None:
            raise TableMissing.of(table)
        return TableDetail(
            "delta", int(snapshot.protocol().minReaderVersion()), partition_by=partition_columns(snapshot)
        )

    def size(self, spark: SparkSession, table: Table) -> int:
        """Bytes of the newest version, summed from the log."""
        state = self._log(table).state(spark)
        return 0 if state is None else state.size

    def count(self, spark: SparkSession, table: Table) -> int:
        """From the log if it has a row count for every file, otherwise by reading the table."""
        snapshot = self._snapshot(spark, table)
        files = None if snapshot is None else self._log(table).live_files(spark, snapshot)
        if files is None or not all(file.has_row_count for file in files):
            return self.read(spark, table).count()
        return sum(file.rows - file.marked for file in files)

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """From the files of those commits, or from Delta's change data feed; None if a schema change broke that too."""
        return delta_cdf.changed_keys(spark, table, self._log(table), after, upto)

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:
        """From the log's ``add`` actions."""
        return delta_appends.arrivals(spark, self._log(table), after, upto)

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:
        """By the log's ``remove`` actions."""
        return delta_appends.whole_from(spark, self._log(table), after, upto)

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """From the files of those commits; None also if some were compacted and their originals removed."""
        return delta_appends.added(spark, table, self._log(table), after, upto)

    def changed_rows(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """From the change feed files of a single commit: those of several commits may hold a key more than once."""
        return delta_cdf.changed_rows(spark, table, self._log(table), after, upto)

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows; do nothing if the table has this progress already."""
        spark = rows.sparkSession
        snapshot = self._snapshot(spark, table) if progress is None else self._writable_snapshot(spark, table)
        if snapshot is not None and progress is not None and self._is_applied(spark, table, snapshot, progress):
            return Applied(0, 0, 0, int(snapshot.version()))
        return self._insert(rows, table, progress, WITH_FEED)

    @with_table_lock
    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """Merge by the rule of ``transforms/merge.py``; the first batch of a table is a plain write."""
        spark = changes.sparkSession
        snapshot: Any = self._writable_snapshot(spark, table)
        if snapshot is None:
            applied = self._insert(delta_write.sort_by_key(changes, table), table, progress, WITH_VECTORS)
            self._with_properties(spark, table, dict(table.properties))
            return applied
        if table.properties:
            snapshot = self._with_properties(spark, table, dict(table.properties))
        if self._is_applied(spark, table, snapshot, progress):
            return Applied(0, 0, 0, int(snapshot.version()))
        stored = delta_files.schema(snapshot).names
        inserts = {column: SIDES.of_change(column) for column in stored}
        if table.complete:  # the newest change wins as a whole (debezium.md M6)
            condition, updates = merge.is_newer(SIDES), inserts
        else:
            condition, updates = merge.has_effect(SIDES), merge.merged_columns(stored, table.keys, SIDES)
        return self._merge(table, snapshot, MergeSpec(changes, table.keys, updates, inserts, condition), progress)

    @with_table_lock
    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:
        """Write exactly this difference; with ``repeats`` only the rows that differ from the stored ones. An empty
        difference commits the progress alone.
        """
        spark = difference.sparkSession
        snapshot = self._writable_snapshot(spark, table)
        upserts = difference.where(F.col("_op") == "upsert").drop("_op")
        if snapshot is None:
            return self._insert(delta_write.sort_by_key(upserts, table), table, progress, _gold(table))
        if self._is_applied(spark, table, snapshot, progress):
            return Applied(0, 0, 0, int(snapshot.version()))
        if difference.isEmpty():
            return self._insert(upserts.limit(0), table, progress, WITH_FEED)
        if table.deletion_vectors not in (None, delta_properties.has_vectors(snapshot)):
            snapshot = self._with_properties(spark, table, _gold(table))
        values = {column: SIDES.of_change(column) for column in upserts.columns}
        is_delete = SIDES.of_change("_op") == "delete"
        is_update = ~is_delete
        if repeats:
            is_update &= is_different(upserts, values, SIDES.of_stored, SIDES.of_change)
        merging = MergeSpec(difference, table.keys, values, values, is_update, is_delete, ~is_delete)
        return self._merge(table, snapshot, merging, progress)

    @with_table_lock
    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """Overwrite rows, columns and partitioning."""
        spark = rows.sparkSession
        snapshot = self._writable_snapshot(spark, table)
        if snapshot is None:
            return self._insert(rows, table, progress, _gold(table))
        if self._is_applied(spark, table, snapshot, progress):
            return Applied(0, 0, 0, int(snapshot.version()))
        before = int(self._with_features(spark, table, rows.schema, snapshot).version())
        self._logs.pop(table.location, None)  # it caches the partition columns
        return delta_write.overwrite(rows, table, before, progress, self._fence)

    @with_table_lock
    def drop(self, spark: SparkSession, table: Table) -> None:
        """Delete the folder and the cached state of its log."""
        control.remove(spark, table.location)
        self._logs.pop(table.location, None)
        jvm = gateway.of(spark)
        place = jvm.org.apache.hadoop.fs.Path(table.location)
        jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(spark._jsparkSession, place)  # noqa: SLF001

    @with_table_lock
    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """Add columns by ALTER TABLE; widen and move columns by rewriting the table in one commit, since the supported
        Delta versions cannot widen decimals in place.
        """
        rows = self.read(spark, table)
        wanted = apply_evolution(rows, evolution)
        snapshot = self._with_features(spark, table, wanted.schema, self._snapshot(spark, table))
        if delta_evolve.changes_types(rows, wanted):
            delta_evolve.rewrite(wanted, table, partition_columns(snapshot), self._fence)
        else:
            delta_evolve.add(spark, table, rows.columns, evolution, self._fence)

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002
        """The ``txn`` action of this input, as of the rows: a RESTORE takes it back with them."""
        state = self._log(table).state(spark)
        version = None if state is None else state.transactions.get(input)
        return None if version is None else Progress(input, version)

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:
        """The ``txn`` actions of all inputs."""
        state = self._log(table).state(spark)
        return {} if state is None else dict(state.transactions)

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
        """Run OPTIMIZE, then VACUUM, each only if it may have something to do; then clean the same versions from the
        log.
        """
        log = self._log(table)
        snapshot = self._snapshot(spark, table)
        if snapshot is None:
            raise TableMissing.of(table)
        before = control.usage(spark, table.location)
        in_order = delta_properties.is_ordered_by_key(snapshot)
        with self._turns.of(table):
            delta_maintenance.compact(spark, table.location, log.state(spark), self._fence, in_order=in_order)
        failpoints.hit("delta.optimized")
        self._fence.check()
        with self._turns.of(table):
            state = log.state(spark)
        delta_maintenance.clean(spark, table.location, snapshot, state, keep_hours)
        return Maintained(*before, *control.usage(spark, table.location))

    def _read_small(self, spark: SparkSession, table: Table, snapshot: Any) -> DataFrame | None:
        """All rows of a table of few files, without Delta's file listing; None if there are more, or the log does not
        tell.
        """
        log = self._log(table)
        plain = log.plain_files(spark, snapshot)
        if plain is not None:
            paths = [file.path for file in plain]
            return delta_files.read_table(spark, table.location, snapshot, paths, parted=bool(log.partition_by(spark)))
        marked = log.live_files(spark, snapshot)
        if not marked or len(marked) > delta_files.MAX_DIRECT_FILES or log.partition_by(spark):
            return None
        return delta_deletion_vectors.read(spark, snapshot, marked)

    def _with_properties(self, spark: SparkSession, table: Table, properties: Mapping[str, str]) -> Any | None:
        """Set the properties that are missing; return the newest snapshot."""
        delta_properties.set_missing(spark, table, properties, self._log(table), self._fence)
        return self._snapshot(spark, table)

    def _with_features(self, spark: SparkSession, table: Table, wanted: StructType, snapshot: Any) -> Any:
        """Enable the table features that these columns need; return the newest snapshot."""
        is_other = delta_properties.enable_features(spark, table, wanted, snapshot, self._fence)
        return self._snapshot(spark, table) if is_other else snapshot

    def _writable_snapshot(self, spark: SparkSession, table: Table) -> Any | None:
        """The newest snapshot, ready to write on. After a RESTORE the restored progress is committed first, otherwise
        Delta would skip the batches that are applied again.
        """
        log, snapshot = self._log(table), self._snapshot(spark, table)
        state = None if snapshot is None else log.at(spark, snapshot)
        if state is None or not state.is_restored:
            return snapshot
        delta_commit.commit_progress(spark, snapshot, state.transactions, self._fence)
        return self._snapshot(spark, table)

    def _is_applied(self, spark: SparkSession, table: Table, snapshot: Any, progress: Progress) -> bool:
        recorded = self._log(table).at(spark, snapshot).transactions.get(progress.input)
        return recorded is not None and recorded >= progress.version

    def _insert(
        self, rows: DataFrame, table: Table, progress: Progress | None, properties: Mapping[str, str]
    ) -> Applied:
        return delta_write.insert(rows, table, self._log(table), progress, properties, self._fence)

    def _merge(self, table: Table, snapshot: Any, merging: MergeSpec, progress: Progress) -> Applied:
        return delta_merge_strategies.merge(
            table, self._log(table), snapshot, merging, progress, self._thresholds, self._fence
        )

    def _log(self, table: Table) -> Log:
        return self._logs.setdefault(table.location, Log(table.location))

    def _snapshot(self, spark: SparkSession, table: Table) -> Any | None:
        return self._log(table).snapshot(spark)


def _gold(table: Table) -> Mapping[str, str]:
    """The properties of a gold table, as created by ``put`` and ``replace``."""
    return WITH_VECTORS if table.deletion_vectors else WITH_FEED
