"""Session settings by the size of the work: a small batch costs its planning and compiling, a large one its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession

from replicator import gateway

SMALL_BYTES = 32 << 20
"""Up to here, on disk, a batch is small."""

_IS_SMALL = "spark.replicator.small"

_SMALL = {
    # plans differ from batch to batch, and compiling or re-planning one costs more than running it (performance.md
    # B10, B11)
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # nobody looks at a plan, and what is known of each of its columns saves no row worth the search
    "spark.sql.maxPlanStringLength": "100",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # the source of a small MERGE is checkpointed already, see `kept`
    "spark.databricks.delta.merge.materializeSource": "none",
    _IS_SMALL: "true",
}


def session_for(spark: SparkSession, size: int, *, exact_names: bool = False) -> SparkSession:
    """A session beside this one, fit for work over ``size`` bytes; with ``exact_names`` ``Id`` and ``id`` are two
    columns (architecture 9.2).
    """
    session = spark.newSession()
    if exact_names:
        session.conf.set("spark.sql.caseSensitive", "true")
    for key, value in _SMALL.items() if size <= SMALL_BYTES else ():
        session.conf.set(key, value)
    return session


def is_small(spark: SparkSession) -> bool:
    """Whether the session is one for small work."""
    return str(spark.conf.get(_IS_SMALL, "false")) == "true"


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that several jobs read, computed once and kept for the time of the block.

    Small ones are checkpointed: what reads them plans a scan instead of the whole way to them once more, which costs
    more than the rows do. Large ones are cached, in columns.
    """
    if is_small(rows.sparkSession):
        with gateway.checkpointed(rows) as kept_rows:
            yield kept_rows
        return
    cached = rows.persist()
    try:
        yield cached
    finally:
        cached.unpersist(blocking=False)


@contextmanager
def tallied(rows: DataFrame, conditions: Mapping[str, Column]) -> Iterator[tuple[DataFrame, dict[str, int] | None]]:
    """:func:`kept`, and for how many of the rows each condition holds, counted on the way; None of large ones, which
    nothing has computed yet.
    """
    if is_small(rows.sparkSession):
        with gateway.counted(rows, conditions) as counted:
            yield counted
        return
    with kept(rows) as cached:
        yield cached, None
