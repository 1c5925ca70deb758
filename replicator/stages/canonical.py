"""Changes of silver and gold -> topics of events for other consumers, delivered at least once.

Effects, in this order, for each commit of a feed's table: 1. for a new feed, its control row records the commit with
which it begins; 2. the JSON Schema of a new version is written; 3. the events are sent; 4. the control row records
that. A crash between 3 and 4 sends the events of that commit again, with the same ids (decision 0035).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator import failpoints, names
from replicator.errors import (
    ChangesLost,
    ConfigError,
    LeaseLost,
    ReplicatorError,
    SchemaRefused,
    TableMissing,
    first_line,
)
from replicator.jvm.failures import FAILURES
from replicator.protocols import UNFENCED, Fence, Outlet, TableFormat
from replicator.spec import Feed, Table
from replicator.spelling import did_you_mean
from replicator.stages import engine_errors, tuning
from replicator.stages.feeds import commit_events, every_change, feed_progress
from replicator.stages.feeds.commit_events import EventBatch
from replicator.stages.feeds.feed_progress import FeedProgress
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.tick.source_state import SourceState
from replicator.transforms.event_schema import build_json_schema


@dataclass(frozen=True)
class FeedContext:
    """The inputs and destinations of feeds: ``outlets`` by the name of the feed, ``keys`` by the name of the model,
    ``refinements`` by the name of the source. ``states`` is what the process remembers of the order, by the name of a
    feed of every change: it is separate from silver's, because such a feed has a progress of its own.
    """

    feeds: tuple[Feed, ...]
    outlets: Mapping[str, Outlet]
    keys: Mapping[str, tuple[str, ...]]
    refinements: Mapping[str, Refinement]
    at: Warehouse
    fence: Fence = UNFENCED
    states: dict[str, SourceState] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class DeliveryResult:
    """The result for one feed: events that were sent, seconds, and the error that stopped it."""

    feed: str
    events: int = 0
    seconds: float = 0.0
    error: ReplicatorError | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class FeedLag:
    """A feed, the version of its table up to which it was sent (None: never), and the newest version (None: there is no
    table). For a feed of every change both are versions of bronze.
    """

    feed: Feed
    upto: int | None
    newest: int | None


def list_lags(spark: SparkSession, offer: FeedContext) -> list[FeedLag]:
    """Return the lag of each feed. Reads only the lake."""
    found = []
    for feed in offer.feeds:
        progress = FeedProgress.of(offer.at.control.get(offer.at.lake.canonical(feed.name)))
        table_format, table = _input(offer, feed)
        found.append(FeedLag(feed, None if progress is None else progress.upto, table_format.version(spark, table)))
    return found


def current_schema(spark: SparkSession, offer: FeedContext, feed: Feed) -> dict[str, Any]:
    """Return the JSON Schema of the feed's events for its table as it is now. Raises TableMissing, and ConfigError for
    expressions that do not fit it.
    """
    table_format, table = _input(offer, replace(feed, every_change=False))
    with _translate_errors(feed):
        version = table_format.version(spark, table)
        if version is None:
            raise _missing(spark, offer, feed)
        with commit_events.read_initial(
            tuning.session_for(spark, 0), table_format, table, feed, version, version
        ) as batch:
            return build_json_schema(feed, *batch.kinds)


def deliver(spark: SparkSession, offer: FeedContext) -> list[DeliveryResult]:
    """Send what each feed has not sent yet. Returns one result per feed that sent something, stopped or has warnings; a
    feed also stops if its Kafka does not answer or lacks the topic. The others continue.
    """
    found = [_deliver_feed(spark, offer, feed) for feed in offer.feeds]
    return [each for each in found if each.events or each.error is not None or each.warnings]


def _deliver_feed(spark: SparkSession, offer: FeedContext, feed: Feed) -> DeliveryResult:
    started, sent, warnings = time.monotonic(), 0, dict[str, None]()
    error: ReplicatorError | None = None
    try:
        with _translate_errors(feed):
            for count, texts in _send_commits(spark, offer, feed):
                sent += count
                warnings |= dict.fromkeys(texts)
    except LeaseLost:
        raise
    except ReplicatorError as stopped:
        error = stopped
    return DeliveryResult(feed.name, sent, time.monotonic() - started, error, tuple(warnings))


@contextmanager
def _translate_errors(feed: Feed) -> Iterator[None]:
    """Translate Spark's errors about a feed's expressions and its table into our own."""
    try:
        yield
    except FAILURES as error:
        is_refused = (
            isinstance(error, (AnalysisException, ParseException)) and engine_errors.repair_hint(str(error)) is None
        )
        if not is_refused:
            raise engine_errors.to_table_error(error, f"feed {feed.name}") from error
        message = f"feed {feed.name}: {first_line(error)}"
        raise ConfigError(message, fix="Fix `select` or `where` in its file.") from error


def _send_commits(spark: SparkSession, offer: FeedContext, feed: Feed) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Send commit by commit; yield the number of events sent and the warnings about them."""
    control, path = offer.at.control, offer.at.lake.canonical(feed.name)
    table_format, table = _input(offer, feed)
    identity, newest = table_format.identity(spark, table), table_format.version(spark, table)
    if identity is None or newest is None:
        raise _missing(spark, offer, feed)
    progress, rules = FeedProgress.of(control.get(path)), feed_progress.hash_rules(feed, table)
    if progress is not None:
        feed_progress.refuse_incompatible(feed, progress, FeedProgress(identity, newest, rules=rules), table)
        if progress.upto is not None and progress.rules is None:
            control.put(path, vars(replace(progress, rules=rules)))
    if progress is None or (
        progress.upto is None and not commit_events.is_version_kept(spark, table_format, table, progress.begun)
    ):
        progress = FeedProgress(identity, begun=newest)
        control.put(path, vars(progress))
        failpoints.hit("canonical.begun")
    session, into = (
        tuning.session_for(spark, table_format.size(spark, table), exact_names=feed.every_change),
        progress.into,
    )
    for version, batch in _batches(session, offer, feed, progress, newest):
        with batch as events:
            count, into = (0, into) if events is None else _send(offer, feed, events, into)
        control.put(path, vars(FeedProgress(identity, version, rules=rules, into=into)))
        yield count, () if events is None else events.warnings


