"""Tombstones that log compaction left alone: the delete before them is gone, and they are all that tells of it
(debezium.md B5).

Kafka keeps the newest record of each key, which for a deleted row is the tombstone. One whose delete is still there
says nothing new; to tell them apart is a must: the place of a lone one in the source's order is a guess (Q6), and a
guess about what a connector only repeated would take a row for good. So a tombstone is lone where the newest record of
its key before it is

- no delete; or
- a delete that deleted nothing, being repeated and older than the row, and not the record right before the tombstone:
  what stood between the two is gone. (By the letter of B5 every delete is enough; a read that ended behind a repeated
  one then missed the delete of the row, see ``tests/unit/test_lone_tombstones.py``.)
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator.debezium.classification import TOMBSTONE
from replicator.spec import SourceSpec

LONE = "lone_tombstone"
"""The rule of a tombstone that deletes the row of its key where its topic carries one table."""

KEY = ("topic", "partition", "key")
"""Compaction compares keys as they are written, inside a partition."""


def compacted_topics(source: SourceSpec) -> Column | None:
    """Whether a record's topic is compacted, by declaration; None where none is."""
    if not source.has_compacted_topics:
        return None
    told = [f"{source.name}.{table.table}" for table in source.tables if table.compacted_topic]
    others = [f"{source.name}.{table.table}" for table in source.tables if not table.compacted_topic]
    if source.default.compacted_topic:
        return ~F.col("topic").isin(*others)
    return F.col("topic").isin(*told)


def mark_lone(records: DataFrame, is_compacted: Column, below: DataFrame | None = None) -> DataFrame:
    """Described records, each with its ``epoch``, with the rule LONE for lone tombstones of compacted topics. Like a
    snapshot's rows they rank above all that came before them (``is_snapshot``).

    ``records`` are consecutive in their partitions, at least those of each key; ``below`` is what :func:`latest_by_key`
    says of older ones, None where there are none that matter.
    """
    followed = _with_previous(records)
    if below is not None:
        older = below.select(*KEY, F.col("before").alias("_older"), F.col("top").alias("_older_top"))
        joined = followed.join(older, list(KEY), how="left")
        followed = joined.withColumns(
            {"_before": F.coalesce("_before", "_older"), "_top": F.greatest("_top", "_older_top")}
        )
    lone = _is_tombstone() & is_compacted & F.col("key").isNotNull() & ~_is_redundant()
    others = [column for column in records.columns if column not in ("rule", "is_snapshot")]
    return followed.select(
        *others,
        F.when(lone, F.lit(LONE)).otherwise(F.col("rule")).alias("rule"),
        (lone | F.col("is_snapshot")).alias("is_snapshot"),
    ).select(*records.columns)


def keys_to_look_up(records: DataFrame, is_compacted: Column) -> DataFrame:
    """Keys of which older records must be known: ``topic, partition, key`` and the ``offset`` below which."""
    judged = _with_previous(records).where(_is_tombstone() & is_compacted)
    open_ = judged.where(F.col("_before").isNull() | (_follows_delete() & ~_is_next()))
    return open_.groupBy(*KEY).agg(F.min("offset").alias("offset"))


def latest_by_key(records: DataFrame) -> DataFrame:
    """Of each KEY what decides about a tombstone behind these records: its newest one that is no tombstone (``before``,
    with ``offset``, ``op`` and ``place``) and the greatest place (``top``).
    """
    told = records.where(~_is_tombstone())
    return told.groupBy(*KEY).agg(F.max(_summary()).alias("before"), F.max(_place()).alias("top"))


def _with_previous(records: DataFrame) -> DataFrame:
    """With ``_before`` and ``_top`` as in :func:`latest_by_key`, of the key's records at hand before each."""
    below = Window.partitionBy(*KEY).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    says = ~_is_tombstone()
    return records.select(
        "*",
        F.last(F.when(says, _summary()), ignorenulls=True).over(below).alias("_before"),
        F.max(F.when(says, _place())).over(below).alias("_top"),
    )


def _summary() -> Column:
    """``op`` is never NULL: a record that cannot be read is no delete."""
    return F.struct("offset", F.coalesce("op", F.lit("")).alias("op"), _place().alias("place"))


def _place() -> Column:
    """NULL without a position: then offsets order, and every delete deleted."""
    return F.concat("epoch", "position")


def _is_tombstone() -> Column:
    return F.coalesce(F.col("rule").isin(TOMBSTONE, LONE), F.lit(False))


def _is_redundant() -> Column:
    repeated = F.coalesce(F.col("_before.place") < F.col("_top"), F.lit(False))
    return _follows_delete() & (_is_next() | ~repeated)


def _follows_delete() -> Column:
    return F.col("_before.op").eqNullSafe("d")


def _is_next() -> Column:
    return F.coalesce(F.col("_before.offset") == F.col("offset") - 1, F.lit(False))
