"""State per key that is forgotten when nobody has touched it for a while.

    spark-submit docs/examples/keyed_state.py FOLDER IDLE

reads JSON lines ``{"key": "a", "at": 3}`` that appear in FOLDER, and counts the events of each key. A key without
events for IDLE seconds is told with its count and forgotten: its next event starts anew. The clock is the events' own,
so that a replay gives the same numbers.

The state is that of a session window, which no Python process has to keep. For state of another shape there is
``applyInPandasWithState``. With Spark 3.5 it needs a pyarrow before 26, as this project's environment has it: Spark
hands floats to ``RecordBatch.slice``, which pyarrow 26 refuses as soon as there are more rows than keys ("'float'
object cannot be interpreted as an integer").
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

EVENTS = "key STRING, at DOUBLE"


def events(spark: SparkSession, folder: str) -> DataFrame:
    """What comes into a folder: ``key, at TIMESTAMP``, a file per micro-batch, the oldest first."""
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(folder)
    return read.withColumn("at", F.timestamp_micros((F.col("at") * 1_000_000).cast("bigint")))


def forgotten(told: DataFrame, idle: float) -> DataFrame:
    """A row per key and time without a longer pause: ``key, start, events``, once it is certain that no more come."""
    busy = F.session_window("at", f"{int(idle * 1000)} milliseconds").alias("busy")
    counted = told.withWatermark("at", "0 seconds").groupBy("key", busy).agg(F.count("*").alias("events"))
    return counted.select("key", F.col("busy.start").alias("start"), "events")


def main(folder: str, idle: str) -> None:
    """Print the counts of keys that what is in the folder now makes forgotten."""
    spark = SparkSession.builder.getOrCreate()
    found = forgotten(events(spark, folder), float(idle)).writeStream.format("console").outputMode("append")
    found.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
