"""Event time: totals per key, tumbling windows, and what comes too late for them.

    spark-submit docs/examples/windows.py FOLDER TOLERANCE WIDTH

reads JSON lines ``{"name": "PayPal", "at": 3, "amount": 20.0}`` that appear in FOLDER, file by file; ``at``, TOLERANCE
and WIDTH are seconds. An event is late when its window has closed: the window's end is not behind the greatest time so
far less the tolerance.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

EVENTS = "name STRING, at DOUBLE, amount DECIMAL(10,2)"


def events(spark: SparkSession, folder: str) -> DataFrame:
    """What comes into a folder: ``name, at TIMESTAMP, amount``, a file per micro-batch, the oldest first."""
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(folder)
    return read.withColumn("at", F.timestamp_micros((F.col("at") * 1_000_000).cast("bigint")))


def totals(told: DataFrame) -> DataFrame:
    """Events and sum of each name, for ever."""
    return told.groupBy("name").agg(F.count("*").alias("events"), F.sum("amount").alias("total"))


def per_window(told: DataFrame, tolerance: float, width: int) -> DataFrame:
    """Events and sum of each name in windows of ``width`` seconds that follow each other."""
    in_time = told.withWatermark("at", f"{int(tolerance * 1000)} milliseconds")
    windows = in_time.groupBy(F.window("at", f"{width} seconds").alias("within"), "name")
    counted = windows.agg(F.count("*").alias("events"), F.sum("amount").alias("total"))
    return counted.select(F.col("within.start").alias("start"), "name", "events", "total")


def late(query: StreamingQuery) -> int:
    """How many events came too late, as far as the query remembers its progress."""
    return sum(
        operator["numRowsDroppedByWatermark"]
        for progress in query.recentProgress
        for operator in progress["stateOperators"]
    )


def main(folder: str, tolerance: str, width: str) -> None:
    """Print the windows of what is in the folder now, and how many events were late."""
    spark = SparkSession.builder.getOrCreate()
    found = per_window(events(spark, folder), float(tolerance), int(width))
    query = found.writeStream.format("console").outputMode("update").trigger(availableNow=True).start()
    query.awaitTermination()
    print(f"{late(query)} events were late")


if __name__ == "__main__":
    main(*sys.argv[1:])
