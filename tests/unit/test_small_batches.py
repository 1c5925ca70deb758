"""What a small batch of silver costs: jobs, and rows that are counted while they are computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import BY_TIME, Column, Declaration, SourceSpec
from replicator.stages import silver, tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import routing, tick_split, ticks
from tests.builders import UNSENT, Record, bronze, envelope, made, record

pytestmark = pytest.mark.spark

CONDITIONS = {"odd": "n % 2 = 1", "known": "n IS NOT NULL", "none": "false"}
BATCH = ["described", "surveyed", "decoded", "joined", "written"]
"""The jobs of a batch of one small table (decision 0043)."""


@pytest.fixture
def at(tmp_path: Path) -> Refinement:
    format_, declared = DeltaFormat(), Declaration("shop.orders", (Column("id", "int"), Column("v", "string")))
    source = SourceSpec("s", ".*", tables=(declared,))
    return Refinement(source, format_, format_, MemoryControl(), Lake(str(tmp_path)), 1.0)


def batch(spark: SparkSession, at: Refinement, *rows: tuple[Any, Any]) -> tuple[int, dict[str, Any]]:
    """How many jobs a batch of these rows takes, and its account."""
    known = at.bronze.version(spark, at.lake.bronze("s"))
    first = 0 if known is None else 100 * (known + 1)
    records = [
        record("s.shop.orders", first + n, {"id": key}, envelope("u", {"id": row, "v": v}, pos=4 + first + n))
        for n, (key, v) in enumerate(rows)
        for row in [key if isinstance(key, int) else 0]
    ]
    at.bronze.append(bronze(spark, records), at.lake.bronze("s"), None)
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = int(scheduler.numTotalJobs())
    [account] = silver.refine(spark, at)
    assert (account.error, account.residue) == (None, 0)
    told = {"applied": account.applied, "superseded": account.superseded, "dead": account.dead_lettered}
    return int(scheduler.numTotalJobs()) - before, told


def test_a_batch_of_a_small_table_takes_few_jobs(spark: SparkSession, at: Refinement) -> None:
    """Nothing is counted by a job of its own but what becomes a dead letter, by its reason."""
    batch(spark, at, (1, "a"), (2, "b"))
    few, told = batch(spark, at, (1, "c"), (1, "d"), (3, "e"), (2, UNSENT))
    assert (few, told) == (len(BATCH), {"applied": 3, "superseded": 1, "dead": 0})
    more, told = batch(spark, at, (3, "f"), ("x", "g"))
    assert (more > len(BATCH), told) == (True, {"applied": 1, "superseded": 0, "dead": 1})
    rows = at.silver.read(spark, at.lake.silver("s", "shop.orders")).select("id", "v").collect()
    assert sorted(map(tuple, rows)) == [(1, "d"), (2, "b"), (3, "f")]
    letters = at.bronze.read(spark, at.lake.dead_letters("s")).select("reason").collect()
    assert [row["reason"] for row in letters] == ["key_undecodable"]


@pytest.mark.parametrize("whole", [False, True], ids=["columns", "whole"])
@pytest.mark.parametrize(
    "size", [0, tuning.LARGE_RECORD_BYTES, tuning.LARGE_RECORD_BYTES + 1], ids=["small", "medium", "large"]
)
def test_rows_are_counted_while_they_are_computed(spark: SparkSession, size: int, whole: bool) -> None:
    """Once each, whatever the parts they lie in, and however they are kept; of no rows, none."""
    session = tuning.session_for_records(spark, size, 4)
    rows = made(session, [(n if n % 5 else None,) for n in range(20)], "n INT").repartition(3)
    conditions = {name: F.expr(told) for name, told in CONDITIONS.items()}
    for found, wanted in ((rows, {"odd": 8, "known": 16, "none": 0}), (rows.limit(0), dict.fromkeys(CONDITIONS, 0))):
        with tuning.persist_and_count(found, conditions, whole=whole) as (kept, counts):
            assert (kept.columns, counts) == (["n"], wanted)
            assert kept.where("n IS NOT NULL").count() == wanted["known"]
        with tuning.persist_and_count(found, conditions, F.expr("n > 16"), whole=whole) as (kept, counts):
            assert (kept.count(), counts) == (3 * bool(wanted["known"]), wanted)


def test_what_is_cached_is_in_pieces_that_the_default_heap_holds(spark: SparkSession) -> None:
    """Decision 0065: records of some kilobytes each, in as many tasks as there are cores, with 1 GB for all of them."""
    many = tuning.session_for_records(spark, tuning.LARGE_RECORD_BYTES + 1, 9)
    rows = many.range(0, 5_000, 1, 1).selectExpr("id", "repeat('x', 2000) AS value")
    with tuning.persist(rows, whole=True) as cached:
        assert cached.count() == 5_000
        pieces = cached._jdf.queryExecution().withCachedData().cacheBuilder().cachedColumnBuffers()
        assert pieces.count() == 5


def test_models_have_three_sizes(spark: SparkSession) -> None:
    """Decision 0050: small ones are interpreted, medium ones compiled, and only large ones re-planned and cached."""
    sizes = (0, tuning.SMALL_MODEL_BYTES, tuning.SMALL_MODEL_BYTES + 1, tuning.SMALL_BYTES, tuning.SMALL_BYTES + 1)
    sessions = [tuning.session_for_models(spark, size) for size in sizes]
    told = [each.conf.get("spark.replicator.size", "large") for each in sessions]
    assert told == ["small", "small", "medium", "medium", "large"]
    assert [tuning.is_large(each) for each in sessions] == [False, False, False, False, True]


def test_medium_models_are_compiled_by_the_stage_and_medium_records_are_not(spark: SparkSession) -> None:
    """Decision 0050: rows of tables are narrow; those of events make functions that the JVM does not compile."""
    sessions = tuning.session_for_models(spark, tuning.SMALL_BYTES), tuning.session_for_records(spark, 9 << 20, 1)
    plans = [each.range(9).where("id % 2 = 0")._jdf.queryExecution().executedPlan() for each in sessions]
    assert ["WholeStageCodegen" in plan.nodeName() for plan in plans] == [True, False]


@pytest.mark.parametrize(("topics", "most"), [(0, 0), (1, 2 << 20), (3, 6 << 20), (4, 8 << 20), (9, 8 << 20)])
def test_records_are_worth_compiling_for_where_a_topic_has_many(spark: SparkSession, topics: int, most: int) -> None:
    """Decision 0058: a plan is compiled for each table, and pays where that one has enough records."""
    sessions = [
        tuning.session_for_records(spark, size, topics) for size in (most, most + 1, tuning.LARGE_RECORD_BYTES + 1)
    ]
    assert [(tuning.is_small(each), tuning.is_large(each)) for each in sessions] == [
        (True, False),
        (False, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("size", "is_medium"), [(0, False), (tuning.PARALLEL_RECORD_BYTES, False), (8 << 20, True)], ids=str
)
def test_all_cores_describe_what_is_more_than_a_few_records(spark: SparkSession, size: int, is_medium: bool) -> None:
    """Decision 0060: few are described in one task, small work is in one behind that, and medium work never."""
    session = tuning.session_for_records(spark, size, 1 if is_medium else 9)
    cores = spark.sparkContext.defaultParallelism
    rows = tuning.repartition_records(
        made(session, [(n,) for n in range(20)], "offset INT").repartition(3 * cores), size
    )
    wanted = 3 * cores if is_medium else cores if size else 1
    assert (rows.rdd.getNumPartitions(), cores) == (wanted, 2)
    assert tuning.coalesce_records(rows, size).rdd.getNumPartitions() == (wanted if is_medium else 1)


@pytest.mark.parametrize(
    "size", [0, tuning.LARGE_RECORD_BYTES, tuning.LARGE_RECORD_BYTES + 1], ids=["small", "medium", "large"]
)
def test_many_records_are_read_in_more_tasks_than_there_are_cores(
    spark: SparkSession, tmp_path: Path, size: int
) -> None:
    """Decision 0065: one file of bronze may hold most of them; the files of tables are read as Spark has it."""
    session = tuning.session_for_records(spark, size, 1)
    session.conf.set("spark.sql.files.openCostInBytes", "1")
    session.range(100_000).coalesce(1).write.parquet(f"{tmp_path}/rows")
    cores, tasks = spark.sparkContext.defaultParallelism, []
    for _ in range(2):
        tasks.append(session.read.parquet(f"{tmp_path}/rows").rdd.getNumPartitions())
        tuning.tune_for_tables(session)
    assert (tasks[0] >= cores * tuning.TASKS_PER_CORE, tasks[1]) == (size > 0, cores)


def test_what_is_done_with_all_records_is_compiled_where_they_are_many(spark: SparkSession) -> None:
    """Decision 0061: not with a few megabytes, and never with a table's share of small work."""
    mode, told = "spark.sql.codegen.factoryMode", []
    for size in (tuning.COMPILED_RECORD_BYTES - 1, tuning.COMPILED_RECORD_BYTES, 8 << 20, (8 << 20) + 1):
        session = tuning.session_for_records(spark, size, 9)
        before = session.conf.get(mode)
        tuning.tune_for_tables(session)
        told.append((tuning.is_small(session), before, session.conf.get(mode)))
    assert told == [
        (True, "NO_CODEGEN", "NO_CODEGEN"),
        (True, "FALLBACK", "NO_CODEGEN"),
        (True, "FALLBACK", "NO_CODEGEN"),
        (False, "FALLBACK", "FALLBACK"),
    ]


