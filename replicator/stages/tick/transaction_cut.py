"""The cut: which part of bronze may be applied. With ``consistency: transaction`` only transactions that have arrived
completely are.

A control row holds the state of the cut when silver last read bronze: the offsets from which records wait, the greatest
place in the source's order up to which everything was released, and whether all tables have applied that. A tick has
three effects: 1. it writes the row with the new place, and with the offsets of every change that waits now or waited
before, so that a restart after a crash reads enough; 2. it applies the tables; 3. it writes the row with the offsets of
what waits now. The end of a transaction that was released is not read again: its changes are not read any more, so it
would wait for them forever.
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
    """The boundary of the complete transactions: ``offsets`` has the first offset that must wait, for each partition
    that has one.

    ``place`` is the greatest place of a change that need not wait; None if there was none. Transactions come in the
    source's order, so no change at or below it needs to wait either; if a transaction is repeated later, its counts
    start again (H3). Transactions in ``excused`` never wait.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    place: str | None = None
    excused: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CutState:
    """The state of the cut at a ``version`` of ``bronze`` (-1: not calculated yet).

    ``lagging_tables`` are tables that did not apply what was released; None while a tick is applying it. For the topics
    of those tables the ``cut`` also covers the records they lack, and ``waits`` has the offsets from which all tables
    wait (None: the offsets of the cut).
    """

    bronze: str
    version: int = BEGINNING
    cut: Cut = field(default_factory=Cut)
    lagging_tables: tuple[str, ...] | None = ()
    waits: Mapping[TopicPartition, int] | None = None

    @property
    def released_cut(self) -> Cut:
        """The boundary of what every table may show."""
        return self.cut if self.waits is None else replace(self.cut, offsets=self.waits)

    def value(self) -> dict[str, Any]:
        """Return the control row."""
        offsets, behind = by_topic(self.cut.offsets), None if self.lagging_tables is None else list(self.lagging_tables)
        row = {"bronze": self.bronze, "version": self.version, "offsets": offsets, "place": self.cut.place}
        waits = {} if self.waits is None else {"waits": by_topic(self.waits)}
        return {**row, "excused": sorted(self.cut.excused), "behind": behind, **waits}


def load(control: Control, lake: Lake, source: str) -> CutState | None:
    """Load the state of the cut; None if transactions need not be complete."""
    row = control.get(lake.cut(source))
    if row is None:
        return None
    cut = Cut(by_partition(row["offsets"]), row["place"], frozenset(row["excused"]))
    waits = by_partition(row["waits"]) if "waits" in row else None
    return CutState(row["bronze"], row["version"], cut, None if row["behind"] is None else tuple(row["behind"]), waits)


def load_or_create(at: Refinement, bronze: str) -> CutState | None:
    """Return the state of the cut for this bronze; None if transactions need not be complete and no state is left from
    when they had to be.
    """
    state = load(at.control, at.lake, at.source.name)
    if state is not None and state.bronze == bronze:
        return state
    return CutState(bronze) if at.source.whole_transactions else None


def is_up_to_date(at: Refinement, cut_state: CutState, paused: Collection[str]) -> bool:
    """Return whether a tick without new records has nothing to do: the cut is calculated, every table that is not
    paused has applied what was released, and transactions must still be complete.
    """
    is_taken = cut_state.lagging_tables is not None and set(cut_state.lagging_tables) <= set(paused)
    return at.source.whole_transactions and cut_state.version != BEGINNING and is_taken


def add_waiting_topics(news: NewRecords, cut_state: CutState) -> NewRecords:
    """Return the new records with the topics added that have only waiting records."""
    return replace(news, after={**{topic: cut_state.version for topic, _ in cut_state.cut.offsets}, **news.after})


