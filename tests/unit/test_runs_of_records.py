"""Runs of records in their order, and keys that decide their partition (``transforms/runs.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from benchmarks.cdc_ch import partitioner
from replicator.debezium.position import FIRST_EPOCH
from replicator.errors import SourceRewound
from replicator.formats.delta import DeltaFormat
from replicator.stages import tuning
from replicator.stages.tick import surveying
from replicator.transforms import runs, watermarks
from tests.builders import bronze
from tests.unit.test_order_stops import Silver, change

pytestmark = pytest.mark.spark

OTHERS = ("1L source_ts_ms", "false is_snapshot", "string(null) transaction")
COLUMNS = "topic STRING, partition INT, offset BIGINT, table STRING, key STRING, stream STRING, place STRING"


def places(spark: SparkSession, offsets: Sequence[Sequence[int]]) -> DataFrame:
    """Records of one partition with these offsets, as some tasks read them; their places rise with them."""
    told = [[("t", 0, at, "a", "1", "s", f"{FIRST_EPOCH}{at:036x}") for at in each] for each in offsets]
    rows = spark.sparkContext.parallelize(told, len(told)).flatMap(list)
    return spark.createDataFrame(rows, COLUMNS).selectExpr("*", *OTHERS)


def timed(spark: SparkSession, told: Sequence[Sequence[tuple[int, int, int]]]) -> DataFrame:
    """Records of one partition with these offsets, places and times, as some tasks read them."""
    rows = [
        [("t", 0, at, "a", "1", "s", f"{FIRST_EPOCH}{place:036x}", time) for at, place, time in each] for each in told
    ]
    of_tasks = spark.sparkContext.parallelize(rows, len(rows)).flatMap(list)
    return spark.createDataFrame(of_tasks, f"{COLUMNS}, source_ts_ms BIGINT").selectExpr("*", *OTHERS[1:], "'u' op")


def ends_of(found: DataFrame) -> runs.Ends:
    """The ends of runs that leave no doubt."""
    told = runs.ends(runs.find_runs(found).collect())
    assert told is not None
    assert not told[1]
    return told[0]


def partitioned(spark: SparkSession, by: Callable[[str, int], int], keys: Sequence[str | None]) -> list[Row]:
    """The runs of records of three partitions with these keys."""
    rows = [("t", by(key or "", at), at, "a", key, "", FIRST_EPOCH) for at, key in enumerate(keys)]
    return runs.find_runs(spark.createDataFrame(rows, COLUMNS).selectExpr("*", *OTHERS)).collect()


KEYS = [f'{{"id":{number}}}' for number in range(50)]


def test_records_in_their_order_are_few_runs_of_which_the_ends_are_looked_at(exact: SparkSession) -> None:
    found = places(exact, [range(100), range(100, 300)])
    assert sorted(row["offset"] for row in runs.places_at(found, ends_of(found)).collect()) == [0, 99, 100, 299]


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        ([range(0, 100, 2), range(1, 100, 2)], "two tasks have offsets between each other's"),
        ([[*range(50), 49]], "one comes twice"),
    ],
)
def test_runs_that_tell_no_order_have_no_ends(exact: SparkSession, offsets: Sequence[Sequence[int]], why: str) -> None:
    assert runs.ends(runs.find_runs(places(exact, offsets)).collect()) == (set(), {"t"}), why


def test_of_more_runs_than_pay_nobody_looks_at_the_ends(exact: SparkSession) -> None:
    assert runs.ends(runs.find_runs(places(exact, [range(6_000, 0, -1)])).collect()) is None


def test_a_source_of_many_tables_has_its_order_told_by_runs(exact: SparkSession) -> None:
    """Two hundred topics of three partitions, each in two files."""
    spread = {"topic": F.expr("concat('t', offset div 2 % 200)"), "partition": F.expr("int(offset div 400 % 3)")}
    found = places(exact, [range(6_000), range(6_000, 12_000)]).withColumns(spread)
    assert runs.places_at(found, ends_of(found)).count() == 2_400


def test_a_topic_whose_runs_tell_no_order_is_asked_for_all_its_records_and_no_other_is(
    exact: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record that no template matches, such as a TRUNCATE, is read after the others of its topic."""
    found, asked = places(exact, [range(100), range(100, 200)]), list[int]()
    other = places(exact, [range(0, 100, 2), range(1, 100, 2)]).withColumn("topic", F.lit("u"))
    every, known = found.unionByName(other).withColumn("op", F.lit("u")), F.lit(None).cast(watermarks.WATERMARK_TYPE)

    def counted(name: str) -> None:
        reached = getattr(watermarks, name)

        def of(these: DataFrame, mark: Column) -> DataFrame:
            asked.append(these.count())
            return cast("DataFrame", reached(these, mark))

        monkeypatch.setattr(watermarks, name, of)

    counted("compute_at_run_ends")
    counted("compute")
    marks = surveying.by_runs(every, known, runs.find_runs(every).collect())
    assert sorted((mark["topic"], mark["mark"]["offset"]) for mark in marks) == [("t", 199), ("u", 99)]
    assert asked == [4, 100]


