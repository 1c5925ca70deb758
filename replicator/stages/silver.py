"""Bronze -> silver: every table with news goes to bronze's newest version (architecture section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints, names
from replicator.errors import ReplicatorError
from replicator.jvm import gateway
from replicator.jvm.failures import FAILURES
from replicator.spec import BY_TIME
from replicator.stages import engine, side_by_side, tuning
from replicator.stages.account import Account, counted
from replicator.stages.refinement import Refinement
from replicator.stages.table import dead_letters, gone, history_table, regained
from replicator.stages.table.silver_table import ReadAnew, apply, foresee
from replicator.stages.tick import (
    arrivals,
    cut,
    epochs,
    misnamed,
    noting,
    resharding,
    rests,
    rewind,
    routing,
    sharing,
    surveying,
    ticks,
)
from replicator.stages.tick.backlog import Before
from replicator.stages.tick.cut import Standing
from replicator.stages.tick.rewind import Watch
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.share import Share
from replicator.stages.tick.sharing import Shared
from replicator.stages.tick.ticks import Tick
from replicator.transforms import changes, exempt
from replicator.transforms.evolve import Plan

_BY_TIME = "changes are ordered by source.ts_ms, which is weaker than positions: times tie, run backwards and are late"


def refine(spark: SparkSession, at: Refinement) -> list[Account]:
    """:func:`refined`, when it is done."""
    return list(refined(spark, at))


def refined(spark: SparkSession, at: Refinement, ends: Callable[[], bool] = lambda: False) -> Iterator[Account]:
    """Every table with news goes to bronze's newest version, of a long backlog piece by piece, and loses the rows that
    a snapshot taken again has found gone. One account per piece and table that read something, and per table that was
    to lose something. Where the run ``ends`` between two pieces, the rest is the next one's.

    A table that stops has its error in its account, and is left alone by the pieces that follow; the others go on.
    """
    before: Before | None = Before()
    while before is not None:
        try:
            accounts, behind = _ticked(spark, at, before)
        except FAILURES:
            accounts = _unreadable(spark, at, before)
            if not accounts:
                raise
            behind = replace(before, stopped=before.stopped.union(_stopped_in(at, accounts)))
        if any(isinstance(account.error, ReadAnew) for account in accounts):
            yield from (account for account in accounts if not isinstance(account.error, ReadAnew))
            accounts, behind = _ticked(spark, at, before)
        yield from accounts
        before = behind
        if before is not None and ends():
            return
    yield from gone.removed(spark, at)


def _ticked(spark: SparkSession, at: Refinement, before: Before) -> tuple[list[Account], Before | None]:
    """The accounts of a tick, and what the next one comes behind; None where there is none. What bronze gets meanwhile
    is for another pass: gold waits for the end of this one.
    """
    with ticks.unread(spark, at, before) as tick:
        if tick is None:
            return [], None
        accounts = _applied(tick) if tick.cut is None else _let_through(tick, *tick.cut)
        upto, newest = tick.watch.news.upto, tick.newest if before.newest is None else before.newest
        behind = Before(upto, before.stopped.union(_stopped_in(at, accounts)), newest)
        return accounts, behind if upto < newest else None


def _unreadable(spark: SparkSession, at: Refinement, before: Before) -> list[Account]:
    """An account of each table of which not even its log can be read, so that nobody can tell how far it is; none of
    those that stopped ``before``.
    """
    bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name)) or ""
    folders = at.silver.tables(spark, at.lake.silver_root(at.source.name))
    tables = set(map(names.decode_table, folders)).difference(before.stopped)
    looks = (_unread(spark, at, bronze, name) for name in sorted(tables))
    return [account for account in looks if account is not None]


def _unread(spark: SparkSession, at: Refinement, bronze: str, name: str) -> Account | None:
    try:
        routing.progress_of_tables(spark, at.silver, at.lake, at.source, bronze, only=[name])
    except FAILURES as error:
        table = at.lake.silver(at.source.name, name).name
        return Account(table, error=engine.failure(error, table))
    return None


def _let_through(tick: Tick, stood: Standing, stands: Standing) -> list[Account]:
    """Take the tables, between what is noted of the transactions that must be whole."""
    at = tick.watch.at
    cut.announce(at, stood, stands)
    accounts = _applied(tick)
    failed = {*_stopped_in(at, accounts), *tick.watch.news.paused}
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), tick.routes.bronze)
    cut.settle(at, stood, stands, failed, {topic for table in failed for topic in routes.topics(table)})
    return accounts


def _stopped_in(at: Refinement, accounts: Sequence[Account]) -> list[str]:
    """The names of tables that stopped."""
    return [account.table.removeprefix(f"{at.source.name}/") for account in accounts if account.error is not None]


def again(watch: Watch, records: DataFrame, routes: Routes, rejects: list[DataFrame]) -> list[Account]:
    """Described records that a tick has read before: they say nothing about the order of the source, and what is
    rejected goes to ``rejects``.
    """
    marked = exempt.by_declaration(records, watch.at.source)
    return _applied(Tick(watch, marked, surveying.surveyed(watch, marked), routes, again=rejects))


def preview(spark: SparkSession, at: Refinement, table: str | None = None) -> dict[str, Plan | ReplicatorError]:
    """What the next tick would make of each table's schema, or of one's, where it reads rows; or what would stop the
    table before that. Changes nothing.
    """
    with ticks.unread(spark, at) as tick:
        if tick is None:
            return {}
        shared = sharing.shared(tick)
        shares = [share for share in shared.shares if share.rows and table in (None, share.name)]
        return {share.name: shared.stops.get(share.name) or foresee(share, shared.records) for share in shares}


def whole(spark: SparkSession, at: Refinement, table: str, upto: int) -> Account | None:
    """One table made of all of bronze up to a version, without what waits there for every table, where ``at`` has none
    yet: what a rebuild compares with. None if bronze has no record of the table; other tables of its topics are left
    alone, and topics without a table are left to the next tick.
    """
    bronze = at.lake.bronze(at.source.name)
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), at.bronze.identity(spark, bronze) or "")
    topics = resharding.topics_of(routes, at.source, table)
    news = arrivals.everything(spark, at.bronze, bronze, topics, upto)
    spark = tuning.session_for_records(spark, news.size, len(news.after))
    stood = cut.standing(at, routes.bronze)
    records = news.records(spark, at.bronze, bronze)
    records = records if stood is None else cut.before(records, stood.let_through)
    records = tuning.laid_out(records, news.size)
    watch = Watch(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    with ticks.ticking(watch, watch.in_epochs(records, news.after), routes) as tick:
        shared = sharing.shared(tick)
        share = next((share for share in shared.shares if share.name == table), None)
        if share is None:
            return None
        alone = {topic: tick.routes.alone.get(topic, routing.BEGINNING) for topic in shared.routes.alone}
        noting.keep_routes(at, replace(shared.routes, alone=alone), tick.routes)
        stops = rewind.stops(tick.watch, tick.records, tick.surveyed[1], shared.routes, shared.orders, ())
        stop = shared.stops.get(table) or stops.get(table)
        return apply(share, shared.records) if stop is None else _stopped(share, stop)


def _applied(tick: Tick) -> list[Account]:
    """Take the tables, then note what was read."""
    watch, at, found = tick.watch, tick.watch.at, tick.surveyed[1]
    shared = sharing.shared(tick)
    failpoints.hit("silver.range_read")
    strays = _strays(watch.spark, at, shared.records, shared.strays, tick.again)
    noting.keep_routes(at, resharding.both(shared.routes, at.source, tick.moved), tick.routes)
    orders, stops = shared.orders, dict[str, ReplicatorError](shared.stops)
    if tick.again is None:
        stops |= rewind.stops(watch, tick.records, found, shared.routes, orders, tick.existing)
    else:
        stops |= rewind.reordered(at, {s.name: orders[s.name] for s in shared.shares if s.rows and not _is_missing(s)})
    done = _accounts(watch, shared, stops)
    if tick.again is None:
        failpoints.hit("silver.tables_done")
        rests.noted(watch.spark, at, shared.routes, watch.news, done)
        failed = {table for table, account in done.items() if account.error is not None} | watch.news.paused
        noting.moved(at, shared.routes, tick.moved, failed)
        noting.remember(watch, found, shared.routes, orders, failed)
        unwritten = {share.name for share in shared.shares if not done[share.name].applied and _is_missing(share)}
        noting.settle(watch, shared.routes, orders.keys() - unwritten, failed, unwritten - failed)
        for table in done.keys() - {*tick.existing}:
            words = misnamed.told(table, shared.routes, at.source)
            done[table] = replace(done[table], warnings=(*done[table].warnings, *words))
    return [*strays, *(_warned(at, account, orders.get(table) == BY_TIME) for table, account in done.items())]


def _accounts(watch: Watch, shared: Shared, stops: Mapping[str, ReplicatorError]) -> dict[str, Account]:
    """The account of each table with news, in the order of the shares.

    They are taken side by side, no two in one session: what a commit tells of itself stands in the session's settings.
    A large batch keeps all cores busy with one table, and its rows in memory.
    """
    threads = 1 if tuning.is_large(watch.spark) else min(watch.at.tables_at_once, len(shared.shares))
    tuning.divided(watch.spark)
    free = SimpleQueue[SparkSession]()
    for spark in (watch.spark, *(gateway.beside(watch.spark) for _ in range(1, threads))):
        free.put(spark)

    def account(share: Share) -> Account:
        if share.name in stops:
            return _stopped(share, stops[share.name])
        spark = free.get()
        try:
            return _taken(replace(share, spark=spark), gateway.moved(shared.records, spark))
        finally:
            free.put(spark)

    longest_first = sorted(shared.shares, key=lambda share: -share.count)
    accounts = side_by_side.each(account, longest_first, threads, "silver")
    done = {share.name: account for share, account in zip(longest_first, accounts, strict=True)}
    return {share.name: done[share.name] for share in shared.shares}


def _taken(share: Share, records: DataFrame) -> Account:
    """The account of one table, which gets columns first that it was kept from until now."""
    wanted = frozenset() if share.again is not None else regained.columns(share)
    if wanted:
        both = replace(share, at=history_table.followed(share.spark, share.at, [share.name]))
        with regained.everything(both, wanted) as (every, known):
            filled = apply(every, known)
        if filled.error is not None:
            return _stopped(share, filled.error)
        regained.settled(share, wanted)
    return apply(share, records)


def _is_missing(share: Share) -> bool:
    """Whether all records of the table so far were dead letters or truncates: nothing says how far they were read."""
    return share.at.silver.version(share.spark, share.table) is None


def _stopped(share: Share, error: ReplicatorError) -> Account:
    """The account of a table that must not go on."""
    return replace(counted(Account(share.table.name), share.groups), error=error)


def _warned(at: Refinement, account: Account, by_time: bool) -> Account:
    """The account, with a word about a weaker order once in a run (Q9)."""
    if not by_time or account.table in at.reached.warned:
        return account
    at.reached.warned.add(account.table)
    return replace(account, warnings=(*account.warnings, _BY_TIME))


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
