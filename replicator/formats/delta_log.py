"""Delta's transaction log, read by the driver without a Spark job."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from replicator import restores
from replicator.formats import control, delta_files, delta_restore, delta_torn_commits
from replicator.formats.delta_state import MAX_TRACKED_FILES, AddedFile, Commit, State
from replicator.jvm import gateway, sparkline
from replicator.jvm.hadoop import is_absent

_FEW_COMMITS = 10
"""Up to this many commits the driver reads itself; for more, Delta's own Spark job is faster."""

_COMMIT = re.compile(r"[0-9]{20}[.](json|checkpoint[.].*)")
"""The file name of a commit or of a checkpoint."""


class Log:
    """The log of the table at one location. Commits never change, so those read once are kept.

    Thread-safe: cached values are replaced as a whole, and each caller answers from what it read itself.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._partition_by: tuple[str, ...] | None = None
        self._known: dict[int, Commit] = {}
        self._ids: dict[int, str] = {}
        self._state: State | None = None

    def snapshot(self, spark: SparkSession) -> Any | None:
        """Delta's newest snapshot object, None if there is no table. Raises TornCommit."""
        nothing = gateway.of(spark).scala.Option.apply(None)
        with delta_torn_commits.translate_errors(spark, self._location):
            snapshot = self._log(spark).update(False, nothing, nothing)
        return snapshot if snapshot.version() >= 0 else None

    def partition_by(self, spark: SparkSession) -> tuple[str, ...]:
        """The partition columns; cached until a commit changes the table's metadata."""
        known = self._partition_by
        if known is None:
            known = self._partition_by = partition_columns(self.snapshot(spark))
        return known

    def state(self, spark: SparkSession) -> State | None:
        """The newest state, None if there is no table.

        Delta's snapshot needs a Spark job, most of a second for the smallest table; so the state is updated commit by
        commit, and computed from the snapshot only where that is not possible.
        """
        snapshot = self.snapshot(spark)
        return None if snapshot is None else self.at(spark, snapshot)

    def at(self, spark: SparkSession, snapshot: Any) -> State:
        """The state at a snapshot that is, or recently was, the newest one. Raises TornCommit."""
        with delta_torn_commits.translate_errors(spark, self._location):
            return self._at(spark, snapshot)

    def _at(self, spark: SparkSession, snapshot: Any) -> State:
        identity, version = str(snapshot.metadata().id()), int(snapshot.version())
        known = self._state
        if known is None or known.identity != identity or known.version > version:
            known = State(identity, -1, 0, {}, {}) if version < _FEW_COMMITS else None
            self._partition_by, self._known, self._ids = None, {}, {}
        found = self._carried(spark, known, version) or self._asked(spark, snapshot, identity)
        self._state = found
        return found

    def commit_id(self, spark: SparkSession, version: int) -> str | None:
        """An id that tells a commit from any other with its number; None if it is no longer in the log, or has no
        ``commitInfo``.

        The commit's file is read up to that action, once; the ids of a few versions are cached.
        """
        found = self._ids.get(version)
        if found is None:
            found = _read_commit_id(self._log(spark), gateway.of(spark).org.apache.hadoop.fs.Path, version)
        if found is not None:
            self._ids = dict(sorted((self._ids | {version: found}).items())[-_FEW_COMMITS:])
        return found

    def plain_files(self, spark: SparkSession, snapshot: Any) -> tuple[AddedFile, ...] | None:
        """The live files of the newest snapshot if they can be read as plain Parquet: few, without deletion vectors,
        and no reader feature that changes their contents. None if Delta must read the table.
        """
        files = self.live_files(spark, snapshot)
        if not files or len(files) > delta_files.MAX_DIRECT_FILES or any(file.has_vector for file in files):
            return None
        return files

    def live_files(self, spark: SparkSession, snapshot: Any) -> tuple[AddedFile, ...] | None:
        """The live files of the newest snapshot if they and their deletion vectors are all that determines the rows.
        None if a reader feature changes their contents, or they are too many to be tracked.
        """
        files = self.at(spark, snapshot).files
        return tuple(files.values()) if files is not None and delta_files.is_plain_parquet(snapshot) else None

    def _carried(self, spark: SparkSession, known: State | None, version: int) -> State | None:
        if known is None or version - known.version > _FEW_COMMITS:
            return None
        try:
            for commit in self._read(spark, known.version + 1, version) if version > known.version else ():
                known = known and known.after(commit, self._restored_progress(spark, known, commit))
        except Py4JJavaError:
            return None
        return known if known is not None and known.version == version else None

    def _restored_progress(self, spark: SparkSession, known: State, commit: Commit) -> dict[str, int] | None:
        if commit.restores is None:
            return None
        return delta_restore.progress_at(spark, self._log(spark), self._location, commit.restores, known.transactions)

    def _asked(self, spark: SparkSession, snapshot: Any, identity: str) -> State:
        """The state from Delta's snapshot, by Spark jobs, corrected for a RESTORE, which the snapshot ignores."""
        version, pairs = (
            int(snapshot.version()),
            (gateway.to_tuple(each) for each in gateway.iterate(snapshot.transactions())),
        )
        transactions = {str(app): int(done) for app, done in pairs}
        back = delta_restore.progress(spark, self._log(spark), self._location, version, transactions)
        files = None
        if int(snapshot.numOfFiles()) <= MAX_TRACKED_FILES:
            live = [self._file(spark, version, action) for action in snapshot.allFiles().collect()]
            files = {file.path: file for file in live}
        found = State(identity, version, int(snapshot.sizeInBytes()), transactions, files)
        return found if back is None else replace(found, transactions=back, is_restored=True)

    def commits(self, spark: SparkSession, after: int, upto: int) -> list[Commit] | None:
        """The commits of (after, upto] in order; None if some of them are no longer in the log.

        Commits up to ``after`` are dropped from the cache: callers move forward.
        """
        known = {version: commit for version, commit in self._known.items() if version > after}
        missing = [version for version in range(after + 1, upto + 1) if version not in known]
        if missing:
            try:
                known |= {commit.version: commit for commit in self._read(spark, missing[0], upto)}
            except Py4JJavaError:
                return None
        self._known = known
        found = [known[version] for version in range(after + 1, upto + 1) if version in known]
        return found if len(found) == upto - after else None

    def _read(self, spark: SparkSession, start: int, end: int) -> Iterator[Commit]:
        for version, actions in iter_commits(spark, self._log(spark), start, end):
            yield self._commit(spark, version, actions)

    def _commit(self, spark: SparkSession, version: int, actions: Any) -> Commit:
        grouped = _group_actions(actions)
        if grouped["Metadata"]:
            self._partition_by = None
        files = tuple(self._file(spark, version, action) for action in grouped["AddFile"])
        removed = {self._absolute(spark, action.path()): _size(action) for action in grouped["RemoveFile"]}
        images = tuple(self._absolute(spark, action.path()) for action in grouped["AddCDCFile"])
        changes_rows = any(action.dataChange() for action in grouped["RemoveFile"])
        appended = None if changes_rows else tuple(file.path for file in files if file.is_new)
        return Commit(
            version,
            files,
            frozenset(removed),
            images or appended,
            _metrics(grouped["CommitInfo"]),
            {str(action.appId()): int(action.version()) for action in grouped["SetTransaction"]},
            _growth(files, removed.values()),
            replaces=bool(grouped["Metadata"]) and changes_rows,
            restores=next((_restored_version(info) for info in grouped["CommitInfo"]), None),
        )

    def _file(self, spark: SparkSession, version: int, action: Any) -> AddedFile:
        values = action.partitionValues()
        partition = tuple(str(values.apply(column)) for column in self.partition_by(spark))
        path, is_new = self._absolute(spark, action.path()), bool(action.dataChange())
        return AddedFile(version, path, partition, action.size(), is_new, action)

    def _absolute(self, spark: SparkSession, path: str) -> str:
        files = gateway.of(spark).org.apache.spark.sql.delta.util.DeltaFileOperations
        return str(files.absolutePath(self._location, path).toString())

    def _log(self, spark: SparkSession) -> Any:
        return gateway.of(spark).org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, self._location)  # noqa: SLF001


