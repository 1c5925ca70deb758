"""Kafka -> bronze as a stream: all that is there now, or continuously."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from replicator import brokers
from replicator.errors import OffsetsLost, ReplicatorError, TopicsMissing, Unreachable
from replicator.jvm import causes
from replicator.jvm.failures import FAILURES
from replicator.stages import engine_errors, tuning
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest.batch_writer import BatchWriter
from replicator.stages.ingest.bronze_state import BronzeTableState, refuse_mismatch
from replicator.stages.ingest.pace import Pace


@dataclass(frozen=True)
class Stream:
    """A running bronze query and the rows that it has written so far."""

    ingestion: Ingestion
    query: StreamingQuery
    writer: BatchWriter
    state: BronzeTableState

    @property
    def rows(self) -> int:
        """Rows appended by this run."""
        return self.writer.written

    @property
    def seconds(self) -> float:
        """The time spent appending them, without Spark's time for planning and recording each batch."""
        return self.writer.seconds

    def finish(self) -> None:
        """Wait for the end. Raises a failure as one of our errors."""
        try:
            self.query.awaitTermination()
        except StreamingQueryException as error:
            raise self._translated(error) from error

    def check(self) -> None:
        """Raise the error that stopped the query, if any."""
        error = self.query.exception()
        if error is not None:
            raise self._translated(error)

    def _translated(self, error: StreamingQueryException) -> BaseException:
        if self.writer.failure is not None:
            return self.writer.failure
        found = translate(error, self.ingestion.source, self.writer.cause)
        may_know_more = isinstance(found, OffsetsLost) or _is_silent(error) or brokers.is_refusal(str(error))
        return self._asked() or found if may_know_more else found

    def _asked(self) -> ReplicatorError | None:
        """Return an error from the source that says what of which topic is lost, or which address does not answer; None
        if the source cannot tell.
        """
        at = self.ingestion
        try:
            at.reader.refuse_lost(self.state.spark, at.lake.checkpoint(at.source), self.state)
        except ReplicatorError as error:
            return error
        return None


def ingest_stream(spark: SparkSession, ingestion: Ingestion, *, once: bool, pace: Pace | None = None) -> Stream:
    """Start the streaming query: for all that is there now (``once``), or continuously, at a ``pace``.

    A continuous run is tuned for small batches: a backlog takes an eighth longer, each later batch a third less. Raises
    Unreachable, and TopicsMissing if there is nothing to read ``once``; a continuous run waits for topics. The topics
    that match a source's pattern may differ from the last run: see ``Source.resume``. Raises what
    :func:`refuse_mismatch` does, and TableStopped if Spark cannot start the query.
    """
    writer = BatchWriter(ingestion, pace or Pace())
    if once and not ingestion.reader.topic_ids(spark):
        raise TopicsMissing(
            "no topic matches the source's pattern",
            where=ingestion.source,
            fix="Check `name` and `topics` in conf/sources, and that the connector is RUNNING.",
        )
    checkpoint = ingestion.lake.checkpoint(ingestion.source)
    state = BronzeTableState(spark, ingestion)
    interval = f"{ingestion.trigger_seconds * 1000:.0f} milliseconds"  # Spark reads no exponents, as in 1e-05
    trigger = {"availableNow": True} if once else {"processingTime": interval}
    try:
        refuse_mismatch(spark, ingestion)
        ingestion.reader.resume(spark, checkpoint, state)
        session = spark if once else tuning.session_for(spark, 0)
        query = (
            ingestion.reader.read(session)
            .writeStream.queryName(f"bronze {ingestion.source}")
            .option("checkpointLocation", checkpoint)
            .foreachBatch(writer)
        )
        return Stream(ingestion, query.trigger(**trigger).start(), writer, state)
    except FAILURES as error:
        raise engine_errors.to_table_error(error, ingestion.source) from error


def translate(error: StreamingQueryException, source: str, cause: Exception | None = None) -> ReplicatorError:
    """Return a stopped stream's error with what to do next; ``cause`` is the error that one of our batches met.

    Spark's Kafka source in this version has no error classes: class names and one sentence tell them apart.
    """
    text = str(error)
    if "data may have been lost" in text or "OffsetOutOfRangeException" in text:
        return OffsetsLost(
            "Kafka deleted records before they were read",
            where=source,
            fix=OffsetsLost.FIX,
        )
    if _is_silent(error):
        return Unreachable("Kafka does not answer", where=source, fix="Check the broker, then run again.")
    shut = engine_errors.to_lake_error(error, source)
    if shut is not None:
        return shut
    message = (
        text if cause is None else causes.summarize(cause)
    )  # for a batch, Spark only says that Python raised an error
    first = next((line for line in message.splitlines() if line.strip()), "unknown error")
    fix = engine_errors.repair_hint(message) or "`--debug` shows the trace."
    return ReplicatorError(f"the bronze stream of {source} failed: {first}", fix=fix)


def _is_silent(error: StreamingQueryException) -> bool:
    """Return whether Kafka did not answer, or is overloaded."""
    return "org.apache.kafka.common.errors.TimeoutException" in str(error) or brokers.is_busy(str(error))
