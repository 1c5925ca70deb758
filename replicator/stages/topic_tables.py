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
from replicator.stages.table import batch_reading, ordering, schema_change
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick import tick_split, ticks
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.epochs import Epochs
from replicator.stages.tick.routing import BEGINNING, Routes
from replicator.stages.tick.table_share import TableShare
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import decode
from replicator.transforms.columns.layout import Layout, version_of
from replicator.transforms.dead_letters import COORDINATES
from replicator.transforms.decode import DecodeOptions

OURS = ("_op", "_partition", "_offset", "_timestamp", "_seq")
"""Columns after those of the row: the operation, the record's place in Kafka, and its place in the source's order."""


@dataclass(frozen=True)
class TopicTables:
    """The contents of a topic. ``tables``, by ``<database or schema>.<table>``, have one row per change: the columns
    after it (of a delete the key) by the source's names, and OURS. ``records`` has one row per record: ``topic,
    partition, offset, timestamp, key STRING, value STRING, op, table``, and ``note``: the rule or the reason why it is
    not a change of a row, NULL if it is one.
    """

    tables: Mapping[str, DataFrame]
    records: DataFrame


@contextmanager
def read_tables(
    spark: SparkSession, at: Refinement, read: Callable[[SparkSession], DataFrame]
) -> Iterator[TopicTables]:
    """Yield the records that ``read`` returns (bounded, with the columns of ``Source.read``) as tables, in a session of
    their own with exact names; persisted while the context is open. ``at`` is a refinement whose lake is empty.

    Columns that the source's file hides are NULL, and then so are the texts of the records. A value that was not sent
    is NULL, and so is everything that a change of key leaves to its older records. What cannot be decoded is in
    ``records`` only.
    """
    session = tuning.session_for(spark, 0, exact_names=True)
    with tuning.persist(bronze.rows(read(session), {})) as rows:
        topics = [row["topic"] for row in rows.select("topic").distinct().collect()]
        context = TickContext(session, at, NewRecords(0, dict.fromkeys(topics, BEGINNING)), Epochs())
        with ticks.build(context, context.in_epochs(rows, topics), Routes("")) as tick:
            shared = tick_split.split_by_table(tick)
            tables = {share.name: _changes(share, shared.records) for share in shared.shares if share.rows}
            yield TopicTables(tables, _texts(shared.records, hidden=at.source.has_masks))


def _changes(share: TableShare, records: DataFrame) -> DataFrame:
    """Return the changes of one table that can be decoded."""
    rows = share.changes_in(records)
    forms, _ = forms_of.from_groups(share.rows, rows, share.declaration, None)
    ordered = ordering.order_records(share, rows)
    layout = schema_change.plan_change(share, ordered, forms, None).plan.layout
    options = batch_reading.decode_options(share, forms, layout)
    needs = DecodeOptions(options.placeholder, keyless_deletes=options.keyless_deletes, places=True)
    changed = decode.decode(ordered.where(F.col("op") != "t"), forms, layout, share.name, needs)
    place = F.struct(*COORDINATES)
    of_kafka = ordered.select(place.alias("_place"), F.col("op").alias("_op"), F.col("timestamp").alias("_timestamp"))
    good = changed.where(F.col("_reject").isNull()).withColumn(
        "_place", F.struct(*[F.col(f"_at.{n}") for n in COORDINATES])
    )
    return _visible_columns(good.join(of_kafka, "_place"), layout, share)


def _visible_columns(changed: DataFrame, layout: Layout, share: TableShare) -> DataFrame:
    hides = share.at.source.is_masked
    own = [
        (
            F.lit(None).cast(kind)
            if hides(share.name, names.decode(version_of(column)[0]))
            else F.col(names.quote_spark(column))
        ).alias(names.decode(column))
        for column, kind in layout.types.items()
    ]
    where = [F.col(f"_place.{name}").alias(f"_{name}") for name in COORDINATES[1:]]
    return changed.select(*own, "_op", *where, "_timestamp", "_seq")


def _texts(records: DataFrame, *, hidden: bool) -> DataFrame:
    note = F.coalesce("rule", "reason")
    texts = [(F.lit(None).cast("string") if hidden else F.col(name)).alias(name) for name in ("key", "value")]
    of_row = [F.when(note.isNull(), F.col(name)).alias(name) for name in ("op", "table")]
    return records.select(*COORDINATES, "timestamp", *texts, *of_row, note.alias("note"))
