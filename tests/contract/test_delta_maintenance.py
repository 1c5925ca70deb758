"""Upkeep asks Delta for nothing that a table does not need."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from replicator.formats import delta_files, delta_maintenance
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.spec import Maintained, Progress, Table
from replicator.stages import tuning
from replicator.transforms import merge
from tests.builders import in_files_of, made

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


def files_of(spark: SparkSession, format_: DeltaFormat, table: Table) -> set[Path]:
    """The files of the newest version."""
    return {Path(table.location, Path(file).name) for file in format_.read(spark, table).inputFiles()}


def bounds(spark: SparkSession, file: Path) -> tuple[int, ...]:
    """The least and the greatest key in a file."""
    [row] = spark.read.parquet(str(file)).selectExpr("min(k)", "max(k)").collect()
    return tuple(row)


def test_a_table_with_nothing_to_do_costs_no_job(spark: SparkSession, tmp_path: Path) -> None:
    """K-M1: Delta is asked only where a file is old and not live, wherever the table lies; what a writer left that died
    goes then, and not before.
    """
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "a b%20{c,d}[1]*"), ("k",))
    rows = [(1, "a", "upsert"), (2, "b", "upsert")]
    format_.put(made(spark, rows, "k INT, v STRING, _op STRING"), table, Progress("model", 0))
    (live,) = Path(table.location).glob("*.parquet")
    size = live.stat().st_size
    assert jobs(spark, lambda: format_.maintain(spark, table, 0)) == (0, Maintained(1, size, 1, size))
    left = Path(table.location) / "part-of-a-writer-that-died.parquet"
    left.write_bytes(b"half")
    assert jobs(spark, lambda: format_.maintain(spark, table, WEEK))[0] == 0
    assert left.exists()
    os.utime(left, (LONG_AGO, LONG_AGO))
    os.utime(live, (LONG_AGO, LONG_AGO))
    assert jobs(spark, lambda: format_.maintain(spark, table, WEEK))[0] > 0
    assert not left.exists()
    assert jobs(spark, lambda: DeltaFormat().maintain(spark, table, WEEK)) == (0, Maintained(1, size, 1, size))
    assert sorted(map(tuple, format_.read(spark, table).collect())) == [(1, "a"), (2, "b")]


def test_what_delta_says_of_removed_files_is_not_printed(spark: SparkSession, tmp_path: Path) -> None:
    """A command prints one table, or JSON, and nothing in the midst of it."""
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("k",))
    for tick, value in enumerate("ab"):
        rows = made(spark, [(1, value, "upsert")], "k INT, v STRING, _op STRING")
        format_.put(rows, table, Progress("model", tick))
    jvm: Any = spark.sparkContext._jvm
    console, printed = getattr(getattr(jvm.scala, "Console$"), "MODULE$"), jvm.java.io.ByteArrayOutputStream()
    before = console.out()
    console.setOutDirect(jvm.java.io.PrintStream(printed))
    try:
        delta_maintenance.vacuum(spark, table.location, 0)
        console.out().print("then")
    finally:
        console.setOutDirect(before)
    assert len(list(Path(table.location).glob("*.parquet"))) == 1
    assert printed.toString() == "then"


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


def log_of(table: Table) -> dict[str, Path]:
    """The files of a table's log by name; those of Hadoop's own checksums are none."""
    return {file.name: file for file in Path(table.location, "_delta_log").glob("*") if file.name[0].isdigit()}


@pytest.fixture(scope="module")
def grown_old(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of seven versions, each an hour older than the next, with a checkpoint at every second; all but the
    newest are from long ago. It is copied, and stays as it is.
    """
    session, format_ = spark.newSession(), DeltaFormat()
    session.conf.set("spark.databricks.delta.properties.defaults.checkpointInterval", "2")
    table = Table("t", str(tmp_path_factory.mktemp("grown_old") / "t"))
    for version in range(7):
        format_.append(made(session, [(version,)], "v INT"), table, Progress("query", version))
    for name, file in log_of(table).items():
        if int(name[:20]) < 6:
            os.utime(file, (LONG_AGO, LONG_AGO + 3600 * int(name[:20])))
    return Path(table.location)


def copy_of(grown_old: Path, to: Path) -> Table:
    """The same table elsewhere, with the times of its files."""
    return Table("t", str(shutil.copytree(grown_old, to)))


def test_the_log_forgets_what_no_kept_version_is_made_of(spark: SparkSession, tmp_path: Path, grown_old: Path) -> None:
    """The checkpoint stays that the oldest kept version needs; who is further behind is told that the log does not
    say.
    """
    table, format_ = copy_of(grown_old, tmp_path / "t"), DeltaFormat()
    assert len(format_.arrivals(spark, table, 0, 6) or ()) == 6
    assert format_.append_only_since(spark, table, 2, 6) == 2
    assert {int(name[:20]) for name in log_of(table)} == set(range(7))
    format_.maintain(spark, table, WEEK)
    left = set(log_of(table))
    assert {int(name[:20]) for name in left} == {4, 5, 6, 7}  # the newest wrote small files together
    assert f"{4:020}.checkpoint.parquet" in left
    format_.maintain(spark, table, WEEK)
    assert set(log_of(table)) >= left
    for reader in (format_, DeltaFormat()):
        assert reader.arrivals(spark, table, 0, 6) is None
        assert reader.append_only_since(spark, table, 0, 6) == 6
        assert reader.append_only_since(spark, table, 5, 7) == 7  # small files were written together
        assert len(reader.arrivals(spark, table, 4, 6) or ()) == 2
        assert reader.version_at(spark, table, 5).version == 5
        assert reader.read(spark, table).count() == 7
        assert reader.progress(spark, table, "query") == Progress("query", 6)


