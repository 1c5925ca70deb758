"""Records described, whatever their shape: unusual ones are written anew first, what is no row by the source's file is
marked (debezium.md sections A, F, H, I).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import envelope, shapes
from replicator.debezium.jsontext import loads
from replicator.debezium.logical_types import LogicalType
from replicator.debezium.unions import Unions
from replicator.spec import EVENT_ID, SourceSpec
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import schema_ledger, template_reading
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.forms import known_types
from replicator.stages.tick.routing import Routes
from replicator.transforms import lone_tombstones, skip_rules

Survey = Callable[[DataFrame], tuple[list[Row], list[Row]]]
"""Described records -> groups of ``changes.survey``, and what the order's watch wants to know of them."""


@contextmanager
def describe(
    spark: SparkSession, at: Refinement, records: DataFrame, news: NewRecords, routes: Routes, survey: Survey
) -> Iterator[tuple[DataFrame, list[Row], list[Row]]]:
    """Bronze records as ``envelope.describe`` describes them, kept for the time of the block, and their survey."""
    with template_reading.describe(at, records, news.after) as usual:
        marked = skip_rules.apply_declared(usual, at.source)
        groups, marks = survey(marked)
        template_reading.learn(at, groups)
        forms = [group["form"] for group in groups if _shows_unions(group)]
        unusual = shapes.needs_normalizing(at.source, forms)
        if not forms and not any(_is_unusual(at.source, group) for group in groups):
            yield marked, groups, marks
            return
        plain = shapes.normalize(usual.where(unusual), shapes.for_source(at.source, _types(spark, at, groups, routes)))
        with tuning.persist(plain.unionByName(usual.where(~unusual))) as rewritten:
            events = _mark_repeated_events(spark, at, skip_rules.apply_declared(rewritten, at.source), news, routes)
            yield events, *survey(events)


@contextmanager
def describe_history(records: DataFrame, source: SourceSpec, *, is_unusual: bool) -> Iterator[DataFrame]:
    """Bronze records as ``envelope.describe`` describes them, kept for the time of the block, and all of their keys'
    before them, so that lone tombstones are known (B5); ``is_unusual``: some may have to be written anew first.

    Kept after each step: the optimizer would repeat a description wherever a filter or a join asks for part of it.
    """
    with tuning.persist(envelope.describe(records, source.reading)) as usual:
        if not is_unusual:
            yield mark_lone_tombstones(usual, source)
            return
        some = shapes.needs_normalizing(source)
        plain = shapes.normalize(usual.where(some), shapes.for_source(source, {}))
        with tuning.persist(plain.unionByName(usual.where(~some))) as rewritten:
            yield mark_lone_tombstones(rewritten, source)


def mark_lone_tombstones(records: DataFrame, source: SourceSpec) -> DataFrame:
    """Described records, all of their keys' before them among them, with lone tombstones of compacted topics (B5)."""
    is_compacted = lone_tombstones.compacted_topics(source)
    return records if is_compacted is None else lone_tombstones.mark_lone(records, is_compacted)


def _is_unusual(source: SourceSpec, group: Row) -> bool:
    return group["shape"] is not None or shapes.for_source(source, {}).router(group["topic"]) is not None


def _shows_unions(group: Row) -> bool:
    """Whether the example of a form with a schema block has a union, which nothing else would tell (A5)."""
    if not group["wrapped"] or group["row_names"] is not None or group["shape"] is not None:
        return False
    try:
        value = loads(group["value"])
        return bool(Unions().record(value, group["topic"]) != value)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return False


def _types(
    spark: SparkSession, at: Refinement, groups: Sequence[Row], routes: Routes
) -> dict[str, Mapping[str, LogicalType]]:
    """The types of stored columns of the tables that unusual records may be of.

    A stored text may have been made for want of a type, so it says nothing.
    """
    topics = {group["topic"] for group in groups if group["shape"] is not None}
    stored = {table for topic in topics for table in routes.tables.get(topic, ())}
    found: dict[str, Mapping[str, LogicalType]] = {}
    for table in stored:
        place = at.lake.silver(at.source.name, table)
        if at.silver.version(spark, place) is not None:
            ledger = schema_ledger.load(at.control, at.lake.schema(at.source.name, table), routes.bronze)
            types = known_types(at.silver.read(spark, place).schema, ledger.written)
            found[table] = {name: kind for name, kind in types.items() if kind.name != "string"}
    return found


def _mark_repeated_events(
    spark: SparkSession, at: Refinement, records: DataFrame, news: NewRecords, routes: Routes
) -> DataFrame:
    """Events of the outbox router, repetitions marked (I1)."""
    readers = shapes.for_source(at.source, {})
    topics = [topic for topic in news.after if (found := readers.router(topic)) and found[1].key == EVENT_ID]
    if not topics:
        return records
    tables = {table for topic in topics for table in routes.tables.get(topic, ())}
    places = {table: at.lake.silver(at.source.name, table) for table in sorted(tables)}
    stored = {
        table: at.silver.read(spark, place).select(EVENT_ID)
        for table, place in places.items()
        if at.silver.version(spark, place) is not None
    }
    return skip_rules.mark_duplicate_events(records, stored, F.col("topic").isin(*topics))
