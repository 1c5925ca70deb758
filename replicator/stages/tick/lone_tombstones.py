"""Look up in bronze what decides whether a tombstone that stands alone in a range is a delete (debezium.md B5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import lone_tombstones


@contextmanager
def mark_lone_tombstones(context: TickContext, records: DataFrame) -> Iterator[DataFrame]:
    """Yield the described records of a range, with the rule LONE where a tombstone is a delete; persisted while the
    context is open.
    """
    is_compacted = lone_tombstones.compacted_topics(context.at.source)
    if is_compacted is None:
        yield records
        return
    below = _below(context, lone_tombstones.keys_to_look_up(records, is_compacted))
    with tuning.persist(lone_tombstones.mark_lone(records, is_compacted, below)) as marked:
        yield marked


def _below(context: TickContext, wanted: DataFrame) -> DataFrame | None:
    """Return ``lone_tombstones.latest_by_key`` of the older records of these keys; None if nothing has to be looked
    up.
    """
    at, news = context.at, context.new_records
    continued = news.continued
    keys = wanted.where(F.col("topic").isin(*continued)).localCheckpoint() if continued else None
    if keys is None or keys.isEmpty():
        return None
    bronze = at.bronze.read(context.spark, at.lake.bronze(at.source.name), news.upto)
    limits = keys.withColumnRenamed("offset", "_limit")
    older = bronze.where(F.col("topic").isin(*continued)).join(F.broadcast(limits), list(lone_tombstones.KEY))
    with context.describe_any_shape(
        older.where(F.col("offset") < F.col("_limit")).drop("_limit"), continued
    ) as described:
        return lone_tombstones.latest_by_key(described).localCheckpoint()
