"""Changes of silver and gold -> topics of events for others, at least once.

Effects, in this order, for each commit of a feed's table: 1. where a feed begins, its control row says with which
commit; 2. the JSON Schema of a new version is written; 3. the events are sent; 4. the control row says so. A crash
between 3 and 4 sends the events of that commit again, with the ids that they had (decision 0035).
"""

from __future__ import annotations

import hashlib
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
from replicator.stages.feeds import commit_events, every_change
from replicator.stages.feeds.commit_events import EventBatch
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.tick.source_state import SourceState
from replicator.transforms.event_schema import build_json_schema


@dataclass(frozen=True)
class FeedContext:
    """What feeds are made from, and where they go: ``outlets`` by the name of the feed, ``keys`` by the name of the
    model, ``refinements`` by the name of the source. ``reached`` is what the process remembers of the order, as silver
    does, by the name of a feed of every change: how far such a feed has got is none of silver's business.
    """

    feeds: tuple[Feed, ...]
    outlets: Mapping[str, Outlet]
    keys: Mapping[str, tuple[str, ...]]
    refinements: Mapping[str, Refinement]
    at: Warehouse
    fence: Fence = UNFENCED
    reached: dict[str, SourceState] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class DeliveryResult:
    """What became of one feed: events that were sent, seconds, and what stopped it."""

    feed: str
    events: int = 0
    seconds: float = 0.0
    error: ReplicatorError | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class FeedProgress:
    """The control row of a feed: which table (its id), and up to which of its versions all is sent; None while the rows
    that were there at the version ``begun`` are on their way. ``rules``: what made the events of those rows; ``into``:
    the id of the topic that has them.
    """

    input: str
    upto: int | None = None
    begun: int | None = None
    rules: Mapping[str, Any] | None = None
    into: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any] | None) -> FeedProgress | None:
        """Of what the control row holds."""
        return None if row is None else cls(row["input"], row["upto"], row["begun"], row.get("rules"), row.get("into"))


@dataclass(frozen=True)
class FeedLag:
    """A feed, up to which version of its table it was sent (None: not once), and the newest one (None: there is none).
    Of a feed of every change both are versions of bronze.
    """

    feed: Feed
    upto: int | None
    newest: int | None


def list_lags(spark: SparkSession, offer: FeedContext) -> list[FeedLag]:
    """How far each feed got. Asks the lake alone."""
    found = []
    for feed in offer.feeds:
        stood = FeedProgress.of(offer.at.control.get(offer.at.lake.canonical(feed.name)))
        kept, table = _input(offer, feed)
        found.append(FeedLag(feed, None if stood is None else stood.upto, kept.version(spark, table)))
    return found


def current_schema(spark: SparkSession, offer: FeedContext, feed: Feed) -> dict[str, Any]:
    """The JSON Schema of the feed's events as its table is now. Raises TableMissing, and ConfigError for expressions
    that do not fit it.
    """
    kept, table = _input(offer, replace(feed, every_change=False))
    with _translate_errors(feed):
        version = kept.version(spark, table)
        if version is None:
            raise _missing(spark, offer, feed)
        with commit_events.read_initial(tuning.session_for(spark, 0), kept, table, feed, version, version) as batch:
            return build_json_schema(feed, *batch.kinds)


def deliver(spark: SparkSession, offer: FeedContext) -> list[DeliveryResult]:
    """Send what every feed has not sent. One report per feed that sent something or stopped, be it that its Kafka does
    not answer or lacks the topic; the others go on.
    """
    found = [_deliver_feed(spark, offer, feed) for feed in offer.feeds]
    return [each for each in found if each.events or each.error is not None or each.warnings]


def _deliver_feed(spark: SparkSession, offer: FeedContext, feed: Feed) -> DeliveryResult:
    started, sent, warnings = time.monotonic(), 0, dict[str, None]()
    error: ReplicatorError | None = None
    try:
        with _translate_errors(feed):
            for count, told in _send_commits(spark, offer, feed):
                sent += count
                warnings |= dict.fromkeys(told)
    except LeaseLost:
        raise
    except ReplicatorError as stopped:
        error = stopped
    return DeliveryResult(feed.name, sent, time.monotonic() - started, error, tuple(warnings))


