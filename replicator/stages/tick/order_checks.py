"""Checks that protect the order: a source that was rewound, partitions that were added, an order that was changed
(debezium.md J4, Q8, Q9; R6). A table that is stopped here has not been written to.

Detecting suspects is free: the marks of a range come with its survey. Only if some record is below them with a newer
time is bronze searched, to see whether it is a redelivery.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import envelope, position
from replicator.errors import PartitionsGrew, SourceRewound, TableStopped
from replicator.jvm import expressions
from replicator.spec import BY_GTID, BY_POSITION, BY_TIME
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import normalization, transaction_cut
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.epochs import Epochs
from replicator.stages.tick.routing import BEGINNING, NULL_DELETES, Routes
from replicator.transforms import watermarks

_ORDER_TEXTS = {
    BY_POSITION: "the table is ordered by positions",
    BY_TIME: f"`sequence_by` is {BY_TIME}",
    BY_GTID: "`binlog_position` is gtid",
    "file_pos_row": "`binlog_position` is file_pos_row",
}


_CLOCKS_MS = 10 * 60 * 1000
"""A source's clock may be ahead of Kafka's by up to this much without the fast check for redeliveries missing the
original.
"""

_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, because the time in an event may be any number."""


@dataclass(frozen=True)
class TickContext:
    """What one tick needs to check the order of one source."""

    spark: SparkSession
    at: Refinement
    new_records: NewRecords
    epochs: Epochs

    def described(self, records: DataFrame, topics: Collection[str]) -> DataFrame:
        """Describe bronze records of these topics, with their epoch."""
        return envelope.describe(self.in_epochs(records, topics), self.at.source.reading)

    def describe_any_shape(self, records: DataFrame, topics: Collection[str]) -> AbstractContextManager[DataFrame]:
        """The same for records that may have to be normalized first; persisted while the context is open."""
        return normalization.describe_history(self.in_epochs(records, topics), self.at.source, is_unusual=True)

    def in_epochs(self, records: DataFrame, topics: Collection[str]) -> DataFrame:
        """Return bronze records of these topics with their epoch."""
        return records.withColumn("epoch", self.epochs.column(topics))


def load_watermarks(watch: TickContext, bronze: str, records: DataFrame) -> None:
    """Load the marks that precede ``records``, the range being read; derive missing ones from bronze."""
    at, reached = watch.at, watch.at.state
    reached.open(at.control, at.lake.reached(at.source.name), bronze)
    reached.drop_older_epochs(watch.epochs.newest)
    missing = reached.missing(watch.new_records.after, BEGINNING)
    may_wait = bool(missing) and transaction_cut.load_or_create(at, bronze) is not None
    for start in sorted({watch.new_records.after[topic] for topic in missing}):
        lows = {topic: low for topic, low in missing.items() if watch.new_records.after[topic] == start}
        between = watch.described(_between(watch, lows, start, records), lows)
        with tuning.persist(watermarks.order_columns(between)) as places:
            found = watermarks.compute(places, reached.marks(lows)).collect()
            reached.advance(start, found, lows, rough=may_wait)


def _between(watch: TickContext, lows: Mapping[str, int], start: int, records: DataFrame) -> DataFrame:
    """Read the records of topics between what is known of each and the range; if the log no longer reaches back, all
    records with lower offsets than the range's.
    """
    at, spark = watch.at, watch.spark
    table = at.lake.bronze(at.source.name)
    after: dict[tuple[str, ...], int] = {(topic,): low for topic, low in lows.items()}
    known = at.bronze.added(spark, table, after, start) if min(lows.values()) != BEGINNING else None
    if known is not None:
        return known
    lowest = records.groupBy("topic", "partition").agg(F.min("offset").alias("lowest"))
    everything = at.bronze.read(spark, table, watch.new_records.upto).where(F.col("topic").isin(*lows))
    below = everything.join(F.broadcast(lowest), ["topic", "partition"], how="left")
    return below.where(F.col("lowest").isNull() | (F.col("offset") < F.col("lowest"))).drop("lowest")


