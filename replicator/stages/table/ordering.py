"""Order the records of a share; rows of snapshots rank above what their partitions had passed (Q5)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from replicator.debezium import headers
from replicator.jvm import gateway
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import changes, watermarks

_PASSED = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("epoch", StringType()),
        StructField("folder", StringType()),
        StructField("maximum", StringType()),
        StructField("holds", LongType()),
    ]
)


def order_records(share: TableShare, rows: DataFrame) -> DataFrame:
    """Return the records that may change a row of the share's table, with their ``_seq`` in the source's order."""
    snapshots = share.any("has_snapshot")
    running = _passed_positions(share, rows) if snapshots and not share.is_from_start else None
    return changes.with_seq(rows, snapshots=snapshots, running=running, marks=share.marks)


def _passed_positions(share: TableShare, rows: DataFrame) -> DataFrame:
    """Return what partitions had passed before the range: ``topic, partition, epoch, folder``, the greatest position as
    ``maximum``, and the offset of a record below the range that ``holds`` it.

    For topics that are continued from where they were left, this is in memory. A first snapshot comes in many ranges,
    and reading bronze from its beginning for each would take ever longer.
    """
    topics, news = share.routes.topics(share.name), share.new_records
    is_not_remembered = share.retried_rejects is not None or share.at.source.objects
    after = {topic: news.after[topic] for topic in news.continued if topic in topics}
    known = None if is_not_remembered else share.at.state.passed(after)
    if known is None:
        return read_below(share, rows)
    rows_passed = [(each.topic, each.partition, each.epoch, "", each.position, each.holds) for each in known]
    return gateway.create_frame(share.spark, rows_passed, _PASSED)


def read_below(share: TableShare, rows: DataFrame) -> DataFrame:
    """Return the same, read from bronze."""
    at, topics = share.at, share.routes.topics(share.name)
    folder = headers.folder(F.col("headers")).alias("folder")
    lowest = rows.groupBy("topic", "partition", folder).agg(F.min("offset").alias("lowest"))
    bronze = at.bronze.read(share.spark, at.lake.bronze(at.source.name), share.upto)
    of_folders = bronze.where(F.col("topic").isin(*topics)).withColumn("folder", folder)
    before = of_folders.join(F.broadcast(lowest), ["topic", "partition", "folder"], how="inner").where(
        F.col("offset") < F.col("lowest")
    )
    with share.described(before.drop("lowest")) as placed:
        # records that were ranked up before the range count at the position they were ranked to (Q12)
        aligned = watermarks.align_transactions(placed, F.lit(None).cast(watermarks.WATERMARK_TYPE))
        greatest = (F.max("position").alias("maximum"), F.max("offset").alias("holds"))
        return aligned.groupBy("topic", "partition", "epoch", "folder").agg(*greatest).localCheckpoint()