@contextmanager
def _translate_errors(feed: Feed) -> Iterator[None]:
    """What Spark says of a feed's expressions, and of what they are asked of, as one of our errors."""
    try:
        yield
    except FAILURES as error:
        is_refused = (
            isinstance(error, (AnalysisException, ParseException)) and engine_errors.repair_hint(str(error)) is None
        )
        if not is_refused:
            raise engine_errors.to_table_error(error, f"feed {feed.name}") from error
        what = f"feed {feed.name}: {first_line(error)}"
        raise ConfigError(what, mend="Mend `select` or `where` of its file.") from error


def _send_commits(spark: SparkSession, offer: FeedContext, feed: Feed) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Commit by commit: how many events went out, and what is to be told of them."""
    control, path = offer.at.control, offer.at.lake.canonical(feed.name)
    kept, table = _input(offer, feed)
    identity, newest = kept.identity(spark, table), kept.version(spark, table)
    if identity is None or newest is None:
        raise _missing(spark, offer, feed)
    stood, rules = FeedProgress.of(control.get(path)), _rules(feed, table)
    if stood is not None:
        _refuse_incompatible(feed, stood, FeedProgress(identity, newest, rules=rules), table)
        if stood.upto is not None and stood.rules is None:
            control.put(path, vars(replace(stood, rules=rules)))
    if stood is None or (stood.upto is None and not commit_events.is_version_kept(spark, kept, table, stood.begun)):
        stood = FeedProgress(identity, begun=newest)
        control.put(path, vars(stood))
        failpoints.hit("canonical.begun")
    session, into = tuning.session_for(spark, kept.size(spark, table), exact_names=feed.every_change), stood.into
    for version, batch in _batches(session, offer, feed, stood, newest):
        with batch as made:
            count, into = (0, into) if made is None else _send(offer, feed, made, into)
        control.put(path, vars(FeedProgress(identity, version, rules=rules, into=into)))
        yield count, () if made is None else made.warnings


def _rules(feed: Feed, table: Table) -> dict[str, Any]:
    """What makes events of rows, as a standing has it, and where they go. Silver's tables note their key themselves."""
    texts = {"where": feed.where, "select": feed.select}
    digests = {name: hashlib.sha256(json.dumps(text).encode()).hexdigest()[:16] for name, text in texts.items()}
    return {"version": feed.version, "topic": feed.topic, "key": list(table.keys), **digests}


def _refuse_incompatible(feed: Feed, stood: FeedProgress, now: FeedProgress, table: Table) -> None:
    """Raise ChangesLost, or SchemaRefused, where the events to come would not go with those that were sent."""
    before, rules = stood.rules or now.rules or {}, now.rules or {}
    lost, again = _reason_lost(stood, now, before, rules), commit_events.MEND.format(feed.name)
    if lost is not None:
        raise ChangesLost(lost, where=table.name, mend=again)
    if before["version"] == rules["version"] and before["select"] != rules["select"]:
        raise SchemaRefused(
            f"`select` is not that of the events of version {feed.version} that were sent",
            where=f"feed {feed.name}",
            mend=f"Raise `version` in its file, or set it back; where the columns stay as they are, {again}",
        )


def _reason_lost(
    stood: FeedProgress, now: FeedProgress, before: Mapping[str, Any], rules: Mapping[str, Any]
) -> str | None:
    """What keeps events to come from telling all that those before have not told; None if nothing does."""
    if stood.input != now.input:
        return "the table is another one than that of the events that were sent"
    if (stood.upto or 0) > (now.upto or 0):
        return f"events of version {stood.upto} were sent, and the table is at {now.upto}: it went back"
    if before["where"] != rules["where"]:
        return "`where` is not that of the events that were sent: of rows that it shows or hides since, none tells"
    if before.get("topic", rules["topic"]) != rules["topic"]:
        return f"events were sent to the topic {before['topic']}: {rules['topic']} has none of these rows"
    if before.get("key", rules["key"]) != rules["key"]:
        return f"rows had the key {', '.join(before['key'])} in the events that were sent, and have another one now"
    return None


