"""What commits of a Delta table appended, and since when nothing was taken out of it: for tables that grow only."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from replicator.formats import delta_files
from replicator.formats.delta_log import Log
from replicator.jvm import gateway
from replicator.spec import Arrival, Table


def arrivals(spark: SparkSession, log: Log, after: int, upto: int) -> list[Arrival] | None:
    """The files that commits of (after, upto] appended; None when some of these have left the log."""
    commits = log.commits(spark, after, upto)
    if commits is None:
        return None
    files = (file for commit in commits for file in commit.files if file.is_new)
    return [Arrival(file.partition, file.version, file.size) for file in files]


def whole_from(spark: SparkSession, log: Log, after: int, upto: int) -> int:
    """The last version of (after, upto] that removed files, ``after`` where none did; ``upto`` where some have left the
    log. Whether upkeep has deleted the files is not looked at.
    """
    commits = log.commits(spark, after, upto)
    if commits is None:
        return upto
    return max((commit.version for commit in commits if commit.removed), default=after)


def added(
    spark: SparkSession, table: Table, log: Log, after: Mapping[tuple[str, ...], int], upto: int
) -> DataFrame | None:
    """The rows of those files, of each partition after its own version, read as they are: appended tables have no
    deletion vectors. None where some commits have left the log, or files were written together with others and are
    removed.
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
