"""Back off from retrying stopped tables until another attempt is worth what it reads.

A stopped table is retried from where it stands, so each attempt reads everything that came since, besides the new
records of all other tables. With each tick that would take longer. A table with more than a few records to read is
skipped until there are twice as many, or until something was written that may unblock it. This is kept in memory: a new
process tries at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from replicator.errors import ReplicatorError, StaleWriter
from replicator.spec import Arrival
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import Routes
from replicator.stages.tick.source_state import StoppedTable

_FEW = 8 << 20
"""A table with up to this many bytes of bronze to read is retried in each tick."""

_OF_A_COMMIT = 64 << 10
"""The assumed cost of looking through one commit of bronze, in bytes; most of its records may be of other tables."""


def tables_to_skip(
    spark: SparkSession,
    at: Refinement,
    routes: Routes,
    came: Sequence[Arrival] | None,
    commits: int,
    paused: Collection[str],
) -> frozenset[str]:
    """Return the tables that a tick must not read. ``came`` is what so many ``commits`` added to bronze since the last
    tick; None if unknown. A table that was ``paused`` in between is retried as soon as it is resumed.
    """
    if came is None:
        at.state.stopped.clear()
        return frozenset()
    remaining = [(table, stopped) for table, stopped in at.state.stopped.items() if table not in paused]
    at.state.stopped = {
        table: replace(stopped, new_bytes=stopped.new_bytes + _bytes_to_read(came, routes.topics(table), commits))
        for table, stopped in remaining
    }
    return frozenset(table for table, each in at.state.stopped.items() if not _is_due(spark, at, table, each))


def record_results(
    spark: SparkSession, at: Refinement, routes: Routes, news: NewRecords, done: Mapping[str, Account]
) -> None:
    """Record which tables stopped in a tick over these new records, and which succeeded."""
    for table, account in done.items():
        at.state.stopped.pop(table, None)
        if account.error is not None and not _is_transient(account.error):
            topics = routes.topics(table) & news.after.keys()
            commits = max((news.upto - news.after[topic] for topic in topics), default=0)
            tried = _bytes_to_read(news.arrived, topics, commits)
            at.state.stopped[table] = StoppedTable(tried, _unblocking_state(spark, at, table))


def _bytes_to_read(arrived: Iterable[Arrival], topics: Collection[str], commits: int) -> int:
    return sum(arrival.size for arrival in arrived if arrival.partition[0] in topics) + commits * _OF_A_COMMIT


def _is_due(spark: SparkSession, at: Refinement, table: str, stopped: StoppedTable) -> bool:
    is_worth_it = stopped.new_bytes >= stopped.tried_bytes or stopped.tried_bytes + stopped.new_bytes <= _FEW
    return is_worth_it or stopped.blockers != _unblocking_state(spark, at, table)


def _is_transient(error: ReplicatorError) -> bool:
    """Return whether the next tick may succeed with the same records although nothing is fixed: after a failure of the
    engine, which is the error's cause, or a concurrent writer.
    """
    return error.retry or isinstance(error, StaleWriter) or error.__cause__ is not None


def _unblocking_state(spark: SparkSession, at: Refinement, table: str) -> tuple[Any, ...]:
    """Return what others may write while the process runs to let a table continue: epochs, approved columns, the table
    itself.
    """
    name = at.source.name
    rows = (at.control.get(path) for path in (at.lake.epochs(name), at.lake.schema(name, table)))
    return (*rows, at.silver.version(spark, at.lake.silver(name, table)))
