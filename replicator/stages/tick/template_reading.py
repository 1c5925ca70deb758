"""Records described by what others like them have said (``debezium/template_matching.py``), and by their own words
where there are none like them.
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
"""So many records of so many topics are looked at before there is a batch to learn from."""


@contextmanager
def describe(at: Refinement, records: DataFrame, topics: Collection[str]) -> Iterator[DataFrame]:
    """Bronze records as ``envelope.describe`` describes them, kept for the time of the block."""
    reading, templates = at.source.reading, _usable_templates(at, topics)
    if not templates:
        with tuning.persist(envelope.describe(records, reading), whole=True) as every:
            yield every
        return
    unlike = F.col(template_matching.TEMPLATE).isNull()
    likened = template_matching.match_records(records, templates, reading.binlog)
    with tuning.persist_and_count(likened, {"unlike": unlike}, whole=True) as (kept, counts):
        if not counts["unlike"]:
            yield template_matching.describe(kept, templates)
            return
        with tuning.persist(
            envelope.describe(kept.where(unlike).select(*records.columns), reading), whole=True
        ) as others:
            yield template_matching.describe(kept.where(~unlike), templates).unionByName(others)


def _usable_templates(at: Refinement, topics: Collection[str]) -> list[KnownTemplate]:
    """Those of tables that ask of a record only what a template tells: not where its change happened."""
    known = at.templates.of(topics)
    return [_with_whole_rows(at, each) for each in known if not _declared(at, each).append_only]


def _with_whole_rows(at: Refinement, known: KnownTemplate) -> KnownTemplate:
    """A template of a table of which what a row was before an update is asked, too, leaves its records whole: where the
    declared key is more than the key of the records it tells which row moved.
    """
    if not known.template.drops_before_image:
        return known
    own = at.templates.example(known.topic, known.facts["form"])["key_names"] or ()
    is_wider = not {*map(str.casefold, _declared(at, known).keys)}.issubset(map(str.casefold, own))
    return replace(known, whole=is_wider or at.befores)


def _declared(at: Refinement, known: KnownTemplate) -> Declaration:
    return at.source.declaration(known.facts["table"] or "")


def with_examples(at: Refinement, groups: Iterable[Row]) -> list[Row]:
    """Groups of a survey, each with an example, also where all its records are like known ones."""
    return [group if group["exampled"] else _with_known_example(at, group) for group in groups]


def _with_known_example(at: Refinement, group: Row) -> Row:
    return Row(**{**group.asDict(), **at.templates.example(group["topic"], group["form"])})


def learn(at: Refinement, groups: Iterable[Row]) -> None:
    """Take the examples of a survey for how records like them are written."""
    at.templates.learn([group.asDict() for group in groups if group["exampled"]], at.placeholder)


def learn_from_first(at: Refinement, records: DataFrame, topics: Collection[str], size: int) -> None:
    """Learn from the first records of topics of which nothing is known yet, where so many bytes of bronze are to come
    that it pays.
    """
    unknown = at.templates.unknown(topics)[:_TOPICS]
    spark = records.sparkSession
    if not unknown or not tuning.is_worth_parallel(size):
        return
    beside = tuning.session_for_records(spark, 0, len(unknown))
    of_each = [gateway.to_session(records, beside).where(F.col("topic") == topic).limit(_RECORDS) for topic in unknown]
    few = reduce(DataFrame.unionByName, of_each).coalesce(1)
    with tuning.persist(envelope.describe(few, at.source.reading)) as told:
        learn(at, changes.survey(told).collect())
