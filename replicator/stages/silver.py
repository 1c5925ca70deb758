"""Bronze -> silver: every table with news goes to bronze's newest version (architecture section 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator.spec import SourceSpec
from replicator.stages import dead_letters, routing, shaping, tuning
from replicator.stages.account import Account, counted
from replicator.stages.refinement import Refinement
from replicator.stages.routing import News, Routes
from replicator.stages.silver_table import Share, apply
from replicator.transforms import changes, exempt


def refine(spark: SparkSession, at: Refinement) -> list[Account]:
    """One tick: every table with news goes to bronze's newest version. One account per table that read something.

    A table that stops is in the list with its error; the others go on. Decoding happens in a session of its own, with
    exact names (G4).
    """
    bronze = at.lake.bronze(at.source.name)
    upto, identity = at.bronze.version(spark, bronze), at.bronze.identity(spark, bronze)
    if upto is None or identity is None:
        return []
    path = at.lake.routes(at.source.name)
    routes = routing.load_routes(at.control, path, identity)
    progress = routing.progress_of_tables(spark, at.silver, at.lake, at.source.name, identity)
    news = routing.news(spark, at.bronze, bronze, routes, progress, upto)
    if not news.after:
        return []
    spark = tuning.session_for(spark, news.size, exact_names=True)
    records = news.records(spark, at.bronze, bronze)
    if news.size <= tuning.SMALL_BYTES:
        records = records.coalesce(1)  # one task and no shuffle in all that follows
    with shaping.described(spark, at, records, news, routes) as (described, groups):
        return _refine(spark, at, described, groups, news, routes)


def _refine(
    spark: SparkSession, at: Refinement, records: DataFrame, groups: Sequence[Row], news: News, routes: Routes
) -> list[Account]:
    """Learn the routes, then take the tables one after the other."""
    learned = _learned(routes, groups, news, at.source)
    records = routing.as_routed(records, learned, at.source)
    if learned.of_mode(routing.NULL_DELETES) or any(group["bare"] for group in groups):
        records = exempt.by_declaration(records, at.source)
        groups = changes.survey(records, at.placeholder).collect()
        learned = _learned(learned, groups, news, at.source)
    shares: dict[str | None, list[Row]] = defaultdict(list)
    for group in groups:
        is_change = group["rule"] is None and group["reason"] is None
        shares[group["table"] if is_change else learned.home(group["topic"])].append(group)
    strays = _strays(spark, at, records, shares.pop(None, []))
    if learned != routes:
        at.control.put(at.lake.routes(at.source.name), learned.value())
    tables = sorted((table, share) for table, share in shares.items() if table is not None)
    done = [apply(Share(spark, at, learned, news, table, tuple(share)), records) for table, share in tables]
    return [*strays, *done]


def _learned(routes: Routes, groups: Sequence[Row], news: News, source: SourceSpec) -> Routes:
    """The routes with what a survey shows."""
    by_topic: dict[str, list[Row]] = defaultdict(list)
    for group in groups:
        by_topic[group["topic"]].append(group)
    modes = {}
    for topic, seen in by_topic.items():
        deletes = routing.declared_deletes(routes, topic, seen, source)
        mode = routing.mode(seen, deletes)
        if mode is not None:
            modes[topic] = mode
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
