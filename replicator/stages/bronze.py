"""Kafka -> bronze: every record once, nothing parsed (promise A).

Effects of one batch, in this order: 1. check that the batch continues what bronze holds, 2. append with the query's id
and the batch's number as progress. A crash before 2 leaves nothing; after it, the repeated batch is recognised by its
progress.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from replicator import failpoints
from replicator.errors import (
    CheckpointBehindTable,
    OffsetsLost,
    ReplicatorError,
    TopicRecreated,
    TopicsMissing,
    Unreachable,
)
from replicator.lake import Lake
from replicator.protocols import Source, TableFormat
from replicator.spec import Progress, SourceSpec, Table
from replicator.stages import engine, masking, tuning
from replicator.stages.pace import Pace

_PLACE = ["topic", "partition", "offset"]


@dataclass(frozen=True)
class Ingestion:
    """Everything one source's bronze needs. ``trigger_seconds`` is for continuous runs; ``spec`` says what it may not
    keep.
    """

    source: str
    reader: Source
    format: TableFormat
    lake: Lake
    trigger_seconds: float = 1.0
    spec: SourceSpec | None = field(default=None, compare=False)

    @property
    def table(self) -> Table:
        """The bronze table."""
        return self.lake.bronze(self.source)

    def masked(self, records: DataFrame) -> DataFrame:
        """Records as they may be kept."""
        return records if self.spec is None else masking.masked(records, self.spec)


def rows(records: DataFrame, topic_ids: Mapping[str, str]) -> DataFrame:
    """Kafka records -> bronze rows (architecture section 4): text where the bytes are UTF-8, else ``undecodable``."""
    key, value = F.col("key"), F.col("value")
    bad_key, bad_value = ~_is_utf8(key), ~_is_utf8(value)
    ids = F.create_map(*[F.lit(part) for pair in topic_ids.items() for part in pair]) if topic_ids else None
    raw = F.struct(F.when(bad_key, key).alias("key"), F.when(bad_value, value).alias("value"))
    return records.select(
        "topic",
        (F.lit(None).cast("string") if ids is None else ids[F.col("topic")]).alias("topic_id"),
        "partition",
        "offset",
        "timestamp",
        F.when(~bad_key, key.cast("string")).alias("key"),
        F.when(~bad_value, value.cast("string")).alias("value"),
        "headers",
        F.when(bad_key | bad_value, raw).alias("undecodable"),
        F.current_timestamp().alias("ingested_at"),
    )


def sources_of(records: DataFrame) -> dict[str, str]:
    """Which source each topic belongs to: ``source.name`` where a record says it, else the first part of the topic."""
    named = F.regexp_replace("topic", "^__debezium-heartbeat[.]", "")
    told = F.coalesce(F.get_json_object("value", "$.payload.source.name"), F.get_json_object("value", "$.source.name"))
    by_topic = rows(records, {}).groupBy("topic").agg(F.first(told, ignorenulls=True).alias("source"))
    found = by_topic.select("topic", F.coalesce("source", F.split(named, r"\.")[0]).alias("source"))
    return {row["topic"]: row["source"] for row in found.collect()}


def ingest_files(spark: SparkSession, ingestion: Ingestion, topics: Sequence[str]) -> int:
    """Some topics of a bounded reader into bronze, skipping what bronze has already (architecture 9.6).

    Returns the rows added.
    """
    read = ingestion.reader.read(spark).where(F.col("topic").isin(*topics))
    records = rows(ingestion.masked(read), {}).dropDuplicates(_PLACE)
    if ingestion.format.version(spark, ingestion.table) is not None:
        present = ingestion.format.read(spark, ingestion.table).select(*_PLACE)
        records = records.join(present, _PLACE, how="left_anti")
    fresh = records.repartition("topic").sortWithinPartitions(*_PLACE)
    if fresh.isEmpty():
        return 0
    return ingestion.format.append(fresh, ingestion.table, None).inserted


@dataclass(frozen=True)
class Stream:
    """A running bronze query and the rows that it has written so far."""

    ingestion: Ingestion
    query: StreamingQuery
    writer: _BatchWriter

    @property
    def rows(self) -> int:
        """Rows appended by this run."""
        return self.writer.written

    @property
    def seconds(self) -> float:
        """What appending them took; that Spark plans and notes each batch besides is not in it."""
        return self.writer.seconds

    def finish(self) -> None:
        """Wait for the end; a failure comes out as one of our errors."""
        try:
            self.query.awaitTermination()
        except StreamingQueryException as error:
            raise self._translated(error) from error

    def check(self) -> None:
        """Raise what stopped the query, if something has."""
        error = self.query.exception()
        if error is not None:
            raise self._translated(error)

    def _translated(self, error: StreamingQueryException) -> BaseException:
        return self.writer.failure or translate(error, self.ingestion.source)


def ingest_stream(spark: SparkSession, ingestion: Ingestion, *, once: bool, pace: Pace | None = None) -> Stream:
    """Start the streaming query: all that is there now (``once``), or for ever, at a ``pace``.

    A run that goes on is tuned for small batches: a backlog takes an eighth longer, each later batch a third less.
    Raises Unreachable, and TopicsMissing where there is nothing to read once; a run that goes on waits for topics.
    """
    writer = _BatchWriter(ingestion, pace or Pace())
    if once and not ingestion.reader.topic_ids(spark):
        raise TopicsMissing(
            "no topic matches the source's pattern",
            where=ingestion.source,
            mend="Check `name` and `topics` in conf/sources, and that the connector is RUNNING.",
        )
    session = spark if once else tuning.session_for(spark, 0)
    query = (
        ingestion.reader.read(session)
        .writeStream.queryName(f"bronze {ingestion.source}")
        .option("checkpointLocation", ingestion.lake.checkpoint(ingestion.source))
        .foreachBatch(writer)
    )
    trigger = {"availableNow": True} if once else {"processingTime": f"{ingestion.trigger_seconds} seconds"}
    return Stream(ingestion, query.trigger(**trigger).start(), writer)


def translate(error: StreamingQueryException, source: str) -> ReplicatorError:
    """A stopped stream as an error with what to do next.

    Spark's Kafka source of this line has no error classes: class names and one sentence tell them apart.
    """
    text = str(error)
    if "data may have been lost" in text or "OffsetOutOfRangeException" in text:
        return OffsetsLost(
            "Kafka dropped records before they were read",
            where=source,
            mend="Take a new snapshot of the source's tables; then start with a new lake or a new topic prefix.",
        )
    if "org.apache.kafka.common.errors.TimeoutException" in text:
        return Unreachable("Kafka does not answer", where=source, mend="Check the broker, then run again.")
    silent = engine.out_of_reach(error, source)
    if silent is not None:
        return silent
    first = next((line for line in text.splitlines() if line.strip()), "the bronze stream failed")
    return ReplicatorError(f"the bronze stream of {source} failed: {first}", mend="`--debug` shows the trace.")


class _BatchWriter:
    """What happens to each micro-batch. Keeps, for one run, what the start-up checks found."""

    def __init__(self, ingestion: Ingestion, pace: Pace) -> None:
        self._ingestion, self._pace = ingestion, pace
        self._application: str | None = None
        self._known_ids: dict[str, str] = {}
        self.written = 0
        self.seconds = 0.0
        self.failure: ReplicatorError | failpoints.Killed | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        started, before = time.monotonic(), self.written
        try:
            self._write(batch, number)
            self.seconds += time.monotonic() - started
            self._pace.rest(self.written - before)
        except ReplicatorError as error:  # Spark passes on its text only
            self.failure = error
            raise
        except engine.FAILURES as error:  # as above
            self.failure = engine.out_of_reach(error, self._ingestion.source)
            raise
        except failpoints.Killed as killed:  # the JVM waits for ever for a callback that raises no Exception
            self.failure = killed
            raise RuntimeError(str(killed)) from killed

    def _write(self, batch: DataFrame, number: int) -> None:
        spark, at = batch.sparkSession, self._ingestion
        ids = at.reader.topic_ids(spark)
        records = rows(at.masked(batch), ids)
        if not tuning.is_large(spark):  # Kafka's partitions are tasks, and each task writes a file per topic
            records = records.coalesce(spark.sparkContext.defaultParallelism)
        if self._application is None:
            self._application = self._start(spark, number)
            self._refuse_repetition(records, number)
        self._same_topics(ids)
        failpoints.hit("bronze.batch_checked")
        self.written += at.format.append(records, at.table, Progress(self._application, number)).inserted
        failpoints.hit("bronze.batch_appended")

    def _start(self, spark: SparkSession, number: int) -> str:
        """The app id of this checkpoint, after F-C2: a fresh, restored or foreign checkpoint must not go on."""
        at = self._ingestion
        identity = spark.read.json(f"{at.lake.checkpoint(at.source)}/metadata").first()
        application = f"bronze/{at.source}/{identity['id'] if identity is not None else ''}"
        recorded = at.format.progress(spark, at.table, application)
        if recorded is None and at.format.version(spark, at.table) is not None and number == 0:
            raise CheckpointBehindTable(
                "bronze has rows, but its checkpoint is new: continuing would store every record twice",
                where=at.table.location,
                mend="Bring the checkpoint back, or give the lake a new root.",
            )
        if recorded is not None and recorded.version > number:
            raise CheckpointBehindTable(
                f"bronze has batch {recorded.version}, the checkpoint is at {number}: it is an older copy",
                where=at.table.location,
                mend="Bring the newest checkpoint back, or give the lake a new root.",
            )
        if recorded is not None:
            known = at.format.read(spark, at.table).where(F.col("topic_id").isNotNull())
            latest = known.groupBy("topic").agg(F.max_by("topic_id", "ingested_at").alias("id"))
            self._known_ids = {row["topic"]: row["id"] for row in latest.collect()}
        return application

    def _refuse_repetition(self, records: DataFrame, number: int) -> None:
        """A batch that bronze took for done must hold nothing that bronze lacks (F-C3)."""
        at = self._ingestion
        recorded = at.format.progress(records.sparkSession, at.table, self._application or "")
        if recorded is None or recorded.version < number:
            return
        present = at.format.read(records.sparkSession, at.table).select(*_PLACE)
        if not records.select(*_PLACE).join(present, _PLACE, how="left_anti").isEmpty():
            raise CheckpointBehindTable(
                f"batch {number} is in bronze with other records than the checkpoint plans for it",
                where=at.table.location,
                mend="Bring the newest checkpoint back, or give the lake a new root.",
            )

    def _same_topics(self, ids: Mapping[str, str]) -> None:
        for topic, identity in ids.items():
            if self._known_ids.setdefault(topic, identity) != identity:
                raise TopicRecreated(
                    f"topic {topic} was deleted and created again: its offsets start anew",
                    where=self._ingestion.source,
                    mend="Use a new topic prefix, or a lake with a new root.",
                )


def _is_utf8(column: Column) -> Column:
    """Whether bytes are UTF-8. NULL is. On Spark 3.5 only a detour through a text of Java's checks it (types.md section
    7), which has other characters where there is none: a format makes one, and looks at none of them.
    """
    text = F.format_string("%s", column.cast("string"))
    return F.coalesce(text.cast("binary") == column, F.lit(True))
