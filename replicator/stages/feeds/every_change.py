"""What the records of a source's table in bronze tell others: each change an event, whatever silver made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.spec import Feed
from replicator.stages.feeds.committed import Batch, kinds
from replicator.stages.refinement import Refinement
from replicator.stages.table import decoding, schema_change
from replicator.stages.table.decoding import Decoded
from replicator.stages.tick import arrivals, epochs, routing, sharing, ticks
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick.arrivals import News
from replicator.stages.tick.rewind import Watch
from replicator.stages.tick.routing import BEGINNING, Routes
from replicator.stages.tick.share import Share
from replicator.transforms import decode, events
from replicator.transforms.columns.layout import Layout, described
from replicator.transforms.decode import Needs
from replicator.transforms.letters import ADDRESS

_TRUNCATED = "a truncate is no event: consumers keep the rows that it took"


@contextmanager
def batch(session: SparkSession, at: Refinement, feed: Feed, after: int | None, upto: int) -> Iterator[Batch | None]:
    """The events of the records that bronze got behind ``after`` (None: from the beginning), decoded as silver decodes
    them; None where none of them is of the table. ``session`` has exact names; what ``at`` remembers is of this feed.

    What cannot be decoded is no event: silver has it among its dead letters. Raises SchemaRefused as silver does.
    """
    bronze = at.lake.bronze(at.source.name)
    identity = at.bronze.identity(session, bronze) or ""
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity)
    low = BEGINNING if after is None else after
    came = {arrival.partition[0] for arrival in arrivals.arrived(session, at.bronze, bronze, low, upto)}
    topics = _topics(came, routes, feed.source_table)
    if not topics:
        yield None
        at.reached.quiet(upto, came)
        return
    news = News(upto, dict.fromkeys(topics, low))
    watch = Watch(session, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    records = watch.in_epochs(news.records(session, at.bronze, bronze), news.after)
    with ticks.ticking(watch, records, routes) as tick:
        shared = sharing.shared(tick)
        share = next((each for each in shared.shares if each.name == feed.source_table and each.rows), None)
        if share is None:
            yield None
        else:
            with decoding.decoded(share, shared.records, places=True) as decoded:
                told = (_TRUNCATED,) if any(group["truncates"] for group in share.rows) else ()
                yield replace(_batch(share, decoded, feed), warnings=told)
        at.reached.raise_to(upto, tick.surveyed[1], topics)
        at.reached.quiet(upto, came)


def _topics(came: Iterable[str], routes: Routes, table: str) -> list[str]:
    """Topics, of those that got records, that may have got some of the table: all but those that have carried others
    alone. Silver, which learns the routes, need not have seen them yet.
    """
    return sorted(topic for topic in came if table in routes.tables.get(topic, (table,)))


def _batch(share: Share, decoded: Decoded, feed: Feed) -> Batch:
    """Joined by the place of the record: a ``_seq`` is of one key, and repeats across partitions and topics."""
    layout = decoded.schema.plan.layout
    good = decoded.changes.where(F.col("_reject").isNull())
    images = events.images(_as_stored(good, layout), layout.keys, feed)
    ops = decoded.ordered.select(F.struct(*ADDRESS).alias("at"), F.col("op").alias("letter"))
    told = images.join(ops, "at")
    before = _befores(share, decoded, layout)
    if before is not None:
        was = events.images(before, layout.keys, feed).select("at", F.col("image").alias("was"))
        told = told.join(was.withColumn("had", F.lit(True)), "at", how="left")
    else:
        told = told.withColumns({"was": F.lit(None).cast(images.schema["image"].dataType), "had": F.lit(False)})
    changes = events.told(told)
    place = F.struct("at.topic", "at.partition", "at.offset")
    source = F.struct(
        F.lit(feed.table).alias("table"), "sequence", *[F.col(f"at.{n}") for n in ("topic", "partition", "offset")]
    )
    made = events.events(changes, feed, F.struct(F.col("at.topic_id"), place), F.col("sequence"), source)
    return Batch(made, kinds(changes))


def _befores(share: Share, decoded: Decoded, layout: Layout) -> DataFrame | None:
    """The images before updates and deletes, of records that have them; None where none can, and behind a transform."""
    if share.declaration.transform is not None:
        return None
    noted = partial(schema_change.noted, share)
    forms, _ = forms_of.read(share.rows, decoded.ordered, share.declaration, decoded.stored, noted)
    if all(form.is_flat for form in forms):
        return None
    held = share.at.placeholder if share.declaration.unavailable else None
    records = decoded.ordered.where(F.col("op").isin("u", "d"))
    images = decode.befores(records, forms, layout, share.name, Needs(held, places=True))
    return _as_stored(images.where(F.col("_reject").isNull()), layout)


def _as_stored(changes: DataFrame, layout: Layout) -> DataFrame:
    """Changes as silver would have the rows if each stood alone: what was not sent was never seen."""
    unsent = decode.unsent()
    never = F.when(F.size(unsent) > 0, F.map_from_arrays(unsent, F.transform(unsent, lambda _: F.lit(""))))
    return described(changes.withColumn("_column_seq", never), layout, "_at")
