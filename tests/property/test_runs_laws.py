"""The ends of runs tell the marks of partitions as an order of all records does, or are not asked (debezium.md J4)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import position
from replicator.stages.tick import surveying
from replicator.transforms import runs, watermarks

pytestmark = pytest.mark.spark

SEED = 20261129
WORLDS, TASKS = 600, 4
PLACE = "topic STRING, partition INT, offset BIGINT"
SCHEMA = (
    f"{PLACE}, table STRING, op STRING, key STRING, is_snapshot BOOLEAN, "
    "source_ts_ms BIGINT, transaction STRING, stream STRING, place STRING, before STRUCT<place: STRING, "
    "minus_ts: BIGINT, offset: BIGINT, tx: STRING>"
)
LEAST = -(2**63)
FAULTS = ("", "", "newer", "later", "later", "apart", "untimed", "anywhere", "tied", "tied")
"""A redelivery that is newer, or so from its second record on, or lower in the transaction of what it is below; times
that are missing; any place; many records of one place, each with a time of its own, and a few below it.
"""


def place_of(number: int) -> str:
    """Four places have one major part."""
    return f"{position.FIRST_EPOCH}{number // 4:020x}{number % 4:016x}"


def records_of(topic: str, partition: int, stream: str, rng: random.Random) -> Iterator[tuple[Any, ...]]:
    """The records of a stream in a partition: in order, but for redeliveries and one kind of fault."""
    start, number, fault = rng.randrange(100), 1_000, rng.choice(FAULTS)
    before = number - rng.choice((-9, -2, 0, 1, 9, 9, 9, 9))
    mark = (place_of(before), -(before // 9), start - rng.choice((-3, -2, 0, 1, 1, 1, 9)), str(before // 4))
    known, top, is_below = rng.choice((None, mark)), number, False
    for offset in range(start, start + rng.randrange(1, 40)):
        if rng.random() < 0.1:
            continue
        number += 1 if rng.random() < 0.96 else -rng.randrange(9)
        told: int | None = number // 6
        tx, place = str(number // 4), place_of(number)
        if fault == "newer" and number < top and rng.random() < 0.5:
            told = number // 6 + 2
        elif fault == "later" and is_below and number < top:
            told = top // 6 + 1
        elif fault == "apart" and number < top and rng.random() < 0.5:
            tx = str(top // 4)
        elif fault == "untimed" and rng.random() < 0.2:
            told = rng.choice((None, LEAST))
        elif fault == "anywhere" and rng.random() < 0.05:
            place = place_of(rng.randrange(2_000))
        elif fault == "tied":
            late = rng.random() < 0.1
            number, told, place = top, 1 if late else offset - start, place_of(top - late)
        top, is_below = max(top, number), number < top
        table, is_snapshot = rng.choice(("a", "a", "b", None) if stream else ("a", None)), rng.random() < 0.05
        place = place if stream else position.FIRST_EPOCH
        yield (
            topic,
            partition,
            offset,
            table,
            "u",
            "k",
            is_snapshot,
            told,
            rng.choice((tx, tx, None)),
            stream,
            place,
            known,
        )


def world(topic: str, rng: random.Random) -> list[list[tuple[Any, ...]]]:
    """The records of a topic as some tasks read them: each partition in its order, in pieces, or not."""
    streams = rng.choice((("",), ("s",), ("s",), ("", "s"), ("s", "t")))
    pieces = []
    for partition in range(rng.randrange(1, 3)):
        found = [record for stream in streams for record in records_of(topic, partition, stream, rng)]
        found.sort(key=lambda record: record[2] if rng.random() < 0.999 else rng.random())
        falls = [at for at in range(1, len(found)) if found[at][10] < found[at - 1][10]]
        anywhere = rng.choice((0, rng.randrange(len(found) + 1)))
        cut = rng.choice(falls) if falls and rng.random() < 0.6 else anywhere
        pieces += [found[::2], found[1::2]] if rng.random() < 0.1 else [found[cut:], found[:cut]]
    rng.shuffle(pieces)
    return [[record for piece in pieces[task::TASKS] for record in piece] for task in range(TASKS)]


def by_topic(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[row["topic"]].append(row)
    return found


def told(marks: Iterable[Row]) -> set[tuple[Any, ...]]:
    """What is asked of marks."""
    return {(*row[:5], row["fell"], bool(row["split"])) for row in marks}


def test_the_ends_of_runs_tell_what_an_order_of_all_records_does(
    exact: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J4, with what stands below them, or leave a doubt: whatever order, pieces, redeliveries, ties, tombstones,
    snapshots, marks before them.
    """
    monkeypatch.setattr(runs, "MAX_RUNS", 1_000_000)
    rng = random.Random(SEED)
    worlds = [world(f"t{number}", rng) for number in range(WORLDS)]
    tasks = [[record for each in worlds for record in each[task]] for task in range(TASKS)]
    rows = exact.sparkContext.parallelize(tasks, TASKS).flatMap(list)
    places, known = exact.createDataFrame(rows, SCHEMA).cache(), F.col("before")
    every, asked, stretched = by_topic(watermarks.compute(places, known).collect()), set[str](), set[str]()
    reached, near = watermarks.compute, runs.places_near

    def of_all(some: DataFrame, mark: Column) -> DataFrame:
        asked.update(row["topic"] for row in some.select("topic").distinct().collect())
        return reached(some, mark)

    def of_stretches(all_of_them: DataFrame, ends: runs.Ends, stretches: runs.Stretches) -> DataFrame:
        stretched.update(topic for topic, _, _ in stretches)
        return near(all_of_them, ends, stretches)

    monkeypatch.setattr(watermarks, "compute", of_all)
    monkeypatch.setattr(runs, "places_near", of_stretches)
    short = by_topic(surveying.by_runs(places, known, runs.find_runs(places).collect()))
    assert short.keys() == every.keys()
    for topic, marks in every.items():
        assert told(short[topic]) == told(marks), topic
    assert WORLDS // 4 < len(every.keys() - asked) < WORLDS * 3 // 4
    assert len(stretched - asked) > WORLDS // 20
    assert len(stretched & asked) > WORLDS // 100
