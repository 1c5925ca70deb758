"""Events from all records of a source's table in bronze: each change is an event, whatever silver made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.spec import Feed
from replicator.stages.feeds.commit_events import EventBatch, event_types
from replicator.stages.refinement import Refinement
from replicator.stages.table import decoding, schema_change
from replicator.stages.table.decoding import Decoded
from replicator.stages.tick import arrivals, epochs, routing, tick_split, ticks
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import BEGINNING, Routes
from replicator.stages.tick.table_share import TableShare
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import decode, events
from replicator.transforms.columns.layout import Layout, with_column_metadata
from replicator.transforms.dead_letters import ADDRESS
from replicator.transforms.decode import DecodeOptions

_TRUNCATED = "a truncate is not sent as an event: consumers keep the truncated rows"


@contextmanager
def read_changes(
    session: SparkSession, at: Refinement, feed: Feed, after: int | None, upto: int
) -> Iterator[EventBatch | None]:
    """Yield the events of the records that bronze got after the version ``after`` (None: from the beginning), decoded
    as silver decodes them; None if none of them is of the table. ``session`` has exact names; the state in ``at`` is
    that of this feed.

    Records that cannot be decoded are no events: silver has them as dead letters. Raises SchemaRefused as silver does.
    """
    bronze = at.lake.bronze(at.source.name)
    identity = at.bronze.identity(session, bronze) or ""
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity)
    low = BEGINNING if after is None else after
    with_records = {arrival.partition[0] for arrival in arrivals.list_arrivals(session, at.bronze, bronze, low, upto)}
    topics = _topics(with_records, routes, feed.source_table)
    if not topics:
        yield None
        at.state.note_idle(upto, with_records)
        return
    news = NewRecords(upto, dict.fromkeys(topics, low))
    context = TickContext(session, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    records = context.in_epochs(news.records(session, at.bronze, bronze), news.after)
    with ticks.build(context, records, routes) as tick:
        shared = tick_split.split_by_table(tick)
        share = next((each for each in shared.shares if each.name == feed.source_table and each.rows), None)
        if share is None:
            yield None
        else:
            with decoding.decode_share(share, shared.records, places=True) as decoded:
                notes = (_TRUNCATED,) if any(group["truncates"] for group in share.rows) else ()
                yield replace(_batch(share, decoded, feed), warnings=notes)
        at.state.advance(upto, tick.surveyed[1], topics)
        at.state.note_idle(upto, with_records)


def _topics(candidates: Iterable[str], routes: Routes, table: str) -> list[str]:
    """Return those of the topics with new records that may have records of the table: all but those known to have
    carried only other tables. Silver, which learns the routes, need not have read them yet.
    """
    return sorted(topic for topic in candidates if table in routes.tables.get(topic, (table,)))


def _batch(share: TableShare, decoded: Decoded, feed: Feed) -> EventBatch:
    """Build the events, joined by the records' places: a ``_seq`` belongs to one key, and repeats across partitions and
    topics.
    """
    layout = decoded.schema.plan.layout
    good = decoded.changes.where(F.col("_reject").isNull())
    images = events.images(_as_stored(good, layout), layout.keys, feed)
    ops = decoded.ordered.select(F.struct(*ADDRESS).alias("at"), F.col("op").alias("letter"))
    records = images.join(ops, "at")
    before = _before_images(share, decoded, layout)
    if before is not None:
        was = events.images(before, layout.keys, feed).select("at", F.col("image").alias("was"))
        records = records.join(was.withColumn("had", F.lit(True)), "at", how="left")
    else:
        records = records.withColumns({"was": F.lit(None).cast(images.schema["image"].dataType), "had": F.lit(False)})
    changes = events.from_records(records)
    place = F.struct("at.topic", "at.partition", "at.offset")
    source = F.struct(
        F.lit(feed.table).alias("table"), "sequence", *[F.col(f"at.{n}") for n in ("topic", "partition", "offset")]
    )
    messages = events.to_messages(changes, feed, F.struct(F.col("at.topic_id"), place), F.col("sequence"), source)
    return EventBatch(messages, event_types(changes))


def _before_images(share: TableShare, decoded: Decoded, layout: Layout) -> DataFrame | None:
    """Return the images before updates and deletes, of records that have them; None if none can have them, or after a
    transform.
    """
    if share.declaration.transform is not None:
        return None
    noted = partial(schema_change.load_written, share)
    forms, _ = forms_of.from_groups(share.rows, decoded.ordered, share.declaration, decoded.stored, noted)
    if all(form.is_flat for form in forms):
        return None
    placeholder = share.at.placeholder if share.declaration.unavailable else None
    records = decoded.ordered.where(F.col("op").isin("u", "d"))
    images = decode.decode_before(records, forms, layout, share.name, DecodeOptions(placeholder, places=True))
    return _as_stored(images.where(F.col("_reject").isNull()), layout)


def _as_stored(changes: DataFrame, layout: Layout) -> DataFrame:
    """Return changes in the form of silver rows, as if each stood alone: values that were not sent are unknown."""
    unsent = decode.unavailable_columns()
    never = F.when(F.size(unsent) > 0, F.map_from_arrays(unsent, F.transform(unsent, lambda _: F.lit(""))))
    return with_column_metadata(changes.withColumn("_column_seq", never), layout, "_at")
