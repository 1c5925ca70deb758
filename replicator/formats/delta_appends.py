"""Appends to a Delta table: what its commits added, and since which version nothing was removed. For append-only
tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from replicator.formats import delta_files
from replicator.formats.delta_log import Log
from replicator.jvm import gateway
from replicator.spec import Arrival, Table


def arrivals(spark: SparkSession, log: Log, after: int, upto: int) -> list[Arrival] | None:
    """The files that commits of (after, upto] appended; None if some of these commits are no longer in the log."""
    commits = log.commits(spark, after, upto)
    if commits is None:
        return None
    files = (file for commit in commits for file in commit.files if file.is_new)
    return [Arrival(file.partition, file.version, file.size) for file in files]


def whole_from(spark: SparkSession, log: Log, after: int, upto: int) -> int:
    """The last version of (after, upto] that removed files, ``after`` if none did; ``upto`` if some commits are no
    longer in the log. Does not check whether maintenance has deleted the files.
    """
    commits = log.commits(spark, after, upto)
    if commits is None:
        return upto
    return max((commit.version for commit in commits if commit.removed), default=after)


def added(
    spark: SparkSession, table: Table, log: Log, after: Mapping[tuple[str, ...], int], upto: int
) -> DataFrame | None:
    """The appended rows of each partition after its own version. Files are read directly: appended tables have no
    deletion vectors. None if some commits are no longer in the log, or some files were compacted and removed.
    """
    commits = log.commits(spark, min(after.values()), upto)
    if commits is None:
        return None
    files = [f.path for c in commits for f in c.files if f.is_new and f.version > after.get(f.partition, upto)]
    schema = delta_files.schema(log.snapshot(spark))
    if not files:
        return gateway.create_frame(spark, (), schema)
    try:
        return delta_files.read(spark, table.location, files, schema)
    except PySparkException:
        return None
