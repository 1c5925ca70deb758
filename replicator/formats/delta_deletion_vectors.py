"""Merge by deletion vectors: old rows are marked as deleted, new versions of them go to a new file, in one commit of
Delta's own transaction (performance.md A1, A2, A4; decision 0044). No file is rewritten.

Delta's MERGE reads the table three times (which files, their rows, the marks) and shuffles the rows of every file that
it touches. Here the log tells which files may hold a key, and they are read once, joined with a broadcast of the keys;
if no file may hold one, nothing is read. Both leave the same rows, change feed and counts.

Each batch adds a file. Once there are several small files, a batch rewrites all of their rows into its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType

from replicator import names
from replicator.formats import delta_commit, delta_data_skipping, delta_files, delta_merge
from replicator.formats.delta_merge import SIDES, MergeSpec
from replicator.formats.delta_state import AddedFile
from replicator.jvm import gateway
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Progress
from replicator.transforms import merge

_ONE_FILE_ROWS = 100_000
"""Up to this many changed rows are written as one file, however many tasks produced them."""

_INTERPRETED_ROWS = 100_000
"""More rows than this are read with code generation, however small the batch (decision 0009)."""

_COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}

_ROW_LOCATION = "__place"
"""The column with a stored row's file and its row index in that file."""

_STATS = 5
"""The position of the statistics among the fields of Delta's ``AddFile`` action."""

RESERVED_COLUMNS = frozenset({_ROW_LOCATION, "_metadata"})
"""Column names that this module uses for row locations: it cannot merge into a table with such a column of its own."""

_ROW_LOCATION_TYPE = StructType().add("file", StringType()).add("row", LongType())


@dataclass(frozen=True)
class Target:
    """The newest version of a table: Delta's snapshot and all live files."""

    snapshot: Any
    files: Sequence[AddedFile]


def execute(
    target: Target, merging: MergeSpec, progress: Progress, fence: Fence = UNFENCED
) -> tuple[int, dict[str, int]]:
    """Merge the changes; return the new version and its metrics, named as those of a MERGE."""
    with gateway.checkpoint_and_count(merging.changes, {"all": F.lit(True)}) as (changes, counts):
        count, taken = counts["all"], delta_data_skipping.small_files(target.files)
        columns = delta_files.schema(target.snapshot)
        reached = delta_data_skipping.candidate_files(target.files, columns, merging.keys, changes, count)
        files = [file for file in reached if file not in taken]
        spark = _session_for(changes.sparkSession, [*files, *taken])
        merging = replace(merging, changes=gateway.to_session(changes, spark))
        with delta_commit.begin(spark, target.snapshot, progress) as transaction:
            stored = _read_matched(spark, target.snapshot, files, merging, count)
            if taken:
                nowhere = F.lit(None).cast(_ROW_LOCATION_TYPE)
                stored = stored.unionByName(_rows(spark, target.snapshot, taken, nowhere))
            resolved = delta_merge.resolve_actions(stored, merging, beside=(_ROW_LOCATION,))
            with gateway.checkpoint_and_count(resolved, delta_merge.action_counts()) as (settled, metrics):
                done: list[Any] = []
                if any(metrics.values()):
                    done += [file.action.remove() for file in taken]
                    done += _mark_deleted(transaction, settled, files, metrics)
                    done += _write_files(transaction, settled, metrics, only_new=not taken)
            return delta_commit.commit_merge(spark, transaction, done, progress, metrics, fence), metrics


def _session_for(spark: SparkSession, files: Sequence[AddedFile]) -> SparkSession:
    """A session to read the files: that of a small batch interprets its plans, and many rows need code generation."""
    if sum(file.rows for file in files) <= _INTERPRETED_ROWS:
        return spark
    session = gateway.clone_session(spark)
    for key, value in _COMPILED.items():
        session.conf.set(key, value)
    return session


def _read_matched(
    spark: SparkSession, snapshot: Any, files: Sequence[AddedFile], merging: MergeSpec, count: int
) -> DataFrame:
    """The stored rows whose keys are among the changes', each with its location."""
    columns = delta_files.schema(snapshot)
    if not files:
        return gateway.create_frame(
            spark, (), StructType([*columns, *StructType().add(_ROW_LOCATION, _ROW_LOCATION_TYPE)])
        )
    keys = merging.changes.select(*map(names.quote_spark, merging.keys))
    keys = F.broadcast(keys) if count <= delta_data_skipping.MAX_BROADCAST_KEYS else keys
    place = F.struct(F.col("_metadata.file_path").alias("file"), F.col("_metadata.row_index").alias("row"))
    rows, same = _rows(spark, snapshot, files, place), merge.same_key(merging.keys, SIDES)
    return rows.alias(SIDES.stored).join(keys.alias(SIDES.change), same, "left_semi")