def test_a_topic_whose_records_are_where_kafka_puts_their_keys_has_each_key_in_one_partition(
    exact: SparkSession,
) -> None:
    assert runs.keyed_topics(partitioned(exact, lambda key, _: partitioner.partition(key, 3), KEYS)) == {"t"}


@pytest.mark.parametrize(
    ("by", "keys", "why"),
    [
        (lambda _, at: at % 3, KEYS, "in turn"),
        (lambda key, at: partitioner.partition(key, 2 if at < 25 else 3), KEYS, "a partition was added"),
        (lambda key, _: partitioner.partition(key, 3), [*KEYS, None], "one has no key"),
    ],
)
def test_of_a_topic_that_is_otherwise_nothing_is_told(
    exact: SparkSession, by: Callable[[str, int], int], keys: Sequence[str | None], why: str
) -> None:
    assert runs.keyed_topics(partitioned(exact, by, keys)) == set(), why


@pytest.mark.parametrize(("time", "since"), [(20, None), (10, None), (40, 10)])
def test_a_run_that_begins_where_the_one_before_ended_is_looked_at_where_its_time_is_later(
    exact: SparkSession, time: int, since: int | None
) -> None:
    """J4: the older record keeps the mark, so that one below it may be newer than that, and not than the run's own. A
    transaction is one place, of SQL Server at one time.
    """
    found = timed(exact, [[(8, 1, 10), (9, 2, 20)], [(10, 2, time)]])
    [mark] = watermarks.compute_at_run_ends(
        runs.places_at(found, ends_of(found)), F.lit(None).cast(watermarks.WATERMARK_TYPE)
    ).collect()
    assert mark["since"] == since


def test_what_is_sent_again_over_two_runs_is_looked_at_and_no_other_record_is(
    exact: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J4 of a connector that began again: of its records those that stand below the runs before them tell that none of
    them is new.
    """
    first, again = [(at, at, at) for at in range(100)], [(at + 20, at, at) for at in range(80, 300)]
    found, asked = timed(exact, [first, again[:10], again[10:]]), list[int]()
    near = runs.places_near

    def counted(places: DataFrame, ends: runs.Ends, stretches: runs.Stretches) -> DataFrame:
        looked_at = near(places, ends, stretches)
        asked.append(looked_at.count())
        return looked_at

    monkeypatch.setattr(runs, "places_near", counted)
    monkeypatch.setattr(watermarks, "compute", None)  # nobody asks all records
    [mark] = surveying.by_runs(found, F.lit(None).cast(watermarks.WATERMARK_TYPE), runs.find_runs(found).collect())
    assert (mark["mark"]["offset"], mark["fell"], mark["split"]) == (319, None, False)
    assert asked == [2 + 20 + 1]  # the ends of the first run, what stands below, the end of the last


def test_a_source_that_went_back_below_the_second_of_two_stretches_is_told(exact: SparkSession) -> None:
    """J4: two tables each have a run that begins below the ones before, the second one below a greater place."""
    first, second = [(at, at, at) for at in range(21)], [(at + 6, at, at) for at in range(15, 41)]
    third = [(47, 30, 30), (48, 31, 100), *((at, at, at) for at in range(49, 60))]
    table = F.expr("element_at(array('a', 'b', 'c'), 1 + int(offset > 20) + int(offset > 46))")
    found, known = (
        timed(exact, [first, second, third]).withColumn("table", table),
        F.lit(None).cast(watermarks.WATERMARK_TYPE),
    )
    marks = surveying.by_runs(found, known, runs.find_runs(found).collect())
    assert {mark["table"]: mark["fell"] for mark in marks} == {"a": None, "b": None, "c": 48}


def test_a_transaction_in_two_files_of_bronze_hides_no_source_that_went_back(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J4 of work that is not small: by GTID a transaction is one place, and each statement has its own time. A server
    that takes over with a clock a second behind goes on below it.
    """
    monkeypatch.setattr(tuning, "SMALL_RECORD_BYTES", 0)
    seen, by_runs = list[Sequence[Row]](), surveying.by_runs

    def watched(places: DataFrame, known: Column, found: Sequence[Row]) -> list[Row]:
        seen.append(found)
        return by_runs(places, known, found)

    monkeypatch.setattr(surveying, "by_runs", watched)
    lake = Silver(exact, tmp_path, binlog_position="gtid", format=DeltaFormat())
    first = change(0, 1, 10, 100, 0, gtid="0-1-99"), change(1, 1, 11, 100, 10, gtid="0-1-100")
    lake.format.append(bronze(exact, first), lake.at.lake.bronze("s"), None)
    error = lake.error(change(2, 2, 12, 100, 12, gtid="0-1-100"), change(3, 1, 13, 100, 11, gtid="0-1-95"))
    assert isinstance(error, SourceRewound)
    assert [len(found) for found in seen] == [2]  # each file is a run
    told = runs.ends(seen[0])
    assert told is not None
    assert not told[1]
