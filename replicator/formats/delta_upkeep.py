"""Upkeep of a Delta table: its small files written together, and those removed that no kept version needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

_AS_WE_DO = {
    # Delta refuses to remove what is younger than a week: readers that it does not know of may be at it. Here the user
    # has said how long versions are read
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # elsewhere than on S3 Delta commits a version before it and another behind, in which whoever follows the table
    # would look for changes
    "spark.databricks.delta.vacuum.logging.enabled": "false",
}


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