def has_commits(spark: SparkSession, location: str) -> bool:
    """Whether a table's log has a commit, by its file names: one listing, no dearer on an object store than asking
    whether the log exists.
    """
    return control.has_file_matching(spark, f"{location}/_delta_log", _COMMIT)


def empty_options(spark: SparkSession) -> list[Any]:
    """The extra options, left empty, that methods of Delta's log take with some Spark versions."""
    return [gateway.of(spark).scala.Option.apply(None)] * sparkline.of(spark.version).log_options


def iter_commits(spark: SparkSession, log: Any, *bounds: int) -> Iterator[tuple[int, Any]]:
    """Version and actions of each commit from the first bound on, up to the second if given."""
    for each in gateway.iterate(log.getChanges(*bounds, *empty_options(spark), True)):
        version, actions = gateway.to_tuple(each)
        yield int(version), actions


def _read_commit_id(log: Any, path: Any, version: int) -> str | None:
    """The id, or time, in the ``commitInfo`` of a commit; ``path`` is Hadoop's class. None if the file or that action
    is missing.
    """
    try:
        lines = log.store().readAsIterator(path(log.logPath(), f"{version:020}.json"), log.newDeltaHadoopConf())
    except Py4JJavaError as error:
        if is_absent(error):
            return None
        raise
    try:
        while lines.hasNext():
            info = json.loads(lines.next()).get("commitInfo")
            if info is not None:
                return str(info.get("txnId") or info.get("timestamp") or "") or None
    finally:
        lines.close()
    return None


def partition_columns(snapshot: Any) -> tuple[str, ...]:
    """The partition columns of one of Delta's snapshot objects."""
    return tuple(str(column) for column in gateway.iterate(snapshot.metadata().partitionColumns()))


def _restored_version(info: Any) -> int | None:
    """The version that a commit restored; None if it is not a RESTORE."""
    if str(info.operation()) != restores.OPERATION:
        return None
    pairs = (gateway.to_tuple(each) for each in gateway.iterate(info.operationParameters()))
    return restores.restored_version({str(name): text for name, text in pairs})


def _group_actions(actions: Any) -> Mapping[str, Sequence[Any]]:
    """The actions of a commit by class name; empty for a class that does not occur."""
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for action in gateway.iterate(actions):
        found[action.getClass().getSimpleName()].append(action)
    return found


def _size(removed: Any) -> int | None:
    """Bytes of a removed file, None if its action does not have them."""
    return int(removed.size().get()) if removed.size().isDefined() else None


def _growth(files: Iterable[AddedFile], removed: Iterable[int | None]) -> int | None:
    """By how many bytes the table grew; None if the size of a removed file is unknown."""
    gone = [*removed]
    return None if None in gone else sum(file.size for file in files) - sum(size or 0 for size in gone)


def _metrics(infos: Sequence[Any]) -> dict[str, int]:
    """The operation's metrics that are integers."""
    counted = [info.operationMetrics().get() for info in infos if info.operationMetrics().isDefined()]
    pairs = (gateway.to_tuple(each) for metrics in counted for each in gateway.iterate(metrics))
    return {str(name): int(text) for name, text in pairs if str(text).isdigit()}
