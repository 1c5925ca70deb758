"""Changed keys and rows of a Delta table between two versions: from the files of its commits where those are enough,
otherwise from Delta's change data feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from replicator import names
from replicator.formats import control, delta_files
from replicator.formats.delta_log import Log
from replicator.formats.delta_state import Commit
from replicator.jvm import gateway
from replicator.jvm.failures import FAILURES
from replicator.spec import Table

_KIND, _AFTER_IMAGES = "_change_type", ("insert", "update_postimage")
"""The feed's column for the kind of a row image, and the kinds that are rows after the change."""


def changed_keys(spark: SparkSession, table: Table, log: Log, after: int, upto: int) -> DataFrame | None:
    """Distinct keys of rows that commits of (after, upto] changed; None if the feed is gone or a schema change broke
    it.
    """
    if any(commit.replaces for commit in log.commits(spark, after, upto) or ()):
        return None
    try:
        images = _read_changed_keys(spark, table, log, after, upto)
    except PySparkException:  # the log names files that a VACUUM deleted
        return None
    if images is not None:
        return images.distinct()
    if _has_lost_files(spark, log, after, upto):
        return None
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    try:
        rows = feed.option("startingVersion", after + 1).option("endingVersion", upto).load(table.location)
        rows._jdf.queryExecution().executedPlan()  # noqa: SLF001 - only here does Delta compare the schemas
    except FAILURES:
        return None
    return rows.select(*map(names.quote_spark, table.keys)).distinct()


def changed_rows(spark: SparkSession, table: Table, log: Log, after: int, upto: int) -> DataFrame | None:
    """The rows of those keys after the only commit of (after, upto] that changed any; None if there are several, or its
    files alone are not enough.
    """
    commits = log.commits(spark, after, upto) or ()
    if any(commit.replaces for commit in commits) or len([each for each in commits if each.changed]) > 1:
        return None
    snapshot, files = log.snapshot(spark), _feed_files(spark, log, after, upto)
    if snapshot is None or files is None or int(snapshot.version()) != upto:
        return None
    columns = delta_files.schema(snapshot)
    kind = StructField(_KIND, StringType())
    try:
        images = _read_files(spark, table, files, StructType([*columns, kind]))
    except PySparkException:
        return None
    is_now = F.col(_KIND).isNull() | F.col(_KIND).isin(*_AFTER_IMAGES)  # appended files have no such column
    return images.where(is_now).select(*map(names.quote_spark, columns.names))


def _read_changed_keys(spark: SparkSession, table: Table, log: Log, after: int, upto: int) -> DataFrame | None:
    """The keys of changed rows, from the files that hold them; None if Delta's feed must be read."""
    snapshot, files = log.snapshot(spark), _feed_files(spark, log, after, upto)
    if snapshot is None or files is None:
        return None
    columns = delta_files.schema(snapshot)
    return _read_files(spark, table, files, StructType([columns[key] for key in table.keys]))


def _feed_files(spark: SparkSession, log: Log, after: int, upto: int) -> list[str] | None:
    """The files that hold what those commits changed; None if files alone are not enough."""
    snapshot, commits = log.snapshot(spark), log.commits(spark, after, upto)
    if snapshot is None or commits is None or log.partition_by(spark) or not delta_files.is_plain_parquet(snapshot):
        return None
    files = [path for commit in commits for path in commit.changed or ()]
    return (
        None
        if len(files) > delta_files.MAX_DIRECT_FILES or any(commit.changed is None for commit in commits)
        else files
    )


def _read_files(spark: SparkSession, table: Table, files: Sequence[str], columns: StructType) -> DataFrame:
    return (
        delta_files.read(spark, table.location, files, columns) if files else gateway.create_frame(spark, (), columns)
    )


def _has_lost_files(spark: SparkSession, log: Log, after: int, upto: int) -> bool:
    """Whether a VACUUM deleted files that the feed needs, which Delta would find out only in the middle of a query.
    VACUUM deletes the oldest removed files first, so the first commit that removed any is checked, and the first commit
    of all: files that were only appended may still be in the table.
    """
    commits = [commit for commit in log.commits(spark, after, upto) or () if commit.files or commit.removed]
    oldest = [next((commit for commit in commits if commit.removed), None), next(iter(commits), None)]
    needed = {path for commit in oldest if commit is not None for path in _feed_sources(commit)}
    return not all(control.exists(spark, path) for path in needed)


def _feed_sources(commit: Commit) -> Iterable[str]:
    """The files from which the feed reads what a commit changed."""
    return commit.changed or [*commit.removed, *(file.path for file in commit.files)]
