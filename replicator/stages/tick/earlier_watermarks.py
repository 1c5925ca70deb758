"""The watermarks that precede the range that a tick reads."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.tick import transaction_cut
from replicator.stages.tick.routing import BEGINNING
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import watermarks


def load(context: TickContext, bronze: str, records: DataFrame) -> None:
    """Load the marks that precede ``records``, the range being read; derive missing ones from bronze."""
    at, reached = context.at, context.at.state
    reached.open(at.control, at.lake.reached(at.source.name), bronze)
    reached.drop_older_epochs(context.epochs.newest)
    missing = reached.missing(context.new_records.after, BEGINNING)
    may_wait = bool(missing) and transaction_cut.load_or_create(at, bronze) is not None
    for start in sorted({context.new_records.after[topic] for topic in missing}):
        lows = {topic: low for topic, low in missing.items() if context.new_records.after[topic] == start}
        between = context.described(_between(context, lows, start, records), lows)
        with tuning.persist(watermarks.order_columns(between)) as places:
            found = watermarks.compute(places, reached.marks(lows)).collect()
            reached.advance(start, found, lows, rough=may_wait)


def _between(context: TickContext, lows: Mapping[str, int], start: int, records: DataFrame) -> DataFrame:
    """Read the records of topics between what is known of each and the range; if the log no longer reaches back, all
    records with lower offsets than the range's.
    """
    at, spark = context.at, context.spark
    table = at.lake.bronze(at.source.name)
    after: dict[tuple[str, ...], int] = {(topic,): low for topic, low in lows.items()}
    known = at.bronze.added(spark, table, after, start) if min(lows.values()) != BEGINNING else None
    if known is not None:
        return known
    lowest = records.groupBy("topic", "partition").agg(F.min("offset").alias("lowest"))
    everything = at.bronze.read(spark, table, context.new_records.upto).where(F.col("topic").isin(*lows))
    below = everything.join(F.broadcast(lowest), ["topic", "partition"], how="left")
    return below.where(F.col("lowest").isNull() | (F.col("offset") < F.col("lowest"))).drop("lowest")
