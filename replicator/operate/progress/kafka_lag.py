"""How many of Kafka's records bronze lacks, by offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from replicator.offsets import TopicPartition
from replicator.stages.ingest.gaps import Gap


def count_unread(
    ends: Mapping[TopicPartition, int],
    have: Mapping[TopicPartition, int],
    firsts: Callable[[], Mapping[TopicPartition, int]],
    skipped: Iterable[Gap],
) -> int:
    """Return the number of offsets up to the ``ends`` that are still to be read. Bronze has the records of each
    partition up to those in ``have``; a partition of which it has none is read from its first offset in Kafka on
    (``firsts``, called only if there is such a partition). Offsets that an operator ``skipped`` are not read.
    """
    unread = any(end and place not in have for place, end in ends.items())
    starts = {**(firsts() if unread else {}), **have}
    gaps_by_place: dict[TopicPartition, list[Gap]] = {}
    for gap in skipped:
        gaps_by_place.setdefault(gap.place, []).append(gap)
    return sum(_count(starts.get(place, 0), end, gaps_by_place.get(place, ())) for place, end in ends.items())


def _count(start: int, end: int, gaps: Iterable[Gap]) -> int:
    skipped = sum(max(0, min(end, gap.last + 1) - max(start, gap.first)) for gap in gaps)
    return max(0, end - start - skipped)
