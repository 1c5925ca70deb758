"""What bronze has of a stream, and whether the stream's checkpoint goes on from there (F-C2, F-C3).

Nothing but the checkpoint says where a stream goes on. One that stands before bronze has its records stored twice, or
skipped by their batch's number; one that stands behind it leaves a gap.
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

_MEND = "Bring the newest checkpoint of this bronze back, or have one made of what bronze has: {}."
_COMMAND = "`replicator rebuild --checkpoint {}`"
_NO_ID = "A" * 22
"""An id of zeros as Kafka writes it: rows that an earlier checkout took from brokers without ids have it (J5)."""


@dataclass(frozen=True)
class BronzeTableState:
    """``StreamState`` of a source's bronze."""

    spark: SparkSession
    at: Ingestion

    def has(self, batch: int) -> bool:
        """By the progress of the stream that the checkpoint names."""
        recorded = newest_batch(self.spark, self.at)
        return recorded is not None and recorded >= batch

    def ends(self, topics: Sequence[str] | None = None) -> Mapping[tuple[str, int], int]:
        """Of the rows: a folder per topic."""
        if self.at.format.version(self.spark, self.at.table) is None:
            return {}
        rows = self.at.format.read(self.spark, self.at.table)
        rows = rows if topics is None else rows.where(F.col("topic").isin(*topics))
        ends = rows.groupBy("topic", "partition").agg((F.max("offset") + 1).alias("end")).collect()
        return {(row["topic"], row["partition"]): row["end"] for row in ends}

    def ids(self) -> Mapping[str, str]:
        """Of each topic's last row."""
        if self.at.format.version(self.spark, self.at.table) is None:
            return {}
        known = self.at.format.read(self.spark, self.at.table).where(F.col("topic_id") != _NO_ID)
        latest = known.groupBy("topic").agg(F.max_by("topic_id", "ingested_at").alias("id"))
        return {row["topic"]: row["id"] for row in latest.collect()}


def repair_hint(at: Ingestion) -> str:
    """How a checkpoint is mended that did not write bronze as it is."""
    return _MEND.format(_COMMAND.format(at.source))


def application_id(source: str, stream: str) -> str:
    """By what the progress of a source's stream is known in bronze; ``stream`` is its id."""
    return f"bronze/{source}/{stream}"


def current_application_id(spark: SparkSession, at: Ingestion) -> str:
    """That of the checkpoint's stream; of none where there is no checkpoint yet. Raises CheckpointDamaged."""
    return application_id(at.source, checkpoint.read_stream_id(spark, at.lake.checkpoint(at.source)) or "")


def newest_batch(spark: SparkSession, at: Ingestion) -> int | None:
    """The newest batch of the checkpoint's stream that bronze has."""
    recorded = at.format.progress(spark, at.table, current_application_id(spark, at))
    return None if recorded is None else recorded.version


def refuse_mismatch(spark: SparkSession, at: Ingestion) -> None:
    """Before a stream starts. Raises CheckpointBehindTable where its checkpoint is new, foreign or an older copy,
    BronzeReplaced where bronze is, CheckpointDamaged.
    """
    recorded, planned = newest_batch(spark, at), checkpoint.read_newest_batch(spark, at.lake.checkpoint(at.source))
    done, number = (-1, -1) if planned is None else (planned.done, planned.number)
    if recorded is None and at.format.version(spark, at.table) is not None:
        is_new = "it is new" if planned is None else "it is another stream's"
        raise CheckpointBehindTable(
            f"bronze has rows that its checkpoint knows nothing of, {is_new}: continuing would store records twice",
            where=at.table.location,
            mend=repair_hint(at),
        )
    if recorded is not None and recorded > number:  # one that is planned and not done is in bronze by right (K-B3)
        at_most = "no batch" if planned is None else f"no batch behind {number}"
        raise CheckpointBehindTable(
            f"bronze has batch {recorded}, the checkpoint knows of {at_most}: it is an older copy",
            where=at.table.location,
            mend=repair_hint(at),
        )
    if not _are_without_records(spark, at, -1 if recorded is None else recorded, done):
        has = "no batch" if recorded is None else f"batch {recorded} as its last"
        raise BronzeReplaced(
            f"bronze has {has}, its checkpoint has done batch {done}: bronze is an older copy, and records are missing",
            where=at.table.location,
            mend="Bring the newest bronze back. Where silver is of the same time as this one, "
            f"{_COMMAND.format(at.source)} has the missing records read again.",
        )


def _are_without_records(spark: SparkSession, at: Ingestion, after: int, upto: int) -> bool:
    """Whether each batch of (after, upto] ends where the one before it did, in topics that both have: one that
    ``Source.resume`` wrote.
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
        and behind is not None
        and all(behind[topic] == before[topic] for topic in before.keys() & behind.keys())
        for before, behind in pairwise(each)
    )
