"""Upkeep of a Delta table: its small files written together, and those removed that no kept version needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def optimize(spark: SparkSession, location: str) -> None:
    """Small files of each partition become few; a table without any stays as it is, without a commit."""
    DeltaTable.forPath(spark, location).optimize().executeCompaction()


def vacuum(spark: SparkSession, location: str, keep_hours: int) -> None:
    """Remove files that only versions need which are older than this."""
    with _any_retention(spark):
        DeltaTable.forPath(spark, location).vacuum(keep_hours)


@contextmanager
def _any_retention(spark: SparkSession) -> Iterator[None]:
    """Delta refuses to remove what is younger than a week: readers that it does not know of may be at it. Here the user
    has said how long versions are read.
    """
    before = spark.conf.get(_RETENTION_CHECK, None)
    spark.conf.set(_RETENTION_CHECK, "false")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_RETENTION_CHECK)
        else:
            spark.conf.set(_RETENTION_CHECK, before)
