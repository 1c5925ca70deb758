"""How far each topic had advanced in its source's order when silver last applied it: the reference for detecting
rewinds.

Each process keeps this in memory. A control row, written when a process starts, when partitions appear, and every few
versions, saves the next process from reading all of bronze again; what came after the row was written is derived from
bronze (debezium.md Q6).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from replicator.debezium.position import FIRST_EPOCH, LOWEST
from replicator.protocols import Control
from replicator.transforms import watermarks
from replicator.transforms.columns.encodings import Encodings

_SAVED_EVERY = 50
_KNOWN = f"MAP<STRING, MAP<STRING, {watermarks.WATERMARK_TYPE}>>"

StreamKey = tuple[int, str]
"""A partition and a stream in it; '' is the stream of records without a position that could regress."""


@dataclass(frozen=True)
class Mark:
    """The greatest place (epoch and position as one text), with the time, offset and transaction of the record that has
    it.
    """

    place: str
    minus_ts: int | None
    offset: int
    tx: str | None = None

    @property
    def epoch(self) -> str:
        """The epoch, four hex digits."""
        return self.place[: len(FIRST_EPOCH)]

    @property
    def position(self) -> str:
        """The position without the epoch; '' for records without one."""
        return self.place[len(FIRST_EPOCH) :]

    def rank(self) -> tuple[str, float, int]:
        """Return the sort key of marks, in the order that ``transforms/watermarks.py`` uses."""
        return self.place, float("-inf") if self.minus_ts is None else self.minus_ts, self.offset


@dataclass(frozen=True)
class PassedPosition:
    """The greatest ``position`` of a partition in an epoch, and the offset of the record that has it (``holds``)."""

    topic: str
    partition: int
    epoch: str
    position: str
    holds: int


@dataclass(frozen=True)
class TopicWatermarks:
    """The marks of one topic over all records up to a version of bronze.

    ``rough``: the marks are approximate. They may be too low for records that must rank above everything before them,
    since some change ranks above its own position (Q12); or they may include records that are not applied yet because
    they waited for their transactions.
    """

    version: int
    marks: Mapping[StreamKey, Mark]
    rough: bool = False

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that had records."""
        return frozenset(partition for partition, _ in self.marks)

    def raised(self, version: int, marks: Iterable[tuple[StreamKey, Mark]], *, rough: bool = False) -> TopicWatermarks:
        """Return the watermarks at a later version, with further marks."""
        found = dict(self.marks)
        for place, mark in marks:
            found[place] = max(found.get(place, mark), mark, key=Mark.rank)
        return TopicWatermarks(max(version, self.version), found, self.rough or rough)


@dataclass
class CaughtUp:
    """Which tables have nothing to read up to a version of a bronze table: all but those of the topics
    ``pending_topics``.

    ``applied`` has the version that each table was seen to have applied. Of the tables in ``unwritten``, which do not
    exist, only dead letters and truncates have arrived. The progress of tables that got no records since need not be
    read.
    """

    bronze: str
    version: int
    pending_topics: frozenset[str]
    applied: dict[str, int] = field(default_factory=dict)
    unwritten: frozenset[str] = frozenset()

    def floor(self, topic: str, tables: Collection[str], progress: Mapping[str, int]) -> int | None:
        """Return the version up to which a topic has nothing for its tables; None if their own progress must be used,
        as for a table that was taken back to an older version.
        """
        existing = [table for table in tables if table in progress or table not in self.unwritten]
        is_whole = all(progress.get(table, -1) >= self.applied.get(table, 0) for table in existing)
        return self.version if is_whole and topic not in self.pending_topics else None


@dataclass(frozen=True)
class StoppedTable:
    """A table that stopped (``retry_backoff.py``): roughly how many bytes of bronze it had to read when it was
    ``tried_bytes`` and how many ``new_bytes`` since, and what others had written by then that may unblock it
    (``blockers``).
    """

    tried_bytes: int
    blockers: tuple[Any, ...] = ()
    new_bytes: int = 0


