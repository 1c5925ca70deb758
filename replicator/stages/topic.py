"""A topic's records as tables, without a lake: every change as silver would decode it, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names
from replicator.stages import bronze, tuning
from replicator.stages.refinement import Refinement
from replicator.stages.table import decoding, ordering, schema_change
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick import sharing, ticks
from replicator.stages.tick.arrivals import News
from replicator.stages.tick.epochs import Epochs
from replicator.stages.tick.rewind import Watch
from replicator.stages.tick.routing import BEGINNING, Routes
from replicator.stages.tick.share import Share
from replicator.transforms import decode
from replicator.transforms.columns.layout import Layout, version_of
from replicator.transforms.decode import Needs
from replicator.transforms.letters import PLACE

OURS = ("_op", "_partition", "_offset", "_timestamp", "_seq")
"""Columns behind those of the row: the operation, where the record stands in Kafka, and in the source's order."""


@dataclass(frozen=True)
class Told:
    """What a topic holds. ``tables``, by ``<database or schema>.<table>``, have one row per change: the columns that it
    leaves behind (of a delete the key) by the source's names, and OURS. ``records`` has one row per record: ``topic,
    partition, offset, timestamp, key STRING, value STRING, op, table``, and ``note``: the rule or the reason why it is
    no change of a row, NULL for one that is.
    """

    tables: Mapping[str, DataFrame]
    records: DataFrame


@contextmanager
def told(spark: SparkSession, at: Refinement, read: Callable[[SparkSession], DataFrame]) -> Iterator[Told]:
    """What is ``read`` of a source (the columns of ``Source.read``, bounded) as tables, for the time of the block, in a
    session of their own with exact names. ``at`` is a refinement whose lake is empty.

    Columns that the source's file hides are NULL, and then so are the records' texts. A value that was not sent is
    NULL, and so is all that a change of a key leaves to its older records. What cannot be decoded is in ``records``
    alone.
    """
    session = tuning.session_for(spark, 0, exact_names=True)
    with tuning.kept(bronze.rows(read(session), {})) as rows:
        topics = [row["topic"] for row in rows.select("topic").distinct().collect()]
        watch = Watch(session, at, News(0, dict.fromkeys(topics, BEGINNING)), Epochs())
        with ticks.ticking(watch, watch.in_epochs(rows, topics), Routes("")) as tick:
            shared = sharing.shared(tick)
            tables = {share.name: _changes(share, shared.records) for share in shared.shares if share.rows}
            yield Told(tables, _texts(shared.records, hidden=at.source.hides_some))


def _changes(share: Share, records: DataFrame) -> DataFrame:
    """The changes of one table that can be decoded."""
    rows = share.changes_in(records)
    forms, _ = forms_of.read(share.rows, rows, share.declaration, None)
    ordered = ordering.ordered(share, rows)
    layout = schema_change.foresee(share, ordered, forms, None).plan.layout
    told = decoding.needed(share, forms, layout)
    needs = Needs(told.placeholder, keyless_deletes=told.keyless_deletes, places=True)
    changed = decode.decode(ordered.where(F.col("op") != "t"), forms, layout, share.name, needs)
    place = F.struct(*PLACE)
    of_kafka = ordered.select(place.alias("_place"), F.col("op").alias("_op"), F.col("timestamp").alias("_timestamp"))
    good = changed.where(F.col("_reject").isNull()).withColumn("_place", F.struct(*[F.col(f"_at.{n}") for n in PLACE]))
    return _shown(good.join(of_kafka, "_place"), layout, share)


def _shown(changed: DataFrame, layout: Layout, share: Share) -> DataFrame:
    hides = share.at.source.hides
    own = [
        (
            F.lit(None).cast(kind)
            if hides(share.name, names.decode(version_of(column)[0]))
            else F.col(names.spark(column))
        ).alias(names.decode(column))
        for column, kind in layout.types.items()
    ]
    where = [F.col(f"_place.{name}").alias(f"_{name}") for name in PLACE[1:]]
    return changed.select(*own, "_op", *where, "_timestamp", "_seq")


def _texts(records: DataFrame, *, hidden: bool) -> DataFrame:
    note = F.coalesce("rule", "reason")
    texts = [(F.lit(None).cast("string") if hidden else F.col(name)).alias(name) for name in ("key", "value")]
    of_row = [F.when(note.isNull(), F.col(name)).alias(name) for name in ("op", "table")]
    return records.select(*PLACE, "timestamp", *texts, *of_row, note.alias("note"))
