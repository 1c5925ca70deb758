"""Bronze -> silver: bring every table that has new records to bronze's newest version (architecture section 6)."""

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
from replicator.stages import engine_errors, parallel, tuning
from replicator.stages.account import Account, count_groups
from replicator.stages.refinement import Refinement
from replicator.stages.table import column_backfill, dead_letters, history_table, missing_rows
from replicator.stages.table.silver_table import ReloadNeeded, apply, plan_schema
from replicator.stages.tick import (
    arrivals,
    bookkeeping,
    epochs,
    misspelled_tables,
    order_checks,
    resharding,
    retry_backoff,
    routing,
    surveying,
    tick_split,
    ticks,
    transaction_cut,
)
from replicator.stages.tick.backlog import BacklogProgress
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.table_share import TableShare
from replicator.stages.tick.tick_context import TickContext
from replicator.stages.tick.tick_split import TickSplit
from replicator.stages.tick.ticks import Tick
from replicator.stages.tick.transaction_cut import CutState
from replicator.transforms import changes, skip_rules
from replicator.transforms.evolve import Plan

_BY_TIME = (
    "changes are ordered by source.ts_ms, which is less reliable than positions: times can be equal, go "
    "backwards or arrive late"
)


def refine(spark: SparkSession, at: Refinement) -> list[Account]:
    """Run :func:`refine_pieces` to its end and return all accounts."""
    return list(refine_pieces(spark, at))


def refine_pieces(spark: SparkSession, at: Refinement, ends: Callable[[], bool] = lambda: False) -> Iterator[Account]:
    """Bring every table that has new records to bronze's newest version, a long backlog piece by piece, and remove rows
    that a repeated snapshot did not contain. Yields one account per piece and table that read records, and per table
    from which rows were to be removed. If the run ``ends`` between two pieces, the next run takes the rest.

    A table that stops has its error in its account and is skipped by the following pieces; the others continue.
    """
    progress: BacklogProgress | None = BacklogProgress()
    while progress is not None:
        try:
            accounts, remaining = _run_tick(spark, at, progress)
        except FAILURES:
            accounts = _unreadable_tables(spark, at, progress)
            if not accounts:
                raise
            remaining = replace(progress, stopped=progress.stopped.union(_stopped_in(at, accounts)))
        if any(isinstance(account.error, ReloadNeeded) for account in accounts):
            yield from (account for account in accounts if not isinstance(account.error, ReloadNeeded))
            accounts, remaining = _run_tick(spark, at, progress)
        yield from accounts
        progress = remaining
        if progress is not None and ends():
            return
    yield from missing_rows.remove_all(spark, at)


def _run_tick(
    spark: SparkSession, at: Refinement, before: BacklogProgress
) -> tuple[list[Account], BacklogProgress | None]:
    """The accounts of one tick, and the progress after which the next one continues; None after the last. Records that
    reach bronze meanwhile are left to the next pass, because gold waits for the end of this one.
    """
    with ticks.read_next(spark, at, before) as tick:
        if tick is None:
            return [], None
        accounts = _apply_tick(tick) if tick.cut is None else _apply_with_cut(tick, *tick.cut)
        upto, newest = tick.context.new_records.upto, tick.newest if before.newest is None else before.newest
        progress = BacklogProgress(upto, before.stopped.union(_stopped_in(at, accounts)), newest)
        return accounts, progress if upto < newest else None


def _unreadable_tables(spark: SparkSession, at: Refinement, before: BacklogProgress) -> list[Account]:
    """An account for each table whose log cannot be read, so that its progress is unknown; none for tables that stopped
    ``before``.
    """
    bronze = at.bronze.identity(spark, at.lake.bronze(at.source.name)) or ""
    folders = at.silver.tables(spark, at.lake.silver_root(at.source.name))
    tables = set(map(names.decode_table, folders)).difference(before.stopped)
    results = (_check_readable(spark, at, bronze, name) for name in sorted(tables))
    return [account for account in results if account is not None]


def _check_readable(spark: SparkSession, at: Refinement, bronze: str, name: str) -> Account | None:
    try:
        routing.progress_of_tables(spark, at.silver, at.lake, at.source, bronze, only=[name])
    except FAILURES as error:
        table = at.lake.silver(at.source.name, name).name
        return Account(table, error=engine_errors.to_table_error(error, table))
    return None


