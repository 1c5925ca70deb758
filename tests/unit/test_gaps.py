"""Gaps that an operator accepted: they stay known, and open until silver lacks no row for them."""

from __future__ import annotations

from replicator.formats.control import MemoryControl
from replicator.lake import Lake
from replicator.operate.progress.kafka_lag import count_unread
from replicator.stages.ingest import gaps
from replicator.stages.ingest.gaps import Gap
from replicator.stages.table import snapshots
from replicator.stages.table.snapshots import FullSnapshot

LAKE, PLACE = Lake("memory"), ("s.d.orders", 0)


def test_gaps_that_meet_are_one_and_what_is_read_after_all_is_none() -> None:
    """The same command again, once more was lost or after a death in it."""
    known = (Gap("a", 0, 3, 5, "then", "one"), Gap("b", 0, 3, 5))
    more = Gap("a", 0, 3, 7, "now", "two")
    assert gaps.update(known, {("a", 0): 8, ("b", 0): 9}, [more]) == (more, known[1])
    assert gaps.update(known, {("a", 0): 10, ("b", 0): 3}, [Gap("a", 0, 6, 9, "now")]) == (Gap("a", 0, 3, 9, "now"),)
    assert gaps.update(known, {("a", 0): 20}, [apart := Gap("a", 0, 9, 19)]) == (known[0], apart, known[1])
    assert gaps.update(known, {("a", 0): 5}, []) == (Gap("a", 0, 3, 4, "then", "one"), known[1])


def test_a_gap_is_open_until_each_table_of_its_topic_was_read_whole_behind_it() -> None:
    """A snapshot that began before the gap's end, or of one of two tables, has not seen what is missing."""
    control, gap = MemoryControl(), Gap(*PLACE, 3, 5, "then", "one")
    control.put(LAKE.gaps("s"), gaps.to_row([gap]))
    assert gaps.load(control, LAKE.gaps("s")) == (gap,)
    control.put(LAKE.routes("s"), {"tables": {PLACE[0]: ["d.orders", "d.items"]}})
    for table, begun, still in (("orders", 5, [gap]), ("orders", 6, [gap]), ("items", 9, [])):
        snapshots.add(
            control, LAKE.snapshots("s"), {f"d.{table}": FullSnapshot(begun, {PLACE: begun}, {PLACE: begun + 1})}
        )
        assert gaps.list_open(control, LAKE, "s") == still


def test_what_kafka_no_longer_has_and_what_was_skipped_is_not_still_to_be_read() -> None:
    """A partition of which nothing was read begins where Kafka does; one that lost what comes next does not."""
    ends, have = {("a", 0): 10, ("a", 1): 10, ("a", 2): 10, ("a", 3): 0}, {("a", 0): 4, ("a", 1): 4}
    firsts = {("a", 0): 6, ("a", 1): 6, ("a", 2): 10, ("a", 3): 0}
    assert count_unread(ends, have, lambda: firsts, [Gap("a", 1, 4, 5), Gap("a", 2, 0, 9)]) == 6 + 4
    assert count_unread({("a", 0): 3}, have, lambda: firsts, []) == 0
    assert count_unread({("a", 0): 10, ("a", 3): 0}, have, dict, [Gap("a", 0, 2, 20)]) == 0
