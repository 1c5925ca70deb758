"""What the driver adds up from Delta's log is what Delta itself would say."""

from __future__ import annotations

import shutil

import pytest
from pyspark.sql import SparkSession

from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_log import Log
from replicator.spec import Progress, Table
from replicator.stages import tuning

pytestmark = pytest.mark.spark


def delta_says(log: Log, spark: SparkSession) -> tuple[int, dict[str, int]]:
    """Size and transactions from Delta's own snapshot."""
    snapshot = log.snapshot(spark)
    found, pairs = {}, snapshot.transactions().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1())] = int(pair._2())
    return int(snapshot.sizeInBytes()), found


def check(log: Log, spark: SparkSession) -> None:
    state = log.state(spark)
    assert state is not None
    assert (state.size, dict(state.transactions)) == delta_says(log, spark)


def test_the_state_follows_every_kind_of_commit(spark, tmp_path):
    """Appends, updates, deletes, an overwrite and a table made anew: size and progress are Delta's."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))
    log = Log(table.location, ())
    assert log.state(spark) is None
    for number in range(3):
        rows = spark.createDataFrame([(number, "a"), (number + 10, "b")], "id INT, x STRING")
        format_.append(rows, table, Progress("one", number))
        check(log, spark)
    difference = spark.createDataFrame([(1, "c", "upsert"), (2, None, "delete")], "id INT, x STRING, _op STRING")
    format_.put(difference, table, Progress("two", 7))
    check(log, spark)
    spark.sql(f"DELETE FROM delta.`{table.location}` WHERE id > 10")
    check(log, spark)
    spark.range(3).selectExpr("int(id) id", "'z' x").write.format("delta").mode("overwrite").save(table.location)
    check(log, spark)
    shutil.rmtree(table.location)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    format_.append(spark.createDataFrame([(1, "a")], "id INT, x STRING"), table, Progress("three", 1))
    check(log, spark)
    assert dict(log.state(spark).transactions) == {"three": 1}


def test_a_reader_that_comes_late_asks_delta(spark, tmp_path):
    """Behind a checkpoint the state comes from the snapshot, and is carried on from there."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))
    spark = spark.newSession()
    spark.conf.set("spark.databricks.delta.properties.defaults.checkpointInterval", "3")
    for number in range(5):
        format_.append(spark.createDataFrame([(number, "a")], "id INT, x STRING"), table, Progress("p", number))
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint*.parquet"))
    late = Log(table.location, ())
    check(late, spark)
    format_.append(spark.createDataFrame([(99, "a")], "id INT, x STRING"), table, Progress("p", 99))
    check(late, spark)
    assert format_.progress(spark, table, "p") == Progress("p", 99)


def test_small_work_is_planned_without_a_compiler(spark):
    """The settings that make small batches quick are really set."""
    small, large = tuning.session_for(spark, 1), tuning.session_for(spark, tuning.SMALL_BYTES + 1)
    for key in ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage"):
        assert (small.conf.get(key), large.conf.get(key)) == ("false", "true")
