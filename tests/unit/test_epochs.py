"""Epochs and what a process remembers of the order, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import Row

from replicator.cli.options import parse_offset
from replicator.config.sourcekeys import SourceKeys
from replicator.errors import ConfigError
from replicator.formats.control import MemoryControl
from replicator.stages.tick import epochs
from replicator.stages.tick.epochs import Epoch, Epochs
from replicator.stages.tick.source_state import Mark, PassedPosition, SourceState, TopicWatermarks

BEGINNING = -1


def reached_row(topic: str, partition: int, place: str, minus_ts: int | None, offset: int) -> Row:
    """As transforms/watermarks.py tells it."""
    mark = Row(place=place, minus_ts=minus_ts, offset=offset)
    return Row(topic=topic, partition=partition, stream="m", mark=mark, split=False)


def test_epochs_are_kept_as_they_were_declared() -> None:
    """Q2: place in Kafka, number, reason and time survive the control row."""
    control = MemoryControl()
    assert epochs.load(control, "e") == Epochs()
    declared = Epochs().next({"t": {0: 17, 12: 0}}, "restored").next({"t": {0: 40}}, "reset")
    control.put("e", declared.value())
    assert epochs.load(control, "e") == declared
    assert [(bump.number, bump.reason) for bump in declared.bumps] == [(1, "restored"), (2, "reset")]


def test_there_are_only_so_many_epochs() -> None:
    """Q1, Q2: four hex digits; one more is refused, not wrapped."""
    almost = Epochs([Epoch(number, {}) for number in range(1, 0xFFFF)])
    last = almost.next({}, "the last one")
    assert last.bumps[-1].number == 0xFFFF
    with pytest.raises(ConfigError):
        last.next({}, "one too many")


def test_of_two_marks_at_one_place_the_older_one_holds_it() -> None:
    """J4 asks whether a change is newer than the holder: the later of two would hide some."""
    level = TopicWatermarks(3, {(0, "m"): Mark("0000b", -50, 7)})
    later = level.raised(4, [((0, "m"), Mark("0000b", -60, 8)), ((1, "m"), Mark("0000a", None, 0))])
    assert later == TopicWatermarks(4, {(0, "m"): Mark("0000b", -50, 7), (1, "m"): Mark("0000a", None, 0)})
    assert later.raised(2, [((1, "m"), Mark("0001", None, 1))]).marks[1, "m"].epoch == "0001"
    assert later.raised(2, []).version == 4


def test_a_process_reads_again_only_what_it_cannot_know() -> None:
    """A topic whose level is as new as the start of the range needs nothing; one read from its beginning neither."""
    control = MemoryControl()
    known = SourceState()
    known.open(control, "r", "bronze")
    assert known.missing({"a": 3, "new": BEGINNING}, BEGINNING) == {"a": BEGINNING}
    assert known.advance(5, [reached_row("a", 0, "0000a", -1, 9)], ["a"])
    assert known.missing({"a": 5}, BEGINNING) == {}
    known.save(control, "r", 5, changed=True)
    other = SourceState()
    other.open(control, "r", "bronze")
    assert other.watermarks == known.watermarks
    assert other.missing({"a": 8}, BEGINNING) == {"a": 5}
    known.note_idle(8, busy=["b"])
    other.note_idle(8, busy=["b"])
    assert (known.missing({"a": 8}, BEGINNING), other.missing({"a": 8}, BEGINNING)) == ({}, {"a": 5})
    other.open(control, "r", "another bronze")
    assert other.watermarks == {}


def test_what_partitions_had_passed_is_told_for_exactly_the_version_that_is_asked_for() -> None:
    """Q5, Q12: the greatest of a partition's streams in its epoch; nothing of a topic whose marks are rough, and of one
    whose control row does not say whether they are.
    """
    level = TopicWatermarks(
        3, {(0, "m"): Mark("0001b", 1, 7), (0, ""): Mark("0001c", 2, 5), (1, "m"): Mark("0000", None, 1)}
    )
    known = SourceState("bronze", {"a": level, "b": replace(level, rough=True)})
    assert known.passed({"a": 3}) == [PassedPosition("a", 0, "0001", "c", 5)]
    assert known.passed({}) == []
    assert [known.passed(after) for after in ({"a": 2}, {"a": 4}, {"b": 3}, {"c": 3}, {"a": 3, "b": 3})] == [None] * 5
    control = MemoryControl()
    known.save(control, "r", 3, changed=True)
    row = control.get("r")
    assert row is not None
    del row["topics"]["a"]["rough"]
    control.put("r", row)
    later = SourceState()
    later.open(control, "r", "bronze")
    assert later.passed({"a": 3}) is None


def test_the_control_row_is_written_seldom() -> None:
    """Architecture 9.5: by the first batch, when a partition is new, and every fifty versions."""
    control, known = MemoryControl(), SourceState()
    known.open(control, "r", "bronze")
    written = []
    for version in range(120):
        control.remove("r")
        changed = known.advance(version, [reached_row("a", version // 60, "0000a", -1, version)], ["a"])
        known.save(control, "r", version, changed=changed)
        if control.get("r") is not None:
            written.append(version)
    assert written == [0, 50, 60, 110]


@pytest.mark.parametrize("told", ["", "t", "t:0", "t:0:", "t:x:1", ":0:1", "t:0:-1", "t:0:1:2"])
def test_a_place_that_is_none_is_refused(told: str) -> None:
    """Exit 2 with the form that is wanted."""
    with pytest.raises(ConfigError, match="TOPIC:PARTITION:OFFSET"):
        parse_offset(told)


def test_a_place_is_topic_partition_and_offset() -> None:
    """Kafka's topic names have no colon."""
    assert parse_offset("shop.sales.orders:0:1234") == (("shop.sales.orders", 0), 1234)


def test_a_table_may_be_ordered_otherwise_than_its_source() -> None:
    """Q9, per source or table; nothing else is understood."""
    keys = SourceKeys.model_validate(
        {"name": "s", "sequence_by": "source.ts_ms", "tables": {"a.b": {"sequence_by": "position"}, "a.c": {}}}
    )
    assert keys.sequence_by == "source.ts_ms"
    assert [d.sequence_by for d in keys.declarations()] == ["position", None]
    with pytest.raises(ValueError, match=r"source\.ts_ms"):
        SourceKeys.model_validate({"name": "s", "sequence_by": "ts_ms"})
