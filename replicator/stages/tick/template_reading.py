"""Describe records by templates learned from similar records (``debezium/template_matching.py``), and parse in full
those that match none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from replicator.debezium import envelope, template_matching
from replicator.debezium.template_matching import KnownTemplate
from replicator.jvm import gateway
from replicator.spec import Declaration
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.transforms import changes

_TOPICS, _RECORDS = 12, 200
"""So many records of so many topics are read to learn templates before the first batch."""


@contextmanager
def describe(at: Refinement, records: DataFrame, topics: Collection[str]) -> Iterator[DataFrame]:
    """Yield bronze records as ``envelope.describe`` describes them; persisted while the context is open."""
    reading, templates = at.source.reading, _usable_templates(at, topics)
    if not templates:
        with tuning.persist(envelope.describe(records, reading), whole=True) as every:
            yield every
        return
    is_unmatched = F.col(template_matching.TEMPLATE).isNull()
    matched = template_matching.match_records(records, templates, reading.binlog)
    with tuning.persist_and_count(matched, {"unlike": is_unmatched}, whole=True) as (persisted, counts):
        if not counts["unlike"]:
            yield template_matching.describe(persisted, templates)
            return
        with tuning.persist(
            envelope.describe(persisted.where(is_unmatched).select(*records.columns), reading), whole=True
        ) as others:
            yield template_matching.describe(persisted.where(~is_unmatched), templates).unionByName(others)


def _usable_templates(at: Refinement, topics: Collection[str]) -> list[KnownTemplate]:
    """Return the templates of tables for which a template tells enough; append-only tables also need the place of each
    change.
    """
    known = at.templates.of(topics)
    return [_with_whole_rows(at, each) for each in known if not _declared(at, each).append_only]


def _with_whole_rows(at: Refinement, known: KnownTemplate) -> KnownTemplate:
    """Return the template so that it keeps records whole if the row before an update is needed: if the declared key has
    more columns than the records' key, it tells which row moved.
    """
    if not known.template.drops_before_image:
        return known
    own = at.templates.example(known.topic, known.facts["form"])["key_names"] or ()
    is_wider = not {*map(str.casefold, _declared(at, known).keys)}.issubset(map(str.casefold, own))
    return replace(known, whole=is_wider or at.keep_before)


def _declared(at: Refinement, known: KnownTemplate) -> Declaration:
    return at.source.declaration(known.facts["table"] or "")


def with_examples(at: Refinement, groups: Iterable[Row]) -> list[Row]:
    """Return the groups of a survey, each with an example record, also if all its records matched templates."""
    return [group if group["exampled"] else _with_known_example(at, group) for group in groups]


def _with_known_example(at: Refinement, group: Row) -> Row:
    return Row(**{**group.asDict(), **at.templates.example(group["topic"], group["form"])})


def learn(at: Refinement, groups: Iterable[Row]) -> None:
    """Learn templates from the examples of a survey."""
    at.templates.learn([group.asDict() for group in groups if group["exampled"]], at.placeholder)


def learn_from_first(at: Refinement, records: DataFrame, topics: Collection[str], size: int) -> None:
    """Learn templates from the first records of unknown topics, if the batch has enough bytes to be worth it."""
    unknown = at.templates.unknown(topics)[:_TOPICS]
    spark = records.sparkSession
    if not unknown or not tuning.is_worth_parallel(size):
        return
    session = tuning.session_for_records(spark, 0, len(unknown))
    samples = [gateway.to_session(records, session).where(F.col("topic") == topic).limit(_RECORDS) for topic in unknown]
    few = reduce(DataFrame.unionByName, samples).coalesce(1)
    with tuning.persist(envelope.describe(few, at.source.reading)) as described:
        learn(at, changes.survey(described).collect())
