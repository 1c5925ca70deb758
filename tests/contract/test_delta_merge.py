"""A small table that is written anew is what Delta's MERGE would have made of it, and Delta guards its commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import StaleWriter
from replicator.formats import delta_commit
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.jvm import gateway, sparkline
from replicator.spec import Progress, Table
from tests import builders

pytestmark = pytest.mark.spark

ROWS = [(1, "a", {"x": 1}), (2, "b", None), (3, None, {}), (4, "d", {"y": 2})]
DDL = "`key-no.1` INT, v STRING, `a.b` MAP<STRING,INT>"


def changed(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """Rows to put; each ends in its ``_op``."""
    return builders.made(spark, rows, f"{DDL}, _op STRING")


def made(spark: SparkSession, format_: DeltaFormat, folder: str) -> Table:
    table = Table("t", folder, ("key-no.1",))
    rows = builders.made(spark, ROWS, DDL).selectExpr("*", "'upsert' _op")
    format_.put(rows, table, Progress("model", 0))
    return table


def feed(spark: SparkSession, table: Table, version: int) -> list[tuple[Any, ...]]:
    """What changed in one version, as Delta tells it."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", version).option("endingVersion", version).load(table.location)
    return sorted(tuple(map(str, row)) for row in rows.drop("_commit_timestamp").collect())


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "z", {"x": 1}, "upsert"), (3, None, None, "delete"), (9, "new", None, "upsert")],
        [(1, None, None, "delete"), (2, None, None, "delete"), (3, None, None, "delete"), (4, None, None, "delete")],
        [(77, None, None, "delete")],
    ],
)
def test_both_ways_leave_the_same_rows_feed_and_counts(
    spark: SparkSession, tmp_path: Path, rows: list[tuple[Any, ...]]
) -> None:
    """Updates with both images, inserts, deletes of all rows, of a row that is not there."""
    told: list[tuple[Any, ...]] = []
    for way, format_ in {
        "anew": DeltaFormat(),
        "merged": DeltaFormat(MergeThresholds(rewritten_bytes=0, marked_files=0)),
    }.items():
        table = made(spark, format_, str(tmp_path / way))
        applied = format_.put(changed(spark, *rows), table, Progress("model", 1))
        assert format_.progress(spark, table, "model") == Progress("model", 1)
        operation = spark.sql(f"DESCRIBE HISTORY delta.`{table.location}`").first()["operation"]
        held = sorted(map(str, spark.read.format("delta").load(table.location).collect()))
        told.append((applied, held, feed(spark, table, applied.version), operation))
    assert told[0] == told[1]
    assert told[0][3] == "MERGE"


def test_a_small_table_is_joined_where_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """Where one task joins, no row of the table is sent to it: one stage finds what is done to each, one writes. Spark
    4.1 sends the rows of both sides all the same.
    """
    format_, spark = DeltaFormat(), spark.newSession()
    for key, value in {"shuffle.partitions": "1", "adaptive.enabled": "false"}.items():
        spark.conf.set(f"spark.sql.{key}", value)
    table = made(spark, format_, str(tmp_path / "t"))
    changes = changed(spark, (1, "z", None, "upsert"), (9, "new", None, "upsert")).coalesce(1)
    spark.sparkContext.setJobGroup(str(tmp_path), "merge")
    try:
        format_.put(changes, table, Progress("model", 1))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    tracker = spark.sparkContext.statusTracker()
    stages = [len(tracker.getJobInfo(job).stageIds) for job in sorted(tracker.getJobIdsForGroup(str(tmp_path)))]
    sent = 0 if sparkline.installed().name == "3.5" else 2
    assert stages == [len(["any"]), len(["settled"]) + sent, len(["written"])]


def test_the_files_of_a_small_table_stay_few(spark: SparkSession, tmp_path: Path) -> None:
    """Each batch leaves one file, however many there were, behind a checkpoint too."""
    format_, spark = DeltaFormat(), spark.newSession()
    spark.conf.set("spark.databricks.delta.properties.defaults.checkpointInterval", "10")
    table = made(spark, format_, str(tmp_path / "t"))
    for number in range(1, 13):
        format_.put(changed(spark, (number, "n", None, "upsert")), table, Progress("model", number))
    assert len(spark.read.format("delta").load(table.location).inputFiles()) == 1
    assert format_.read(spark, table).count() == 12
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint*.parquet"))


def test_a_table_without_a_feed_is_left_to_merge(spark: SparkSession, tmp_path: Path) -> None:
    """Rows for a feed that a table does not keep would become its own."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("key-no.1",))
    builders.made(spark, ROWS, DDL).write.format("delta").save(table.location)
    format_.put(changed(spark, (1, "z", None, "upsert")), table, Progress("model", 1))
    assert spark.read.format("delta").load(table.location).columns == ["key-no.1", "v", "a.b"]
    assert format_.read(spark, table).where("v = 'z'").count() == 1


@pytest.mark.parametrize("late", ["append", "rewrite"])
def test_a_writer_that_came_between_is_found(spark: SparkSession, tmp_path: Path, late: str) -> None:
    """Two with the same progress: the second must not add its rows again, nor take the first one's away."""
    format_ = DeltaFormat()
    table = made(spark, format_, str(tmp_path / "t"))
    rows = builders.made(spark, [(5, "e", None)], DDL)
    snapshot = format_._snapshot(spark, table)
    files = [file.action for file in format_._log(table).plain_files(spark, snapshot)]
    format_.append(rows, table, Progress("model", 1))
    images = rows.selectExpr("*", "CAST(NULL AS STRING) AS _change_type")
    commits: dict[str, Callable[[], object]] = {
        "append": lambda: delta_commit.append(rows, snapshot, Progress("model", 1)),
        "rewrite": lambda: delta_commit.rewrite(images, files, snapshot, Progress("other", 1), {"rows": 1}),
    }
    with pytest.raises(StaleWriter, match="another writer has changed the table"):
        commits[late]()
    assert format_.read(spark, table).count() == 5


def test_a_partition_by_time_is_the_same_instant_wherever_the_machine_stands(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Delta reads the folder's name in the JVM's zone: all readers, and rows that a MERGE carries along, have it as it
    was written.
    """
    zones = gateway.of(spark).java.util.TimeZone
    before, table = zones.getDefault(), Table("t", str(tmp_path / "t"), ("k",), partition_by=("at",))
    times = ["2020-01-01 00:00:00", "2020-07-01 12:34:56.123456", "1850-01-01 00:00:00.000001", "2020-03-08 02:30:00"]
    written = [(k, times[k // 2], "a") for k in range(8)]

    def put(format_: DeltaFormat, rows: list[tuple[int, str, str]], number: int) -> None:
        told = builders.made(spark, rows, "k INT, at STRING, v STRING")
        told = told.selectExpr("k", "CAST(at AS TIMESTAMP) AS at", "v", "'upsert' AS _op")
        format_.put(told, table, Progress("model", number))

    def held(rows: DataFrame) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in rows.selectExpr("k", "CAST(at AS STRING)", "v").collect())

    zones.setDefault(zones.getTimeZone("America/New_York"))
    try:
        put(DeltaFormat(), written, 0)
        put(DeltaFormat(), [(k, at, "b") for k, at, _ in written[::2]], 1)
        merged = [(k, at, "a" if k % 2 else "b") for k, at, _ in written]
        assert held(DeltaFormat().read(spark, table)) == merged
        assert held(spark.read.format("delta").load(table.location)) == merged
        assert held(DeltaFormat().read(spark, table, 0)) == written
    finally:
        zones.setDefault(before)
