"""The order in which the records of a share stand, rows of snapshots above what their partitions had passed (Q5)."""

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
    """Records that may change a row of the share's table, in the source's order."""
    snapshots = share.any("has_snapshot")
    running = _passed_positions(share, rows) if snapshots and not share.whole else None
    return changes.with_seq(rows, snapshots=snapshots, running=running, marks=share.marks)


def _passed_positions(share: TableShare, rows: DataFrame) -> DataFrame:
    """What partitions had passed before the range: ``topic, partition, epoch, folder``, the greatest position as
    ``maximum``, and the offset of a record below it that ``holds`` it.

    It is remembered of topics that are read on where they were left. A first snapshot comes in many ranges: to read
    bronze again in each, from its beginning, takes ever longer.
    """
    topics, news = share.routes.topics(share.name), share.news
    is_otherwise = share.again is not None or share.at.source.objects
    after = {topic: news.after[topic] for topic in news.continued if topic in topics}
    known = None if is_otherwise else share.at.reached.passed(after)
    if known is None:
        return read_below(share, rows)
    told = [(each.topic, each.partition, each.epoch, "", each.position, each.holds) for each in known]
    return gateway.create_frame(share.spark, told, _PASSED)


def read_below(share: TableShare, rows: DataFrame) -> DataFrame:
    """The same, read from bronze."""
    at, topics = share.at, share.routes.topics(share.name)
    folder = headers.folder(F.col("headers")).alias("folder")
    lowest = rows.groupBy("topic", "partition", folder).agg(F.min("offset").alias("lowest"))
    bronze = at.bronze.read(share.spark, at.lake.bronze(at.source.name), share.upto)
    of_folders = bronze.where(F.col("topic").isin(*topics)).withColumn("folder", folder)
    before = of_folders.join(F.broadcast(lowest), ["topic", "partition", "folder"], how="inner").where(
        F.col("offset") < F.col("lowest")
    )
    with share.described(before.drop("lowest")) as placed:
        # what had to be lifted before the range stands where it was lifted to (Q12)
        lifted = watermarks.align_transactions(placed, F.lit(None).cast(watermarks.WATERMARK_TYPE))
        greatest = (F.max("position").alias("maximum"), F.max("offset").alias("holds"))
        return lifted.groupBy("topic", "partition", "epoch", "folder").agg(*greatest).localCheckpoint()
