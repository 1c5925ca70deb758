"""The offset at which a new checkpoint resumes each partition: after the last record that was read, or at the first
offset that Kafka still has (F-K2, F-K9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.errors import ConfigError, OffsetsLost
from replicator.offsets import TopicPartition
from replicator.stages.ingest.gaps import Gap

BEHIND, EARLIEST, DROPPED, REQUESTED = (
    "after what bronze has",
    "nothing was read from it: the earliest",
    "Kafka has deleted the records before it",
    "as told",
)


@dataclass(frozen=True)
class PartitionStart:
    """The offset at which one partition resumes (``start``), and why. ``read``: the next offset to read according to
    bronze, None if bronze has nothing of the partition. Kafka has the offsets from ``first`` to before ``end``.
    ``gap``: the skipped offsets that may have been records, None if there are none.
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
    requested: Mapping[TopicPartition, int],
) -> tuple[PartitionStart, ...]:
    """Return the start of each partition that Kafka offers, sorted by topic and partition. ``offered`` is its first
    offset and its end offset; ``requested`` starts move some partitions forward.

    A partition resumes after ``read``. Dropped offsets below ``seen``, the checkpoint's position, are no gap: they held
    no records (a stream does not read the ends of transactions).

    Raises OffsetsLost where a log ends before the next offset to read, ConfigError for a requested partition or offset
    that does not exist or was already read.
    """
    unknown = next((place for place in requested if place not in offered), None)
    if unknown is not None:
        raise ConfigError(f"Kafka has no partition {unknown[1]} of topic {unknown[0]} that the source reads")
    return tuple(
        _start(place, read.get(place), seen.get(place), *offered[place], requested.get(place))
        for place in sorted(offered)
    )


def _start(
    place: TopicPartition, read: int | None, seen: int | None, first: int, end: int, requested: int | None
) -> PartitionStart:
    where, wanted = f"{place[0]}, partition {place[1]}", first if read is None else read
    if wanted > end:
        raise OffsetsLost(
            f"{wanted} was to be read next, but Kafka's log ends before {end}: other records will get its offsets",
            where=where,
            fix=OffsetsLost.ENDED,
        )
    if requested is not None:
        _validate(where, read, first, end, requested)
    why = REQUESTED if requested is not None else EARLIEST if read is None else BEHIND if first <= wanted else DROPPED
    start = max(wanted, first) if requested is None else requested
    missing = max((each for each in (read, seen) if each is not None), default=first)
    gap = Gap(*place, missing, start - 1) if missing < start else None
    return PartitionStart(*place, read, first, end, start, why, gap)


def _validate(where: str, read: int | None, first: int, end: int, requested: int) -> None:
    """Raise ConfigError if the requested start is not in Kafka's log, or is before the next offset to read."""
    if read is not None and requested < read:
        raise ConfigError(
            f"records up to {read - 1} were read: starting at {requested}, bronze would have some twice",
            where=where,
            fix="To rebuild silver from bronze, without Kafka, run `replicator rebuild TABLE`.",
        )
    if not first <= requested <= end:
        log_bound = (
            f"Kafka's log ends before {end}" if first <= requested else f"the first offset that Kafka has is {first}"
        )
        raise ConfigError(f"cannot start at {requested}: {log_bound}", where=where)
