"""``replicator rebuild --checkpoint``: a stream's checkpoint, made anew of what bronze has (reliability.md F-C1, F-C2,
F-C3, F-K2, F-K9).

It is the stream's own, at the newest batch that bronze has of it, so that the next batch has a number that bronze
does not know yet, and an older copy of the checkpoint stays one (F-C3).

Effects: 1. the old checkpoint goes aside, 2. gaps, in their control row, 3. the new one, whose last file is the id of
the stream. Behind a crash the old one is there, or none that a run would go on from; the same again mends it.
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
    """A source whose stream does not run, its tables in ``silver``, and what is written while the ``fence`` lets it."""

    at: Ingestion
    broker: Broker
    silver: TableFormat
    control: Control
    fence: Fence

    @property
    def known(self) -> tuple[Gap, ...]:
        """Gaps that it has."""
        return gaps.load(self.control, self.at.lake.gaps(self.at.source))


@dataclass(frozen=True)
class Plan:
    """The checkpoint that is to be: of the stream with this id, behind its batch ``number``. ``unaccepted``: gaps that
    no operator has accepted yet.
    """

    stream: str
    number: int
    starts: tuple[PartitionStart, ...]
    unaccepted: tuple[Gap, ...]

    @property
    def begins(self) -> Mapping[TopicPartition, int]:
        """Where each partition goes on."""
        return {(each.topic, each.partition): each.start for each in self.starts}

    def refuse_gaps(self) -> None:
        """Raises OffsetsLost where there are some."""
        if not self.unaccepted:
            return
        each = (f"{gap.topic}, partition {gap.partition}, {gap.first} to {gap.last}" for gap in self.unaccepted)
        raise OffsetsLost(
            f"offsets that bronze does not have would be passed over: {'; '.join(each)}",
            mend="The checkpoint is as it was. With --accept-gap the source goes on behind them, and `replicator "
            "status` tells of them until new snapshots have made up for them.",
        )


def build_plan(spark: SparkSession, of: StoppedSource, told: Mapping[TopicPartition, int]) -> Plan:
    """What a new checkpoint would say; ``told`` moves some partitions forward. Nothing is written.

    Raises TableMissing without a bronze, BronzeReplaced where no stream wrote it or silver has read more than there is,
    what ``Broker.offered`` and :func:`resolve_starts` do.
    """
    at = of.at
    version = at.format.version(spark, at.table)
    if version is None:
        folder = at.lake.checkpoint(at.source)
        raise TableMissing(
            f"there is no bronze of {at.source} that a checkpoint could be made of",
            where=at.table.location,
            mend=f"Bring it back. If there never was one, remove {folder}: the next run begins with the first records.",
        )
    _refuse_older_bronze(spark, of, version)
    stream, number = _newest_batch(spark, at)
    held = BronzeTableState(spark, at)
    found = resolve_starts(held.ends(), _checkpoint_offsets(spark, at), of.broker.offered(spark, held), told)
    known = of.known
    new = (start.gap for start in found)
    return Plan(stream, number, found, tuple(g for g in new if g is not None and not any(k.covers(g) for k in known)))


def carry_out(spark: SparkSession, of: StoppedSource, plan: Plan, *, accept_gap: bool = False) -> str | None:
    """Make it, and note its gaps; where the old one lies now, None if there was none. Raises OffsetsLost where there
    are gaps that are not to be accepted, LeaseLost, Unreachable.
    """
    if not accept_gap:
        plan.refuse_gaps()
    lake, source, now = of.at.lake, of.at.source, datetime.now(timezone.utc)
    of.fence.check()
    aside = lake.checkpoint_aside(source, f"{now:%Y%m%dT%H%M%S%f}Z")
    was_there = checkpoint.set_aside(spark, lake.checkpoint(source), aside)
    failpoints.hit("checkpoint.set_aside")
    _record_gaps(of, plan, now)
    failpoints.hit("checkpoint.gaps_noted")
    of.fence.check()
    checkpoint.create(spark, lake.checkpoint(source), plan.stream, plan.number, by_topic(plan.begins))
    return aside if was_there else None


def _record_gaps(of: StoppedSource, plan: Plan, now: datetime) -> None:
    since, by = now.isoformat(timespec="seconds"), str(this_process())
    new = [replace(gap, since=since, by=by) for gap in plan.unaccepted]
    known = of.known
    every = gaps.update(known, plan.begins, new)
    if every != known:
        of.control.put(of.at.lake.gaps(of.at.source), gaps.to_row(every))


def _newest_batch(spark: SparkSession, at: Ingestion) -> tuple[str, int]:
    """The id of the stream that wrote bronze and its newest batch there: by bronze's own commits."""
    prefix = application_id(at.source, "")
    inputs = at.format.inputs(spark, at.table)
    written = {name.removeprefix(prefix): number for name, number in inputs.items() if name.startswith(prefix)}
    if not written:
        raise BronzeReplaced(
            "bronze has records, and no stream from Kafka has written any of them",
            where=at.table.location,
            mend="Give the lake a new root: nobody knows what else such records lack.",
        )
    return max(written.items(), key=lambda each: each[1])


def _refuse_older_bronze(spark: SparkSession, of: StoppedSource, version: int) -> None:
    """What an older copy of bronze gets next would have versions that silver takes for read (F-C6)."""
    lake, source, identity = of.at.lake, of.at.source, of.at.format.identity(spark, of.at.table) or ""
    every = [names.decode_table(folder) for folder in of.silver.tables(spark, lake.silver_root(source))]
    tables = [table for name in every for table in (lake.silver(source, name), lake.history(source, name))]
    found = (of.silver.progress(spark, table, identity) for table in tables)
    newest = max((progress.version for progress in found if progress is not None), default=version)
    if newest > version:
        raise BronzeReplaced.under_silver(source, newest, version)


def _checkpoint_offsets(spark: SparkSession, at: Ingestion) -> dict[TopicPartition, int]:
    """How far the checkpoint says that each partition was read, where it is the one that wrote bronze."""
    try:
        refuse_mismatch(spark, at)
        reached = checkpoint.read_committed_offsets(spark, at.lake.checkpoint(at.source))
    except (BronzeReplaced, CheckpointBehindTable, CheckpointDamaged):
        return {}
    return by_partition(reached)