def _apply_with_cut(tick: Tick, previous_cut: CutState, next_cut: CutState) -> list[Account]:
    """Apply the tick's tables between the two notes on the cut of whole transactions: before and after."""
    at = tick.context.at
    transaction_cut.prepare(at, previous_cut, next_cut)
    accounts = _apply_tick(tick)
    failed = {*_stopped_in(at, accounts), *tick.context.new_records.paused}
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), tick.routes.bronze)
    transaction_cut.finalize(
        at, previous_cut, next_cut, failed, {topic for table in failed for topic in routes.topics(table)}
    )
    return accounts


def _stopped_in(at: Refinement, accounts: Sequence[Account]) -> list[str]:
    """The names of tables that stopped."""
    return [account.table.removeprefix(f"{at.source.name}/") for account in accounts if account.error is not None]


def reapply(context: TickContext, records: DataFrame, routes: Routes, rejects: list[DataFrame]) -> list[Account]:
    """Apply described records that an earlier tick has read. They are no evidence of the source's order, and rejected
    ones are added to ``rejects``.
    """
    marked = skip_rules.apply_declared(records, context.at.source)
    return _apply_tick(Tick(context, marked, surveying.run_survey(context, marked), routes, retried_rejects=rejects))


def preview(spark: SparkSession, at: Refinement, table: str | None = None) -> dict[str, Plan | ReplicatorError]:
    """The schema plan of the next tick for each table (or one) that it would read rows of, or the error that would stop
    the table. Changes nothing.
    """
    with ticks.read_next(spark, at) as tick:
        if tick is None:
            return {}
        shared = tick_split.split_by_table(tick)
        shares = [share for share in shared.shares if share.rows and table in (None, share.name)]
        return {share.name: shared.stops.get(share.name) or plan_schema(share, shared.records) for share in shares}


