"""What commits of a Hudi table wrote: from their metadata, and by Hudi's incremental query.

``fresh`` are consecutive commits of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names
from replicator.formats import hudi_rows
from replicator.formats.hudi_timeline import Commit, Timeline
from replicator.spec import Arrival, Table


def arrivals(fresh: Sequence[Commit]) -> list[Arrival]:
    """The bytes written by partition and version."""
    return [Arrival(part, each.note.version, size) for each in fresh for part, size in each.wrote.items()]


def added(
    spark: SparkSession,
    table: Table,
    timeline: Timeline,
    fresh: Sequence[Commit],
    after: Mapping[tuple[str, ...], int],
) -> DataFrame:
    """The rows written to these partitions, in each after its own version."""
    rows = read_commits(spark, table, timeline, fresh)
    wanted = F.lit(False)
    for part, version in after.items():
        same = F.lit(True)
        for column, value in zip(table.partition_by, part, strict=True):
            same = same & (F.col(names.quote_spark(column)) == value)
        begun = [each.begun for each in fresh if each.note.version > version]
        wanted = wanted | (same & F.col("_hoodie_commit_time").isin(*begun))
    return hudi_rows.to_table_schema(rows.where(wanted), timeline.ours[-1])


def read_commits(spark: SparkSession, table: Table, timeline: Timeline, fresh: Sequence[Commit]) -> DataFrame:
    """The rows written by these commits, with Hudi's own columns."""
    if not fresh:
        return spark.read.format("hudi").load(table.location).limit(0)
    begin, end = timeline.span(fresh[0], fresh[-1])
    reader = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    reader = reader.option("hoodie.datasource.read.begin.instanttime", begin)
    return reader.option("hoodie.datasource.read.end.instanttime", end).load(table.location)
