"""Upkeep of a Delta table: its small files written together, and those removed that no kept version needs.

Delta finds out by a dozen Spark jobs that a table needs neither. Of most tables the log and a listing tell it before.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from replicator.formats import control
from replicator.formats.delta_log import State

_LOG = "_delta_log/"

_AS_WE_DO = {
    # Delta refuses to remove what is younger than a week: readers that it does not know of may be at it. Here the user
    # has said how long versions are read
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # elsewhere than on S3 Delta commits a version before it and another behind, in which whoever follows the table
    # would look for changes
    "spark.databricks.delta.vacuum.logging.enabled": "false",
}


def may_shrink(state: State | None) -> bool:
    """Whether OPTIMIZE may find something to do: two files in a partition, a file with a deletion vector, or so many
    files that they are not known.
    """
    if state is None or state.files is None:
        return True
    in_each = Counter(file.partition for file in state.files.values())
    return any(count > 1 for count in in_each.values()) or any(file.has_vector for file in state.files.values())


def may_hold_waste(spark: SparkSession, location: str, state: State | None, keep_hours: int) -> bool:
    """Whether VACUUM may find something to remove: a file that is older than this and no live one. A younger one stays,
    whatever it is.
    """
    if state is None or state.files is None:
        return True
    before = (time.time() - keep_hours * 3600) * 1000
    old = (path for path, changed in control.files(spark, location) if changed <= before)
    return any(f"{location}/{path}" not in state.files for path in old if not path.startswith(_LOG))


def optimize(spark: SparkSession, location: str) -> None:
    """Small files of each partition become few; a table without any stays as it is, without a commit."""
    DeltaTable.forPath(spark, location).optimize().executeCompaction()


def vacuum(spark: SparkSession, location: str, keep_hours: int) -> None:
    """Remove files that only versions need which are older than this."""
    with _as_we_do(spark):
        DeltaTable.forPath(spark, location).vacuum(keep_hours)


@contextmanager
def _as_we_do(spark: SparkSession) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in _AS_WE_DO}
    for key, value in _AS_WE_DO.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, found in before.items():
            if found is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, found)