PLAIN = record("s.shop.orders", 1, {"id": 1}, envelope("u", {"id": 1, "v": "a"}, pos=9))
FLAT = {"id": 2, "v": "b"}


@pytest.mark.parametrize(
    ("others", "declared", "is_plain"),
    [
        ([record("s.shop.orders", 2, {"id": 1}, None)], {}, True),
        ([record("s.shop.orders", 2, {"id": 2}, FLAT)], {}, False),
        ([record("s.shop.orders", 2, None, envelope("t", None, pos=12))], {}, False),
        ([record("s.shop.flat", 2, {"id": 2}, FLAT), record("s.shop.flat", 3, {"id": 2}, None)], {}, False),
        ([record("s.shop.flat", 2, {"id": 2}, FLAT | {"__deleted": "false"})], {}, False),
        ([], {"sequence_by": BY_TIME}, False),
        ([record("s.shop.orders", 2, {"id": 1}, None)], {"compacted_topic": True}, False),
    ],
    ids=["tombstone", "bare", "truncate", "nulls that delete", "by offset", "by time", "compacted"],
)
def test_records_that_no_mode_changes_are_taken_as_they_were_described(
    exact: SparkSession, tmp_path: Path, others: list[Record], declared: dict[str, Any], is_plain: bool
) -> None:
    """Q7 to Q9, B5, F2, T4: plain envelopes are what their topic's mode makes of them; where one record is not, or a
    table is declared to be read in another way, all of the batch are read by their modes.
    """
    memory = MemoryFormat()
    table = Declaration("shop.orders", (Column("id", "int"), Column("v", "string")), **declared)
    source = SourceSpec("s", ".*", tables=(table,))
    at = Refinement(source, memory, memory, MemoryControl(), Lake(str(tmp_path)), 1.0)
    at.bronze.append(bronze(exact, [PLAIN, *others]), at.lake.bronze("s"), None)
    with ticks.read_next(exact, at) as tick:
        assert tick is not None
        shared = tick_split.split_by_table(tick)
        assert (shared.records is tick.records) == is_plain
        read = routing.apply_modes(tick.records, shared.routes, source)
        same = read.select(*tick.records.columns).exceptAll(tick.records)
        assert not is_plain or same.isEmpty()


def test_large_rows_that_are_kept_together_are_computed_once(spark: SparkSession) -> None:
    """A plan that reads them begins at what is kept, also where a union was cached, which Spark forgets in another."""
    session = tuning.session_for(spark, tuning.SMALL_BYTES + 1)
    one, other, third = (session.range(9).select((F.col("id") + n).alias("id")) for n in range(3))
    with tuning.persist(one.unionByName(other)) as union, tuning.persist_union(union, third) as both:
        assert both.count() == 27
        plan = both.select("id").distinct()._jdf.queryExecution().executedPlan().toString()
        assert "Range" not in plan.partition("InMemoryRelation")[0]
