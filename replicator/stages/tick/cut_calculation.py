"""Calculate the cut: which records of a tick belong to transactions that have arrived completely."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import envelope
from replicator.jvm import expressions
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import arrivals
from replicator.stages.tick.routing import BEGINNING, NULL_DELETES, REWRITTEN, REWRITTEN_BY_OFFSET, Routes
from replicator.stages.tick.tick_context import TickContext
from replicator.stages.tick.transaction_cut import Cut, CutState, exclude_waiting
from replicator.transforms import transactions

_REPEATED = 100_000
"""Upper bound for the records that a restarted connector repeats in each partition."""

_UNDER_WAY = 1_000
"""So many of the latest transaction ends of each partition may have arrived before all of their events."""


def calculate(context: TickContext, records: DataFrame, cut_state: CutState, routes: Routes) -> CutState:
    """Return the state of the cut after the records of a tick, which have their epochs, assuming every table applies
    what is released.

    ``cut_state`` is the state before. Its version is BEGINNING if it is unknown: nothing is shown yet.
    """
    now = replace(cut_state, version=context.new_records.upto, cut=replace(cut_state.cut, offsets={}))
    if not context.at.source.whole_transactions:
        return now
    counts = _is_countable(context.at, routes)
    with (
        tuning.persist(envelope.describe(records, context.at.source.reading)) as described,
        tuning.persist(transactions.tag_changes(described)) as changes,
    ):
        ends = transactions.parse_ends(
            described.where(F.col("topic") == transactions.topic(context.at.source.name)), counts
        )
        cut, is_blind = _calculate_cut(changes, ends, cut_state.cut)
        if is_blind and (earlier := _earlier_ends(context, cut_state)) is not None:
            repeated = transactions.parse_ends(earlier, counts).select("_tx").distinct()
            cut, _ = _calculate_cut(changes, ends.join(repeated, "_tx", "left_anti"), cut_state.cut)
    return replace(now, cut=cut)


def calculate_initial(context: TickContext, cut_state: CutState, routes: Routes) -> CutState:
    """Return the first state of the cut for a lake that already shows rows: everything in bronze is released.
    Transactions that are incomplete are excused, because it is unknown which of their changes were shown.
    """
    records = _last(_bronze(context, context.new_records.upto), _REPEATED)
    topics = {topic for epoch in context.epochs.bumps for topic in epoch.starts}
    described = envelope.describe(context.in_epochs(records, topics), context.at.source.reading)
    topic = transactions.topic(context.at.source.name)
    every = _bronze(context, context.new_records.upto).where(F.col("topic") == topic)
    counts = _is_countable(context.at, routes)
    recent = transactions.parse_ends(_last(every, _UNDER_WAY), counts)
    done = transactions.parse_ends(every, counts).join(recent, "_tx", "left_anti")
    with tuning.persist(transactions.tag_changes(described)) as changes:
        half = transactions.states(changes, recent).where("NOT whole AND place IS NOT NULL")
        excused = half.join(done, "_tx", "left_anti").select("_tx").collect()
        place = changes.agg(F.max("place").alias("place")).collect()[0]["place"]
    cut = Cut(place=place, excused=frozenset(row["_tx"] for row in excused))
    return replace(cut_state, version=context.new_records.upto, cut=cut)


def _calculate_cut(changes: DataFrame, ends: DataFrame, previous: Cut) -> tuple[Cut, bool]:
    """Calculate the cut from tagged changes and transaction ends that are new or waited at the ``previous`` cut. Also
    return whether something waits for a transaction of which only the end has arrived.
    """
    new, ends = _exclude_released(changes, ends, previous)
    with tuning.persist(transactions.states(new, ends)) as states:
        bound = transactions.incomplete_bound(states).collect()[0]
        waits = transactions.select_waiting(states, bound["place"], bound["ended"])
        first = transactions.first_waiting(new, ends, waits).collect()
        passed = new.join(waits, "_tx", "left_anti").agg(F.max("place").alias("place")).collect()[0]["place"]
    offsets = {(row["topic"], row["partition"]): row["offset"] for row in first}
    place = max(filter(None, (passed, previous.place)), default=None)
    return Cut(offsets, place, previous.excused), bound["ended"] is not None


@contextmanager
def waiting_transactions(context: TickContext, records: DataFrame, cut: Cut, routes: Routes) -> Iterator[DataFrame]:
    """Yield the transactions of waiting records, as ``transactions.missing_tables`` returns them."""
    ends_topic = transactions.topic(context.at.source.name)
    with (
        tuning.persist(context.described(records, {topic for topic, _ in cut.offsets})) as described,
        tuning.persist(transactions.tag_changes(described)) as changes,
    ):
        ends = transactions.parse_ends(described.where(F.col("topic") == ends_topic), _is_countable(context.at, routes))
        with tuning.persist(transactions.missing_tables(*_exclude_released(changes, ends, cut))) as found:
            yield found


def _exclude_released(changes: DataFrame, ends: DataFrame, previous: Cut) -> tuple[DataFrame, DataFrame]:
    """Drop the changes and ends that need not wait in any case."""
    new = changes if previous.place is None else changes.where(F.col("place") > previous.place)
    return new.where(~F.col("_tx").isin(*previous.excused)), ends.where(~F.col("_tx").isin(*previous.excused))


def _earlier_ends(context: TickContext, state: CutState) -> DataFrame | None:
    """Return the records of the transaction topic that were released before in the newest epoch, as far back as a
    connector may repeat them; None if nothing was released yet. (A tick that continues after a crash has them among its
    new records.) Older epochs are left out because a source that starts over may reuse transaction ids.
    """
    if state.version == BEGINNING:
        return None
    topic, bronze = transactions.topic(context.at.source.name), context.at.lake.bronze(context.at.source.name)
    rows = arrivals.read_as_of(context.spark, context.at.bronze, bronze, [topic], state.version)
    rows = _bronze(context, state.version).where(F.col("topic") == topic) if rows is None else rows
    rows = exclude_waiting(rows, state.cut)
    ends = rows.groupBy("partition").agg(F.max("offset").alias("last")).collect()
    # a literal condition lets older files be skipped, which a join would read
    recent = [(F.col("partition") == each["partition"]) & (F.col("offset") > each["last"] - _REPEATED) for each in ends]
    recent_rows = rows.where(expressions.any_of(recent))
    with_epoch = context.in_epochs(recent_rows, {topic})
    return with_epoch.where(F.col("epoch") == context.epochs.newest)


def _bronze(context: TickContext, version: int) -> DataFrame:
    return context.at.bronze.read(context.spark, context.at.lake.bronze(context.at.source.name), version)


def _last(records: DataFrame, count: int) -> DataFrame:
    """Return the last ``count`` records of each partition."""
    places = ["topic", "partition"]
    ends = records.groupBy(*places).agg(F.max("offset").alias("_last"))
    return records.join(F.broadcast(ends), places).where(F.col("offset") > F.col("_last") - count).drop("_last")


def _is_countable(at: Refinement, routes: Routes) -> Column:
    """Return the condition that a table's events can be counted: not if no topic of the source carries the table, and
    not if its topic is flattened, because flattened records do not name their transaction. The source's ``topics`` are
    compared with names as Debezium sanitizes them.
    """
    topics, flattened = at.source.topics, routes.topics_of_mode(NULL_DELETES, REWRITTEN, REWRITTEN_BY_OFFSET)
    named = F.concat(F.lit(f"{at.source.name}."), F.regexp_replace("table", "[^a-zA-Z0-9._-]", "_"))
    is_read = named.rlike(f"^(?:{topics})$") if topics else F.lit(True)
    last_two = {_last_two(table) for topic in flattened for table in routes.tables.get(topic, ())}
    return is_read & ~F.substring_index("table", ".", -2).isin(*sorted(last_two))


def _last_two(table: str) -> str:
    return ".".join(table.split(".")[-2:])
