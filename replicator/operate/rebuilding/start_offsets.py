"""Where a stream goes on, partition by partition: behind what was read, or with the first that Kafka still has (F-K2,
F-K9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.errors import ConfigError, OffsetsLost
from replicator.offsets import TopicPartition
from replicator.stages.ingest.gaps import Gap

BEHIND, EARLIEST, DROPPED, REQUESTED = (
    "behind what bronze has",
    "nothing was read of it: the earliest",
    "Kafka has dropped what comes before",
    "as told",
)


@dataclass(frozen=True)
class PartitionStart:
    """Where one partition goes on. ``read``: the offset behind what bronze has of it, None where that is nothing; Kafka
    has ``first`` up to before ``end``. ``gap``: what is passed over and may have been records, None where nothing is.
    """

    topic: str
    partition: int
    read: int | None
    first: int
    end: int
    start: int
    why: str
    gap: Gap | None


def resolve_starts(
    read: Mapping[TopicPartition, int],
    seen: Mapping[TopicPartition, int],
    offered: Mapping[TopicPartition, tuple[int, int]],
    told: Mapping[TopicPartition, int],
) -> tuple[PartitionStart, ...]:
    """Of each partition that Kafka offers (its first offset, and the one behind the last), in their order: behind what
    was ``read``. What Kafka has dropped was no record as far as the stream has ``seen`` it, which reads no ends of
    transactions. ``told`` moves some partitions forward.

    Raises OffsetsLost where a log ends before what was read of it, ConfigError for a place that nobody can go on from.
    """
    strange = next((place for place in told if place not in offered), None)
    if strange is not None:
        raise ConfigError(f"Kafka has no partition {strange[1]} of topic {strange[0]} that the source reads")
    return tuple(
        _start(place, read.get(place), seen.get(place), *offered[place], told.get(place)) for place in sorted(offered)
    )


def _start(
    place: TopicPartition, read: int | None, seen: int | None, first: int, end: int, told: int | None
) -> PartitionStart:
    where, wanted = f"{place[0]}, partition {place[1]}", first if read is None else read
    if wanted > end:
        raise OffsetsLost(
            f"{wanted} was to be read next, and Kafka's log ends before {end}: its offsets will be of other records",
            where=where,
            mend=OffsetsLost.ENDED,
        )
    if told is not None:
        _validate(where, read, first, end, told)
    why = REQUESTED if told is not None else EARLIEST if read is None else BEHIND if first <= wanted else DROPPED
    start = max(wanted, first) if told is None else told
    missing = max((each for each in (read, seen) if each is not None), default=first)
    gap = Gap(*place, missing, start - 1) if missing < start else None
    return PartitionStart(*place, read, first, end, start, why, gap)


def _validate(where: str, read: int | None, first: int, end: int, told: int) -> None:
    """A start that is told must be there, and not before what was read."""
    if read is not None and told < read:
        raise ConfigError(
            f"records up to {read - 1} were read: from {told} on, bronze would have some twice",
            where=where,
            mend="Silver is made again from bronze, without Kafka, by `replicator rebuild TABLE`.",
        )
    if not first <= told <= end:
        there = f"Kafka's log ends before {end}" if first <= told else f"the first offset that Kafka has is {first}"
        raise ConfigError(f"nothing can begin at {told}: {there}", where=where)
