"""``replicator epoch``: declare that a source's order starts over, in a new epoch (debezium.md J4, Q2, Q8)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names, offsets
from replicator.debezium import envelope
from replicator.errors import ConfigError, TableMissing
from replicator.jvm import expressions
from replicator.lake import Lake
from replicator.protocols import Control, ControlReader, TableFormat
from replicator.spec import BY_TIME, Reading
from replicator.stages import tuning
from replicator.stages.tick import arrivals, epochs, routing, source_state, transaction_cut
from replicator.transforms import watermarks

_AT_THE_END = "bronze ends here"


@dataclass(frozen=True)
class EpochStart:
    """The first offset of one partition in an epoch. ``why``: ``bronze ends here``, ``the source was rewound here``,
    ``another partition was rewound``, ``partition is new`` or ``as told``.
    """

    epoch: int
    topic: str
    partition: int
    offset: int
    why: str


@dataclass(frozen=True)
class LakeSource:
    """A source in a lake; its tables are in the format ``silver``, its records in ``format``."""

    source: str
    lake: Lake
    format: TableFormat
    control: Control
    silver: TableFormat


def bump(
    spark: SparkSession, at: LakeSource, reason: str, requested: Mapping[offsets.TopicPartition, int]
) -> list[EpochStart]:
    """Start a new epoch and return where each partition begins it, sorted by topic and partition. ``requested`` are
    offsets by (topic, partition) that the operator sets.

    Otherwise a partition begins the epoch where the source went back, if silver would stop for that; where another
    partition of its topic went back, at its first record since then; else after the last record in bronze. Partitions
    that were added to a topic without positions begin at their first record, as does every topic and partition that
    appears later. Raises TableMissing without bronze, ConfigError for a partition that bronze does not have.
    """
    identity = at.format.identity(spark, at.lake.bronze(at.source))
    if identity is None:
        raise TableMissing(f"source {at.source} has no records in this lake", where=at.lake.root)
    before = epochs.load(at.control, at.lake.epochs(at.source))
    known = source_state.SourceState()
    known.open(at.control, at.lake.reached(at.source), identity)
    spark = tuning.session_for(spark, at.format.size(spark, at.lake.bronze(at.source)), exact_names=True)
    bronze = at.format.read(spark, at.lake.bronze(at.source))
    ends = {(r[0], r[1]): r[2] + 1 for r in bronze.groupBy("topic", "partition").agg(F.max("offset")).collect()}
    unknown = next((place for place in requested if place not in ends), None)
    if unknown is not None:
        raise ConfigError(f"bronze has no partition {unknown[1]} of topic {unknown[0]}", where=at.source)
    by_offset = set(routing.load_routes(at.control, at.lake.routes(at.source), identity).by_offset)
    records = _read_envelopes(bronze.where(~F.col("topic").isin(*by_offset)), known.orders.values())
    records = records.withColumn("epoch", before.column({topic for topic, _ in ends}))
    new = {place for place in ends if place[0] in by_offset and _is_new_partition(known, *place)}
    with tuning.persist(watermarks.order_columns_by_folder(records)) as places:
        falls = _rewinds(places, [table for table, order in known.orders.items() if order == BY_TIME])
        found = _Boundaries(requested, falls, _first_after_rewind(places, falls), new)
    number = len(before.bumps) + 1
    starts = [_start(number, place, end, found) for place, end in sorted(ends.items())]
    by_topic: dict[str, dict[int, int]] = {}
    for start in starts:
        by_topic.setdefault(start.topic, {})[start.partition] = start.offset
    at.control.put(at.lake.epochs(at.source), before.next(by_topic, reason).value())
    return starts


def tables_to_rebuild(spark: SparkSession, at: LakeSource, starts: Sequence[EpochStart]) -> list[str]:
    """Return the silver tables, without their source, that had read records of the new epoch before it was declared, if
    only in their history. Under the old order these records lost against older rows, and began surplus states of the
    history; only a rebuild corrects that.
    """
    bronze = at.lake.bronze(at.source)
    identity = at.format.identity(spark, bronze) or ""
    routes = routing.load_routes(at.control, at.lake.routes(at.source), identity)
    early = {(each.topic, each.partition): each.offset for each in starts if each.why != _AT_THE_END}
    roots = (at.lake.silver_root(at.source), at.lake.history_root(at.source))
    tables = {names.decode_table(folder) for root in roots for folder in at.silver.tables(spark, root)}
    found = []
    for name in sorted(tables):
        topics = routes.topics(name) & {topic for topic, _ in early}
        read = _read_version(spark, at, name, identity) if topics else None
        if read is not None:
            records = arrivals.read_as_of(spark, at.format, bronze, topics, read)
            if records is None or not records.where(transaction_cut.at_or_after(early)).isEmpty():
                found.append(name)
    return found


def _read_version(spark: SparkSession, at: LakeSource, name: str, identity: str) -> int | None:
    """Return the version of bronze up to which a table or its history has read; the history commits first."""
    tables = (at.lake.silver(at.source, name), at.lake.history(at.source, name))
    existing = [place for place in tables if at.silver.version(spark, place) is not None]
    progresses = [at.silver.progress(spark, place, identity) for place in existing]
    return max((each.version for each in progresses if each is not None), default=None)


def list_epochs(facts: ControlReader, lake: Lake, source: str) -> list[epochs.Epoch]:
    """Return all epochs of a source after the first."""
    return list(epochs.load(facts, lake.epochs(source)).bumps)


@dataclass(frozen=True)
class _Rewind:
    """The first record below the position that its partition had reached, and the time at which the source went back
    (by its own clock, in ms since 1970, UTC).
    """

    offset: int
    ms: int


@dataclass(frozen=True)
class _Boundaries:
    """The offsets at which partitions begin an epoch: ``told`` by the operator, ``falls`` where the source went back,
    ``since`` where another partition of the topic was rewound; ``new`` partitions begin at their first record.
    """

    told: Mapping[offsets.TopicPartition, int]
    falls: Mapping[offsets.TopicPartition, _Rewind]
    since: Mapping[offsets.TopicPartition, int]
    new: Collection[offsets.TopicPartition]


def _start(epoch: int, place: offsets.TopicPartition, end: int, boundaries: _Boundaries) -> EpochStart:
    if place in boundaries.told:
        return EpochStart(epoch, *place, boundaries.told[place], "as told")
    if place in boundaries.falls:
        return EpochStart(epoch, *place, boundaries.falls[place].offset, "the source was rewound here")
    if place in boundaries.since:
        return EpochStart(epoch, *place, boundaries.since[place], "another partition was rewound")
    if place in boundaries.new:
        return EpochStart(epoch, *place, 0, "partition is new")
    return EpochStart(epoch, *place, end, _AT_THE_END)


def _read_envelopes(records: DataFrame, orders: Iterable[str]) -> DataFrame:
    """Return the records described by their envelopes, with positions in the orders that their tables use."""
    binlog_orders = set(orders) - {BY_TIME}
    return envelope.describe(records, Reading(binlog=binlog_orders.pop() if binlog_orders else "file_pos"))


def _rewinds(places: DataFrame, by_time: Collection[str]) -> dict[offsets.TopicPartition, _Rewind]:
    """Return where each partition first went back: its first record below a mark that a newer record is below, too."""
    below = watermarks.regressions(places).where(~F.col("table").isin(*by_time)).groupBy("topic", "partition", "holder")
    newer = F.min(F.when(F.col("newer"), F.col("source_ts_ms"))).alias("ms")
    starts = below.agg(F.min("offset").alias("start"), newer).where(F.col("ms").isNotNull())
    first = starts.groupBy("topic", "partition").agg(F.min("start").alias("start"), F.min("ms").alias("ms")).collect()
    return {(row["topic"], row["partition"]): _Rewind(row["start"], row["ms"]) for row in first}


def _first_after_rewind(
    places: DataFrame, falls: Mapping[offsets.TopicPartition, _Rewind]
) -> dict[offsets.TopicPartition, int]:
    """Return the first record of each partition since another one of its topic went back. That record may be above
    everything that its own partition had reached, and yet a TRUNCATE or a key change in the other partition must not
    count as newer than what came after it.
    """
    went_back: dict[str, int] = {}
    for (topic, _), fall in falls.items():
        went_back[topic] = min(fall.ms, went_back.get(topic, fall.ms))
    later = [(F.col("topic") == topic) & (F.col("source_ts_ms") >= ms) for topic, ms in went_back.items()]
    first = places.where(expressions.any_of(later)).groupBy("topic", "partition")
    return {(row[0], row[1]): row[2] for row in first.agg(F.min("offset")).collect()}


def _is_new_partition(known: source_state.SourceState, topic: str, partition: int) -> bool:
    """Whether silver has applied records of the topic, but none of the partition."""
    level = known.watermarks.get(topic)
    return level is not None and partition not in level.partitions
