"""Session settings by the size of the work: a small batch costs its planning and compiling, a large one its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.jvm import gateway

SMALL_BYTES = 32 << 20
"""Up to here, on disk, rows of tables are small work."""

SMALL_MODEL_BYTES = 1 << 20
"""Beyond so many bytes of them, the rows of what gold reads are worth compiling for (decision 0050)."""

SMALL_RECORD_BYTES, LARGE_RECORD_BYTES = 8 << 20, 128 << 20
"""Up to here, in bytes of bronze, records are small work and medium work: what is parsed costs more than what is read.
Of larger work what is described is kept in columns, of which each table reads those that it needs, and what is lost
of it with an executor is described again (decision 0065).
"""

MAX_TICK_BYTES = 256 << 20
"""So many bytes of bronze are taken at once, some three million records, where they came by several commits: a backlog
of any length needs the memory and the disk of one such piece (decision 0095).
"""

SMALL_TOPIC_BYTES = 2 << 20
"""Beyond so many bytes of each topic, on the average, records are worth compiling for (decision 0058)."""

MAX_BROADCAST_KEYS = 10_000
"""Of so many rows that changed their key, at most, each task may have the keys, to find what a table has under them."""

PARALLEL_RECORD_BYTES = 1 << 20
"""From so many bytes of bronze on, some ten thousand records, all cores describe small work, too, by what the first
records of each topic tell (decision 0060).
"""

COMPILED_RECORD_BYTES = 4 << 20
"""From here on what is done with all records of small work is compiled: its plans are the same in each tick, to the
letter, so that a driver that goes on compiles them once, and one that ends has lost nothing (decision 0061).
"""

TASKS_PER_CORE = 4
"""At least, of records that are no small work: one file may hold half of them, and a core without a task waits."""

_SIZE = "spark.replicator.size"
_TASKS = "spark.sql.files.minPartitionNum"

_MEDIUM = {
    # the plans are known to be good, and re-planning them costs more than it wins (performance.md B11)
    "spark.sql.adaptive.enabled": "false",
    # the wide rows of events make one function of a stage that is too long for the JVM to compile
    "spark.sql.codegen.wholeStage": "false",
    # nobody looks at a plan, and what is known of each of its columns saves no row worth the search
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
    # an interpreted projection keeps what its expressions have in common in a cache that it empties for every row
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
    """A session beside this one, fit for work over ``size`` bytes of tables; with ``exact_names`` ``Id`` and ``id`` are
    two columns (architecture 9.2).
    """
    return _session(spark, _SMALL if size <= SMALL_BYTES else {}, exact_names=exact_names)


def session_for_models(spark: SparkSession, size: int) -> SparkSession:
    """The same for a model over ``size`` bytes of inputs, all of which it may have to read."""
    fit = _SMALL if size <= SMALL_MODEL_BYTES else _MODELS if size <= SMALL_BYTES else {}
    return _session(spark, fit, exact_names=False)


def session_for_records(spark: SparkSession, size: int, topics: int) -> SparkSession:
    """The same for ``size`` bytes of bronze, of so many topics, that are to be decoded, with exact names."""
    if size <= min(SMALL_RECORD_BYTES, topics * SMALL_TOPIC_BYTES):
        return _session(spark, _COMPILED if size >= COMPILED_RECORD_BYTES else _SMALL, exact_names=True)
    fit = _MEDIUM if size <= LARGE_RECORD_BYTES else _MANY
    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    return _session(spark, {**fit, _TASKS: str(tasks)}, exact_names=True)


def tune_for_tables(spark: SparkSession) -> None:
    """From now on the session is for a table's share of the records: of small work that is never worth compiling, and
    of other work the files of tables are not to be cut into as many tasks as those of bronze.
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
    """Whether the session is one for large work, be it records or tables."""
    return _size(spark) in ("large", "many")


def repartition_records(rows: DataFrame, size: int) -> DataFrame:
    """Records of so many bytes of bronze as their session describes them best: few in one task, others on all cores,
    medium ones also where they come from one file.
    """
    spark = rows.sparkSession
    cores = spark.sparkContext.defaultParallelism
    if is_small(spark):
        return rows.coalesce(cores if is_worth_parallel(size) else 1)
    is_uneven = not is_large(spark) and rows.rdd.getNumPartitions() < cores
    return rows.repartition(cores, "offset") if is_uneven else rows


def coalesce_records(rows: DataFrame, size: int) -> DataFrame:
    """Records that were :func:`repartition_records`, described and kept: small ones in one task for all that follows,
    since no table's part of them is worth a shuffle.
    """
    return in_one_task(rows) if is_worth_parallel(size) else rows


def in_one_task(rows: DataFrame) -> DataFrame:
    """Rows of small work where all that follows finds them, such as those of several forms; others where they are."""
    return rows.coalesce(1) if is_small(rows.sparkSession) else rows


def is_worth_parallel(size: int) -> bool:
    """Whether so many bytes of bronze are worth more than the least that a job costs."""
    return size >= PARALLEL_RECORD_BYTES


def is_small(spark: SparkSession) -> bool:
    """Whether the session is one for small work."""
    return _size(spark) == "small"


def _size(spark: SparkSession) -> str:
    return spark.conf.get(_SIZE, "large") or ""


@contextmanager
def persist(rows: DataFrame, *, whole: bool = False) -> Iterator[DataFrame]:
    """Rows that several jobs read, computed once and kept for the time of the block. ``whole``: each of many who read
    them wants a part.

    They are checkpointed: what reads them plans a scan instead of the whole way to them once more, which costs more
    than the rows do, and has no end where what is kept is made of what is kept, as keys that change are. Large ones of
    tables are cached instead, in columns, and many records that are whole.
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
    """Rows that are kept, and others, for several to read. A union of unions is one to Spark, which forgets that one of
    them was cached.
    """
    both = kept_rows.unionByName(others)
    if not _is_cached(both.sparkSession, whole=False):
        yield both
        return
    with persist(both) as kept_both:
        yield kept_both


@contextmanager
def persist_and_count(
    rows: DataFrame, conditions: Mapping[str, Column], where: Column | None = None, *, whole: bool = False
) -> Iterator[tuple[DataFrame, dict[str, int]]]:
    """:func:`persist`, and for how many of the rows each condition holds: counted while they are computed, which of
    cached ones a job of its own does. Of all rows, where only some (``where``) are wanted.
    """
    if not _is_cached(rows.sparkSession, whole=whole):
        with gateway.checkpoint_and_count(rows, conditions, where, whole=whole) as counted:
            yield counted
        return
    with persist(rows, whole=whole) as cached:
        counts = [F.count(F.when(condition, True)).alias(name) for name, condition in conditions.items()]
        told = cached.agg(*counts).collect()[0].asDict()
        yield cached if where is None else cached.where(where), told


def _is_cached(spark: SparkSession, *, whole: bool) -> bool:
    return _size(spark) == "large" or (whole and _size(spark) == "many")
