"""Where the cut goes: which records of a tick are of transactions that are here whole."""

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
from replicator.stages.tick.order_checks import TickContext
from replicator.stages.tick.routing import BEGINNING, NULL_DELETES, REWRITTEN, REWRITTEN_BY_OFFSET, Routes
from replicator.stages.tick.transaction_cut import Cut, CutState, exclude_waiting
from replicator.transforms import transactions

_REPEATED = 100_000
"""A connector that starts again repeats fewer records than these, in each partition."""

_UNDER_WAY = 1_000
"""So many ends of each partition may be here before all of their events."""


def calculate(watch: TickContext, records: DataFrame, stood: CutState, routes: Routes) -> CutState:
    """How it stands behind the records of a tick, in their epochs, once every table has taken what is not cut off.

    ``stood.version`` is BEGINNING where nobody knows how it stood: then nothing is shown yet.
    """
    now = replace(stood, version=watch.news.upto, cut=replace(stood.cut, offsets={}))
    if not watch.at.source.whole_transactions:
        return now
    counts = _is_countable(watch.at, routes)
    with (
        tuning.persist(envelope.describe(records, watch.at.source.reading)) as described,
        tuning.persist(transactions.tag_changes(described)) as changes,
    ):
        told = transactions.parse_ends(
            described.where(F.col("topic") == transactions.topic(watch.at.source.name)), counts
        )
        cut, is_blind = _calculate_cut(changes, told, stood.cut)
        if is_blind and (earlier := _earlier_ends(watch, stood)) is not None:
            repeated = transactions.parse_ends(earlier, counts).select("_tx").distinct()
            cut, _ = _calculate_cut(changes, told.join(repeated, "_tx", "left_anti"), stood.cut)
    return replace(now, cut=cut)


def calculate_initial(watch: TickContext, stood: CutState, routes: Routes) -> CutState:
    """How it stands in a lake that shows rows already: all that bronze has goes on. What is under way is excused, since
    nobody knows what of it was shown.
    """
    records = _last(_bronze(watch, watch.news.upto), _REPEATED)
    topics = {topic for epoch in watch.epochs.bumps for topic in epoch.starts}
    described = envelope.describe(watch.in_epochs(records, topics), watch.at.source.reading)
    every = _bronze(watch, watch.news.upto).where(F.col("topic") == transactions.topic(watch.at.source.name))
    counts = _is_countable(watch.at, routes)
    recent = transactions.parse_ends(_last(every, _UNDER_WAY), counts)
    done = transactions.parse_ends(every, counts).join(recent, "_tx", "left_anti")
    with tuning.persist(transactions.tag_changes(described)) as changes:
        half = transactions.states(changes, recent).where("NOT whole AND place IS NOT NULL")
        excused = half.join(done, "_tx", "left_anti").select("_tx").collect()
        place = changes.agg(F.max("place").alias("place")).collect()[0]["place"]
    cut = Cut(place=place, excused=frozenset(row["_tx"] for row in excused))
    return replace(stood, version=watch.news.upto, cut=cut)


def _calculate_cut(changes: DataFrame, told: DataFrame, stood: Cut) -> tuple[Cut, bool]:
    """The cut behind tagged changes and ends that all waited when it ``stood`` so, or are new; and whether something
    waits for a transaction of which nothing but the end is here.
    """
    new, told = _exclude_released(changes, told, stood)
    with tuning.persist(transactions.states(new, told)) as states:
        bound = transactions.incomplete_bound(states).collect()[0]
        waits = transactions.select_waiting(states, bound["place"], bound["ended"])
        first = transactions.first_waiting(new, told, waits).collect()
        passed = new.join(waits, "_tx", "left_anti").agg(F.max("place").alias("place")).collect()[0]["place"]
    offsets = {(row["topic"], row["partition"]): row["offset"] for row in first}
    place = max(filter(None, (passed, stood.place)), default=None)
    return Cut(offsets, place, stood.excused), bound["ended"] is not None


@contextmanager
def waiting_transactions(watch: TickContext, records: DataFrame, stood: Cut, routes: Routes) -> Iterator[DataFrame]:
    """Records that wait -> their transactions, as ``transactions.missing_tables`` tells them, for the time of the
    block.
    """
    ends_topic = transactions.topic(watch.at.source.name)
    with (
        tuning.persist(watch.described(records, {topic for topic, _ in stood.offsets})) as described,
        tuning.persist(transactions.tag_changes(described)) as changes,
    ):
        told = transactions.parse_ends(described.where(F.col("topic") == ends_topic), _is_countable(watch.at, routes))
        with tuning.persist(transactions.missing_tables(*_exclude_released(changes, told, stood))) as found:
            yield found


def _exclude_released(changes: DataFrame, told: DataFrame, stood: Cut) -> tuple[DataFrame, DataFrame]:
    """Changes and ends without what need not wait, whatever comes."""
    new = changes if stood.place is None else changes.where(F.col("place") > stood.place)
    return new.where(~F.col("_tx").isin(*stood.excused)), told.where(~F.col("_tx").isin(*stood.excused))


def _earlier_ends(watch: TickContext, stood: CutState) -> DataFrame | None:
    """Records of the transaction topic that were let through before in the newest epoch, as far back as a connector may
    repeat them; a tick that went on after a crash has them among its news. A source that starts anew may give its
    transactions the ids of other ones.
    """
    if stood.version == BEGINNING:
        return None
    topic, bronze = transactions.topic(watch.at.source.name), watch.at.lake.bronze(watch.at.source.name)
    rows = arrivals.read_as_of(watch.spark, watch.at.bronze, bronze, [topic], stood.version)
    rows = _bronze(watch, stood.version).where(F.col("topic") == topic) if rows is None else rows
    rows = exclude_waiting(rows, stood.cut)
    ends = rows.groupBy("partition").agg(F.max("offset").alias("last")).collect()
    # as a condition it leaves out older files, which a join would read
    recent = [(F.col("partition") == each["partition"]) & (F.col("offset") > each["last"] - _REPEATED) for each in ends]
    lately = rows.where(expressions.any_of(recent))
    told = watch.in_epochs(lately, {topic})
    return told.where(F.col("epoch") == watch.epochs.newest)


def _bronze(watch: TickContext, version: int) -> DataFrame:
    return watch.at.bronze.read(watch.spark, watch.at.lake.bronze(watch.at.source.name), version)


def _last(records: DataFrame, count: int) -> DataFrame:
    """The last records of each partition."""
    places = ["topic", "partition"]
    ends = records.groupBy(*places).agg(F.max("offset").alias("_last"))
    return records.join(F.broadcast(ends), places).where(F.col("offset") > F.col("_last") - count).drop("_last")


def _is_countable(at: Refinement, routes: Routes) -> Column:
    """Whether a table's events can be counted: those that no topic of the source has never come, and those of
    flattened topics do not say their transaction. ``topics`` are names as Debezium makes them, without other signs.
    """
    topics, flattened = at.source.topics, routes.of_mode(NULL_DELETES, REWRITTEN, REWRITTEN_BY_OFFSET)
    named = F.concat(F.lit(f"{at.source.name}."), F.regexp_replace("table", "[^a-zA-Z0-9._-]", "_"))
    is_read = named.rlike(f"^(?:{topics})$") if topics else F.lit(True)
    last_two = {_last_two(table) for topic in flattened for table in routes.tables.get(topic, ())}
    return is_read & ~F.substring_index("table", ".", -2).isin(*sorted(last_two))


def _last_two(table: str) -> str:
    return ".".join(table.split(".")[-2:])
