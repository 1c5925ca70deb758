"""Batches of a stream into bronze: every record once (promise A).

Effects of one batch, in this order: 1. check that the batch continues what bronze holds, 2. append with the query's id
and the batch's number as progress. A crash before 2 leaves nothing; after it, the repeated batch is recognised by its
progress.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import CheckpointBehindTable, ReplicatorError, TopicRecreated
from replicator.spec import Progress
from replicator.stages import engine, tuning
from replicator.stages.bronze import PLACE, Ingestion, rows
from replicator.stages.pace import Pace


@dataclass(frozen=True)
class Taken:
    """``Held`` of a source's bronze."""

    spark: SparkSession
    at: Ingestion

    def has(self, batch: int) -> bool:
        """By the progress of the stream that the checkpoint names."""
        recorded = self.at.format.progress(self.spark, self.at.table, application(self.spark, self.at))
        return recorded is not None and recorded.version >= batch

    def ends(self, topics: Sequence[str]) -> Mapping[tuple[str, int], int]:
        """Of the rows: a folder per topic."""
        if self.at.format.version(self.spark, self.at.table) is None:
            return {}
        rows = self.at.format.read(self.spark, self.at.table).where(F.col("topic").isin(*topics))
        ends = rows.groupBy("topic", "partition").agg((F.max("offset") + 1).alias("end")).collect()
        return {(row["topic"], row["partition"]): row["end"] for row in ends}


def application(spark: SparkSession, at: Ingestion) -> str:
    """By what the progress of a checkpoint's stream is known."""
    identity = spark.read.json(f"{at.lake.checkpoint(at.source)}/metadata").first()
    return f"bronze/{at.source}/{identity['id'] if identity is not None else ''}"


class BatchWriter:
    """What happens to each micro-batch. Keeps, for one run, what the start-up checks found."""

    def __init__(self, ingestion: Ingestion, pace: Pace) -> None:
        self._ingestion, self._pace = ingestion, pace
        self._application: str | None = None
        self._known_ids: dict[str, str] = {}
        self.written = 0
        self.seconds = 0.0
        self.failure: ReplicatorError | failpoints.Killed | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """A batch as ``foreachBatch`` hands it over; what stops it is kept as ``failure``."""
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
        this = application(spark, at)
        recorded = at.format.progress(spark, at.table, this)
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
        return this

    def _refuse_repetition(self, records: DataFrame, number: int) -> None:
        """A batch that bronze took for done must hold nothing that bronze lacks (F-C3)."""
        at = self._ingestion
        recorded = at.format.progress(records.sparkSession, at.table, self._application or "")
        if recorded is None or recorded.version < number:
            return
        present = at.format.read(records.sparkSession, at.table).select(*PLACE)
        if not records.select(*PLACE).join(present, PLACE, how="left_anti").isEmpty():
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
