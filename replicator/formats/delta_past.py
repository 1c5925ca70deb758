"""Older versions of a Delta table: which one is meant, and whether a VACUUM has left its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from replicator import moments
from replicator.errors import ConfigError
from replicator.formats import control, delta_log
from replicator.jvm import gateway
from replicator.spec import Moment, Table

_OWN_TIMES = "delta.enableInCommitTimestamps"


@dataclass(frozen=True)
class Replaced:
    """What one commit did to the files of a table: names that it ``added`` and ``removed``, deletion vectors among
    them.
    """

    version: int
    added: frozenset[str]
    removed: frozenset[str]


def moment(spark: SparkSession, table: Table, when: int | datetime) -> Moment:
    """The version that is meant, with all its files. Raises VersionMissing, and ConfigError for a time where Delta was
    told to keep times elsewhere than by its log's files.
    """
    log = _log(spark, table)
    if isinstance(when, datetime) and _has_own_times(log):
        raise ConfigError(
            f"{table.name} keeps the times of its commits inside of them", where=table.location, mend="Give a version."
        )
    known = moments.of_delta(control.files(spark, f"{table.location}/_delta_log"))
    found = moments.chosen(table, known, when, moments.KEEP)
    newest = known[-1].version
    if found.version == newest:
        return found
    there = frozenset(path.rpartition("/")[2] for path, _ in control.files(spark, table.location))
    whole = complete(_replaced(spark, log, found.version + 1), there, newest)
    if found.version not in whole:
        oldest = next(each for each in known if each.version > found.version and each.version in whole)
        raise moments.gone(table, when, oldest, moments.KEEP)
    return found


def complete(commits: Iterable[Replaced], there: frozenset[str], newest: int) -> set[int]:
    """The versions before each of these commits, and the newest, of which no file is lacking among those that are
    ``there``. The commits are consecutive and end with the newest, which lacks none.
    """
    lacking: frozenset[str] = frozenset()
    found = {newest}
    for commit in sorted(commits, key=lambda each: each.version, reverse=True):
        lacking = (lacking - commit.added) | (commit.removed - there)
        if not lacking:
            found.add(commit.version - 1)
    return found


def _replaced(spark: SparkSession, log: Any, first: int) -> Iterator[Replaced]:
    for version, actions in delta_log.changes(spark, log, first):
        named: dict[str, set[str]] = {"AddFile": set(), "RemoveFile": set()}
        for action in gateway.each(actions):
            kind = str(action.getClass().getSimpleName())
            if kind in named:
                named[kind].update(_files(log, action))
        yield Replaced(version, frozenset(named["AddFile"]), frozenset(named["RemoveFile"]))


def _files(log: Any, action: Any) -> Sequence[str]:
    """Names of a data file and of the file with its deletion vector. A name is no other's, whatever the folder."""
    data = str(action.toPath().getName())
    vector = action.deletionVector()
    if vector is None or not vector.isOnDisk():
        return (data,)
    return data, str(vector.absolutePath(log.dataPath()).getName())


def _has_own_times(log: Any) -> bool:
    told = log.unsafeVolatileSnapshot().metadata().configuration().get(_OWN_TIMES)
    return bool(told.isDefined()) and str(told.get()) == "true"


def _log(spark: SparkSession, table: Table) -> Any:
    return gateway.of(spark).org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table.location)  # noqa: SLF001
