"""``replicator rebuild --checkpoint``: recreate a stream's checkpoint from bronze (reliability.md F-C1, F-C2, F-C3,
F-K2, F-K9).

The new checkpoint has the id of the stream that wrote bronze, at the newest batch that bronze has of it. The next batch
thus has a number that bronze does not have yet, and an older copy of the checkpoint is still recognized as one (F-C3).

Effects: 1. the old checkpoint is set aside, 2. gaps are recorded in their control row, 3. the new checkpoint is
written, the file with the stream's id last. After a crash there is either the old checkpoint or none that a run would
resume from; repeating the command completes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from replicator import checkpoint, failpoints, names
from replicator.errors import (
    BronzeReplaced,
    CheckpointBehindTable,
    CheckpointDamaged,
    OffsetsLost,
    TableMissing,
)
from replicator.leases.holder import this_process
from replicator.offsets import TopicPartition, by_partition, by_topic
from replicator.operate.rebuilding.start_offsets import PartitionStart, resolve_starts
from replicator.protocols import Broker, Control, Fence, TableFormat
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest import gaps
from replicator.stages.ingest.bronze_state import BronzeTableState, application_id, refuse_mismatch
from replicator.stages.ingest.gaps import Gap


@dataclass(frozen=True)
class StoppedSource:
    """A source whose stream is not running. Its tables are in the format ``silver``; writes are allowed while the
    ``fence`` holds.
    """

    at: Ingestion
    broker: Broker
    silver: TableFormat
    control: Control
    fence: Fence

    @property
    def known(self) -> tuple[Gap, ...]:
        """The gaps that are recorded for the source."""
        return gaps.load(self.control, self.at.lake.gaps(self.at.source))


@dataclass(frozen=True)
class Plan:
    """The checkpoint to create: that of the stream with this id, after its batch ``number``. ``unaccepted``: gaps that
    no operator has accepted yet.
    """

    stream: str
    number: int
    starts: tuple[PartitionStart, ...]
    unaccepted: tuple[Gap, ...]

    @property
    def begins(self) -> Mapping[TopicPartition, int]:
        """The offset at which each partition resumes."""
        return {(each.topic, each.partition): each.start for each in self.starts}

    def refuse_gaps(self) -> None:
        """Raise OffsetsLost if there are unaccepted gaps."""
        if not self.unaccepted:
            return
        each = (f"{gap.topic}, partition {gap.partition}, {gap.first} to {gap.last}" for gap in self.unaccepted)
        raise OffsetsLost(
            f"offsets that bronze does not have would be skipped: {'; '.join(each)}",
            fix="The checkpoint is unchanged. With --accept-gap the source continues after them, and `replicator "
            "status` reports them until new snapshots have replaced them.",
        )


def build_plan(spark: SparkSession, stopped: StoppedSource, requested: Mapping[TopicPartition, int]) -> Plan:
    """Return the plan of a new checkpoint; ``requested`` offsets move some partitions forward. Nothing is written.

    Raises TableMissing without bronze, BronzeReplaced where no stream wrote it or silver has read more than it
    contains, and what ``Broker.offered`` and :func:`resolve_starts` raise.
    """
    at = stopped.at
    version = at.format.version(spark, at.table)
    if version is None:
        folder = at.lake.checkpoint(at.source)
        raise TableMissing(
            f"there is no bronze of {at.source} to make a checkpoint from",
            where=at.table.location,
            fix=f"Restore it. If there never was one, remove {folder}: the next run starts at the first records.",
        )
    _refuse_older_bronze(spark, stopped, version)
    stream, number = _newest_batch(spark, at)
    bronze_state = BronzeTableState(spark, at)
    starts = resolve_starts(
        bronze_state.ends(),
        _checkpoint_offsets(spark, at),
        stopped.broker.available_offsets(spark, bronze_state),
        requested,
    )
    known = stopped.known
    new = (start.gap for start in starts)
    return Plan(stream, number, starts, tuple(g for g in new if g is not None and not any(k.covers(g) for k in known)))


def carry_out(spark: SparkSession, stopped: StoppedSource, plan: Plan, *, accept_gap: bool = False) -> str | None:
    """Create the checkpoint and record its gaps; return where the old one was moved, None if there was none. Raises
    OffsetsLost for gaps that are not accepted, LeaseLost, Unreachable.
    """
    if not accept_gap:
        plan.refuse_gaps()
    lake, source, now = stopped.at.lake, stopped.at.source, datetime.now(timezone.utc)
    stopped.fence.check()
    aside = lake.checkpoint_aside(source, f"{now:%Y%m%dT%H%M%S%f}Z")
    was_there = checkpoint.set_aside(spark, lake.checkpoint(source), aside)
    failpoints.hit("checkpoint.set_aside")
    _record_gaps(stopped, plan, now)
    failpoints.hit("checkpoint.gaps_noted")
    stopped.fence.check()
    checkpoint.create(spark, lake.checkpoint(source), plan.stream, plan.number, by_topic(plan.begins))
    return aside if was_there else None


def _record_gaps(stopped: StoppedSource, plan: Plan, now: datetime) -> None:
    since, by = now.isoformat(timespec="seconds"), str(this_process())
    new = [replace(gap, since=since, by=by) for gap in plan.unaccepted]
    known = stopped.known
    gaps_now = gaps.update(known, plan.begins, new)
    if gaps_now != known:
        stopped.control.put(stopped.at.lake.gaps(stopped.at.source), gaps.to_row(gaps_now))


def _newest_batch(spark: SparkSession, at: Ingestion) -> tuple[str, int]:
    """Return the id of the stream that wrote bronze and its newest batch, from bronze's own commits."""
    prefix = application_id(at.source, "")
    inputs = at.format.inputs(spark, at.table)
    written = {name.removeprefix(prefix): number for name, number in inputs.items() if name.startswith(prefix)}
    if not written:
        raise BronzeReplaced(
            "bronze has records, but none was written by a stream from Kafka",
            where=at.table.location,
            fix="Give the lake a new root: what else such records lack cannot be determined.",
        )
    return max(written.items(), key=lambda written_batch: written_batch[1])


def _refuse_older_bronze(spark: SparkSession, stopped: StoppedSource, version: int) -> None:
    """Raise BronzeReplaced for an older copy of bronze: the versions that it gets next would be ones that silver takes
    as read (F-C6).
    """
    lake, source, identity = (
        stopped.at.lake,
        stopped.at.source,
        stopped.at.format.identity(spark, stopped.at.table) or "",
    )
    folders = [names.decode_table(folder) for folder in stopped.silver.tables(spark, lake.silver_root(source))]
    tables = [table for name in folders for table in (lake.silver(source, name), lake.history(source, name))]
    found = (stopped.silver.progress(spark, table, identity) for table in tables)
    newest = max((progress.version for progress in found if progress is not None), default=version)
    if newest > version:
        raise BronzeReplaced.under_silver(source, newest, version)


def _checkpoint_offsets(spark: SparkSession, at: Ingestion) -> dict[TopicPartition, int]:
    """Return the offset that each partition had reached according to the checkpoint, if that is the one that wrote
    bronze.
    """
    try:
        refuse_mismatch(spark, at)
        committed = checkpoint.read_committed_offsets(spark, at.lake.checkpoint(at.source))
    except (BronzeReplaced, CheckpointBehindTable, CheckpointDamaged):
        return {}
    return by_partition(committed)