def read_waiting(spark: SparkSession, at: Refinement, cut_state: CutState, news: NewRecords) -> DataFrame | None:
    """Read the bronze records that wait, except those that ``news`` contains anyway; None if there are none."""
    bronze = at.lake.bronze(at.source.name)
    by_version: dict[int, dict[TopicPartition, int]] = {}
    for place, offset in cut_state.cut.offsets.items():
        by_version.setdefault(news.after[place[0]], {})[place] = offset
    by_version.pop(BEGINNING, None)
    found = []
    for version, places in by_version.items():
        records = arrivals.read_as_of(spark, at.bronze, bronze, {topic for topic, _ in places}, version)
        if records is not None:  # else ``news`` contains these topics completely
            found.append(records.where(at_or_after(places)))
    return reduce(DataFrame.unionByName, found) if found else None


def exclude_waiting(records: DataFrame, cut: Cut) -> DataFrame:
    """Return the records that need not wait."""
    return records.where(~at_or_after(cut.offsets)) if cut.offsets else records


def select_waiting(records: DataFrame, cut: Cut) -> DataFrame:
    """Return the records that must wait."""
    return records.where(at_or_after(cut.offsets))


def prepare(at: Refinement, cut_state: CutState, now: CutState) -> None:
    """Effect 1: write the new state before the tables are applied, with the lower one of the old and the new offset per
    partition. Offsets of the transaction topic are taken from the new state only.
    """
    ends = transactions.topic(at.source.name)
    waited = {place: offset for place, offset in cut_state.cut.offsets.items() if place[0] != ends}
    every = {**waited, **now.cut.offsets}
    low = {place: min(waited.get(place, offset), offset) for place, offset in every.items()}
    _save(at, replace(now, cut=replace(now.cut, offsets=low), lagging_tables=None, waits=None))
    failpoints.hit("cut.announced")


def finalize(
    at: Refinement, cut_state: CutState, now: CutState, failed: Collection[str], topics: Collection[str]
) -> None:
    """Effect 3: write the state after the tables were applied. Tables that ``failed`` still need the records of their
    ``topics`` that waited before. Without ``consistency: transaction`` the row is removed once no table failed.
    """
    failpoints.hit("cut.tables_taken")
    missed = {place: offset for place, offset in cut_state.cut.offsets.items() if place[0] in topics}
    if at.source.whole_transactions or failed:
        own = now.cut.offsets if missed else None
        combined = replace(now.cut, offsets={**now.cut.offsets, **missed})
        _save(at, replace(now, cut=combined, lagging_tables=tuple(sorted(failed)), waits=own))
    else:
        at.control.remove(at.lake.cut(at.source.name))
    failpoints.hit("cut.settled")


def load_consistent(control: Control, lake: Lake, source: str) -> CutState | None:
    """Load the state of the cut if all tables of the source are consistent with each other; None if transactions need
    not be complete.

    Raises TableStopped if some table stopped before it applied what the others show, AtWork while tables are being
    applied.
    """
    state = load(control, lake, source)
    if state is None or state.lagging_tables == ():
        return state
    if state.lagging_tables is None:
        raise at_work_error(source, "silver is being updated, or was killed")
    raise TableStopped(
        f"transactions of {source} are incomplete in silver: {', '.join(state.lagging_tables)} stopped, or is paused",
        where=source,
        fix="Run silver, and fix what stops it, or resume a paused table (`replicator tables resume`); gold "
        "continues with the next run.",
    )


def at_work_error(source: str, why: str) -> AtWork:
    """Return the error for reading silver while it may show incomplete transactions for a moment."""
    return AtWork(
        f"transactions of {source} are incomplete in silver: {why}",
        where=source,
        fix="Try again; if no driver is running, run silver.",
    )


def _save(at: Refinement, state: CutState) -> None:
    at.control.put(at.lake.cut(at.source.name), state.value())


def at_or_after(offsets: Mapping[TopicPartition, int]) -> Column:
    """Return the condition that a record is in one of these partitions, at its offset or after it."""
    return expressions.any_of(_from(place, offset) for place, offset in offsets.items())


def _from(place: TopicPartition, offset: int) -> Column:
    return (F.col("topic") == place[0]) & (F.col("partition") == place[1]) & (F.col("offset") >= offset)
