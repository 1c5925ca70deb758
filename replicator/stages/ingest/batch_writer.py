"""Write a stream's batches to bronze: every record once (promise A).

Effects of one batch, in this order: 1. check that the batch continues what bronze has, 2. append it with the query's id
and the batch's number as progress. A crash before 2 leaves nothing; after it, the repeated batch is recognized by its
progress.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from replicator import failpoints
from replicator.errors import CheckpointBehindTable, ReplicatorError, TopicRecreated
from replicator.jvm.failures import FAILURES
from replicator.spec import Progress
from replicator.stages import engine_errors, tuning
from replicator.stages.bronze import PLACE, Ingestion, rows
from replicator.stages.ingest.bronze_state import BronzeTableState, current_application_id, repair_hint
from replicator.stages.ingest.pace import Pace


class BatchWriter:
    """The function for each micro-batch. It keeps the results of the start-up checks for the run."""

    def __init__(self, ingestion: Ingestion, pace: Pace) -> None:
        self._ingestion, self._pace = ingestion, pace
        self._application: str | None = None
        self._known_ids: dict[str, str] = {}
        self.written = 0
        self.seconds = 0.0
        self.failure: ReplicatorError | failpoints.Killed | None = None
        self.cause: Exception | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a batch, called by ``foreachBatch``. The error that stops it is stored in ``failure``, or its cause in
        ``cause``.
        """
        started, before = time.monotonic(), self.written
        try:
            self._write(batch, number)
            took = time.monotonic() - started
            self.seconds += took
            self._pace.wait(self.written - before, took, self._ingestion.batch_records)
        except ReplicatorError as error:  # Spark only passes on the error's text
            self.failure = error
            raise
        except FAILURES as error:  # as above
            self.failure, self.cause = engine_errors.to_lake_error(error, self._ingestion.source), error
            raise
        except failpoints.Killed as killed:  # the JVM waits forever for a callback that raises no Exception
            self.failure = killed
            raise RuntimeError(str(killed)) from killed

    def _write(self, batch: DataFrame, number: int) -> None:
        spark, at = batch.sparkSession, self._ingestion
        ids = {topic: identity for topic, identity in at.reader.topic_ids(spark).items() if identity is not None}
        records = rows(at.masked(batch), ids)
        if not tuning.is_large(spark):  # one task per Kafka partition, and each task writes a file per topic
            records = records.coalesce(spark.sparkContext.defaultParallelism)
        if self._application is None:
            self._application = self._start(spark)
            self._refuse_repetition(records, number)
        self._check_topic_ids(ids)
        failpoints.hit("bronze.batch_checked")
        self.written += at.format.append(records, at.table, Progress(self._application, number)).inserted
        failpoints.hit("bronze.batch_appended")

    def _start(self, spark: SparkSession) -> str:
        """Return the app id of this checkpoint, and remember the ids of the topics that bronze has (J5)."""
        at = self._ingestion
        self._known_ids = dict(BronzeTableState(spark, at).ids())
        return current_application_id(spark, at)

    def _refuse_repetition(self, records: DataFrame, number: int) -> None:
        """Raise CheckpointBehindTable if a batch that bronze counts as done contains records that bronze lacks
        (F-C3).
        """
        at = self._ingestion
        recorded = at.format.progress(records.sparkSession, at.table, self._application or "")
        if recorded is None or recorded.version < number:
            return
        present = at.format.read(records.sparkSession, at.table).select(*PLACE)
        if not records.select(*PLACE).join(present, PLACE, how="left_anti").isEmpty():
            raise CheckpointBehindTable(
                f"batch {number} in bronze has other records than the checkpoint plans for it",
                where=at.table.location,
                fix=repair_hint(at),
            )

    def _check_topic_ids(self, ids: Mapping[str, str]) -> None:
        for topic, identity in ids.items():
            if self._known_ids.setdefault(topic, identity) != identity:
                raise TopicRecreated.of(topic, self._ingestion.source)
