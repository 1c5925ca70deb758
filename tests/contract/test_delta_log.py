"""What the driver adds up from Delta's log is what Delta itself would say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_log import Log
from replicator.jvm import gateway
from replicator.jvm.failures import FAILURES
from replicator.lake import Lake
from replicator.spec import Progress, Table
from replicator.stages import engine_errors, tuning
from tests.builders import made

pytestmark = pytest.mark.spark

BY_DELTA, BY_DELTA_GIVEN = "DeltaFileIndex", "TahoeBatchFileIndex"


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


def delta_reads(table: Table, spark: SparkSession) -> list[tuple[Any, ...]]:
    """All rows, read by Delta itself."""
    return sorted(map(tuple, spark.read.format("delta").load(table.location).collect()))


def read_by(rows: DataFrame) -> str:
    """Who looked for the files of the plan's only scan.

    Asked of the scan itself: a plan as text ends where the session at hand, which may be another one's, cuts it off.
    """
    (scan,) = gateway.iterate(rows._jdf.queryExecution().executedPlan().collectLeaves())
    return str(scan.relation().location().getClass().getSimpleName())


def test_the_state_follows_every_kind_of_commit(spark: SparkSession, tmp_path: Path) -> None:
    """Appends, updates, deletes, an overwrite and a table made anew: size and progress are Delta's."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))
    log = Log(table.location)
    assert log.state(spark) is None
    for number in range(3):
        rows = made(spark, [(number, "a"), (number + 10, "b")], "id INT, x STRING")
        format_.append(rows, table, Progress("one", number))
        check(log, spark)
    difference = made(spark, [(1, "c", "upsert"), (2, None, "delete")], "id INT, x STRING, _op STRING")
    format_.put(difference, table, Progress("two", 7))
    check(log, spark)
    spark.sql(f"DELETE FROM delta.`{table.location}` WHERE id > 10")
    check(log, spark)
    spark.range(3).selectExpr("int(id) id", "'z' x").write.format("delta").mode("overwrite").save(table.location)
    check(log, spark)
    shutil.rmtree(table.location)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    format_.append(made(spark, [(1, "a")], "id INT, x STRING"), table, Progress("three", 1))
    check(log, spark)
    assert dict(log.state(spark).transactions) == {"three": 1}


@pytest.mark.parametrize(
    ("to", "more"),
    [("TIMESTAMP AS OF '{time}'", 0), ("VERSION AS OF 2", 7)],
    ids=["a time, read by the driver", "a version, asked of Delta"],
)
def test_progress_goes_back_with_the_rows_of_a_restore(spark: SparkSession, tmp_path: Path, to: str, more: int) -> None:
    """Delta keeps what the rows had got to before. The next commit with progress says it for all inputs: whoever asks
    Delta hears the same. A version that is told by a time alone counts as one from before the first.
    """
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))

    def append(number: int, to: str = "one") -> None:
        format_.append(made(spark, [(number,)], "id INT"), table, Progress(to, number))

    for number in range(4 + more):
        append(number)
    append(7, "two")
    time = spark.sql(f"DESCRIBE HISTORY delta.`{table.location}`").where("version = 2").first()["timestamp"]
    spark.sql(f"RESTORE TABLE delta.`{table.location}` TO {to.format(time=time)}")
    one = 2 if to.startswith("VERSION") else -1
    spark.sql(f"ALTER TABLE delta.`{table.location}` SET TBLPROPERTIES ('a' = 'b')")
    for reader in (format_, DeltaFormat()):
        assert reader.inputs(spark, table) == {"one": one, "two": -1}
    format_ = DeltaFormat()
    append(3)
    assert sorted(row["id"] for row in format_.read(spark, table).collect()) == [0, 1, 2, 3]
    assert delta_says(Log(table.location), spark)[1] == {"one": 3, "two": -1}
    spark.sql(f"RESTORE TABLE delta.`{table.location}` TO VERSION AS OF {5 + more}")
    spark.sql(f"RESTORE TABLE delta.`{table.location}` TO VERSION AS OF {6 + more}")
    for reader in (format_, DeltaFormat()):
        assert reader.inputs(spark, table) == {"one": one, "two": -1}


