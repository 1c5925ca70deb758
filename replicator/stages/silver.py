"""Bronze -> silver: every table with news goes to bronze's newest version (architecture section 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import envelope
from replicator.errors import ReplicatorError
from replicator.stages import dead_letters, routing, tuning
from replicator.stages.account import Account, counted
from replicator.stages.refinement import Refinement
from replicator.stages.routing import News, Routes
from replicator.stages.silver_table import Share, apply, foresee
from replicator.transforms import changes
from replicator.transforms.evolve import Plan


@dataclass(frozen=True)
class _Unread:
    """Described records that some table has not seen, in a session that fits their size."""

    spark: SparkSession
    records: DataFrame
    news: News
    routes: Routes


@dataclass(frozen=True)
class _Surveyed:
    """The unread records, each read as its topic is, and whose they are; ``strays`` are groups of no table."""

    records: DataFrame
    routes: Routes
    shares: tuple[Share, ...]
    strays: tuple[Row, ...]


def refine(spark: SparkSession, at: Refinement) -> list[Account]:
    """One tick: every table with news goes to bronze's newest version. One account per table that read something.

    A table that stops is in the list with its error; the others go on.
    """
    with _unread(spark, at) as unread:
        if unread is None:
            return []
        surveyed = _survey(at, unread)
        strays = _strays(unread.spark, at, surveyed.records, surveyed.strays)
        if surveyed.routes != unread.routes:
            at.control.put(at.lake.routes(at.source.name), surveyed.routes.value())
        return [*strays, *(apply(share, surveyed.records) for share in surveyed.shares)]


def preview(spark: SparkSession, at: Refinement, table: str | None = None) -> dict[str, Plan | ReplicatorError]:
    """What the next tick would make of each table's schema, or of one's, where it reads rows; or what would stop the
    table before that. Changes nothing.
    """
    with _unread(spark, at) as unread:
        if unread is None:
            return {}
        surveyed = _survey(at, unread)
        shares = [share for share in surveyed.shares if share.rows and table in (None, share.name)]
        return {share.name: foresee(share, surveyed.records) for share in shares}


@contextmanager
def _unread(spark: SparkSession, at: Refinement) -> Iterator[_Unread | None]:
    """What is new in bronze, None if nothing is. Decoding happens in a session of its own, with exact names (G4)."""
    bronze = at.lake.bronze(at.source.name)
    upto, identity = at.bronze.version(spark, bronze), at.bronze.identity(spark, bronze)
    if upto is None or identity is None:
        yield None
        return
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity)
    progress = routing.progress_of_tables(spark, at.silver, at.lake, at.source.name, identity)
    news = routing.news(spark, at.bronze, bronze, routes, progress, upto)
    if not news.after:
        yield None
        return
    spark = tuning.session_for(spark, news.size, exact_names=True)
    records = news.records(spark, at.bronze, bronze)
    if news.size <= tuning.SMALL_BYTES:
        records = records.coalesce(1)  # one task and no shuffle in all that follows
    with tuning.kept(envelope.read(records)) as described:
        yield _Unread(spark, described, news, routes)


def _survey(at: Refinement, unread: _Unread) -> _Surveyed:
    """Learn the routes, and give each table its share."""
    groups = changes.survey(unread.records, at.placeholder).collect()
    learned = _learned(unread.routes, groups, unread.news)
    records = routing.as_routed(unread.records, learned)
    if learned.of_mode(routing.NULL_DELETES) or any(group["bare"] for group in groups):
        groups = changes.survey(records, at.placeholder).collect()
        learned = _learned(learned, groups, unread.news)
    by_table: dict[str | None, list[Row]] = defaultdict(list)
    for group in groups:
        is_change = group["rule"] is None and group["reason"] is None
        by_table[group["table"] if is_change else learned.home(group["topic"])].append(group)
    strays = tuple(by_table.pop(None, []))
    tables = sorted((table, found) for table, found in by_table.items() if table is not None)
    shares = tuple(Share(unread.spark, at, learned, unread.news, table, tuple(found)) for table, found in tables)
    return _Surveyed(records, learned, shares, strays)


def _learned(routes: Routes, groups: Sequence[Row], news: News) -> Routes:
    """The routes with what a survey shows."""
    by_topic: dict[str, list[Row]] = defaultdict(list)
    for group in groups:
        by_topic[group["topic"]].append(group)
    modes = {topic: mode for topic, seen in by_topic.items() if (mode := routing.mode(seen)) is not None}
    rows = [group for group in groups if group["rule"] is None and group["reason"] is None]
    partial = {group["table"] for group in rows if group["has_placeholder"]}
    pairs = {(group["topic"], group["table"]) for group in rows}
    return routes.learned(pairs, modes, dict.fromkeys(by_topic, news.upto), partial)


def _strays(spark: SparkSession, at: Refinement, records: DataFrame, groups: Sequence[Row]) -> list[Account]:
    """Records of topics that never carried a table: control topics, and what cannot be read at all."""
    topics = sorted({group["topic"] for group in groups})
    if any(group["reason"] is not None for group in groups):
        dead_letters.bury(spark, at, changes.rejects(records.where(F.col("topic").isin(topics)), None))
    return [counted(Account(f"topic {topic}"), [g for g in groups if g["topic"] == topic]) for topic in topics]
