"""What of bronze may be shown: with ``consistency: transaction`` only what is of transactions that are here whole.

A control row says how it stood when silver last read bronze: from which offsets on records wait, up to which place of
the source's order everything was let through, and whether all tables have taken that. Effects: 1. the row with the new
place, and with every change that waits now or waited before, so that whoever goes on after a crash reads enough; 2.
the tables; 3. the row with what waits now. An end of a transaction that was let through is not read again: without the
changes, which are not looked at any more, it would be waited for them for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import AtWork, TableStopped
from replicator.jvm import expressions
from replicator.lake import Lake
from replicator.offsets import TopicPartition, by_partition, by_topic
from replicator.protocols import Control
from replicator.stages.refinement import Refinement
from replicator.stages.tick import arrivals
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import BEGINNING
from replicator.transforms import transactions


@dataclass(frozen=True)
class Cut:
    """Where what is whole ends: ``offsets`` has the first offset that must wait, of partitions where one must.

    ``place`` is the greatest place of a change that need not wait; None if there was none. Transactions come in the
    source's order: whatever stands at or below it need not wait either; when it comes again its counts start anew (H3).
    Transactions that are ``excused`` never wait.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    place: str | None = None
    excused: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CutState:
    """How it stood at a ``version`` of ``bronze``, -1 before the first time. ``behind`` are tables that did not
    take what was let through, None while they are at it: of their topics the ``cut`` has what they lack as well, and
    ``waits`` has the offsets of what all tables are to wait for; None: those of the cut.
    """

    bronze: str
    version: int = BEGINNING
    cut: Cut = field(default_factory=Cut)
    behind: tuple[str, ...] | None = ()
    waits: Mapping[TopicPartition, int] | None = None

    @property
    def released_cut(self) -> Cut:
        """Where what all tables are to show ends."""
        return self.cut if self.waits is None else replace(self.cut, offsets=self.waits)

    def value(self) -> dict[str, Any]:
        """As a control row."""
        offsets, behind = by_topic(self.cut.offsets), None if self.behind is None else list(self.behind)
        told = {"bronze": self.bronze, "version": self.version, "offsets": offsets, "place": self.cut.place}
        waits = {} if self.waits is None else {"waits": by_topic(self.waits)}
        return {**told, "excused": sorted(self.cut.excused), "behind": behind, **waits}


def load(control: Control, lake: Lake, source: str) -> CutState | None:
    """How it stands; None where nobody has asked for whole transactions."""
    row = control.get(lake.cut(source))
    if row is None:
        return None
    cut = Cut(by_partition(row["offsets"]), row["place"], frozenset(row["excused"]))
    waits = by_partition(row["waits"]) if "waits" in row else None
    return CutState(row["bronze"], row["version"], cut, None if row["behind"] is None else tuple(row["behind"]), waits)


def load_or_create(at: Refinement, bronze: str) -> CutState | None:
    """How it stands with this bronze; None where transactions need not be whole, and need not have been."""
    stood = load(at.control, at.lake, at.source.name)
    if stood is not None and stood.bronze == bronze:
        return stood
    return CutState(bronze) if at.source.whole_transactions else None


def is_up_to_date(at: Refinement, stood: CutState, paused: Collection[str]) -> bool:
    """Whether nothing is to be done without news: it is known what waits, every table that is not paused has the rest,
    and what waits shall.
    """
    is_taken = stood.behind is not None and set(stood.behind) <= set(paused)
    return at.source.whole_transactions and stood.version != BEGINNING and is_taken


def add_waiting_topics(news: NewRecords, stood: CutState) -> NewRecords:
    """The news, with topics that have none but whose records wait."""
    return replace(news, after={**{topic: stood.version for topic, _ in stood.cut.offsets}, **news.after})


def read_waiting(spark: SparkSession, at: Refinement, stood: CutState, news: NewRecords) -> DataFrame | None:
    """Bronze records that wait, without those that the news bring anyway; None if there are none."""
    bronze = at.lake.bronze(at.source.name)
    by_version: dict[int, dict[TopicPartition, int]] = {}
    for place, offset in stood.cut.offsets.items():
        by_version.setdefault(news.after[place[0]], {})[place] = offset
    by_version.pop(BEGINNING, None)
    found = []
    for version, places in by_version.items():
        records = arrivals.read_as_of(spark, at.bronze, bronze, {topic for topic, _ in places}, version)
        if records is not None:  # else the news bring the topics whole
            found.append(records.where(at_or_after(places)))
    return reduce(DataFrame.unionByName, found) if found else None


def exclude_waiting(records: DataFrame, cut: Cut) -> DataFrame:
    """The records that need not wait."""
    return records.where(~at_or_after(cut.offsets)) if cut.offsets else records


def select_waiting(records: DataFrame, cut: Cut) -> DataFrame:
    """The records that must wait."""
    return records.where(at_or_after(cut.offsets))


def prepare(at: Refinement, stood: CutState, now: CutState) -> None:
    """Effect 1."""
    ends = transactions.topic(at.source.name)
    waited = {place: offset for place, offset in stood.cut.offsets.items() if place[0] != ends}
    every = {**waited, **now.cut.offsets}
    low = {place: min(waited.get(place, offset), offset) for place, offset in every.items()}
    _save(at, replace(now, cut=replace(now.cut, offsets=low), behind=None, waits=None))
    failpoints.hit("cut.announced")


def finalize(at: Refinement, stood: CutState, now: CutState, failed: Collection[str], topics: Collection[str]) -> None:
    """Effect 3. Tables that ``failed`` need of their ``topics`` what waited before."""
    failpoints.hit("cut.tables_taken")
    kept = {place: offset for place, offset in stood.cut.offsets.items() if place[0] in topics}
    if at.source.whole_transactions or failed:
        own = now.cut.offsets if kept else None
        both = replace(now.cut, offsets={**now.cut.offsets, **kept})
        _save(at, replace(now, cut=both, behind=tuple(sorted(failed)), waits=own))
    else:
        at.control.remove(at.lake.cut(at.source.name))
    failpoints.hit("cut.settled")


def load_consistent(control: Control, lake: Lake, source: str) -> CutState | None:
    """How it stands where every table of the source shows the same; None where transactions need not be whole. Raises
    TableStopped where some table stopped before it took what the others show, AtWork while they are at it.
    """
    stood = load(control, lake, source)
    if stood is None or stood.behind == ():
        return stood
    if stood.behind is None:
        raise at_work_error(source, "silver is at work on it, or was killed")
    raise TableStopped(
        f"transactions of {source} are not whole in silver: {', '.join(stood.behind)} stopped, or is paused",
        where=source,
        mend="Run silver, and mend what stops it, or have a paused table go on (`replicator tables resume`); gold goes "
        "on with the next run.",
    )


def at_work_error(source: str, why: str) -> AtWork:
    """The error of what reads silver while it may show parts of transactions, and soon will not."""
    return AtWork(
        f"transactions of {source} are not whole in silver: {why}",
        where=source,
        mend="Try again; where no driver is at work, run silver.",
    )


def _save(at: Refinement, now: CutState) -> None:
    at.control.put(at.lake.cut(at.source.name), now.value())


def at_or_after(offsets: Mapping[TopicPartition, int]) -> Column:
    """Whether a record is in one of these partitions, at its offset or behind it."""
    return expressions.any_of(_from(place, offset) for place, offset in offsets.items())


def _from(place: TopicPartition, offset: int) -> Column:
    return (F.col("topic") == place[0]) & (F.col("partition") == place[1]) & (F.col("offset") >= offset)
