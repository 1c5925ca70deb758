"""Remove rows from silver that a repeated full snapshot did not contain, if the user asked for it (debezium.md D7).

A row is missing if no record since the snapshot was requested has its key: the connector sends every existing row, and
every change in the meantime. This is checked once bronze has the end of the snapshot and the table has read it. One
commit contains the deletes and the number of the snapshot, as the progress of an input of its own; after a crash before
that commit, the next tick does all of it. Only places in Kafka decide, so a table that is rebuilt loses the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.errors import ReplicatorError, TableStopped
from replicator.jvm.failures import FAILURES
from replicator.spec import Progress, SourceSpec, Table
from replicator.stages import engine_errors, tuning
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.table import decoding, snapshots
from replicator.stages.table.snapshots import FullSnapshot
from replicator.stages.tick import arrivals, epochs, normalization, pauses, routing, template_reading
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.table_share import TableShare
from replicator.stages.tick.tick_context import TickContext
from replicator.transforms import changes, fold, missing_rows, skip_rules
from replicator.transforms.columns.layout import Layout, key_of, with_column_metadata
from replicator.transforms.merge import SYSTEM_COLUMNS


@dataclass(frozen=True)
class _Table:
    """A table that has read the bronze with the id ``bronze`` up to the version ``read``; its commit records
    ``progress``. ``whole`` is the snapshot.
    """

    at: Refinement
    name: str
    whole: FullSnapshot
    bronze: str
    read: int
    progress: Progress

    @property
    def table(self) -> Table:
        """The silver table."""
        return self.at.lake.silver(self.at.source.name, self.name)


def remove_all(spark: SparkSession, at: Refinement, again: Collection[str] = ()) -> list[Account]:
    """Remove the missing rows of all tables that have read their whole snapshot, and return one account per table; if a
    table stops, its account has the error. Tables in ``again``, into which old changes were merged, are checked again.
    """
    known = snapshots.load(at.control, at.lake.snapshots(at.source.name))
    paused = pauses.load(at.control, at.lake, at.source.name) if known else {}
    due = [
        name
        for name, snapshot in sorted(known.items())
        if name in again or (name not in paused and at.state.removed.get(name) != snapshot.number)
    ]
    accounts = []
    for name in due:
        if name not in again and is_done(spark, at, name):
            at.state.removed[name] = known[name].number
        elif account := _try_remove(spark, at, name, known[name], again=name in again):
            accounts.append(account)
    return accounts


def is_done(spark: SparkSession, at: Refinement, name: str) -> bool:
    """Return whether the rows that the last snapshot of a table did not contain were removed."""
    snapshot, bronze = _load_snapshot(at, name), at.bronze.identity(spark, at.lake.bronze(at.source.name))
    return snapshot is not None and bronze is not None and _is_applied(spark, at, name, snapshot, bronze)


def refuse_pending(spark: SparkSession, at: Refinement, name: str) -> None:
    """Raise TableStopped if rows were removed from a table after an earlier snapshot and those of a later one are not
    removed yet. Only the last snapshot is stored, so the rows of the earlier one could not be removed again.
    """
    snapshot, bronze = _load_snapshot(at, name), at.bronze.identity(spark, at.lake.bronze(at.source.name))
    if snapshot is None or bronze is None or _is_applied(spark, at, name, snapshot, bronze):
        return
    table = at.lake.silver(at.source.name, name)
    if at.silver.progress(spark, table, _progress_input(bronze)) is not None:
        raise TableStopped(
            "a snapshot taken with --remove-missing has not been processed yet",
            where=table.name,
            fix="Run `replicator run bronze silver`, then try again.",
        )


def find_obstacle(source: SourceSpec, name: str) -> str | None:
    """Return the reason why a snapshot cannot tell which rows of a table are missing: the table keeps rows that the
    source's table need not have, or the end of a row needs more than a delete. None if there is none.
    """
    declared = source.declaration(name)
    reasons = {
        "its records come from objects, whose positions are not Kafka's": bool(source.objects),
        "it combines the rows of several tables (`shards`)": bool(declared.shards),
        "it keeps events deleted from their outbox": declared.outbox is not None and declared.outbox.mode != "current",
        "the rows that a snapshot contains cannot be identified (`append_only`)": declared.append_only,
        "the end times of rows of its history cannot be determined (`stored_as_scd_type: 2`)": declared.has_history,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def remove(spark: SparkSession, at: Refinement, name: str, *, again: bool = False) -> int | None:
    """Remove the missing rows of one table and return their number; None if there is nothing to do, or not yet. Raises
    TableStopped if it cannot be told which rows the snapshot contained.
    """
    snapshot, bronze = _load_snapshot(at, name), at.bronze.identity(spark, at.lake.bronze(at.source.name))
    version = at.silver.version(spark, at.lake.silver(at.source.name, name))
    if snapshot is None or bronze is None or version is None:
        return None
    done = _is_applied(spark, at, name, snapshot, bronze)
    if done and not again:
        return None
    if reason := find_obstacle(at.source, name):
        fix = "Revert what was declared since the snapshot, or leave the rows: `replicator tables pause`."
        raise TableStopped(f"missing rows cannot be determined: {reason}", where=f"{at.source.name}/{name}", fix=fix)
    read = routing.progress_of(spark, at.silver, at.lake.silver(at.source.name, name), bronze)
    progress = (
        Progress(f"{bronze}/dead letters", version + 1) if done else Progress(_progress_input(bronze), snapshot.number)
    )
    return _write_deletes(spark, _Table(at, name, snapshot, bronze, read, progress))


def _load_snapshot(at: Refinement, name: str) -> FullSnapshot | None:
    return snapshots.load(at.control, at.lake.snapshots(at.source.name)).get(name)


def _progress_input(bronze: str) -> str:
    return f"{bronze}/snapshot"


def _is_applied(spark: SparkSession, at: Refinement, name: str, snapshot: FullSnapshot, bronze: str) -> bool:
    progress = at.silver.progress(spark, at.lake.silver(at.source.name, name), _progress_input(bronze))
    return progress is not None and progress.version >= snapshot.number


def _try_remove(
    spark: SparkSession, at: Refinement, name: str, snapshot: FullSnapshot, *, again: bool
) -> Account | None:
    """Return the account of one table; None if it has to wait. An error that a retry may cure is retried in each tick,
    any other one is reported once per process.
    """
    started, account = time.monotonic(), Account(at.lake.silver(at.source.name, name).name)
    try:
        count = remove(spark, at, name, again=again)
    except FAILURES as error:
        at.state.removed[name] = snapshot.number
        return replace(account, error=engine_errors.to_table_error(error, account.table))
    except ReplicatorError as error:
        if not error.retry:
            at.state.removed[name] = snapshot.number
        return replace(account, error=error)
    if count is None:
        return None
    at.state.removed[name] = snapshot.number
    warning = f"{count:,} rows were removed: the repeated snapshot shows that the source no longer has them"
    return replace(account, warnings=(warning,) if count else (), seconds=time.monotonic() - started)


def _write_deletes(spark: SparkSession, target: _Table) -> int | None:
    at, bronze = target.at, target.at.lake.bronze(target.at.source.name)
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), target.bronze)
    topics = routes.topics(target.name)
    size = at.bronze.size(spark, bronze)
    spark = tuning.session_for_records(spark, size, len(topics))
    records = arrivals.read_as_of(spark, at.bronze, bronze, topics, target.read)
    if records is None:  # records that the table has not read yet count as well
        records = at.bronze.read(spark, bronze).where(F.col("topic").isin(*topics))
    if not target.whole.is_complete_in(records):
        return None
    news = NewRecords(target.read, dict.fromkeys(topics, routing.BEGINNING))
    context = TickContext(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    share = TableShare(spark, at, routes, news, target.name, (), epochs=context.epochs)
    stored = at.silver.read(spark, target.table)
    layout = _layout(stored.schema)
    with (
        _describe(context, records.where(target.whole.is_after_start()), routes, size) as recent,
        _mentioned_keys(share, target.whole, recent, stored.select(*map(names.quote_spark, layout.keys))) as mentioned,
        tuning.persist(fold.fold(missing_rows.deletes(stored, mentioned, layout), layout.keys, ())) as deletes,
    ):
        count = deletes.count()
        if count:
            at.silver.apply(with_column_metadata(deletes, layout), share.target(layout), target.progress)
        else:
            at.silver.append(stored.limit(0), target.table, target.progress)
    return count


@contextmanager
def _describe(context: TickContext, records: DataFrame, routes: Routes, size: int) -> Iterator[DataFrame]:
    """Yield the described records of the watched topics, of at most ``size`` bytes of bronze. They are described with
    templates as in a tick, because within months they become many.
    """
    at, topics = context.at, context.new_records.after
    template_reading.learn_from_first(at, records, topics, size)
    survey = partial(_survey, at)
    with normalization.describe(
        context.spark, at, context.in_epochs(records, topics), context.new_records, routes, survey
    ) as (
        described,
        *_,
    ):
        yield normalization.mark_lone_tombstones(described, at.source)


def _survey(at: Refinement, records: DataFrame) -> tuple[list[Row], list[Row]]:
    return template_reading.with_examples(at, changes.survey(records).collect()), []


@contextmanager
def _mentioned_keys(
    share: TableShare, snapshot: FullSnapshot, recent: DataFrame, keys: DataFrame
) -> Iterator[DataFrame]:
    """Yield the keys of the described records of the table's topics; ``keys`` has their columns. Raises TableStopped if
    the key of a record from the time of the snapshot cannot be read. Later records do not matter: once fixed, they are
    newer than a delete.
    """
    records = skip_rules.apply_declared(share.routed(recent), share.at.source)
    groups, _ = _survey(share.at, records)
    own = tuple(group for group in groups if group["table"] == share.name)
    if any(_is_unreadable(group, share.name) for group in groups):
        during = changes.survey(records.where(snapshot.is_before_end())).collect()
        _refuse_unreadable(share, sum(group["count"] for group in during if _is_unreadable(group, share.name)))
    share = replace(share, groups=own)
    if not share.rows:
        yield keys.limit(0)
        return
    with decoding.decode_share(share, records, places=True) as decoded:
        made = decoded.changes
        keyless = reduce(or_, (F.col(names.quote_spark(key)).isNull() for key in keys.columns))
        _refuse_unreadable(
            share, made.where(F.col("_reject").isNotNull() & keyless & snapshot.is_before_end("_at.")).count()
        )
        yield made.select(*keys.columns).distinct()


def _is_unreadable(group: Row, table: str) -> bool:
    return group["rule"] is None and group["reason"] is not None and group["table"] in (table, None)


def _refuse_unreadable(share: TableShare, unread: int) -> None:
    """Raise TableStopped if there are unreadable records: they may be about any row."""
    if unread:
        raise TableStopped(
            f"missing rows cannot be determined: {unread:,} records of the time of the snapshot are dead letters",
            where=share.table.name,
            fix="Fix them (`replicator dead-letters retry`), or take the snapshot again.",
        )


def _layout(schema: StructType) -> Layout:
    """Return the columns of a table as stored."""
    own = {each.name: each.dataType.simpleString() for each in schema if each.name not in SYSTEM_COLUMNS}
    return Layout(own, key_of(schema))
