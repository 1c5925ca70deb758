"""Rows that a whole snapshot taken again did not mention leave silver, where somebody asked for that (debezium.md D7).

A row is gone when no record since the snapshot was asked for is about its key: the connector sends what is there, and
every change that comes meanwhile. This is asked once bronze has the end of the snapshot, and the table has read it. One
commit has the deletes and, as the progress of an input of its own, the snapshot's number: a crash before it leaves all
to the next tick. Nothing but places in Kafka decides, so a table that is made once more loses the same rows.
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
from replicator.stages.tick.order_checks import TickContext
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import changes, fold, missing_rows, skip_rules
from replicator.transforms.columns.layout import Layout, key_of, with_column_metadata
from replicator.transforms.merge import SYSTEM_COLUMNS


@dataclass(frozen=True)
class _Table:
    """A table that has read ``bronze``, its id, up to the version ``read``; it commits with ``progress``."""

    at: Refinement
    name: str
    whole: FullSnapshot
    bronze: str
    read: int
    progress: Progress

    @property
    def table(self) -> Table:
        """In silver."""
        return self.at.lake.silver(self.at.source.name, self.name)


def remove_all(spark: SparkSession, at: Refinement, again: Collection[str] = ()) -> list[Account]:
    """One account per table from which rows were to go and that has read all of its snapshot; a table that stops is in
    the list with its error. Tables that joined in old changes are judged ``again``.
    """
    known = snapshots.load(at.control, at.lake.snapshots(at.source.name))
    paused = pauses.load(at.control, at.lake, at.source.name) if known else {}
    due = [
        name
        for name, whole in sorted(known.items())
        if name in again or (name not in paused and at.reached.removed.get(name) != whole.number)
    ]
    accounts = []
    for name in due:
        if name not in again and is_done(spark, at, name):
            at.reached.removed[name] = known[name].number
        elif account := _try_remove(spark, at, name, known[name], again=name in again):
            accounts.append(account)
    return accounts


def is_done(spark: SparkSession, at: Refinement, name: str) -> bool:
    """Whether the rows that the last snapshot of a table did not mention have gone from it."""
    whole, bronze = _load_snapshot(at, name), at.bronze.identity(spark, at.lake.bronze(at.source.name))
    return whole is not None and bronze is not None and _is_applied(spark, at, name, whole, bronze)


def refuse_pending(spark: SparkSession, at: Refinement, name: str) -> None:
    """Raise TableStopped while a table that a snapshot has taken rows from waits for a later one: only that one is
    known, so nobody can take those rows again.
    """
    whole, bronze = _load_snapshot(at, name), at.bronze.identity(spark, at.lake.bronze(at.source.name))
    if whole is None or bronze is None or _is_applied(spark, at, name, whole, bronze):
        return
    table = at.lake.silver(at.source.name, name)
    if at.silver.progress(spark, table, _progress_input(bronze)) is not None:
        raise TableStopped(
            "a snapshot that was taken with --remove-missing has not been seen to",
            where=table.name,
            mend="`replicator run bronze silver`, then again.",
        )


def find_obstacle(source: SourceSpec, name: str) -> str | None:
    """Why a snapshot does not say which rows of a table are gone: rows are kept that the source's table need not have,
    or more is to be said of an end than that it came.
    """
    told = source.declaration(name)
    reasons = {
        "its records come from objects, whose places are not Kafka's": bool(source.objects),
        "it takes the rows of several tables (`shards`)": bool(told.shards),
        "it keeps events that their outbox has lost": told.outbox is not None and told.outbox.mode != "current",
        "nothing tells which of its rows a snapshot mentions (`append_only`)": told.append_only,
        "nobody knows when a row of its history ended (`stored_as_scd_type: 2`)": told.has_history,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def remove(spark: SparkSession, at: Refinement, name: str, *, again: bool = False) -> int | None:
    """How many rows went from one table; None where there is nothing to do, or not yet. Raises TableStopped where
    nobody can tell what was mentioned.
    """
    whole, bronze = _load_snapshot(at, name), at.bronze.identity(spark, at.lake.bronze(at.source.name))
    version = at.silver.version(spark, at.lake.silver(at.source.name, name))
    if whole is None or bronze is None or version is None:
        return None
    done = _is_applied(spark, at, name, whole, bronze)
    if done and not again:
        return None
    if reason := find_obstacle(at.source, name):
        mend = "Take back what was declared since the snapshot, or leave the rows: `replicator tables pause`."
        raise TableStopped(f"which rows are gone cannot be told: {reason}", where=f"{at.source.name}/{name}", mend=mend)
    read = routing.progress_of(spark, at.silver, at.lake.silver(at.source.name, name), bronze)
    progress = (
        Progress(f"{bronze}/dead letters", version + 1) if done else Progress(_progress_input(bronze), whole.number)
    )
    return _write_deletes(spark, _Table(at, name, whole, bronze, read, progress))


def _load_snapshot(at: Refinement, name: str) -> FullSnapshot | None:
    return snapshots.load(at.control, at.lake.snapshots(at.source.name)).get(name)


def _progress_input(bronze: str) -> str:
    return f"{bronze}/snapshot"


def _is_applied(spark: SparkSession, at: Refinement, name: str, whole: FullSnapshot, bronze: str) -> bool:
    progress = at.silver.progress(spark, at.lake.silver(at.source.name, name), _progress_input(bronze))
    return progress is not None and progress.version >= whole.number


def _try_remove(spark: SparkSession, at: Refinement, name: str, whole: FullSnapshot, *, again: bool) -> Account | None:
    """What became of one table; None where it waits. What stops it is told once by a process, what may cure itself is
    tried again with each tick.
    """
    started, account = time.monotonic(), Account(at.lake.silver(at.source.name, name).name)
    try:
        count = remove(spark, at, name, again=again)
    except FAILURES as error:
        at.reached.removed[name] = whole.number
        return replace(account, error=engine_errors.to_table_error(error, account.table))
    except ReplicatorError as error:
        if not error.retry:
            at.reached.removed[name] = whole.number
        return replace(account, error=error)
    if count is None:
        return None
    at.reached.removed[name] = whole.number
    word = f"{count:,} rows were removed: the source does not have them any more, the snapshot taken again says"
    return replace(account, warnings=(word,) if count else (), seconds=time.monotonic() - started)


def _write_deletes(spark: SparkSession, of: _Table) -> int | None:
    at, bronze = of.at, of.at.lake.bronze(of.at.source.name)
    routes = routing.load_routes(at.control, at.lake.routes(at.source.name), of.bronze)
    topics = routes.topics(of.name)
    size = at.bronze.size(spark, bronze)
    spark = tuning.session_for_records(spark, size, len(topics))
    records = arrivals.read_as_of(spark, at.bronze, bronze, topics, of.read)
    if records is None:  # what the table has yet to read may mention rows as well
        records = at.bronze.read(spark, bronze).where(F.col("topic").isin(*topics))
    if not of.whole.is_complete_in(records):
        return None
    news = NewRecords(of.read, dict.fromkeys(topics, routing.BEGINNING))
    watch = TickContext(spark, at, news, epochs.load(at.control, at.lake.epochs(at.source.name)))
    share = TableShare(spark, at, routes, news, of.name, (), epochs=watch.epochs)
    stored = at.silver.read(spark, of.table)
    layout = _layout(stored.schema)
    with (
        _describe(watch, records.where(of.whole.since()), routes, size) as recent,
        _mentioned_keys(share, of.whole, recent, stored.select(*map(names.quote_spark, layout.keys))) as mentioned,
        tuning.persist(fold.fold(missing_rows.deletes(stored, mentioned, layout), layout.keys, ())) as deletes,
    ):
        count = deletes.count()
        if count:
            at.silver.apply(with_column_metadata(deletes, layout), share.target(layout), of.progress)
        else:
            at.silver.append(stored.limit(0), of.table, of.progress)
    return count


@contextmanager
def _describe(watch: TickContext, records: DataFrame, routes: Routes, size: int) -> Iterator[DataFrame]:
    """Records of the watched topics, of so many bytes of bronze at most, described as a tick does: by those like them,
    for in months they become many.
    """
    at, topics = watch.at, watch.news.after
    template_reading.learn_from_first(at, records, topics, size)
    survey = partial(_survey, at)
    with normalization.describe(watch.spark, at, watch.in_epochs(records, topics), watch.news, routes, survey) as (
        told,
        *_,
    ):
        yield normalization.mark_lone_tombstones(told, at.source)


def _survey(at: Refinement, records: DataFrame) -> tuple[list[Row], list[Row]]:
    return template_reading.with_examples(at, changes.survey(records).collect()), []


@contextmanager
def _mentioned_keys(share: TableShare, whole: FullSnapshot, recent: DataFrame, keys: DataFrame) -> Iterator[DataFrame]:
    """The keys that described records of the table's topics are about; ``keys`` has their columns. Raises TableStopped
    where the key in a record of the time of the snapshot cannot be read. What came later, once mended, is newer than a
    delete.
    """
    records = skip_rules.apply_declared(share.routed(recent), share.at.source)
    groups, _ = _survey(share.at, records)
    own = tuple(group for group in groups if group["table"] == share.name)
    if any(_is_unreadable(group, share.name) for group in groups):
        then = changes.survey(records.where(whole.until())).collect()
        _refuse_unreadable(share, sum(group["count"] for group in then if _is_unreadable(group, share.name)))
    share = replace(share, groups=own)
    if not share.rows:
        yield keys.limit(0)
        return
    with decoding.decode_share(share, records, places=True) as decoded:
        made = decoded.changes
        keyless = reduce(or_, (F.col(names.quote_spark(key)).isNull() for key in keys.columns))
        _refuse_unreadable(share, made.where(F.col("_reject").isNotNull() & keyless & whole.until("_at.")).count())
        yield made.select(*keys.columns).distinct()


def _is_unreadable(group: Row, table: str) -> bool:
    return group["rule"] is None and group["reason"] is not None and group["table"] in (table, None)


def _refuse_unreadable(share: TableShare, unread: int) -> None:
    """A record that nobody can read may be about any row."""
    if unread:
        raise TableStopped(
            f"which rows are gone cannot be told: {unread:,} records of the time of the snapshot are dead letters",
            where=share.table.name,
            mend="Mend them (`replicator dead-letters retry`), or take the snapshot once more.",
        )


def _layout(schema: StructType) -> Layout:
    """The columns of a table as it lies there."""
    own = {each.name: each.dataType.simpleString() for each in schema if each.name not in SYSTEM_COLUMNS}
    return Layout(own, key_of(schema))
