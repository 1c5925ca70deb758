"""Records described by what others like them have said (``debezium/alike.py``), and by their own words where there are
none like them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from replicator.debezium import alike, envelope
from replicator.debezium.alike import Known
from replicator.jvm import gateway
from replicator.spec import Declaration
from replicator.stages import tuning
from replicator.stages.refinement import Refinement
from replicator.transforms import changes

_TOPICS, _RECORDS = 12, 200
"""So many records of so many topics are looked at before there is a batch to learn from."""


@contextmanager
def described(at: Refinement, records: DataFrame, topics: Collection[str]) -> Iterator[DataFrame]:
    """Bronze records as ``envelope.read`` describes them, kept for the time of the block."""
    reading, templates = at.source.reading, _templates(at, topics)
    if not templates:
        with tuning.kept(envelope.read(records, reading), whole=True) as every:
            yield every
        return
    unlike = F.col(alike.TEMPLATE).isNull()
    likened = alike.likened(records, templates, reading.binlog)
    with tuning.tallied(likened, {"unlike": unlike}, whole=True) as (kept, counts):
        if not counts["unlike"]:
            yield alike.told(kept, templates)
            return
        with tuning.kept(envelope.read(kept.where(unlike).select(*records.columns), reading), whole=True) as others:
            yield alike.told(kept.where(~unlike), templates).unionByName(others)


def _templates(at: Refinement, topics: Collection[str]) -> list[Known]:
    """Those of tables that ask of a record only what a template tells: not where its change happened."""
    known = at.templates.of(topics)
    return [_as_asked(at, each) for each in known if not _declared(at, each).append_only]


def _as_asked(at: Refinement, known: Known) -> Known:
    """A template of a table of which what a row was before an update is asked, too, leaves its records whole: where the
    declared key is more than the key of the records it tells which row moved.
    """
    if not known.template.forgets_before:
        return known
    own = at.templates.example(known.topic, known.facts["form"])["key_names"] or ()
    is_wider = not {*map(str.casefold, _declared(at, known).keys)}.issubset(map(str.casefold, own))
    return replace(known, whole=is_wider or at.befores)


def _declared(at: Refinement, known: Known) -> Declaration:
    return at.source.declaration(known.facts["table"] or "")


def exampled(at: Refinement, groups: Iterable[Row]) -> list[Row]:
    """Groups of a survey, each with an example, also where all its records are like known ones."""
    return [group if group["exampled"] else _with_known(at, group) for group in groups]


def _with_known(at: Refinement, group: Row) -> Row:
    return Row(**{**group.asDict(), **at.templates.example(group["topic"], group["form"])})


def learn(at: Refinement, groups: Iterable[Row]) -> None:
    """Take the examples of a survey for how records like them are written."""
    at.templates.learn([group.asDict() for group in groups if group["exampled"]], at.placeholder)


def acquaint(at: Refinement, records: DataFrame, topics: Collection[str], size: int) -> None:
    """Learn from the first records of topics of which nothing is known yet, where so many bytes of bronze are to come
    that it pays.
    """
    unknown = at.templates.unknown(topics)[:_TOPICS]
    spark = records.sparkSession
    if not unknown or not tuning.are_some(size):
        return
    beside = tuning.session_for_records(spark, 0, len(unknown))
    of_each = [gateway.moved(records, beside).where(F.col("topic") == topic).limit(_RECORDS) for topic in unknown]
    few = reduce(DataFrame.unionByName, of_each).coalesce(1)
    with tuning.kept(envelope.read(few, at.source.reading)) as told:
        learn(at, changes.survey(told).collect())
