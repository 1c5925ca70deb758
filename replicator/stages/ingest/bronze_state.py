"""What bronze has of a stream, and whether the stream's checkpoint continues from there (F-C2, F-C3).

Only the checkpoint tells where a stream continues. If it is behind bronze, records are stored twice, or skipped because
of their batch's number; if it is ahead of bronze, records are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator import checkpoint
from replicator.errors import BronzeReplaced, CheckpointBehindTable
from replicator.stages.bronze import Ingestion

_FIX = "Restore the newest checkpoint of this bronze, or recreate it from bronze: {}."
_COMMAND = "`replicator rebuild --checkpoint {}`"
_NO_ID = "A" * 22
"""An id of zeros as Kafka writes it: rows that earlier releases read from brokers without ids have it (J5)."""


@dataclass(frozen=True)
class BronzeTableState:
    """``StreamState`` of a source's bronze."""

    spark: SparkSession
    at: Ingestion

    def has(self, batch: int) -> bool:
        """Return whether bronze has a batch, by the progress of the checkpoint's stream."""
        recorded = newest_batch(self.spark, self.at)
        return recorded is not None and recorded >= batch

    def ends(self, topics: Sequence[str] | None = None) -> Mapping[tuple[str, int], int]:
        """Return the end offset of each partition, from bronze's rows, which have a folder per topic."""
        if self.at.format.version(self.spark, self.at.table) is None:
            return {}
        rows = self.at.format.read(self.spark, self.at.table)
        rows = rows if topics is None else rows.where(F.col("topic").isin(*topics))
        ends = rows.groupBy("topic", "partition").agg((F.max("offset") + 1).alias("end")).collect()
        return {(row["topic"], row["partition"]): row["end"] for row in ends}

    def ids(self) -> Mapping[str, str]:
        """Return the topic id of each topic's last row."""
        if self.at.format.version(self.spark, self.at.table) is None:
            return {}
        known = self.at.format.read(self.spark, self.at.table).where(F.col("topic_id") != _NO_ID)
        latest = known.groupBy("topic").agg(F.max_by("topic_id", "ingested_at").alias("id"))
        return {row["topic"]: row["id"] for row in latest.collect()}


def repair_hint(at: Ingestion) -> str:
    """Return how to fix a checkpoint that does not belong to this state of bronze."""
    return _FIX.format(_COMMAND.format(at.source))


def application_id(source: str, stream: str) -> str:
    """Return the app id under which the progress of a source's stream is stored in bronze; ``stream`` is the stream's
    id.
    """
    return f"bronze/{source}/{stream}"


def current_application_id(spark: SparkSession, at: Ingestion) -> str:
    """Return the app id of the checkpoint's stream; with an empty stream id if there is no checkpoint yet. Raises
    CheckpointDamaged.
    """
    return application_id(at.source, checkpoint.read_stream_id(spark, at.lake.checkpoint(at.source)) or "")


def newest_batch(spark: SparkSession, at: Ingestion) -> int | None:
    """Return the newest batch of the checkpoint's stream that bronze has."""
    recorded = at.format.progress(spark, at.table, current_application_id(spark, at))
    return None if recorded is None else recorded.version


def refuse_mismatch(spark: SparkSession, at: Ingestion) -> None:
    """Check bronze and checkpoint before a stream starts. Raises CheckpointBehindTable if the checkpoint is new, of
    another stream or an older copy, BronzeReplaced if bronze is an older copy, CheckpointDamaged.
    """
    recorded, planned = newest_batch(spark, at), checkpoint.read_newest_batch(spark, at.lake.checkpoint(at.source))
    done, number = (-1, -1) if planned is None else (planned.done, planned.number)
    if recorded is None and at.format.version(spark, at.table) is not None:
        is_new = "is new" if planned is None else "belongs to another stream"
        raise CheckpointBehindTable(
            f"bronze has rows that are not of its checkpoint, which {is_new}: continuing would store records twice",
            where=at.table.location,
            fix=repair_hint(at),
        )
    if recorded is not None and recorded > number:  # a batch that is planned and not done may be in bronze (K-B3)
        at_most = "no batch" if planned is None else f"no batch after {number}"
        raise CheckpointBehindTable(
            f"bronze has batch {recorded}, but its checkpoint has {at_most}: the checkpoint is an older copy",
            where=at.table.location,
            fix=repair_hint(at),
        )
    if not _are_without_records(spark, at, -1 if recorded is None else recorded, done):
        has = "no batch" if recorded is None else f"batch {recorded} as its last"
        raise BronzeReplaced(
            f"bronze has {has}, but its checkpoint completed batch {done}: bronze is an older copy, and "
            "records are missing",
            where=at.table.location,
            fix="Restore the newest bronze. If silver is as of the same time as this copy, run "
            f"{_COMMAND.format(at.source)} to read the missing records again.",
        )


def _are_without_records(spark: SparkSession, at: Ingestion, after: int, upto: int) -> bool:
    """Return whether each batch of (after, upto] ends where the one before it did, in the topics that both have: such
    batches are written by ``Source.resume``.
    """
    if upto <= after:
        return True
    if after < 0:
        return False
    each = [
        checkpoint.read_end_offsets(spark, at.lake.checkpoint(at.source), number) for number in range(after, upto + 1)
    ]
    return all(
        before is not None
        and after_it is not None
        and all(after_it[topic] == before[topic] for topic in before.keys() & after_it.keys())
        for before, after_it in pairwise(each)
    )
