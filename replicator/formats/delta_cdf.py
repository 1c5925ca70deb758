"""Which keys of a Delta table changed between two versions, and what they have now: from the files of its commits where
those alone tell, else by Delta's change data feed.
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
"""What an image in a file of the feed is of, and which ones are rows as they are from then on."""


def changed_keys(spark: SparkSession, table: Table, log: Log, after: int, upto: int) -> DataFrame | None:
    """Distinct keys of rows that commits of (after, upto] changed; None when the feed is gone or broken by a new
    schema.
    """
    if any(commit.replaces for commit in log.commits(spark, after, upto) or ()):
        return None
    try:
        images = _read_changed_keys(spark, table, log, after, upto)
    except PySparkException:  # the log names files that a VACUUM took
        return None
    if images is not None:
        return images.distinct()
    if _has_lost_files(spark, log, after, upto):
        return None
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    try:
        rows = feed.option("startingVersion", after + 1).option("endingVersion", upto).load(table.location)
        rows._jdf.queryExecution().executedPlan()  # noqa: SLF001 - not before does Delta compare the schemas
    except FAILURES:
        return None
    return rows.select(*map(names.quote_spark, table.keys)).distinct()


def changed_rows(spark: SparkSession, table: Table, log: Log, after: int, upto: int) -> DataFrame | None:
    """What those keys have behind the only commit of (after, upto] that changed any; None where there are several, or
    where not its files alone tell.
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
    is_now = F.col(_KIND).isNull() | F.col(_KIND).isin(
        *_AFTER_IMAGES
    )  # files that were appended say nothing of themselves
    return images.where(is_now).select(*map(names.quote_spark, columns.names))


def _read_changed_keys(spark: SparkSession, table: Table, log: Log, after: int, upto: int) -> DataFrame | None:
    """The keys of rows that commits changed, from the files that hold those; None where Delta's feed must tell."""
    snapshot, files = log.snapshot(spark), _feed_files(spark, log, after, upto)
    if snapshot is None or files is None:
        return None
    columns = delta_files.schema(snapshot)
    return _read_files(spark, table, files, StructType([columns[key] for key in table.keys]))


def _feed_files(spark: SparkSession, log: Log, after: int, upto: int) -> list[str] | None:
    """The files that hold what those commits changed; None where not they alone tell."""
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
    """Whether a VACUUM took what the feed needs, which Delta would find out in the middle of a query. The oldest files
    go first, of those that the table does not have any more: what a commit only appended it may still have.
    """
    commits = [commit for commit in log.commits(spark, after, upto) or () if commit.files or commit.removed]
    told = [next((commit for commit in commits if commit.removed), None), next(iter(commits), None)]
    needed = {path for commit in told if commit is not None for path in _feed_sources(commit)}
    return not all(control.exists(spark, path) for path in needed)


def _feed_sources(commit: Commit) -> Iterable[str]:
    """The files in which the feed finds what a commit changed."""
    return commit.changed or [*commit.removed, *(file.path for file in commit.files)]
