"""Merge by rewriting files, for tables without deletion vectors: the files that hold a row of the changed keys are
rewritten in one commit of Delta's own transaction (decision 0050).

Delta's MERGE shuffles all rows of those files, because the changes are the outer side of its join. Here the changes are
broadcast: the stored rows of the changed keys are looked up first, in the files that may hold one by the log, and
determine the actions and the files to rewrite. Rows keep their order within a file, which therefore still holds a key
range; new rows go to a file of their own, together with the small files once there are many.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from replicator import names
from replicator.formats import delta_commit, delta_data_skipping, delta_files, delta_merge
from replicator.formats.delta_merge import SIDES, MergeSpec
from replicator.formats.delta_state import AddedFile
from replicator.jvm import gateway
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Progress
from replicator.transforms import merge

_INSERTED = delta_merge.METRICS["insert"]
_FILE, _ACTION = "__file", "__done"
"""The columns with the name of a stored row's file, and with the action on it."""

RESERVED_COLUMNS = frozenset({_FILE, _ACTION, "_metadata"})
"""This module cannot merge into a table with such a column of its own."""


@dataclass(frozen=True)
class Target:
    """The newest version of a table: its location, Delta's snapshot and all live files, none with a deletion vector."""

    location: str
    snapshot: Any
    files: Sequence[AddedFile]

    @property
    def columns(self) -> StructType:
        """The table's columns."""
        return delta_files.schema(self.snapshot)


def execute(
    target: Target, merging: MergeSpec, progress: Progress, fence: Fence = UNFENCED
) -> tuple[int, dict[str, int]]:
    """Merge the changes; return the new version and its metrics, named as those of a MERGE."""
    with gateway.checkpoint_and_count(merging.changes, {"all": F.lit(True)}) as (changes, counts):
        merging, is_near = replace(merging, changes=changes), counts["all"] <= delta_data_skipping.MAX_BROADCAST_KEYS
        files = target.files
        if len(files) > 1:
            files = delta_data_skipping.candidate_files(files, target.columns, merging.keys, changes, counts["all"])
        hit = delta_merge.resolve_actions(
            _read_matched(target, merging, files, is_near=is_near), merging, beside=(_FILE,)
        )
        with gateway.checkpoint_and_count(hit, delta_merge.action_counts()) as (settled, metrics):
            small = delta_data_skipping.small_files(target.files)
            apart = [file for file in _touched_files(files, settled, metrics) if file not in small]
            if apart or small or metrics[_INSERTED] < sum(metrics.values()):
                images = _images(target, apart, small, settled, merging.keys, is_near=is_near)
            else:  # a file of inserted rows only serves as its own feed
                images = settled.where(F.col("action") == "insert").select("new.*").coalesce(1)
            gone = [file.action for file in (*apart, *small)]
            return delta_commit.rewrite(images, gone, target.snapshot, progress, metrics, fence), metrics


def _read_matched(target: Target, merging: MergeSpec, files: Sequence[AddedFile], *, is_near: bool) -> DataFrame:
    """The stored rows whose keys are among the changes', each with its file's name."""
    spark = merging.changes.sparkSession
    if not files:
        return gateway.create_frame(spark, (), StructType([*target.columns, StructField(_FILE, StringType())]))
    keys = merging.changes.select(*map(names.quote_spark, merging.keys))
    rows = _rows(spark, target, files, F.col("_metadata.file_name").alias(_FILE)).alias(SIDES.stored)
    keys = (F.broadcast(keys) if is_near else keys).alias(SIDES.change)
    return rows.join(keys, merge.same_key(merging.keys, SIDES), "left_semi")


def _touched_files(files: Sequence[AddedFile], settled: DataFrame, metrics: Mapping[str, int]) -> Sequence[AddedFile]:
    """The files with a row that is updated or deleted."""
    if metrics[_INSERTED] == sum(metrics.values()):
        return ()
    rows = settled.where(F.col("action").isin("update", "delete")).select(_FILE).distinct().collect()
    found = {row[_FILE] for row in rows}
    return [file for file in files if file.name in found]


def _images(
    target: Target,
    apart: Sequence[AddedFile],
    small: Sequence[AddedFile],
    settled: DataFrame,
    keys: Sequence[str],
    *,
    is_near: bool,
) -> DataFrame:
    """The new rows of those files, with inserted rows and those of small files in one file, and the rows of the change
    feed, which have a ``_change_type`` (see ``delta_merge.images``).
    """
    spark, changed = settled.sparkSession, settled.where(F.col("action") != "keep")
    feed = delta_merge.images(changed).where(F.col("_change_type").isNotNull())
    one = changed.where(F.col("action") == "insert").select("new.*", _no_change()).unionByName(feed)
    done = changed.where(F.col("action") != "insert").select(F.struct("action", "old", "new").alias(_ACTION))
    done = F.broadcast(done) if is_near else done
    if small:
        one = _apply_actions(_rows(spark, target, small), done, keys).unionByName(one)
    one = one.coalesce(1)
    return _apply_actions(_rows(spark, target, apart), done, keys).unionByName(one) if apart else one


def _apply_actions(rows: DataFrame, done: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Apply updates and deletes to the rows of files, keeping their order."""
    action, old, new = (F.col(f"{_ACTION}.{part}") for part in ("action", "old", "new"))
    is_same = reduce(operator.and_, [F.col(names.quote_spark(key)) == old.getField(key) for key in keys])
    found = rows.join(done, is_same, "left").where(action.isNull() | (action == "update"))
    values = [
        F.when(action.isNull(), F.col(names.quote_spark(c))).otherwise(new.getField(c)).alias(c) for c in rows.columns
    ]
    return found.select(*values, _no_change())


def _no_change() -> Column:
    return F.lit(None).cast("string").alias("_change_type")


def _rows(spark: SparkSession, target: Target, files: Sequence[AddedFile], *more: Column) -> DataFrame:
    rows = delta_files.read(spark, target.location, [file.path for file in files], target.columns)
    return rows.select(*map(names.quote_spark, target.columns.names), *more)