def _input(offer: FeedContext, feed: Feed) -> tuple[TableFormat, Table]:
    """The table that a feed is made from, and how it is kept."""
    at, source = offer.at, feed.source
    if source is None:
        return at.gold, at.lake.gold(feed.table, offer.keys[feed.table])
    if feed.every_change:
        return offer.refinements[source].bronze, at.lake.bronze(source)
    return at.silver, at.lake.silver(source, feed.source_table)


def _missing(spark: SparkSession, offer: FeedContext, feed: Feed) -> TableMissing:
    """The error of a feed whose table is not there; of a source's with the one that a misspelled one may mean."""
    table, near = _input(offer, feed)[1], ""
    mend = "`replicator run` makes it." if feed.source else "`replicator run` builds it, or says what stops its model."
    if feed.source is not None and not feed.every_change:
        mend = f"`replicator run` makes it of its first records; else mend `table` in the file of feed {feed.name}."
        known = offer.at.silver.tables(spark, offer.at.lake.silver_root(feed.source))
        near = did_you_mean(feed.table, [f"{feed.source}/{names.decode_table(each)}" for each in known])
    return TableMissing(f"table {table.name} does not exist yet{near}", where=table.location, mend=mend)


def _batches(
    session: SparkSession, offer: FeedContext, feed: Feed, stood: FeedProgress, newest: int
) -> Iterator[tuple[int, AbstractContextManager[EventBatch | None]]]:
    """What is not sent yet, and the version that the feed stands at once it is."""
    kept, table = _input(offer, feed)
    if feed.every_change:
        if stood.upto != newest:
            reached = offer.reached.setdefault(feed.name, SourceState())
            at = replace(offer.refinements[str(feed.source)], reached=reached, befores=True)
            yield newest, every_change.read_changes(session, at, feed, stood.upto, newest)
        return
    upto = stood.upto
    if upto is None:
        upto = newest if stood.begun is None else stood.begun
        yield upto, commit_events.read_initial(session, kept, table, feed, upto, newest)
    for version in range(upto + 1, newest + 1):
        yield version, commit_events.read_commit(session, kept, table, feed, version, newest)


def _send(offer: FeedContext, feed: Feed, batch: EventBatch, into: str | None) -> tuple[int, str | None]:
    """Effects 2 and 3; how many events were sent, and into which topic."""
    control, path = offer.at.control, offer.at.lake.event_schema(feed.name, feed.version)
    schema, written = build_json_schema(feed, *batch.kinds), control.get(path)
    if written is None:
        control.put(path, schema)
    elif _members(written) != _members(schema):
        raise SchemaRefused(
            f"the columns of its events are not those of version {feed.version} any more",
            where=f"feed {feed.name}",
            mend="Raise `version` in its file, or give `select` the columns that consumers know.",
        )
    with tuning.persist(batch.rows) as rows:
        count = rows.where(F.col("value").isNotNull()).count()
        if count:
            into = _check_topic_id(offer, feed, into)
            offer.fence.check()  # who was shut out would send what is older behind what is newer
            offer.outlets[feed.name].send(rows, feed.topic)
            failpoints.hit("canonical.sent")
    return count, into


def _check_topic_id(offer: FeedContext, feed: Feed, into: str | None) -> str | None:
    """The id of the feed's topic. Raises ChangesLost where that is not the one which has the events before."""
    now = offer.outlets[feed.name].identity(feed.topic)
    if None not in (into, now) and now != into:
        what = f"the topic {feed.topic} is not the one that events were sent to, and has none of these rows"
        raise ChangesLost(what, where=f"feed {feed.name}", mend=commit_events.MEND.format(feed.name))
    return now


def _members(schema: Mapping[str, Any]) -> Any:
    """What consumers rely on: descriptions are free."""
    return json.loads(json.dumps({name: schema["properties"][name] for name in ("key", "before", "after")}))
