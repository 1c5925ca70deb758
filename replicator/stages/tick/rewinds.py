"""Detection of a source that was rewound (debezium.md J4): a record precedes an earlier one in the source's order, but
is newer and was never delivered before.

Only if some record is below the marks with a newer time is bronze searched, to see whether it is a redelivery.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from replicator.errors import SourceRewound
from replicator.jvm import expressions
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import watermarks

_CLOCKS_MS = 10 * 60 * 1000
"""A source's clock may be ahead of Kafka's by up to this much without the fast check for redeliveries missing the
original.
"""

_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, because the time in an event may be any number."""


def find(context: TickContext, records: DataFrame, suspects: Sequence[Row], routes: Routes) -> dict[str, SourceRewound]:
    """Return the errors of tables with suspects that are no redeliveries. ``suspects`` are rows of
    ``watermarks.compute`` of the described ``records`` in which a position regressed.
    """
    at = context.at
    tables = sorted({row["table"] for row in suspects})
    topics = frozenset().union(*(routes.topics(table) for table in tables))
    bronze = at.bronze.read(context.spark, at.lake.bronze(at.source.name), context.new_records.upto)
    bronze = bronze.where(F.col("topic").isin(*topics))
    if _are_redeliveries(context, records, tables, bronze, topics):
        return {}
    in_range = expressions.any_of(map(_from_first_fallen, suspects))
    event = F.min_by(F.struct("topic", "partition", "offset", "holder"), "offset").alias("event")
    with tuning.persist(watermarks.order_columns_by_folder(context.described(bronze, topics))) as places:
        events = watermarks.regressions(places).where(F.col("newer") & F.col("table").isin(*tables) & in_range)
        first = events.groupBy("table").agg(event).collect()
    return {row["table"]: _rewound_error(at, row["table"], row["event"]) for row in first}


def _are_redeliveries(
    context: TickContext, records: DataFrame, tables: Collection[str], bronze: DataFrame, topics: Collection[str]
) -> bool:
    """Return whether the records that arrived since the suspects were changed suffice to show that all of them are
    redeliveries, as after most restarts of a connector: then years of bronze need not be read. If not, all of bronze
    has to be searched.
    """
    marks = context.at.state.marks(context.new_records.continued)
    suspects = watermarks.regressed_records(watermarks.order_columns(records), marks).where(
        F.col("table").isin(*tables)
    )
    with tuning.persist(suspects) as doubted:
        changed = doubted.agg(F.min("source_ts_ms")).collect()[0][0]
        if changed is None:
            return False
        since = F.timestamp_millis(F.lit(min(max(changed - _CLOCKS_MS, 0), _LAST_MS)))
        recent = context.described(bronze.where(F.col("timestamp") >= since), topics)
        with tuning.persist(watermarks.order_columns(recent)) as places:
            return watermarks.drop_redeliveries(doubted, places).isEmpty()


def _from_first_fallen(suspect: Row) -> Column:
    """Return the condition for records of the partition from the first suspect on."""
    same = (F.col("topic") == suspect["topic"]) & (F.col("partition") == suspect["partition"])
    from_first: Column = same & (F.col("offset") >= suspect["fell"])
    return from_first


def _rewound_error(at: Refinement, table: str, event: Row) -> SourceRewound:
    topic, partition, offset, holder = event
    return SourceRewound(
        f"the source was rewound: offset {offset} of {topic}, partition {partition}, precedes offset {holder} in the "
        "source's order, but is newer and was never delivered before",
        where=f"{at.source.name}/{table}",
        fix="If the source was restored, reset or replaced, let its connector take a new snapshot, then start a new "
        f"epoch: `replicator epoch bump {at.source.name} --reason TEXT`.",
    )