def test_a_log_that_says_how_long_it_is_kept_stays(spark: SparkSession, tmp_path: Path, grown_old: Path) -> None:
    """Whoever wrote Delta's own property into the table meant it; and a log that is young enough keeps all."""
    told, young = (copy_of(grown_old, tmp_path / name) for name in ("told", "young"))
    kept = "'delta.logRetentionDuration' = 'interval 5000 days'"
    spark.sql(f"ALTER TABLE delta.`{told.location}` SET TBLPROPERTIES ({kept})")
    DeltaFormat().maintain(spark, told, WEEK)
    DeltaFormat().maintain(spark, young, 24 * 5000)
    assert [{int(name[:20]) for name in log_of(table)} >= set(range(7)) for table in (told, young)] == [True, True]


@pytest.fixture(params=["bytes", "rows"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes below which a file is small, for tables of a thousand rows: told as such, or by how many rows that is."""
    small = 6_000
    limit = {"bytes": ("_SMALL_BYTES", small), "rows": ("_SMALL_ROWS", small // 10)}[request.param]
    monkeypatch.setattr(delta_maintenance, *limit)
    monkeypatch.setattr(delta_maintenance, "_COMPACTED_FACTOR", 1)
    return small


def test_files_of_gold_in_the_order_of_their_keys_stay_so(spark: SparkSession, tmp_path: Path, small: int) -> None:
    """Put together they would all be written for a change of any row; small ones become one."""
    session, format_ = in_files_of(spark.newSession(), 1000), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table, drawn = Table("t", str(tmp_path / "t"), ("k",)), random.Random(5)
    for number, keys in enumerate((range(2000), [2000], [2001])):
        rows = [(key, drawn.random(), "upsert") for key in keys]
        format_.put(made(session, rows, "k INT, v DOUBLE, _op STRING"), table, Progress("model", number))
    format_.maintain(session, table, WEEK)
    found = {bounds(session, file): file.stat().st_size > small for file in files_of(session, format_, table)}
    assert found == {(0, 999): True, (1000, 1999): True, (2000, 2001): False}


def test_files_in_the_order_of_their_keys_stay_so(spark: SparkSession, tmp_path: Path, small: int) -> None:
    """A3: of a table of silver only small files are put together, or a batch of recent keys would read all of it; and
    marked rows go where they are more than a twentieth.
    """
    session = in_files_of(spark.newSession(), 1000)
    format_, table = DeltaFormat(MergeThresholds(rewritten_bytes=0)), Table("t", str(tmp_path / "t"), ("k",))
    drawn = random.Random(5)
    rows = [(key, drawn.random(), "10", False, None, 1) for key in drawn.sample(range(2000), 2000)]
    ddl = f"k INT, v DOUBLE, {merge.SYSTEM_DDL}"
    format_.apply(made(session, rows, ddl), table, Progress("bronze", 0))
    begun = {file: file.stat().st_size for file in Path(table.location).glob("*.parquet")}
    assert (len(begun), min(begun.values()) > small) == (2, True)
    assert jobs(session, lambda: format_.maintain(session, table, WEEK))[0] == 0
    for number, (changed, kept) in enumerate([([2001], 2), (range(50), 2), (range(50, 150), 1)], 1):
        new = [(key, 0.5, "20", False, None, 1) for key in changed]
        format_.apply(made(session, new, ddl), table, Progress("bronze", number))
        if number > 1:
            format_.maintain(session, table, WEEK)
            left = files_of(session, format_, table)
            assert (len(left), len(begun.keys() & left)) == (3, kept)
    assert session.conf.get(f"{delta_maintenance._OPTIMIZE}.minFileSize", None) is None
    large = {bounds(session, file) for file in left if file.stat().st_size > small}
    assert large == {(150, 999), (1000, 1999)}
    assert format_.read(session, table).count() == 2001


def test_changes_whose_files_a_vacuum_took_are_not_half_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-M1: nobody knows what changed, also where the oldest commit appended rows whose file the table still has."""
    small, format_ = tuning.session_for(spark, 0), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table, columns = Table("t", str(tmp_path / "t"), ("k",)), "k INT, v INT, _op STRING"
    for version, key in enumerate((1, 2, 1, 1, 1)):
        format_.put(made(small, [(key, version, "upsert")], columns), table, Progress("model", version))
    monkeypatch.setattr(
        delta_files, "MAX_DIRECT_FILES", 0
    )  # else the files of the commits are read, and are found missing there
    told = format_.changed_keys(small, table, 0, 4)
    assert told is not None
    assert sorted(row["k"] for row in told.collect()) == [1, 2]
    delta_maintenance.vacuum(small, table.location, 0)
    assert format_.changed_keys(small, table, 0, 4) is None
