"""Events from the commits of a silver or gold table, one commit after the other.

An event is what one commit did to one row. So if a commit is sent again, the events are the same, however many commits
the previous run had processed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.errors import ChangesLost, VersionMissing
from replicator.protocols import TableFormat
from replicator.spec import Feed, Table
from replicator.stages import tuning
from replicator.transforms import events
from replicator.transforms.columns.layout import own_key
from replicator.transforms.live import source_spelling

FIX = "`replicator canonical restart {}` sends all rows again, as `read`; rows deleted meanwhile get no event."


@dataclass(frozen=True)
class EventBatch:
    """Events as an ``Outlet`` takes them, and the types of the key and of the row in them."""

    rows: DataFrame
    kinds: tuple[T.StructType, T.StructType]
    warnings: tuple[str, ...] = ()


@contextmanager
def read_initial(
    session: SparkSession, tables_of: TableFormat, table: Table, feed: Feed, version: int, newest: int
) -> Iterator[EventBatch]:
    """Yield all rows of the version at which a feed begins, with the columns of the newest version."""
    stored = _in_newest_columns(session, tables_of, table, feed, (version, newest))
    images = events.images(stored, _keys(stored, table), feed)
    yield _batch(session, tables_of, table, feed, version, events.from_snapshot(images))


@contextmanager
def read_commit(
    session: SparkSession, tables_of: TableFormat, table: Table, feed: Feed, version: int, newest: int
) -> Iterator[EventBatch]:
    """Yield the changes of a commit, with the columns of the newest version: the feed's `select` and `where` refer to
    those, also if the feed lags.

    Raises ChangesLost if the version, or the one before, is not retained any more, or if it gave the table another key.
    """
    if not all(is_version_kept(session, tables_of, table, each) for each in (version - 1, version)):
        raise ChangesLost(
            f"the changes of version {version} of {table.name} are no longer retained",
            where=table.location,
            fix=FIX.format(feed.name),
        )
    after = _in_newest_columns(session, tables_of, table, feed, (version, newest))
    table = replace(table, keys=_keys(after, table))
    stored = tables_of.read(session, table, version - 1)
    if (own_key(stored.schema) or table.keys) != table.keys:
        message = f"version {version} of {table.name} has another key than the previous one: rows cannot be matched"
        raise ChangesLost(message, where=table.location, fix=FIX.format(feed.name))
    before = _align_columns(stored, after, table, feed, version - 1)
    changed = tables_of.changed_keys(session, table, version - 1, version)
    if changed is None:
        yield _changes(session, tables_of, table, feed, version, before, after)
        return
    with tuning.persist(changed) as keys:
        sides = (side.join(keys, list(table.keys), how="left_semi") for side in (before, after))
        yield _changes(session, tables_of, table, feed, version, *sides)


def _in_newest_columns(
    session: SparkSession, tables_of: TableFormat, table: Table, feed: Feed, versions: tuple[int, int]
) -> DataFrame:
    """Return the rows of a version with the columns of the newest one, unless that has another key. ``versions`` are
    both. Raises ChangesLost as :func:`_align_columns` does.
    """
    version, newest = versions
    rows = tables_of.read(session, table, version)
    newest_rows = rows if version == newest else tables_of.read(session, table, newest)
    return (
        rows
        if newest_rows is rows or _keys(rows, table) != _keys(newest_rows, table)
        else _align_columns(rows, newest_rows, table, feed, version)
    )


def _align_columns(rows: DataFrame, now: DataFrame, table: Table, feed: Feed, version: int) -> DataFrame:
    """Return the rows of a version with the current columns. Raises ChangesLost if a silver column that the feed uses
    has another type since: its old values cannot be represented in it. A model's column is defined by its SQL, so its
    older values are cast.
    """
    incompatible = events.incompatible_types(rows, now) if "_deleted" in now.columns else []
    if incompatible and events.depends_on(feed, now, _keys(now, table), incompatible):
        columns = ", ".join(source_spelling(now.schema[column]) for column in incompatible)
        message = (
            f"{columns} of {table.name} changed type after version {version}: the values of that version "
            "cannot be determined"
        )
        raise ChangesLost(message, where=table.location, fix=FIX.format(feed.name))
    return events.align_columns(rows, now)


def is_version_kept(spark: SparkSession, tables_of: TableFormat, table: Table, version: int | None) -> bool:
    """Return whether a version can still be read."""
    try:
        return version is not None and tables_of.version_at(spark, table, version).version == version
    except VersionMissing:
        return False


def _changes(
    session: SparkSession,
    tables_of: TableFormat,
    table: Table,
    feed: Feed,
    version: int,
    before: DataFrame,
    after: DataFrame,
) -> EventBatch:
    images_before, images_after = (events.images(side, table.keys, feed) for side in (before, after))
    return _batch(session, tables_of, table, feed, version, events.from_images(images_before, images_after))


def _batch(
    session: SparkSession, tables_of: TableFormat, table: Table, feed: Feed, version: int, changes: DataFrame
) -> EventBatch:
    """Return the events of a commit. Their ids are made of the commit and the key. Content would not distinguish them:
    a row may return to an earlier state, and at the same place of its source if a rebuild did that.
    """
    place = F.coalesce("sequence", F.lit(f"{version:020d}"))
    identity = F.struct(F.lit(tables_of.identity(session, table)), F.lit(version))
    source = F.struct(F.lit(feed.table).alias("table"), place.alias("sequence"), F.lit(version).alias("commit"))
    messages = events.to_messages(changes, feed, identity, place, source)
    return EventBatch(messages, event_types(changes))


def event_types(changes: DataFrame) -> tuple[T.StructType, T.StructType]:
    """Return the types of the key and of the row in changes."""
    key, row = changes.schema["key"].dataType, changes.schema["after"].dataType
    assert isinstance(key, T.StructType)  # noqa: S101 - for mypy
    assert isinstance(row, T.StructType)  # noqa: S101 - as above
    return key, row


def _keys(stored: DataFrame, table: Table) -> tuple[str, ...]:
    """Return the key as recorded in silver's columns, or as the model declares it."""
    return own_key(stored.schema) or table.keys
