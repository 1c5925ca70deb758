"""Session settings by the size of the work: the cost of a small batch is its planning and compilation, that of a large
one its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.jvm import gateway

SMALL_BYTES = 32 << 20
"""Up to this size on disk, work on rows of tables is small."""

SMALL_MODEL_BYTES = 1 << 20
"""Above this size on disk of gold's inputs, compiling queries pays (decision 0050)."""

SMALL_RECORD_BYTES, LARGE_RECORD_BYTES = 8 << 20, 128 << 20
"""Up to these sizes, in bytes of bronze, work on records is small and medium, respectively: parsing costs more than
reading. For larger work, described records are cached in columns, of which each table reads those it needs, and what is
lost with an executor is described again (decision 0065).
"""

MAX_TICK_BYTES = 256 << 20
"""The bytes of bronze that one tick takes at most, some three million records, if they came by several commits: a
backlog of any length needs the memory and disk of one such piece (decision 0095).
"""

SMALL_TOPIC_BYTES = 2 << 20
"""Above this average size per topic, compiling queries on records pays (decision 0058)."""

MAX_BROADCAST_KEYS = 10_000
"""Up to this number of rows that changed their key, the keys are broadcast to find the table's rows under them."""

PARALLEL_RECORD_BYTES = 1 << 20
"""From this many bytes of bronze, some ten thousand records, small work is described on all cores, too, with templates
from the first records of each topic (decision 0060).
"""

COMPILED_RECORD_BYTES = 4 << 20
"""From this size, the steps of small work on all records are compiled: their plans are identical in each tick, so a
continuous driver compiles them once, and one that ends has lost nothing (decision 0061).
"""

TASKS_PER_CORE = 4
"""The minimum number of tasks per core for records that are not small work: one file may have half of the records, and
a core without a task is idle.
"""

_SIZE = "spark.replicator.size"
_TASKS = "spark.sql.files.minPartitionNum"

_MEDIUM = {
    # the plans are known to be good, and re-planning them costs more than it saves (performance.md B11)
    "spark.sql.adaptive.enabled": "false",
    # the wide rows of events make one function of a stage that is too long for the JVM to compile
    "spark.sql.codegen.wholeStage": "false",
    # plans are not displayed, and constraints inferred for columns exclude too few rows to be worth the search
    "spark.sql.maxPlanStringLength": "100",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.constraintPropagation.enabled": "false",
    _SIZE: "medium",
}
_MODELS = {
    **_MEDIUM,
    # rows of tables are narrow, and a model's plans are the same with each refresh (decision 0050)
    "spark.sql.codegen.wholeStage": "true",
}
_INTERPRETED = {
    # plans differ from batch to batch, and compiling one costs more than running it (B10)
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # an interpreted projection caches common subexpressions, but clears the cache for every row
    "spark.sql.subexpressionElimination.enabled": "false",
}
_MANY = {_SIZE: "many"}
_COMPILED = {
    **_MEDIUM,
    "spark.sql.shuffle.partitions": "1",
    # the source of a small MERGE is checkpointed already, see `persist`
    "spark.databricks.delta.merge.materializeSource": "none",
    _SIZE: "small",
}
_SMALL = {**_COMPILED, **_INTERPRETED}


def session_for(spark: SparkSession, size: int, *, exact_names: bool = False) -> SparkSession:
    """Return a new session tuned for work on ``size`` bytes of tables; with ``exact_names``, ``Id`` and ``id`` are two
    columns (architecture 9.2).
    """
    return _session(spark, _SMALL if size <= SMALL_BYTES else {}, exact_names=exact_names)


def session_for_models(spark: SparkSession, size: int) -> SparkSession:
    """Return a new session for a model with ``size`` bytes of inputs, all of which it may have to read."""
    settings = _SMALL if size <= SMALL_MODEL_BYTES else _MODELS if size <= SMALL_BYTES else {}
    return _session(spark, settings, exact_names=False)


def session_for_records(spark: SparkSession, size: int, topics: int) -> SparkSession:
    """Return a new session for decoding ``size`` bytes of bronze from so many topics, with exact names."""
    if size <= min(SMALL_RECORD_BYTES, topics * SMALL_TOPIC_BYTES):
        return _session(spark, _COMPILED if size >= COMPILED_RECORD_BYTES else _SMALL, exact_names=True)
    settings = _MEDIUM if size <= LARGE_RECORD_BYTES else _MANY
    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    return _session(spark, {**settings, _TASKS: str(tasks)}, exact_names=True)


