"""Time travel on a Delta table: which version is meant, and whether its files have survived VACUUM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from replicator import time_travel
from replicator.errors import ConfigError
from replicator.formats import control, delta_log
from replicator.jvm import gateway
from replicator.spec import CommittedVersion, Table

_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"


@dataclass(frozen=True)
class FileChanges:
    """The file names that one commit ``added`` and ``removed``, deletion vectors included."""

    version: int
    added: frozenset[str]
    removed: frozenset[str]


def resolve_version(spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:
    """The version meant by a number or a time, all of whose files exist. Raises VersionMissing, and ConfigError for a
    time if the table uses in-commit timestamps instead of the modification times of its log's files.
    """
    log = _log(spark, table)
    if isinstance(when, datetime) and _has_in_commit_timestamps(log):
        raise ConfigError(
            f"{table.name} stores the times of its commits inside of them",
            where=table.location,
            fix="Specify a version.",
        )
    known = time_travel.list_delta_versions(control.list_files(spark, f"{table.location}/_delta_log"))
    found = time_travel.select(table, known, when, time_travel.RETENTION_HINT)
    newest = known[-1].version
    if found.version == newest:
        return found
    there = frozenset(path.rpartition("/")[2] for path, _ in control.list_files(spark, table.location))
    whole = readable_versions(_read_file_changes(spark, log, found.version + 1), there, newest)
    if found.version not in whole:
        oldest = next(each for each in known if each.version > found.version and each.version in whole)
        raise time_travel.expired_error(table, when, oldest, time_travel.RETENTION_HINT)
    return found


def readable_versions(commits: Iterable[FileChanges], there: frozenset[str], newest: int) -> set[int]:
    """The versions with all files among those that are ``there``: of the versions before each commit, and the newest.
    The commits are consecutive and end with the newest version, which is complete.
    """
    lacking: frozenset[str] = frozenset()
    found = {newest}
    for commit in sorted(commits, key=lambda each: each.version, reverse=True):
        lacking = (lacking - commit.added) | (commit.removed - there)
        if not lacking:
            found.add(commit.version - 1)
    return found


def _read_file_changes(spark: SparkSession, log: Any, first: int) -> Iterator[FileChanges]:
    for version, actions in delta_log.iter_commits(spark, log, first):
        named: dict[str, set[str]] = {"AddFile": set(), "RemoveFile": set()}
        for action in gateway.iterate(actions):
            kind = str(action.getClass().getSimpleName())
            if kind in named:
                named[kind].update(_files(log, action))
        yield FileChanges(version, frozenset(named["AddFile"]), frozenset(named["RemoveFile"]))


def _files(log: Any, action: Any) -> Sequence[str]:
    """Names of a data file and of its deletion vector's file. Names are unique across folders."""
    data = str(action.toPath().getName())
    vector = action.deletionVector()
    if vector is None or not vector.isOnDisk():
        return (data,)
    return data, str(vector.absolutePath(log.dataPath()).getName())


def _has_in_commit_timestamps(log: Any) -> bool:
    setting = log.unsafeVolatileSnapshot().metadata().configuration().get(_IN_COMMIT_TIMESTAMPS)
    return bool(setting.isDefined()) and str(setting.get()) == "true"


def _log(spark: SparkSession, table: Table) -> Any:
    return gateway.of(spark).org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table.location)  # noqa: SLF001
