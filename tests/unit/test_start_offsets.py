"""Where a stream goes on when its checkpoint is made anew: behind what was read, or where its operator says."""

from __future__ import annotations

import pytest

from replicator.errors import ConfigError, OffsetsLost
from replicator.operate.rebuilding.start_offsets import BEHIND, DROPPED, EARLIEST, REQUESTED, resolve_starts
from replicator.stages.ingest.gaps import Gap

A, B = ("t", 0), ("t", 1)


@pytest.mark.parametrize(
    ("read", "seen", "offered", "told", "start", "why", "gap"),
    [
        (5, None, (0, 9), None, 5, BEHIND, None),
        (5, 5, (5, 5), None, 5, BEHIND, None),
        (None, None, (3, 9), None, 3, EARLIEST, None),
        (5, 5, (7, 9), None, 7, DROPPED, (5, 6)),
        (5, 6, (6, 9), None, 6, DROPPED, None),  # the end of a transaction
        (5, 7, (0, 9), None, 5, BEHIND, None),
        (None, 2, (4, 9), None, 4, EARLIEST, (2, 3)),
        (5, 5, (0, 9), 8, 8, REQUESTED, (5, 7)),
        (5, None, (7, 9), 9, 9, REQUESTED, (5, 8)),
        (None, None, (3, 9), 4, 4, REQUESTED, (3, 3)),
        (5, 5, (0, 9), 5, 5, REQUESTED, None),
    ],
)
def test_a_partition_goes_on_behind_what_was_read(
    read: int | None,
    seen: int | None,
    offered: tuple[int, int],
    told: int | None,
    start: int,
    why: str,
    gap: tuple[int, int] | None,
) -> None:
    """What Kafka has dropped behind it, or the operator moves over, is a gap (F-K2, F-K9), unless the stream has seen
    that it was no record; what nobody read begins with the earliest.
    """
    known = [{} if each is None else {A: each} for each in (read, seen, told)]
    [found] = resolve_starts(known[0], known[1], {A: offered}, known[2])
    assert (found.start, found.why, found.gap) == (start, why, None if gap is None else Gap(*A, *gap))


def test_back_is_refused_since_bronze_has_the_records() -> None:
    """Bronze has each record once: what comes again is made of it, without Kafka (F-K9)."""
    with pytest.raises(
        ConfigError, match=r"records up to 4 were read: starting at 2.*twice.*`replicator rebuild TABLE`"
    ):
        resolve_starts({A: 5}, {}, {A: (0, 9)}, {A: 2})


@pytest.mark.parametrize(
    ("read", "offered", "told", "said"),
    [
        ({A: 5}, (0, 9), {A: 10}, "cannot start at 10: Kafka's log ends before 9"),
        ({}, (3, 9), {A: 1}, "cannot start at 1: the first offset that Kafka has is 3"),
        ({A: 5}, (7, 7), {A: 6}, "cannot start at 6: the first offset that Kafka has is 7"),
        ({A: 5}, (0, 9), {B: 1}, "no partition 1 of topic t"),
    ],
)
def test_nothing_begins_where_kafka_has_nothing(
    read: dict[tuple[str, int], int], offered: tuple[int, int], told: dict[tuple[str, int], int], said: str
) -> None:
    """Behind the end of the log, before what retention has left, or in another partition."""
    with pytest.raises(ConfigError, match=said):
        resolve_starts(read, {}, {A: offered}, told)


def test_a_log_that_ends_before_what_was_read_is_not_gone_on_with() -> None:
    """Its next records would get offsets that bronze has (F-K3)."""
    with pytest.raises(OffsetsLost, match="5 was to be read next, but Kafka's log ends before 3"):
        resolve_starts({A: 5}, {}, {A: (0, 3)}, {})
