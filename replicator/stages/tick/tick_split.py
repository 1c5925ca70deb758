"""Assign the records of a tick to tables: what its survey shows about topics and tables, and each table's share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from replicator.errors import ConfigError
from replicator.spec import BY_TIME, SourceSpec
from replicator.stages.tick import routing, template_reading
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.table_share import TableShare
from replicator.stages.tick.tick_context import TickContext
from replicator.stages.tick.ticks import Tick
from replicator.transforms import changes, skip_rules, ties


@dataclass(frozen=True)
class TickSplit:
    """The records of a tick, each read in its topic's mode, and the tables they belong to. ``orphans`` are groups that
    belong to no table, ``orders`` maps each table with new records to what orders it, and ``stops`` maps tables that
    must not continue to the reason.
    """

    records: DataFrame
    routes: Routes
    shares: tuple[TableShare, ...]
    orphans: tuple[Row, ...]
    orders: Mapping[str, str]
    stops: Mapping[str, ConfigError]


def split_by_table(tick: Tick) -> TickSplit:
    """Update the routes from the survey, and build the share of each table."""
    context, at, news = tick.context, tick.context.at, tick.context.new_records
    groups, found = tick.surveyed
    orders = {group["table"]: at.source.order(group["table"]) for group in groups if group["table"] is not None}
    records, groups, learned = _apply_routes(tick, [table for table, order in orders.items() if order == BY_TIME])
    by_table = _by_table(groups, learned)
    strays = tuple(by_table.pop(None, []))
    tables = sorted((table, own) for table, own in by_table.items() if table is not None and table not in news.paused)
    split = {row["table"] for row in found if row["split"]} if tick.retried_rejects is None else set()
    known = at.state.marks(context.new_records.continued) if split else None
    parts: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in found:
        parts[row["table"]].add((row["topic"], row["partition"]))
    spread = {table for table, _ in tables if len(parts[table]) > 1}
    spread -= _by_key(at.source, found)
    unsettled = {group["table"] for group in groups if group["has_snapshot"]}
    tied = unsettled.intersection(spread) | _contradicting_tables(records, spread - unsettled, split)

    is_released = bool(tick.moved) or (tick.cut is not None and not at.source.whole_transactions)

    def share(table: str, own: Sequence[Row]) -> TableShare:
        marks = known if table in split else None
        return TableShare(
            context.spark,
            at,
            learned,
            news,
            table,
            tuple(own),
            tick.retried_rejects,
            context.epochs,
            marks,
            table in tied,
            released=is_released,
        )

    shares = tuple(share(table, own) for table, own in tables)
    return TickSplit(records, learned, shares, strays, orders, _stops(learned, groups, at.source))


def _apply_routes(tick: Tick, by_time: Sequence[str]) -> tuple[DataFrame, list[Row], Routes]:
    """Return the records, each read in its topic's mode, their groups, and the routes updated with what these groups
    show.
    """
    context, at, records = tick.context, tick.context.at, tick.records
    groups, found = tick.surveyed
    learned = _learn_routes(tick.routes, groups, context.new_records, at.source)
    nulls_delete = routing.null_deletes(learned) or routing.lone_deletes(learned, at.source)
    must_resurvey = nulls_delete or by_time or any(map(_may_be_read_otherwise, groups))
    if must_resurvey or learned.by_offset or at.source.has_compacted_topics:
        scattered = _scattered_topics(context, found, learned)
        records = routing.apply_modes(records, learned, at.source, by_time=by_time, scattered=scattered)
    if must_resurvey:
        records = skip_rules.apply_declared(records, at.source)
        groups = template_reading.with_examples(at, changes.survey(records).collect())
        learned = _learn_routes(learned, groups, context.new_records, at.source)
    return records, groups, learned


def _by_table(groups: Sequence[Row], routes: Routes) -> dict[str | None, list[Row]]:
    """Group the survey's groups by their table, or for records that are no changes by the home table of their topic
    (None: no table).
    """
    by_table: dict[str | None, list[Row]] = defaultdict(list)
    for group in groups:
        is_change = group["rule"] is None and group["reason"] is None
        by_table[group["table"] if is_change else routes.home(group["topic"])].append(group)
    return by_table


def _stops(routes: Routes, groups: Sequence[Row], source: SourceSpec) -> dict[str, ConfigError]:
    """Return an error for each table of a topic that is now declared differently from how it was read so far."""
    stops = dict[str, ConfigError]()
    for topic, seen in _by_topic(groups).items():
        error = routing.mode_conflict(routes, topic, seen, source)
        if error is not None:
            stops |= dict.fromkeys(routes.tables.get(topic, ()), error)
    return stops


def _by_key(source: SourceSpec, found: Sequence[Row]) -> set[str]:
    """Return the tables whose records come from one topic in which each key is in a single partition, so that
    partitions cannot contradict each other. Tables with declared keys are excluded.
    """
    topics = defaultdict[str, set[tuple[str, bool]]](set)
    for row in found:
        topics[row["table"]].add((row["topic"], row["keyed"]))
    single_topic = {table for table, each in topics.items() if len(each) == 1 and next(iter(each))[1]}
    return {table for table in single_topic if table is not None and not source.declaration(table).keys}


def _contradicting_tables(records: DataFrame, tables: Collection[str], split: Collection[str]) -> set[str]:
    """Return those of the tables with records from several partitions in which two partitions may contradict each other
    (Q11).
    """
    if not tables:
        return set()
    of_tables = records.where(F.col("table").isin(*sorted(tables)))
    return {row["table"] for row in ties.candidate_tables(of_tables, split).collect()}


def _may_be_read_otherwise(group: Row) -> bool:
    """Return whether the topic's mode may change the meaning of the group's records. A tombstone has none of Debezium's
    fields either, but keeps its meaning.
    """
    is_change = group["rule"] is None and group["reason"] is None
    is_unmarked = group["flat"] and not group["rewritten"]
    return is_change and bool(group["bare"] or is_unmarked or group["truncates"])


def _scattered_topics(context: TickContext, found: Sequence[Row], routes: Routes) -> list[str]:
    """Return the topics ordered by offset that have several partitions."""
    partitions: dict[str, set[int]] = {topic: set() for topic in routes.by_offset}
    for row in found:
        partitions.get(row["topic"], set()).add(row["partition"])
    for topic, level in context.at.state.watermarks.items():
        if context.new_records.after.get(topic) == routing.BEGINNING:
            continue
        partitions.get(topic, set()).update(level.partitions)
    return [topic for topic, seen in partitions.items() if len(seen) > 1]


def _learn_routes(routes: Routes, groups: Sequence[Row], news: NewRecords, source: SourceSpec) -> Routes:
    """Return the routes updated with what a survey shows."""
    by_topic, modes = _by_topic(groups), {}
    for topic, seen in by_topic.items():
        mode = routing.mode(seen, routing.declared_deletes(seen, source))
        if mode is not None:
            modes[topic] = mode
    rows = [group for group in groups if group["rule"] is None and group["reason"] is None]
    partial = {
        group["table"] for group in rows if group["has_placeholder"] or source.declaration(group["table"]).generated
    }
    pairs = {(group["topic"], group["table"]) for group in rows}
    return routes.with_learned(pairs, modes, dict.fromkeys(by_topic.keys() & news.after.keys(), news.upto), partial)


def _by_topic(groups: Sequence[Row]) -> dict[str, list[Row]]:
    by_topic: dict[str, list[Row]] = defaultdict(list)
    for group in groups:
        by_topic[group["topic"]].append(group)
    return by_topic