def find_stops(
    watch: TickContext,
    records: DataFrame,
    found: Sequence[Row],
    routes: Routes,
    orders: Mapping[str, str],
    existing: Collection[str],
) -> dict[str, TableStopped]:
    """Return the tables that must not continue, each with its error. ``found`` are rows of ``watermarks.compute`` of
    the described ``records``; ``orders`` maps each table with new records to what orders it (``SourceSpec.order``);
    ``existing`` are the tables that exist already.
    """
    by_offset = set(routes.by_offset)
    positioned = [row for row in found if row["topic"] not in by_offset and orders.get(row["table"]) != BY_TIME]
    suspects = [row for row in positioned if row["fell"] is not None]
    return {
        **(_find_rewound(watch, records, suspects, routes) if suspects else {}),
        **_find_new_partitions(watch, found, routes, by_offset),
        **_find_several_topics(watch, found, routes, orders),
        **_find_several_domains(watch, found, routes),
        **find_reordered(watch.at, {table: order for table, order in orders.items() if table in existing}),
        **_find_reordered_histories(watch, {table: order for table, order in orders.items() if table not in existing}),
    }


def _find_rewound(
    watch: TickContext, records: DataFrame, suspects: Sequence[Row], routes: Routes
) -> dict[str, TableStopped]:
    """Return the errors of tables with suspects that are no redeliveries (J4)."""
    at = watch.at
    tables = sorted({row["table"] for row in suspects})
    topics = frozenset().union(*(routes.topics(table) for table in tables))
    bronze = at.bronze.read(watch.spark, at.lake.bronze(at.source.name), watch.new_records.upto)
    bronze = bronze.where(F.col("topic").isin(*topics))
    if _are_redeliveries(watch, records, tables, bronze, topics):
        return {}
    in_range = expressions.any_of(map(_from_first_fallen, suspects))
    event = F.min_by(F.struct("topic", "partition", "offset", "holder"), "offset").alias("event")
    with tuning.persist(watermarks.order_columns_by_folder(watch.described(bronze, topics))) as places:
        events = watermarks.regressions(places).where(F.col("newer") & F.col("table").isin(*tables) & in_range)
        first = events.groupBy("table").agg(event).collect()
    return {row["table"]: _rewound_error(at, row["table"], row["event"]) for row in first}


def _are_redeliveries(
    watch: TickContext, records: DataFrame, tables: Collection[str], bronze: DataFrame, topics: Collection[str]
) -> bool:
    """Return whether the records that arrived since the suspects were changed suffice to show that all of them are
    redeliveries, as after most restarts of a connector: then years of bronze need not be read. If not, all of bronze
    has to be searched.
    """
    marks = watch.at.state.marks(watch.new_records.continued)
    suspects = watermarks.regressed_records(watermarks.order_columns(records), marks).where(
        F.col("table").isin(*tables)
    )
    with tuning.persist(suspects) as doubted:
        changed = doubted.agg(F.min("source_ts_ms")).collect()[0][0]
        if changed is None:
            return False
        since = F.timestamp_millis(F.lit(min(max(changed - _CLOCKS_MS, 0), _LAST_MS)))
        recent = watch.described(bronze.where(F.col("timestamp") >= since), topics)
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


def _find_new_partitions(
    watch: TickContext, found: Iterable[Row], routes: Routes, by_offset: Collection[str]
) -> dict[str, TableStopped]:
    """Stop tables whose topic, ordered by offset, has a new partition. Offsets are comparable within a partition only
    (Q8), and a partition numbered above all others may have taken over keys from them.
    """
    stopped: dict[str, TableStopped] = {}
    for row in found:
        topic, partition = row["topic"], row["partition"]
        level = watch.at.state.watermarks.get(topic)
        if topic not in by_offset or level is None or watch.new_records.after.get(topic, BEGINNING) == BEGINNING:
            continue
        newest = max((mark.epoch for mark in level.marks.values()), default="")
        if level.partitions and partition > max(level.partitions) and row["mark"]["place"][:4] <= newest:
            for table in routes.tables.get(topic, ()):
                stopped[table] = _new_partition_error(watch.at, table, topic, partition)
    return stopped


def _new_partition_error(at: Refinement, table: str, topic: str, partition: int) -> PartitionsGrew:
    return PartitionsGrew(
        f"partition {partition} of {topic} is new, and its records are ordered only by offset",
        where=f"{at.source.name}/{table}",
        fix="If partitions were added, keys have moved: let the connector take a new snapshot. Then, or if the "
        f"partition just had no records before: `replicator epoch bump {at.source.name} --reason TEXT`.",
    )