@pytest.mark.parametrize(("folder", "partition_by"), [("t", ()), ("a b%20{c,d}[1]*", ("x",))])
def test_a_few_plain_files_are_read_without_delta_and_are_the_table(
    spark: SparkSession, tmp_path: Path, folder: str, partition_by: tuple[str, ...]
) -> None:
    """Appended to, merged, cleared, made anew: the rows are those that Delta reads, wherever the table lies."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / folder), ("id",), partition_by=partition_by)
    for number in range(3):
        format_.append(made(spark, [(number, "a"), (number + 10, "b")], "id INT, x STRING"), table, None)
    changed = [(1, "c", "upsert"), (2, None, "delete"), (30, "d", "upsert")]
    format_.put(made(spark, changed, "id INT, x STRING, _op STRING"), table, Progress("two", 7))
    rows = format_.read(spark, table)
    assert BY_DELTA not in read_by(rows)
    assert sorted(map(tuple, rows.collect())) == delta_reads(table, spark) != []
    assert BY_DELTA in read_by(format_.read(spark, table, 1)), "an older version is Delta's to find"
    anew = spark.range(3).selectExpr("int(id) id", "'z' x").write.format("delta").mode("overwrite")
    anew.partitionBy(*partition_by).save(table.location)
    assert sorted(map(tuple, format_.read(spark, table).collect())) == [(0, "z"), (1, "z"), (2, "z")]
    assert sorted(map(tuple, DeltaFormat().read(spark, table).collect())) == [(0, "z"), (1, "z"), (2, "z")]


@pytest.mark.parametrize(
    ("change", "reader_of"),
    [
        ("DELETE FROM {t} WHERE id = 1", BY_DELTA_GIVEN),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", BY_DELTA),
    ],
)
def test_files_that_are_not_the_table_by_themselves_are_read_by_delta(
    spark: SparkSession, tmp_path: Path, change: str, reader_of: str
) -> None:
    """Rows hidden by deletion vectors, in files that it is given (decision 0082), and columns under other names; also
    for a reader that comes late.
    """
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))
    vectors = {"delta.enableDeletionVectors": str(change.startswith("DELETE")).lower()}
    rows = made(spark, [(number, "a") for number in range(100)], "id INT, x STRING").coalesce(1)
    rows.write.format("delta").options(**vectors).save(table.location)
    assert BY_DELTA not in read_by(format_.read(spark, table))
    spark.sql(change.format(t=f"delta.`{table.location}`"))
    for reader in (format_, DeltaFormat()):
        assert reader_of in read_by(reader.read(spark, table))
        assert sorted(map(tuple, reader.read(spark, table).collect())) == delta_reads(table, spark)


def test_many_files_are_read_by_delta(spark: SparkSession, tmp_path: Path) -> None:
    """Beyond a few files Delta knows better which of them a query needs, with deletion vectors and without."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))
    many = spark.range(100, numPartitions=40).write.format("delta")
    many.option("delta.enableDeletionVectors", "true").save(table.location)
    assert BY_DELTA in read_by(format_.read(spark, table))
    spark.sql(f"DELETE FROM delta.`{table.location}` WHERE id = 1")
    assert BY_DELTA in read_by(format_.read(spark, table))
    spark.range(2).coalesce(1).write.format("delta").mode("overwrite").save(table.location)
    assert format_.read(spark, table).count() == 2


def test_changes_whose_files_are_gone_are_not_told(spark: SparkSession, tmp_path: Path) -> None:
    """Who asks for the keys of commits whose images a VACUUM took must read everything."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))
    format_.append(made(spark, [(1, "a"), (2, "b")], "id INT, x STRING"), table, None)
    format_.put(made(spark, [(1, "c", "upsert")], "id INT, x STRING, _op STRING"), table, Progress("two", 7))
    assert [row["id"] for row in format_.changed_keys(spark, table, 0, 1).collect()] == [1]
    assert sorted(row["id"] for row in format_.changed_keys(spark, table, -1, 1).collect()) == [1, 2]
    shutil.rmtree(tmp_path / "t" / "_change_data")
    assert format_.changed_keys(spark, table, 0, 1) is None


def test_a_reader_that_comes_late_asks_delta(spark: SparkSession, tmp_path: Path) -> None:
    """Behind a checkpoint the state comes from the snapshot, and is carried on from there."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("id",))
    spark = spark.newSession()
    spark.conf.set("spark.databricks.delta.properties.defaults.checkpointInterval", "3")
    for number in range(5):
        format_.append(made(spark, [(number, "a")], "id INT, x STRING"), table, Progress("p", number))
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint*.parquet"))
    late = Log(table.location)
    check(late, spark)
    format_.append(made(spark, [(99, "a")], "id INT, x STRING"), table, Progress("p", 99))
    check(late, spark)
    assert sorted(map(tuple, format_.read(spark, table).collect())) == delta_reads(table, spark)
    assert BY_DELTA not in read_by(format_.read(spark, table))
    assert format_.progress(spark, table, "p") == Progress("p", 99)


def test_small_work_is_planned_without_a_compiler(spark: SparkSession) -> None:
    """The settings that make small batches quick are really set."""
    small, large = tuning.session_for(spark, 1), tuning.session_for(spark, tuning.SMALL_BYTES + 1)
    for key in ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage"):
        assert (small.conf.get(key), large.conf.get(key)) == ("false", "true")


def test_a_commit_that_was_cut_off_is_told_with_its_file_and_what_fixes_it(spark: SparkSession, tmp_path: Path) -> None:
    """Spark fails with the words of its parser for JSON, in the first process that looks at the table as in a later
    one; a commit that is whole is none of it.
    """
    table = Lake(str(tmp_path)).silver("s", "d.t")
    for number in range(3):
        rows = made(spark, [(number, "a")], "id INT, x STRING")
        DeltaFormat().append(rows, table, Progress("bronze", number))
    commit = Path(table.location, "_delta_log", f"{1:020d}.json")
    for beside in (commit.with_suffix(".crc"), commit.with_name(f".{commit.name}.crc")):
        beside.unlink(missing_ok=True)
    whole = commit.read_text(encoding="utf-8")
    commit.write_text(whole[: len(whole) // 2], encoding="utf-8")
    for _ in range(2):
        with pytest.raises(FAILURES) as caught:
            DeltaFormat().progress(spark, table, "bronze")
        stopped = engine_errors.to_table_error(caught.value, table.name)
        assert f"a commit of the table's log is truncated: {commit}" in stopped.what
        assert f"remove the folder {table.location}: the next run rebuilds the table" in str(stopped.fix)


def test_a_first_commit_that_is_empty_is_told_with_its_file(spark: SparkSession, tmp_path: Path) -> None:
    """As a machine leaves it whose power was cut: Delta misses what it says of the table, and does not name it."""
    table = Lake(str(tmp_path)).silver("s", "d.t")
    commit = Path(table.location, "_delta_log", f"{0:020d}.json")
    commit.parent.mkdir(parents=True)
    commit.touch()
    with pytest.raises(FAILURES) as caught:
        DeltaFormat().progress(spark, table, "bronze")
    assert (
        f"a commit of the table's log is truncated: {commit}"
        in engine_errors.to_table_error(caught.value, table.name).what
    )
