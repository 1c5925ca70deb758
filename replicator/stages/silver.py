"""Bronze -> silver: every table with news goes to bronze's newest version (architecture section 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import ReplicatorError
from replicator.spec import BY_POSITION, BY_TIME, SourceSpec
from replicator.stages import compaction, cut, cutting, dead_letters, epochs, regained, rewind, routing, shaping, tuning
from replicator.stages.account import Account, counted
from replicator.stages.cut import Standing
from replicator.stages.refinement import Refinement
from replicator.stages.rewind import Watch
from replicator.stages.routing import News, Routes
from replicator.stages.share import Share
from replicator.stages.silver_table import apply, foresee
from replicator.transforms import changes, exempt, reach
from replicator.transforms.evolve import Plan

_BY_TIME = "changes are ordered by source.ts_ms, which is weaker than positions: times tie, run backwards and are late"


@dataclass(frozen=True)
class _Tick:
    """Described records in a session that fits their size, with their survey: its groups and the marks of partitions.

    ``existing`` are tables of silver. Where transactions must be whole, it ``stood`` so before and ``stands`` so behind
    the tick. ``again``: a tick has read them before, and rejects go there (see Share).
    """

    watch: Watch
    records: DataFrame
    surveyed: tuple[list[Row], list[Row]]
    routes: Routes
    existing: Collection[str] = ()
    stood: Standing | None = None
    stands: Standing | None = None
    again: list[DataFrame] | None = None


@dataclass(frozen=True)
class _Shared:
    """The records of a tick, each read as its topic is, and whose they are; ``strays`` are groups of no table,
    ``orders`` says of each table with news what orders it.
    """

    records: DataFrame
    routes: Routes
    shares: tuple[Share, ...]
    strays: tuple[Row, ...]
    orders: Mapping[str, str]


def refine(spark: SparkSession, at: Refinement) -> list[Account]:
    """One tick: every table with news goes to bronze's newest version. One account per table that read something.

    A table that stops is in the list with its error; the others go on.
    """
    with _unread(spark, at) as tick:
        if tick is None:
            return []
        if tick.stood is None or tick.stands is None:
            return _applied(tick)
        cut.announce(at, tick.stood, tick.stands)
        accounts = _applied(tick)
        failed = [account.table.removeprefix(f"{at.source.name}/") for account in accounts if account.error is not None]
        routes = routing.load_routes(at.control, at.lake.routes(at.source.name), tick.routes.bronze)
        topics = {topic for table in failed for topic in routes.topics(table)}
        cut.settle(at, tick.stood, tick.stands, failed, topics)
        return accounts


def again(watch: Watch, records: DataFrame, routes: Routes, rejects: list[DataFrame]) -> list[Account]:
    """Described records that a tick has read before: they say nothing about the order of the source, and what is
    rejected goes to ``rejects``.
    """
    marked = exempt.by_declaration(records, watch.at.source)
    return _applied(_Tick(watch, marked, _surveyed(watch, marked), routes, again=rejects))


def preview(spark: SparkSession, at: Refinement, table: str | None = None) -> dict[str, Plan | ReplicatorError]:
    """What the next tick would make of each table's schema, or of one's, where it reads rows; or what would stop the
    table before that. Changes nothing.
    """
    with _unread(spark, at) as tick:
        if tick is None:
            return {}
        shared = _shared(tick)
        shares = [share for share in shared.shares if share.rows and table in (None, share.name)]
        return {share.name: foresee(share, shared.records) for share in shares}


def whole(spark: SparkSession, at: Refinement, table: str, upto: int) -> Account | None:
    """One table made of all of bronze up to a version, without what waits there, where ``at`` has none yet: what a
    rebuild compares with. None if bronze has no record of the table; other tables of its topics are left alone.
    """
    bronze = at.lake.bronze(at.source.name)
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), at.bronze.identity(spark, bronze) or "")
    news = routing.everything(spark, at.bronze, bronze, routes.topics(table), upto)
    spark = tuning.session_for(spark, news.size, exact_names=True)
    stood = cut.standing(at, routes.bronze)
    records = news.records(spark, at.bronze, bronze)
    records = records if stood is None else cut.before(records, stood.cut)
    if news.size <= tuning.SMALL_BYTES:
        records = records.coalesce(1)
    watch = Watch(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    with _ticking(watch, watch.in_epochs(records, news.after), routes) as tick:
        shared = _shared(tick)
        share = next((share for share in shared.shares if share.name == table), None)
        if share is None:
            return None
        _keep_routes(at, shared.routes, tick.routes)
        stop = rewind.stops(tick.watch, tick.surveyed[1], shared.routes, shared.orders, ()).get(table)
        return apply(share, shared.records) if stop is None else _stopped(share, stop)


@contextmanager
def _unread(spark: SparkSession, at: Refinement) -> Iterator[_Tick | None]:
    """What is new in bronze, None if nothing is. Decoding happens in a session of its own, with exact names (G4)."""
    bronze = at.lake.bronze(at.source.name)
    upto, identity = at.bronze.version(spark, bronze), at.bronze.identity(spark, bronze)
    if upto is None or identity is None:
        yield None
        return
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), identity)
    progress = routing.progress_of_tables(spark, at.silver, at.lake, at.source, identity)
    news = routing.news(spark, at.bronze, bronze, routes, progress, upto)
    stood = stands = cut.standing(at, identity)
    if not news.after and (stood is None or cut.is_settled(at, stood)):
        yield None
        return
    spark = tuning.session_for(spark, news.size, exact_names=True)
    news = news if stood is None else cut.with_waiting(news, stood)
    records = news.records(spark, at.bronze, bronze)
    if stood is not None and (waiting := cut.waiting(spark, at, stood, news)) is not None:
        records = records.unionByName(waiting)
    if news.size <= tuning.SMALL_BYTES:
        records = records.coalesce(1)  # one task and no shuffle in all that follows
    watch = Watch(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    records = watch.in_epochs(records, news.after)
    if stood is not None:
        is_new = stood.version == routing.BEGINNING and bool(progress)
        stands = cutting.begun(watch, stood) if is_new else cutting.drawn(watch, records, stood)
        records = cut.before(records, stands.cut)
    with _ticking(watch, records, routes) as tick:
        yield replace(tick, existing=progress, stood=stood, stands=stands)


@contextmanager
def _ticking(watch: Watch, records: DataFrame, routes: Routes) -> Iterator[_Tick]:
    """Records in their epochs, described and surveyed."""
    rewind.prepare(watch, routes.bronze, records)
    survey = partial(_surveyed, watch)
    with (
        shaping.described(watch.spark, watch.at, records, watch.news, routes, survey) as (described, groups, found),
        compaction.marked(watch, described) as told,
    ):
        yield _Tick(watch, told, (groups, found), routes)


def _shared(tick: _Tick) -> _Shared:
    """Learn the routes, and give each table its share."""
    watch, at, news = tick.watch, tick.watch.at, tick.watch.news
    groups, found = tick.surveyed
    learned = _learned(tick.routes, groups, news, at.source)
    orders = {group["table"]: at.source.order(group["table"]) for group in groups if group["table"] is not None}
    by_time = [table for table, order in orders.items() if order == BY_TIME]
    scattered = _scattered(watch, found, learned)
    records = routing.as_routed(tick.records, learned, at.source, by_time=by_time, scattered=scattered)
    nulls_delete = routing.null_deletes(learned) or routing.lone_deletes(learned, at.source)
    if nulls_delete or by_time or any(group["bare"] or group["truncates"] for group in groups):
        records = exempt.by_declaration(records, at.source)
        groups = changes.survey(records, at.placeholder).collect()
        learned = _learned(learned, groups, news, at.source)
    by_table: dict[str | None, list[Row]] = defaultdict(list)
    for group in groups:
        is_change = group["rule"] is None and group["reason"] is None
        by_table[group["table"] if is_change else learned.home(group["topic"])].append(group)
    strays = tuple(by_table.pop(None, []))
    tables = sorted((table, own) for table, own in by_table.items() if table is not None)
    split = {row["table"] for row in found if row["split"]} if tick.again is None else set()
    known = at.reached.marks(_continued(watch)) if split else None
    parts: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in found:
        parts[row["table"]].add((row["topic"], row["partition"]))

    def share(table: str, own: Sequence[Row]) -> Share:
        marks, spread = known if table in split else None, len(parts[table]) > 1
        return Share(watch.spark, at, learned, news, table, tuple(own), tick.again, watch.epochs, marks, spread)

    shares = tuple(share(table, own) for table, own in tables)
    return _Shared(records, learned, shares, strays, orders)


def _applied(tick: _Tick) -> list[Account]:
    """Take the tables one after the other."""
    watch, at, found = tick.watch, tick.watch.at, tick.surveyed[1]
    shared = _shared(tick)
    failpoints.hit("silver.range_read")
    strays = _strays(watch.spark, at, shared.records, shared.strays, tick.again)
    _keep_routes(at, shared.routes, tick.routes)
    orders, stops = shared.orders, {}
    if tick.again is None:
        stops = rewind.stops(watch, found, shared.routes, orders, tick.existing)
    done = {
        share.name: _stopped(share, stops[share.name]) if share.name in stops else _taken(share, shared.records)
        for share in shared.shares
    }
    if tick.again is None:
        failpoints.hit("silver.tables_done")
        failed = {table for table, account in done.items() if account.error is not None}
        _remember(watch, found, shared.routes, orders, failed)
    return [*strays, *(_warned(at, account, orders.get(table) == BY_TIME) for table, account in done.items())]


def _keep_routes(at: Refinement, learned: Routes, known: Routes) -> None:
    if learned != known:
        at.control.put(at.lake.routes(at.source.name), learned.value())
        failpoints.hit("silver.routes_saved")


def _taken(share: Share, records: DataFrame) -> Account:
    """The account of one table, which gets columns first that it was kept from until now."""
    wanted = frozenset() if share.again is not None else regained.columns(share)
    if wanted:
        with regained.everything(share, wanted) as (every, known):
            filled = apply(every, known)
        if filled.error is not None:
            return _stopped(share, filled.error)
        regained.settled(share, wanted)
    return apply(share, records)


def _surveyed(watch: Watch, records: DataFrame) -> tuple[list[Row], list[Row]]:
    """The groups of the range and the marks of its partitions, in one job."""
    groups = changes.survey(records, watch.at.placeholder).select(F.struct("*").alias("group"))
    marks = reach.reached(reach.placed(records), watch.at.reached.marks(_continued(watch))).select(
        F.struct("*").alias("mark")
    )
    rows = groups.unionByName(marks, allowMissingColumns=True).collect()
    return [row["group"] for row in rows if row["group"]], [row["mark"] for row in rows if row["mark"]]


def _continued(watch: Watch) -> list[str]:
    """Topics that are not read from their beginning."""
    return [topic for topic, start in watch.news.after.items() if start != routing.BEGINNING]


def _scattered(watch: Watch, found: Sequence[Row], routes: Routes) -> list[str]:
    """Topics by offset that have several partitions."""
    partitions: dict[str, set[int]] = {topic: set() for topic in routes.by_offset}
    for row in found:
        partitions.get(row["topic"], set()).add(row["partition"])
    for topic, level in watch.at.reached.levels.items():
        if watch.news.after.get(topic) == routing.BEGINNING:
            continue
        partitions.get(topic, set()).update(level.partitions)
    return [topic for topic, seen in partitions.items() if len(seen) > 1]


def _stopped(share: Share, error: ReplicatorError) -> Account:
    """The account of a table that must not go on."""
    return replace(counted(Account(share.table.name), share.groups), error=error)


def _warned(at: Refinement, account: Account, by_time: bool) -> Account:
    """The account, with a word about a weaker order once in a run (Q9)."""
    if not by_time or account.table in at.reached.warned:
        return account
    at.reached.warned.add(account.table)
    return replace(account, warnings=(*account.warnings, _BY_TIME))


def _remember(
    watch: Watch, found: Sequence[Row], routes: Routes, orders: Mapping[str, str], failed: Collection[str]
) -> None:
    """What the next range is measured against: topics whose tables all went on."""
    at, reached, upto = watch.at, watch.at.reached, watch.news.upto
    done = [topic for topic in watch.news.after if not set(routes.tables.get(topic, ())) & set(failed)]
    changed = reached.raise_to(upto, found, done)
    reached.quiet(upto, watch.news.after)
    now = {**reached.orders, **{table: order for table, order in orders.items() if table not in failed}}
    now = {table: order for table, order in now.items() if order != BY_POSITION}
    changed, reached.orders = changed or now != reached.orders, now
    reached.save(at.control, at.lake.reached(at.source.name), upto, changed=changed)


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
    partial = {
        group["table"] for group in rows if group["has_placeholder"] or source.declaration(group["table"]).generated
    }
    pairs = {(group["topic"], group["table"]) for group in rows}
    return routes.learned(pairs, modes, dict.fromkeys(by_topic.keys() & news.after.keys(), news.upto), partial)


def _strays(
    spark: SparkSession, at: Refinement, records: DataFrame, groups: Sequence[Row], again: list[DataFrame] | None
) -> list[Account]:
    """Records of topics that never carried a table: control topics, and what cannot be read at all."""
    topics = sorted({group["topic"] for group in groups})
    if any(group["reason"] is not None for group in groups):
        rejects = changes.rejects(records.where(F.col("topic").isin(topics)), None)
        if again is None:
            dead_letters.bury(spark, at, rejects)
        else:
            again.append(rejects.localCheckpoint())
    return [counted(Account(f"topic {topic}"), [g for g in groups if g["topic"] == topic]) for topic in topics]
