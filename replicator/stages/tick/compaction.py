"""What bronze knows of keys whose tombstones stand alone in a range (debezium.md B5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.tick.rewind import Watch
from replicator.transforms import compaction


@contextmanager
def marked(watch: Watch, records: DataFrame) -> Iterator[DataFrame]:
    """Described records of a range with the rule LONE where a tombstone is a delete, kept for the time of the block."""
    is_compacted = compaction.compacted(watch.at.source)
    if is_compacted is None:
        yield records
        return
    below = _below(watch, compaction.wanted(records, is_compacted))
    with tuning.kept(compaction.marked(records, is_compacted, below)) as told:
        yield told


def _below(watch: Watch, wanted: DataFrame) -> DataFrame | None:
    """What ``compaction.newest`` says of older records of these keys; None where nothing has to be looked for."""
    at, news = watch.at, watch.news
    continued = news.continued
    keys = wanted.where(F.col("topic").isin(*continued)).localCheckpoint() if continued else None
    if keys is None or keys.isEmpty():
        return None
    bronze = at.bronze.read(watch.spark, at.lake.bronze(at.source.name), news.upto)
    limits = keys.withColumnRenamed("offset", "_limit")
    older = bronze.where(F.col("topic").isin(*continued)).join(F.broadcast(limits), list(compaction.KEY))
    with watch.any_shape(older.where(F.col("offset") < F.col("_limit")).drop("_limit"), continued) as described:
        return compaction.newest(described).localCheckpoint()