@dataclass
class SourceState:
    """The watermarks of one source's topics that this process knows, and what orders the tables (``SourceSpec.order``)
    that are not ordered by plain positions.

    ``bronze`` is the id of the bronze table that all this refers to, and ``saved`` its version when the control row was
    last written. ``epoch`` is the newest epoch when the watermarks were computed: a later one may begin before their
    end (Q2). ``warned`` are tables about whose weaker order this process has warned, ``complete_tables`` those known to
    have no withheld columns, ``untransformed`` those known not to have been made by a transform, and ``live`` topics
    whose watermarks this process has raised itself. ``caught_up`` says which tables need no check. ``removed`` has by
    table the number of the last full snapshot that this process has handled (``stages/table/missing_rows.py``),
    ``written`` by table the encodings of its columns as in its schema ledger, and ``stopped`` the tables that stopped.
    """

    bronze: str = ""
    watermarks: dict[str, TopicWatermarks] = field(default_factory=dict)
    orders: dict[str, str] = field(default_factory=dict)
    saved: int | None = None
    warned: set[str] = field(default_factory=set)
    complete_tables: set[str] = field(default_factory=set)
    untransformed: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    caught_up: CaughtUp | None = None
    removed: dict[str, int] = field(default_factory=dict)
    written: dict[str, Encodings] = field(default_factory=dict)
    stopped: dict[str, StoppedTable] = field(default_factory=dict)
    epoch: str = FIRST_EPOCH

    def open(self, control: Control, path: str, bronze: str) -> None:
        """Load the control row, once for each bronze."""
        if self.bronze == bronze:
            return
        row = control.get(path)
        row = row if row is not None and row["bronze"] == bronze else {"topics": {}, "orders": {}}
        self.bronze, self.saved, self.orders = bronze, None, dict(row["orders"])
        self.epoch = row.get("epoch", FIRST_EPOCH)
        self.watermarks, self.live = {topic: _parse_watermarks(level) for topic, level in row["topics"].items()}, set()

    def drop_older_epochs(self, epoch: str) -> None:
        """Drop all watermarks that were computed before the newest ``epoch`` was declared; they are derived from bronze
        again.
        """
        if self.epoch != epoch:
            self.epoch, self.saved, self.watermarks, self.live = epoch, None, {}, set()

    def marks(self, topics: Collection[str]) -> Column:
        """Return the column with the mark of a record's ``topic``, ``partition`` and ``stream``; NULL where there is
        none.
        """
        known = {
            topic: {f"{p}/{stream}": vars(mark) for (p, stream), mark in self.watermarks[topic].marks.items()}
            for topic in topics
            if topic in self.watermarks
        }
        of_topic = F.try_element_at(F.from_json(F.lit(json.dumps(known)), _KNOWN), F.col("topic"))
        return F.try_element_at(of_topic, F.concat_ws("/", "partition", "stream"))

    def passed(self, after: Mapping[str, int]) -> list[PassedPosition] | None:
        """Return what the partitions of topics had passed at these versions; None if that is not known exactly for all
        of them.
        """
        found = dict[tuple[str, int, str], tuple[str, int]]()
        for topic, version in after.items():
            level = self.watermarks.get(topic)
            if level is None or level.version != version or level.rough:
                return None
            for (partition, _), mark in level.marks.items():
                place = (topic, partition, mark.epoch)
                found[place] = max(found.get(place, ("", -1)), (mark.position, mark.offset))
        return [PassedPosition(*place, *greatest) for place, greatest in found.items() if greatest[0]]

    def has_unordered_commits(self, topics: Collection[str]) -> bool:
        """Return whether changes came in these topics that have positions, but need not have them in the order of their
        commits (``position.stream``).
        """
        known = (self.watermarks[topic].marks for topic in topics if topic in self.watermarks)
        return any(not stream and mark.position > LOWEST for marks in known for (_, stream), mark in marks.items())

    def missing(self, after: Mapping[str, int], beginning: int) -> dict[str, int]:
        """Return the topics whose watermarks at the version in ``after`` are not known, each with the version from
        which on they must be derived.
        """
        known = {topic: level.version for topic, level in self.watermarks.items()}
        return {
            topic: known.get(topic, beginning)
            for topic, start in after.items()
            if start != beginning and known.get(topic, beginning) < start
        }

    def advance(self, version: int, found: Iterable[Row], topics: Collection[str], *, rough: bool = False) -> bool:
        """Record the marks that a range of these topics contained (``rough``: they are approximate). Return whether a
        topic has a new partition.
        """
        before = {topic: self.watermarks[topic].partitions if topic in self.watermarks else None for topic in topics}
        by_topic: dict[str, list[tuple[StreamKey, Mark]]] = {topic: [] for topic in topics}
        rough_topics = set(topics if rough else ())
        for row in found:
            rough_topics.update([row["topic"]] if row["split"] else [])
            if row["topic"] in by_topic:
                mark = Mark(**row["mark"].asDict())
                by_topic[row["topic"]].append(((row["partition"], row["stream"]), mark))
        for topic, marks in by_topic.items():
            level = self.watermarks.get(topic, TopicWatermarks(version, {}))
            self.watermarks[topic] = level.raised(version, marks, rough=topic in rough_topics)
        self.live.update(topics)
        return any(self.watermarks[topic].partitions != seen for topic, seen in before.items())

    def settle(
        self,
        bronze: str,
        version: int,
        behind: Collection[str],
        applied: Mapping[str, int],
        unwritten: Collection[str] = (),
    ) -> None:
        """Record that every table has read up to a version except those of the topics ``behind``. ``applied`` has the
        versions that tables were seen to have applied; all records of ``unwritten`` tables so far were dead letters or
        truncates.
        """
        known = self.caught_up
        if known is None or known.bronze != bronze:
            known = CaughtUp(bronze, version, frozenset())
        remaining = (known.unwritten - applied.keys()) | frozenset(unwritten)
        self.caught_up = CaughtUp(bronze, version, frozenset(behind), {**known.applied, **applied}, remaining)

    def note_idle(self, version: int, busy: Collection[str]) -> None:
        """Record that topics that are not ``busy`` have nothing new up to this version."""
        for topic in self.live.difference(busy):
            self.watermarks[topic] = self.watermarks[topic].raised(version, ())

    def save(self, control: Control, path: str, version: int, *, changed: bool) -> None:
        """Write the control row if it is due."""
        if changed or self.saved is None or version - self.saved >= _SAVED_EVERY:
            topics = {topic: _watermarks_to_row(level) for topic, level in self.watermarks.items()}
            row = {"bronze": self.bronze, "epoch": self.epoch, "topics": topics, "orders": self.orders}
            control.put(path, row)
            self.saved = version


def _parse_watermarks(row: Mapping[str, Any]) -> TopicWatermarks:
    marks = {(partition, stream): Mark(*mark) for partition, stream, *mark in row["marks"]}
    return TopicWatermarks(row["version"], marks, row.get("rough", True))


def _watermarks_to_row(level: TopicWatermarks) -> dict[str, Any]:
    marks = [[*place, m.place, m.minus_ts, m.offset, m.tx] for place, m in level.marks.items()]
    return {"version": level.version, "marks": marks, "rough": level.rough}
