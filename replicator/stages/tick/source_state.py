"""How far each topic had got in its source's order when silver last applied it: what a rewind is measured against.

A process remembers it. A control row, written when a process begins, when partitions appear and every now and then,
spares the next one from reading bronze again; what came after it is derived from bronze (debezium.md Q6).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from replicator.debezium.position import FIRST_EPOCH
from replicator.protocols import Control
from replicator.transforms import watermarks
from replicator.transforms.columns.encodings import Encodings

_SAVED_EVERY = 50
_KNOWN = f"MAP<STRING, MAP<STRING, {watermarks.WATERMARK_TYPE}>>"

StreamKey = tuple[int, str]
"""A partition and a stream in it; '' for records without a position that could fall."""


@dataclass(frozen=True)
class Mark:
    """The greatest place (epoch and position as one text), with time, offset and transaction of the record that holds
    it.
    """

    place: str
    minus_ts: int | None
    offset: int
    tx: str | None = None

    @property
    def epoch(self) -> str:
        """Four hex digits."""
        return self.place[: len(FIRST_EPOCH)]

    @property
    def position(self) -> str:
        """The rest of the place; '' of records without one."""
        return self.place[len(FIRST_EPOCH) :]

    def rank(self) -> tuple[str, float, int]:
        """How marks compare, as ``transforms/watermarks.py`` does."""
        return self.place, float("-inf") if self.minus_ts is None else self.minus_ts, self.offset


@dataclass(frozen=True)
class PassedPosition:
    """The greatest ``position`` of a partition in an epoch, and the offset of the record that ``holds`` it."""

    topic: str
    partition: int
    epoch: str
    position: str
    holds: int


@dataclass(frozen=True)
class TopicWatermarks:
    """The marks of one topic over everything up to a version of bronze. ``rough``: they may be too low for what has to
    rank above all before it, since some change stands above its own position (Q12); or they may be those of records
    that are yet to be taken, for which their transactions waited.
    """

    version: int
    marks: Mapping[StreamKey, Mark]
    rough: bool = False

    @property
    def partitions(self) -> frozenset[int]:
        """Partitions that had records."""
        return frozenset(partition for partition, _ in self.marks)

    def raised(self, version: int, marks: Iterable[tuple[StreamKey, Mark]], *, rough: bool = False) -> TopicWatermarks:
        """The level at a later version."""
        found = dict(self.marks)
        for place, mark in marks:
            found[place] = max(found.get(place, mark), mark, key=Mark.rank)
        return TopicWatermarks(max(version, self.version), found, self.rough or rough)


@dataclass
class CaughtUp:
    """Which tables have nothing to read up to a version of a bronze: all but those of the topics ``behind``, and what
    each table was seen to have ``applied``; of ``unwritten`` ones, which are not there, nothing but dead letters and
    truncates came. What did not get records since need not be asked how far it is.
    """

    bronze: str
    version: int
    behind: frozenset[str]
    applied: dict[str, int] = field(default_factory=dict)
    unwritten: frozenset[str] = frozenset()

    def floor(self, topic: str, tables: Collection[str], progress: Mapping[str, int]) -> int | None:
        """The version up to which a topic has nothing for its tables; None where their own progress is to tell, as of
        one that went back.
        """
        there = [table for table in tables if table in progress or table not in self.unwritten]
        is_whole = all(progress.get(table, -1) >= self.applied.get(table, 0) for table in there)
        return self.version if is_whole and topic not in self.behind else None


@dataclass(frozen=True)
class StoppedTable:
    """A table that stopped (``retry_backoff.py``): what it had to read when it was ``tried`` and what ``came`` since,
    about in bytes of bronze, and what others had ``told`` by then.
    """

    tried: int
    told: tuple[Any, ...] = ()
    came: int = 0


@dataclass
class SourceState:
    """The levels of one source's topics that this process knows, and what orders tables (``SourceSpec.order``) that are
    not ordered by plain positions.

    ``saved`` is the version of bronze that the control row was last written for; ``bronze`` names the table that
    all this is about, ``epoch`` the newest by which the levels were told: another one may begin before where they end
    (Q2); ``warned`` are tables whose weaker order this process has told of, ``whole`` those of which it
    knows that no column was left out, ``plain`` that no transform made them, ``live`` topics whose level it has
    raised itself. ``settled`` says what need not be asked. ``removed`` has by table the number of the last whole
    snapshot that this process has seen to (``gone.py``), ``written`` how its columns are, as its ledger says;
    ``stopped`` the tables that did.
    """

    bronze: str = ""
    levels: dict[str, TopicWatermarks] = field(default_factory=dict)
    orders: dict[str, str] = field(default_factory=dict)
    saved: int | None = None
    warned: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    plain: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    settled: CaughtUp | None = None
    removed: dict[str, int] = field(default_factory=dict)
    written: dict[str, Encodings] = field(default_factory=dict)
    stopped: dict[str, StoppedTable] = field(default_factory=dict)
    epoch: str = FIRST_EPOCH

    def open(self, control: Control, path: str, bronze: str) -> None:
        """Take the control row for known, once for each bronze."""
        if self.bronze == bronze:
            return
        row = control.get(path)
        row = row if row is not None and row["bronze"] == bronze else {"topics": {}, "orders": {}}
        self.bronze, self.saved, self.orders = bronze, None, dict(row["orders"])
        self.epoch = row.get("epoch", FIRST_EPOCH)
        self.levels, self.live = {topic: _parse_watermarks(told) for topic, told in row["topics"].items()}, set()

    def within(self, epoch: str) -> None:
        """Keep no level that was told before the newest ``epoch`` was declared: bronze tells them again by it."""
        if self.epoch != epoch:
            self.epoch, self.saved, self.levels, self.live = epoch, None, {}, set()

    def marks(self, topics: Collection[str]) -> Column:
        """The mark of a record's ``topic``, ``partition`` and ``stream``, NULL where there is none."""
        known = {
            topic: {f"{p}/{stream}": vars(mark) for (p, stream), mark in self.levels[topic].marks.items()}
            for topic in topics
            if topic in self.levels
        }
        of_topic = F.try_element_at(F.from_json(F.lit(json.dumps(known)), _KNOWN), F.col("topic"))
        return F.try_element_at(of_topic, F.concat_ws("/", "partition", "stream"))

    def passed(self, after: Mapping[str, int]) -> list[PassedPosition] | None:
        """What the partitions of topics had passed at these versions; None where that is not known of all of them."""
        found = dict[tuple[str, int, str], tuple[str, int]]()
        for topic, version in after.items():
            level = self.levels.get(topic)
            if level is None or level.version != version or level.rough:
                return None
            for (partition, _), mark in level.marks.items():
                place = (topic, partition, mark.epoch)
                found[place] = max(found.get(place, ("", -1)), (mark.position, mark.offset))
        return [PassedPosition(*place, *held) for place, held in found.items() if held[0]]

    def missing(self, after: Mapping[str, int], beginning: int) -> dict[str, int]:
        """Topics whose level at the version in ``after`` is not known, and from which version on it must be derived."""
        known = {topic: level.version for topic, level in self.levels.items()}
        return {
            topic: known.get(topic, beginning)
            for topic, start in after.items()
            if start != beginning and known.get(topic, beginning) < start
        }

    def advance(self, version: int, found: Iterable[Row], topics: Collection[str], *, rough: bool = False) -> bool:
        """Remember what a range held of these topics, ``rough`` where that is no more than about; whether a partition
        is new among them.
        """
        before = {topic: self.levels[topic].partitions if topic in self.levels else None for topic in topics}
        by_topic: dict[str, list[tuple[StreamKey, Mark]]] = {topic: [] for topic in topics}
        roughly = set(topics if rough else ())
        for row in found:
            roughly.update([row["topic"]] if row["split"] else [])
            if row["topic"] in by_topic:
                mark = Mark(**row["mark"].asDict())
                by_topic[row["topic"]].append(((row["partition"], row["stream"]), mark))
        for topic, marks in by_topic.items():
            level = self.levels.get(topic, TopicWatermarks(version, {}))
            self.levels[topic] = level.raised(version, marks, rough=topic in roughly)
        self.live.update(topics)
        return any(self.levels[topic].partitions != seen for topic, seen in before.items())

    def settle(
        self,
        bronze: str,
        version: int,
        behind: Collection[str],
        applied: Mapping[str, int],
        unwritten: Collection[str] = (),
    ) -> None:
        """Every table has read up to a version, but those of the topics ``behind``; ``applied`` are versions that
        tables were seen to have, and of ``unwritten`` ones all records so far were dead letters, or truncates.
        """
        known = self.settled
        if known is None or known.bronze != bronze:
            known = CaughtUp(bronze, version, frozenset())
        still = (known.unwritten - applied.keys()) | frozenset(unwritten)
        self.settled = CaughtUp(bronze, version, frozenset(behind), {**known.applied, **applied}, still)

    def quiet(self, version: int, busy: Collection[str]) -> None:
        """Topics that are not ``busy`` have nothing new up to this version."""
        for topic in self.live.difference(busy):
            self.levels[topic] = self.levels[topic].raised(version, ())

    def save(self, control: Control, path: str, version: int, *, changed: bool) -> None:
        """Write the control row if it is time to."""
        if changed or self.saved is None or version - self.saved >= _SAVED_EVERY:
            topics = {topic: _watermarks_to_row(level) for topic, level in self.levels.items()}
            told = {"bronze": self.bronze, "epoch": self.epoch, "topics": topics, "orders": self.orders}
            control.put(path, told)
            self.saved = version


def _parse_watermarks(told: Mapping[str, Any]) -> TopicWatermarks:
    marks = {(partition, stream): Mark(*mark) for partition, stream, *mark in told["marks"]}
    return TopicWatermarks(told["version"], marks, told.get("rough", True))


def _watermarks_to_row(level: TopicWatermarks) -> dict[str, Any]:
    marks = [[*place, m.place, m.minus_ts, m.offset, m.tx] for place, m in level.marks.items()]
    return {"version": level.version, "marks": marks, "rough": level.rough}