def build_table(spark: SparkSession, at: Refinement, table: str, upto: int) -> Account | None:
    """Build one table, which must not exist in ``at`` yet, from all of bronze up to a version: what a rebuild compares
    with. Records that wait for their transaction to be complete are left out. None if bronze has no record of the
    table. Other tables of its topics are not touched; topics without a table are left to the next tick.
    """
    bronze = at.lake.bronze(at.source.name)
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), at.bronze.identity(spark, bronze) or "")
    topics = resharding.topics_of(routes, at.source, table)
    news = arrivals.from_beginning(spark, at.bronze, bronze, topics, upto)
    spark = tuning.session_for_records(spark, news.size, len(news.after))
    cut_state = transaction_cut.load_or_create(at, routes.bronze)
    records = news.records(spark, at.bronze, bronze)
    records = records if cut_state is None else transaction_cut.exclude_waiting(records, cut_state.released_cut)
    records = tuning.repartition_records(records, news.size)
    context = TickContext(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    with ticks.build(context, context.in_epochs(records, news.after), routes) as tick:
        shared = tick_split.split_by_table(tick)
        share = next((share for share in shared.shares if share.name == table), None)
        if share is None:
            return None
        alone = {topic: tick.routes.alone.get(topic, routing.BEGINNING) for topic in shared.routes.alone}
        bookkeeping.save_routes(at, replace(shared.routes, alone=alone), tick.routes)
        stops = order_checks.find_stops(tick.context, tick.records, tick.surveyed[1], shared.routes, shared.orders, ())
        stop = shared.stops.get(table) or stops.get(table)
        return apply(share, shared.records) if stop is None else _stopped_account(share, stop)


def _apply_tick(tick: Tick) -> list[Account]:
    """Apply the tables' shares, then record what was read."""
    context, at, found = tick.context, tick.context.at, tick.surveyed[1]
    shared = tick_split.split_by_table(tick)
    failpoints.hit("silver.range_read")
    strays = _account_for_strays(context.spark, at, shared.records, shared.orphans, tick.retried_rejects)
    bookkeeping.save_routes(at, resharding.with_previous(shared.routes, at.source, tick.moved), tick.routes)
    orders, stops = shared.orders, dict[str, ReplicatorError](shared.stops)
    if tick.retried_rejects is None:
        stops |= order_checks.find_stops(context, tick.records, found, shared.routes, orders, tick.existing)
    else:
        stops |= order_checks.find_reordered(
            at, {s.name: orders[s.name] for s in shared.shares if s.rows and not _is_missing(s)}
        )
    done = _apply_shares(context, shared, stops)
    if tick.retried_rejects is None:
        failpoints.hit("silver.tables_done")
        retry_backoff.record_results(context.spark, at, shared.routes, context.new_records, done)
        failed = {table for table, account in done.items() if account.error is not None} | context.new_records.paused
        bookkeeping.save_moved_topics(at, shared.routes, tick.moved, failed)
        bookkeeping.save_watermarks(context, found, shared.routes, orders, failed)
        unwritten = {share.name for share in shared.shares if not done[share.name].applied and _is_missing(share)}
        bookkeeping.mark_caught_up(context, shared.routes, orders.keys() - unwritten, failed, unwritten - failed)
        for table in done.keys() - {*tick.existing}:
            warnings = misspelled_tables.find_warnings(table, shared.routes, at.source)
            done[table] = replace(done[table], warnings=(*done[table].warnings, *warnings))
    return [
        *strays,
        *(_with_order_warning(at, account, orders.get(table) == BY_TIME) for table, account in done.items()),
    ]


def _apply_shares(context: TickContext, shared: TickSplit, stops: Mapping[str, ReplicatorError]) -> dict[str, Account]:
    """The account of each table that has new records, in the order of the shares.

    Tables are applied in parallel, each in a session of its own, because a commit takes its metadata from the session's
    settings. A large batch takes one table at a time: that keeps all cores busy, and only its rows in memory.
    """
    threads = 1 if tuning.is_large(context.spark) else min(context.at.tables_at_once, len(shared.shares))
    tuning.tune_for_tables(context.spark)
    free = SimpleQueue[SparkSession]()
    for spark in (context.spark, *(gateway.clone_session(context.spark) for _ in range(1, threads))):
        free.put(spark)

    def account(share: TableShare) -> Account:
        if share.name in stops:
            return _stopped_account(share, stops[share.name])
        spark = free.get()
        try:
            return _apply_share(replace(share, spark=spark), gateway.to_session(shared.records, spark))
        finally:
            free.put(spark)

    longest_first = sorted(shared.shares, key=lambda share: -share.count)
    accounts = parallel.run_each(account, longest_first, threads, "silver")
    done = {share.name: account for share, account in zip(longest_first, accounts, strict=True)}
    return {share.name: done[share.name] for share in shared.shares}


def _apply_share(share: TableShare, records: DataFrame) -> Account:
    """The account of one table. Columns that the table is newly allowed to have are filled from bronze first."""
    wanted = frozenset() if share.retried_rejects is not None else column_backfill.find_columns(share)
    if wanted:
        with_history = replace(share, at=history_table.with_existing_histories(share.spark, share.at, [share.name]))
        with column_backfill.read_all(with_history, wanted) as (all_read, known):
            filled = apply(all_read, known)
        if filled.error is not None:
            return _stopped_account(share, filled.error)
        column_backfill.mark_done(share, wanted)
    return apply(share, records)


def _is_missing(share: TableShare) -> bool:
    """Whether the table does not exist: all its records so far were dead letters or truncates, so no commit records
    how far they were read.
    """
    return share.at.silver.version(share.spark, share.table) is None


def _stopped_account(share: TableShare, error: ReplicatorError) -> Account:
    """The account of a table that must not continue."""
    return replace(count_groups(Account(share.table.name), share.groups), error=error)


def _with_order_warning(at: Refinement, account: Account, by_time: bool) -> Account:
    """The account, with a warning about ordering by time, once per run (Q9)."""
    if not by_time or account.table in at.state.warned:
        return account
    at.state.warned.add(account.table)
    return replace(account, warnings=(*account.warnings, _BY_TIME))


def _account_for_strays(
    spark: SparkSession, at: Refinement, records: DataFrame, groups: Sequence[Row], again: list[DataFrame] | None
) -> list[Account]:
    """Account for records of topics that never carried a table: control topics and unreadable records."""
    topics = sorted({group["topic"] for group in groups})
    if any(group["reason"] is not None for group in groups):
        rejects = changes.dead_letters_of(records.where(F.col("topic").isin(topics)), None)
        if again is None:
            dead_letters.write(spark, at, rejects)
        else:
            again.append(rejects.localCheckpoint())
    return [count_groups(Account(f"topic {topic}"), [g for g in groups if g["topic"] == topic]) for topic in topics]