def read(spark: SparkSession, snapshot: Any, files: Sequence[AddedFile]) -> DataFrame:
    """The rows of files, without those that are marked as deleted."""
    jvm = gateway.of(spark)
    found = snapshot.deltaLog().createDataFrame(snapshot, _actions(jvm, files), False, jvm.scala.Option.apply(None))
    return gateway.from_plan(found.queryExecution().analyzed(), spark)


def _rows(spark: SparkSession, snapshot: Any, files: Sequence[AddedFile], place: Column) -> DataFrame:
    """The same, each with its location."""
    columns = delta_files.schema(snapshot).names
    return read(spark, snapshot, files).select(*map(names.quote_spark, columns), place.alias(_ROW_LOCATION))


def _mark_deleted(
    transaction: Any, settled: DataFrame, files: Sequence[AddedFile], metrics: Mapping[str, int]
) -> list[Any]:
    """Delta's actions that hide the rows that are updated or deleted; a file with no other rows is removed."""
    if metrics[delta_merge.METRICS["update"]] + metrics[delta_merge.METRICS["delete"]] == 0:
        return []
    jvm = gateway.of(settled.sparkSession)
    delta, option = jvm.org.apache.spark.sql.delta.commands, jvm.scala.Option
    gone = F.col("action").isin("update", "delete") & F.col(_ROW_LOCATION).isNotNull()
    rows = settled.where(gone).select(f"{_ROW_LOCATION}.*")
    has_vectors = any(file.has_vector for file in files)
    every = jvm.org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral()
    where, which = option.apply(F.col("file")._jc), option.apply(F.col("row")._jc)  # noqa: SLF001
    actions = _actions(jvm, files)
    vectors = delta.DeletionVectorBitmapGenerator.buildRowIndexSetsForFilesMatchingCondition(
        settled.sparkSession._jsparkSession,  # noqa: SLF001
        transaction,
        has_vectors,
        rows._jdf,  # noqa: SLF001
        actions,
        every,
        where,
        which,
    )
    helper = delta.DMLWithDeletionVectorsHelper
    by_name = helper.generateCandidateFileMap(transaction.deltaLog().dataPath(), actions)
    touched = helper.findFilesWithMatchingRows(transaction, by_name, vectors)
    return [action for file in gateway.iterate(touched) for action in _to_actions(file)]


def _to_actions(touched: Any) -> tuple[Any, ...]:
    file = touched.fileLogEntry()
    if touched.isFullyReplaced():
        return (file.remove(),)
    return gateway.to_tuple(_with_loose_bounds(file).removeRows(touched.newDeletionVector(), False, True))


def _with_loose_bounds(file: Any) -> Any:
    """Delta's action for a file with its minimum and maximum marked as loose: they may be of deleted rows. Delta's own
    method for this reads decimals as doubles, which can make the bounds narrower than the values.
    """
    fields = [file.productElement(at) for at in range(file.productArity())]
    fields[_STATS] = delta_data_skipping.loosen_bounds(str(file.stats()))
    return file.copy(*fields)


def _write_files(transaction: Any, settled: DataFrame, metrics: Mapping[str, int], *, only_new: bool) -> list[Any]:
    """Write the new rows and the change feed; return Delta's actions for the files. If all rows are inserts, and the
    file holds ``only_new`` rows, it serves as its own feed.
    """
    count = sum(metrics.values())
    changed = settled.where((F.col("action") != "keep") | F.col(_ROW_LOCATION).isNull())
    changed = changed.coalesce(1) if count <= _ONE_FILE_ROWS else changed
    is_feed = only_new and metrics[delta_merge.METRICS["insert"]] == count
    rows = changed.select("new.*") if is_feed else delta_merge.images(changed)
    return list(gateway.iterate(transaction.writeFiles(rows._jdf)))  # noqa: SLF001


def _actions(jvm: Any, files: Sequence[AddedFile]) -> Any:
    return jvm.PythonUtils.toSeq([file.action for file in files])
