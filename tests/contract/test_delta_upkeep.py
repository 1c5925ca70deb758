"""Upkeep asks Delta for nothing that a table does not need."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from replicator.formats.delta import DeltaFormat
from replicator.spec import Maintained, Progress, Table
from replicator.transforms import merge
from tests.builders import made

pytestmark = pytest.mark.spark

WEEK = 168
LONG_AGO = 1_700_000_000


def jobs(spark: SparkSession, work: Callable[[], Maintained]) -> tuple[int, Maintained]:
    """How many jobs of Spark's some work started, and what came of it."""
    context: Any = spark.sparkContext
    group = uuid4().hex
    context.setJobGroup(group, "upkeep")
    try:
        done = work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return len(context.statusTracker().getJobIdsForGroup(group)), done


def written(spark: SparkSession, format_: DeltaFormat, folder: Path) -> Table:
    """A table in three versions, each of one file."""
    table = Table("t", str(folder), ("k",))
    for version in range(3):
        rows = made(spark, [(1, f"{version}", "upsert"), (2, "b", "upsert")], "k INT, v STRING, _op STRING")
        format_.put(rows, table, Progress("model", version))
    return table


def test_a_table_with_nothing_to_do_costs_no_job(spark: SparkSession, tmp_path: Path) -> None:
    """One file per partition and nothing old but that: Delta is not asked, wherever the table lies."""
    format_ = DeltaFormat()
    table = written(spark, format_, tmp_path / "a b%20{c,d}[1]*")
    assert jobs(spark, lambda: format_.maintain(spark, table, WEEK)) == (
        0,
        Maintained(3, *[_bytes(table), 3, _bytes(table)]),
    )
    count, done = jobs(spark, lambda: format_.maintain(spark, table, 0))
    assert count > 0
    assert (done.files_before, done.files) == (3, 1)
    assert jobs(spark, lambda: format_.maintain(spark, table, 0))[0] == 0
    assert jobs(spark, lambda: DeltaFormat().maintain(spark, table, WEEK))[0] == 0
    assert sorted(map(tuple, spark.read.format("delta").load(table.location).collect())) == [(1, "2"), (2, "b")]


def test_what_a_writer_left_that_died_goes_when_it_is_old(spark: SparkSession, tmp_path: Path) -> None:
    """K-M1: a file that no version names is removed when it is older than what is kept, and not before."""
    format_ = DeltaFormat()
    table = written(spark, format_, tmp_path / "t")
    left = Path(table.location) / "part-of-a-writer-that-died.parquet"
    left.write_bytes(b"half")
    format_.maintain(spark, table, WEEK)
    assert left.exists()
    os.utime(left, (LONG_AGO, LONG_AGO))
    format_.maintain(spark, table, WEEK)
    assert not left.exists()


def test_files_that_may_become_fewer_do(spark: SparkSession, tmp_path: Path) -> None:
    """Two files of a partition become one; where a vector hides rows, Delta is asked."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), partition_by=("p",))
    for version, part in enumerate(("a", "b", "b")):
        format_.append(made(spark, [(version, part)], "v INT, p STRING"), table, Progress("query", version))
    assert jobs(spark, lambda: format_.maintain(spark, table, WEEK))[0] > 0
    assert format_.version(spark, table) == 3
    hidden = Table("hidden", str(tmp_path / "hidden"), ("k",))
    rows = made(spark, [(each, "10", False, None, 1) for each in range(9)], f"k INT, {merge.SYSTEM_DDL}")
    format_.apply(rows, hidden, Progress("bronze", 0))
    assert jobs(spark, lambda: format_.maintain(spark, hidden, WEEK))[0] == 0
    spark.sql(f"DELETE FROM delta.`{hidden.location}` WHERE k = 8")
    assert jobs(spark, lambda: format_.maintain(spark, hidden, WEEK))[0] > 0
    assert format_.read(spark, hidden).count() == 8


def _bytes(table: Table) -> int:
    return sum(file.stat().st_size for file in Path(table.location).glob("*.parquet"))
