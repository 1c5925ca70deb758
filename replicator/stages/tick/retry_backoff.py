"""Tables that stopped rest until another try is worth what it reads.

A table that stopped is tried again from where it stands, so that each try reads all that came since, beside the news of
all other tables. With each tick that would take ever longer. One that has more than a few records to read rests
until there are twice as many, or until somebody wrote what may let it go on. A process remembers it: another one tries.
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
"""Up to so many bytes of bronze a table is tried with each tick."""

_OF_A_COMMIT = 64 << 10
"""What looking through a commit of bronze is taken for, in bytes: most of them may be other tables'."""


def tables_to_skip(
    spark: SparkSession,
    at: Refinement,
    routes: Routes,
    came: Sequence[Arrival] | None,
    commits: int,
    paused: Collection[str],
) -> frozenset[str]:
    """Tables that a tick leaves alone; ``came`` is what bronze got by so many commits since the last one, None where
    nobody knows. One that was ``paused`` meanwhile is tried as soon as it is resumed.
    """
    if came is None:
        at.reached.stopped.clear()
        return frozenset()
    stood = [(table, stopped) for table, stopped in at.reached.stopped.items() if table not in paused]
    at.reached.stopped = {
        table: replace(stopped, came=stopped.came + _bytes_to_read(came, routes.topics(table), commits))
        for table, stopped in stood
    }
    return frozenset(table for table, each in at.reached.stopped.items() if not _is_due(spark, at, table, each))


def record_results(
    spark: SparkSession, at: Refinement, routes: Routes, news: NewRecords, done: Mapping[str, Account]
) -> None:
    """Remember which tables stopped in a tick over these news, and which went on."""
    for table, account in done.items():
        at.reached.stopped.pop(table, None)
        if account.error is not None and not _is_transient(account.error):
            topics = routes.topics(table) & news.after.keys()
            commits = max((news.upto - news.after[topic] for topic in topics), default=0)
            tried = _bytes_to_read(news.arrived, topics, commits)
            at.reached.stopped[table] = StoppedTable(tried, _unblocking_state(spark, at, table))


def _bytes_to_read(came: Iterable[Arrival], topics: Collection[str], commits: int) -> int:
    return sum(arrival.size for arrival in came if arrival.partition[0] in topics) + commits * _OF_A_COMMIT


def _is_due(spark: SparkSession, at: Refinement, table: str, stopped: StoppedTable) -> bool:
    is_worth_it = stopped.came >= stopped.tried or stopped.tried + stopped.came <= _FEW
    return is_worth_it or stopped.told != _unblocking_state(spark, at, table)


def _is_transient(error: ReplicatorError) -> bool:
    """Whether the same records may be taken by the next tick although nobody mends anything: a failure of the engine,
    which is its cause, or another writer.
    """
    return error.retry or isinstance(error, StaleWriter) or error.__cause__ is not None


def _unblocking_state(spark: SparkSession, at: Refinement, table: str) -> tuple[Any, ...]:
    """What others write that may let a table go on while the process does: epochs, approved columns, the table."""
    name = at.source.name
    rows = (at.control.get(path) for path in (at.lake.epochs(name), at.lake.schema(name, table)))
    return (*rows, at.silver.version(spark, at.lake.silver(name, table)))
