"""Lone tombstones: log compaction has removed the delete before them, and they are all that is left of it
(debezium.md B5).

Kafka keeps the newest record of each key, which for a deleted row is the tombstone. A tombstone whose delete is still
there adds nothing. The two must be told apart: the position of a lone tombstone in the source's order is a guess (Q6),
and a guess about a mere redelivery would delete a row for good. So a tombstone is lone if the newest record of its key
before it is

- not a delete; or
- a redelivered delete that is older than the row, so that it deleted nothing, and is not the record right before the
  tombstone: what stood between the two is gone. (By the letter of B5 any delete would do; a read that ended after a
  redelivered one then missed the delete of the row, see ``tests/unit/test_lone_tombstones.py``.)
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator.debezium.classification import TOMBSTONE
from replicator.jvm import expressions
from replicator.spec import Declaration, SourceSpec

LONE = "lone_tombstone"
"""The rule name of a tombstone that deletes the row of its key, if its topic carries one table."""

KEY = ("topic", "partition", "key")
"""Compaction compares keys byte by byte within a partition."""


def compacted_topics(source: SourceSpec) -> Column | None:
    """Whether a record's topic is declared as compacted; None if none is."""
    if not source.has_compacted_topics:
        return None
    if source.default.compacted_topic:
        return ~_is_topic_of(source, [table for table in source.tables if not table.compacted_topic])
    return _is_topic_of(source, [table for table in source.tables if table.compacted_topic])


def _is_topic_of(source: SourceSpec, tables: Sequence[Declaration]) -> Column:
    """Whether a record's topic is that of one of these tables, or of one of their shards."""
    own = F.col("topic").isin(*[source.topic(each.table) for each in tables])
    shards = [F.col("topic").rlike(rf"^\Q{source.name}.\E(?:{each.shards})$") for each in tables if each.shards]
    return expressions.any_of([own, *shards])


def mark_lone(records: DataFrame, is_compacted: Column, below: DataFrame | None = None) -> DataFrame:
    """Mark lone tombstones of compacted topics with the rule LONE. Like a snapshot's rows they rank above everything
    before them (``is_snapshot``).

    ``records`` are described records with their ``epoch``, consecutive in their partitions, at least those of each key;
    ``below`` is the result of :func:`latest_by_key` for older ones, None if there are none that matter.
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
    """Keys whose older records must be looked up: ``topic, partition, key``, and the ``offset`` below which."""
    judged = _with_previous(records).where(_is_tombstone() & is_compacted)
    open_ = judged.where(F.col("_before").isNull() | (_follows_delete() & ~_is_next()))
    return open_.groupBy(*KEY).agg(F.min("offset").alias("offset"))


def latest_by_key(records: DataFrame) -> DataFrame:
    """Per KEY what decides whether a tombstone after these records is lone: the newest record that is not a tombstone
    (``before``, with ``offset``, ``op`` and ``place``) and the greatest place (``top``).
    """
    others = records.where(~_is_tombstone())
    return others.groupBy(*KEY).agg(F.max(_summary()).alias("before"), F.max(_place()).alias("top"))


def _with_previous(records: DataFrame) -> DataFrame:
    """Records with ``_before`` and ``_top`` as in :func:`latest_by_key`, of the key's earlier records in this batch."""
    below = Window.partitionBy(*KEY).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    says = ~_is_tombstone()
    return records.select(
        "*",
        F.last(F.when(says, _summary()), ignorenulls=True).over(below).alias("_before"),
        F.max(F.when(says, _place())).over(below).alias("_top"),
    )


def _summary() -> Column:
    """STRUCT<offset, op, place>; ``op`` is never NULL: an unreadable record is not a delete."""
    return F.struct("offset", F.coalesce("op", F.lit("")).alias("op"), _place().alias("place"))


def _place() -> Column:
    """Epoch and position; NULL without a position: then offsets give the order, and every delete took effect."""
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