def _input(offer: FeedContext, feed: Feed) -> tuple[TableFormat, Table]:
    """Return the table that a feed is made from, and its format."""
    at, source = offer.at, feed.source
    if source is None:
        return at.gold, at.lake.gold(feed.table, offer.keys[feed.table])
    if feed.every_change:
        return offer.refinements[source].bronze, at.lake.bronze(source)
    return at.silver, at.lake.silver(source, feed.source_table)


def _missing(spark: SparkSession, offer: FeedContext, feed: Feed) -> TableMissing:
    """Return the error of a feed whose table does not exist; for a source's table with the most similar existing
    name.
    """
    table, suggestion = _input(offer, feed)[1], ""
    fix = (
        "`replicator run` creates it."
        if feed.source
        else "`replicator run` builds it, or reports what stops its model."
    )
    if feed.source is not None and not feed.every_change:
        fix = (
            "`replicator run` creates it from its first records; otherwise fix `table` in the file of feed "
            f"{feed.name}."
        )
        known = offer.at.silver.tables(spark, offer.at.lake.silver_root(feed.source))
        suggestion = did_you_mean(feed.table, [f"{feed.source}/{names.decode_table(each)}" for each in known])
    return TableMissing(f"table {table.name} does not exist yet{suggestion}", where=table.location, fix=fix)


def _batches(
    session: SparkSession, offer: FeedContext, feed: Feed, progress: FeedProgress, newest: int
) -> Iterator[tuple[int, AbstractContextManager[EventBatch | None]]]:
    """Yield what is not sent yet, each batch with the version that the feed has reached once it is sent."""
    table_format, table = _input(offer, feed)
    if feed.every_change:
        if progress.upto != newest:
            reached = offer.states.setdefault(feed.name, SourceState())
            at = replace(offer.refinements[str(feed.source)], state=reached, keep_before=True)
            yield newest, every_change.read_changes(session, at, feed, progress.upto, newest)
        return
    upto = progress.upto
    if upto is None:
        upto = newest if progress.begun is None else progress.begun
        yield upto, commit_events.read_initial(session, table_format, table, feed, upto, newest)
    for version in range(upto + 1, newest + 1):
        yield version, commit_events.read_commit(session, table_format, table, feed, version, newest)


def _send(offer: FeedContext, feed: Feed, batch: EventBatch, into: str | None) -> tuple[int, str | None]:
    """Effects 2 and 3. Return the number of events sent, and the id of the topic."""
    control, path = offer.at.control, offer.at.lake.event_schema(feed.name, feed.version)
    schema, written = build_json_schema(feed, *batch.kinds), control.get(path)
    if written is None:
        control.put(path, schema)
    elif _members(written) != _members(schema):
        raise SchemaRefused(
            f"the columns of its events no longer match version {feed.version}",
            where=f"feed {feed.name}",
            fix="Raise `version` in its file, or make `select` return the columns that consumers expect.",
        )
    with tuning.persist(batch.rows) as rows:
        count = rows.where(F.col("value").isNotNull()).count()
        if count:
            into = _check_topic_id(offer, feed, into)
            offer.fence.check()  # a fenced driver would send older events after newer ones
            offer.outlets[feed.name].send(rows, feed.topic)
            failpoints.hit("canonical.sent")
    return count, into


def _check_topic_id(offer: FeedContext, feed: Feed, into: str | None) -> str | None:
    """Return the id of the feed's topic. Raises ChangesLost if it is not the topic that has the earlier events."""
    now = offer.outlets[feed.name].identity(feed.topic)
    if None not in (into, now) and now != into:
        message = f"topic {feed.topic} is not the topic that events were sent to, and has none of these rows"
        raise ChangesLost(message, where=f"feed {feed.name}", fix=commit_events.FIX.format(feed.name))
    return now


def _members(schema: Mapping[str, Any]) -> Any:
    """Return the parts of a schema that consumers rely on, without descriptions."""
    return json.loads(json.dumps({name: schema["properties"][name] for name in ("key", "before", "after")}))