def tune_for_tables(spark: SparkSession) -> None:
    """Switch the session to processing the tables' shares of the records: small work is never worth compiling, and
    other work must not split the files of tables into as many tasks as those of bronze.
    """
    if not is_small(spark):
        spark.conf.unset(_TASKS)
        return
    for key, value in _INTERPRETED.items():
        spark.conf.set(key, value)


def _session(spark: SparkSession, settings: Mapping[str, str], *, exact_names: bool) -> SparkSession:
    session = spark.newSession()
    if exact_names:
        session.conf.set("spark.sql.caseSensitive", "true")
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def is_large(spark: SparkSession) -> bool:
    """Return whether the session is one for large work, on records or on tables."""
    return _size(spark) in ("large", "many")


def repartition_records(rows: DataFrame, size: int) -> DataFrame:
    """Partition records of ``size`` bytes of bronze for describing them: few in one task, others on all cores, medium
    ones also if they come from one file.
    """
    spark = rows.sparkSession
    cores = spark.sparkContext.defaultParallelism
    if is_small(spark):
        return rows.coalesce(cores if is_worth_parallel(size) else 1)
    is_uneven = not is_large(spark) and rows.rdd.getNumPartitions() < cores
    return rows.repartition(cores, "offset") if is_uneven else rows


def coalesce_records(rows: DataFrame, size: int) -> DataFrame:
    """Coalesce described and persisted records of :func:`repartition_records`: small ones into one task for all further
    steps, since no table's share of them is worth a shuffle.
    """
    return in_one_task(rows) if is_worth_parallel(size) else rows


def in_one_task(rows: DataFrame) -> DataFrame:
    """Return rows of small work in one task, such as those of several forms; other rows unchanged."""
    return rows.coalesce(1) if is_small(rows.sparkSession) else rows


def is_worth_parallel(size: int) -> bool:
    """Return whether work on so many bytes of bronze is worth the fixed cost of a parallel job."""
    return size >= PARALLEL_RECORD_BYTES


def is_small(spark: SparkSession) -> bool:
    """Return whether the session is one for small work."""
    return _size(spark) == "small"


def _size(spark: SparkSession) -> str:
    return spark.conf.get(_SIZE, "large") or ""


@contextmanager
def persist(rows: DataFrame, *, whole: bool = False) -> Iterator[DataFrame]:
    """Yield rows that several jobs read, computed once and kept while the context is open. ``whole``: each of many
    readers needs a part of them.

    They are checkpointed: readers plan a scan instead of the whole lineage again, which would cost more than the rows
    do, and would grow without end where persisted rows are derived from persisted rows, as for changed keys. Large rows
    of tables are cached instead, in columns, and so are many records with ``whole``.
    """
    if not _is_cached(rows.sparkSession, whole=whole):
        with gateway.local_checkpoint(rows, whole=whole) as kept_rows:
            yield kept_rows
        return
    cached = rows.persist()
    try:
        yield cached
    finally:
        cached.unpersist(blocking=False)


@contextmanager
def persist_union(kept_rows: DataFrame, others: DataFrame) -> Iterator[DataFrame]:
    """Yield the union of persisted rows and others, for several readers. Spark flattens a union of unions, and forgets
    that one of them was cached.
    """
    union = kept_rows.unionByName(others)
    if not _is_cached(union.sparkSession, whole=False):
        yield union
        return
    with persist(union) as kept_both:
        yield kept_both


@contextmanager
def persist_and_count(
    rows: DataFrame, conditions: Mapping[str, Column], where: Column | None = None, *, whole: bool = False
) -> Iterator[tuple[DataFrame, dict[str, int]]]:
    """:func:`persist` the rows, and count the rows that meet each condition: while they are computed, or for cached
    rows in a job of its own. The counts are of all rows, also if only some of them (``where``) are kept.
    """
    if not _is_cached(rows.sparkSession, whole=whole):
        with gateway.checkpoint_and_count(rows, conditions, where, whole=whole) as counted:
            yield counted
        return
    with persist(rows, whole=whole) as cached:
        counts = [F.count(F.when(condition, True)).alias(name) for name, condition in conditions.items()]
        totals = cached.agg(*counts).collect()[0].asDict()
        yield cached if where is None else cached.where(where), totals


def _is_cached(spark: SparkSession, *, whole: bool) -> bool:
    return _size(spark) == "large" or (whole and _size(spark) == "many")
