"""Describe records of any shape: unusual ones are normalized first, and records that the source's file says are not
rows are marked (debezium.md sections A, F, H, I).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator import names
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
from replicator.transforms.columns.layout import key_of

Survey = Callable[[DataFrame], tuple[list[Row], list[Row]]]
"""Described records -> the groups of ``changes.survey``, and the marks that the order checks need."""


@contextmanager
def describe(
    spark: SparkSession, at: Refinement, records: DataFrame, news: NewRecords, routes: Routes, survey: Survey
) -> Iterator[tuple[DataFrame, list[Row], list[Row]]]:
    """Yield bronze records as ``envelope.describe`` describes them, and their survey; persisted while the context is
    open.
    """
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
    """Yield bronze records as ``envelope.describe`` describes them, with lone tombstones marked (B5); persisted while
    the context is open. The records must include all earlier ones of their keys. ``is_unusual``: some may have to be
    normalized first.

    Each step is persisted, because the optimizer would repeat a description for each filter or join that uses part of
    it.
    """
    with tuning.persist(envelope.describe(records, source.reading)) as usual:
        if not is_unusual:
            yield mark_lone_tombstones(usual, source)
            return
        unusual = shapes.needs_normalizing(source)
        plain = shapes.normalize(usual.where(unusual), shapes.for_source(source, {}))
        with tuning.persist(plain.unionByName(usual.where(~unusual))) as rewritten:
            yield mark_lone_tombstones(rewritten, source)


def mark_lone_tombstones(records: DataFrame, source: SourceSpec) -> DataFrame:
    """Mark lone tombstones of compacted topics (B5). The described records must include all earlier ones of their
    keys.
    """
    is_compacted = lone_tombstones.compacted_topics(source)
    return records if is_compacted is None else lone_tombstones.mark_lone(records, is_compacted)


def _is_unusual(source: SourceSpec, group: Row) -> bool:
    return group["shape"] is not None or shapes.for_source(source, {}).router(group["topic"]) is not None


def _shows_unions(group: Row) -> bool:
    """Return whether the example of a form with a schema block contains a union, which only its value shows (A5)."""
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
    """Return the types of the stored columns of the tables to which unusual records may belong, by table.

    Stored texts are left out: such a column may be text only because its type was unknown.
    """
    topics = {group["topic"] for group in groups if group["shape"] is not None}
    stored = {table for topic in topics for table in routes.tables.get(topic, ())}
    found: dict[str, Mapping[str, LogicalType]] = {}
    for table in stored:
        location = at.lake.silver(at.source.name, table)
        if at.silver.version(spark, location) is not None:
            ledger = schema_ledger.load(at.control, at.lake.schema(at.source.name, table), routes.bronze)
            types = known_types(at.silver.read(spark, location).schema, ledger.written)
            found[table] = {name: kind for name, kind in types.items() if kind.name != "string"}
    return found


def _mark_repeated_events(
    spark: SparkSession, at: Refinement, records: DataFrame, news: NewRecords, routes: Routes
) -> DataFrame:
    """Mark repeated events of the outbox router (I1)."""
    readers = shapes.for_source(at.source, {})
    topics = [topic for topic in news.after if (found := readers.router(topic)) and found[1].key == EVENT_ID]
    if not topics:
        return records
    tables = {table for topic in topics for table in routes.tables.get(topic, ())}
    places = {table: at.lake.silver(at.source.name, table) for table in sorted(tables)}
    stored = {
        table: _stored_ids(at.silver.read(spark, place))
        for table, place in places.items()
        if at.silver.version(spark, place) is not None
    }
    return skip_rules.mark_duplicate_events(records, stored, F.col("topic").isin(*topics))


def _stored_ids(events: DataFrame) -> DataFrame:
    """Return the id of each stored event; a transform may have given the column, which is the key, another name."""
    [key] = key_of(events.schema)
    return events.select(F.col(names.quote_spark(key)).alias(EVENT_ID))