def _find_several_topics(
    watch: TickContext, found: Iterable[Row], routes: Routes, orders: Mapping[str, str]
) -> dict[str, TableStopped]:
    """Stop tables that several topics ordered by offset carry. Offsets are comparable within a topic only (Q8): a row
    that moves between topics is a delete in one and an insert in the other, in no order (C9). Tables whose shards keep
    rows of different topics apart may continue, and so may those of which all topics but one belong to an epoch that
    has ended.
    """
    newest = dict.fromkeys(routes.by_offset, "")
    for row in found:
        if row["topic"] in newest:
            newest[row["topic"]] = max(newest[row["topic"]], row["mark"]["place"][:4])
    for topic, level in watch.at.state.watermarks.items():
        if topic in newest and watch.new_records.after.get(topic) != BEGINNING:
            newest[topic] = max([newest[topic], *(mark.epoch for mark in level.marks.values())])
    nulls = routes.topics_of_mode(NULL_DELETES)  # deletes there have no time
    stopped: dict[str, TableStopped] = {}
    for table, order in orders.items():
        topics = routes.topics(table).intersection(nulls if order == BY_TIME else newest)
        last = max((newest[topic] for topic in topics), default="")
        current = sorted(topic for topic in topics if last and newest[topic] == last)
        if len(current) > 1 and not watch.at.source.declaration(table).shards:
            stopped[table] = _several_topics_error(watch.at, table, current)
    return stopped


def _several_topics_error(at: Refinement, table: str, topics: Sequence[str]) -> TableStopped:
    return TableStopped(
        f"{' and '.join(topics)} carry the table, and their records are ordered only by offset",
        where=f"{at.source.name}/{table}",
        fix="Use one topic for it (publish_via_partition_root, for a partitioned table of PostgreSQL), start a new "
        f"epoch: `replicator epoch bump {at.source.name} --reason TEXT`, and then let the connector take a new "
        "snapshot. Or make the connector send positions, under a new topic prefix.",
    )


def _find_several_domains(watch: TickContext, found: Iterable[Row], routes: Routes) -> dict[str, TableStopped]:
    """Stop tables whose topic has changes of several GTID domains in its newest epoch: their numbers have no common
    order (Q4).
    """
    seen: dict[str, set[tuple[str, str]]] = {}
    for row in found:
        seen.setdefault(row["topic"], set()).add((row["mark"]["place"][:4], row["stream"]))
    stopped: dict[str, TableStopped] = {}
    for topic, streams_now in seen.items():
        level = watch.at.state.watermarks.get(topic)
        before = {} if level is None else level.marks
        streams = streams_now | {(mark.epoch, stream) for (_, stream), mark in before.items()}
        newest = max(epoch for epoch, _ in streams)
        stream_parts = {stream.rpartition(position.DOMAIN_PREFIX) for epoch, stream in streams if epoch == newest}
        domains = sorted(domain for _, mark, domain in stream_parts if mark)
        if len(domains) > 1:
            for table in routes.tables.get(topic, ()):
                stopped[table] = _several_domains_error(watch.at, table, topic, domains)
    return stopped


def _several_domains_error(at: Refinement, table: str, topic: str, domains: Sequence[str]) -> TableStopped:
    return TableStopped(
        f"{topic} has changes of the GTID domains {' and '.join(domains)}, whose numbers have no common order",
        where=f"{at.source.name}/{table}",
        fix="Write to one domain only, and start a new epoch after the others' changes: `replicator epoch bump "
        f"{at.source.name} --reason TEXT`.",
    )


def find_reordered(at: Refinement, orders: Mapping[str, str]) -> dict[str, TableStopped]:
    """Return an error for each existing table whose order was changed: its rows hold positions of the other kind
    (Q9).
    """
    return {
        table: TableStopped(
            f"{_ORDER_TEXTS[order]} now, but its rows were ordered by {before}",
            where=f"{at.source.name}/{table}",
            fix="Revert the setting, or rebuild the table in the other order: "
            f"`replicator rebuild {at.source.name}/{table}`.",
        )
        for table, order in orders.items()
        for before in [at.state.orders.get(table, BY_POSITION)]
        if order != before
    }


def _find_reordered_histories(watch: TickContext, orders: Mapping[str, str]) -> dict[str, TableStopped]:
    """The same for a table that was removed without its history, whose positions are of the other kind."""
    at = watch.at
    histories = {table: at.lake.history(at.source.name, table) for table in find_reordered(at, orders)}
    return {
        table: TableStopped(
            f"{_ORDER_TEXTS[orders[table]]} now, but its history was ordered by "
            f"{at.state.orders.get(table, BY_POSITION)}",
            where=f"{at.source.name}/{table}",
            fix=f"Revert the setting, or remove the history too, which is rebuilt from bronze: {history.location}.",
        )
        for table, history in histories.items()
        if at.silver.version(watch.spark, history) is not None
    }
