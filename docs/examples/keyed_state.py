"""State per key that is forgotten when nobody has touched it for a while.

    spark-submit docs/examples/keyed_state.py FOLDER IDLE

reads JSON lines ``{"key": "a", "at": 3}`` that appear in FOLDER, and counts the events of each key. A key without
events for IDLE seconds starts anew, and says so. The clock is the events' own, so that a replay gives the same numbers.
Needs pandas and pyarrow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

EVENTS, COUNTED = "key STRING, at DOUBLE", "key STRING, events BIGINT, forgotten BOOLEAN"
STATE = "events BIGINT, last BIGINT"


def events(spark: SparkSession, folder: str) -> DataFrame:
    """What comes into a folder: ``key, at TIMESTAMP``, a file per micro-batch, the oldest first."""
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(folder)
    return read.withColumn("at", F.timestamp_micros((F.col("at") * 1_000_000).cast("bigint")))


def counted(told: DataFrame, idle: float) -> DataFrame:
    """After each micro-batch the count of every key that it touched, and of those that were forgotten (COUNTED)."""
    keyed = told.withWatermark("at", "0 seconds").groupBy("key")
    step = partial(_count, idle_ms=int(idle * 1000))
    return keyed.applyInPandasWithState(step, COUNTED, STATE, "update", GroupStateTimeout.EventTimeTimeout)


def _count(
    key: tuple[str], batches: Iterator[pd.DataFrame], state: GroupState, *, idle_ms: int
) -> Iterator[pd.DataFrame]:
    count, last = state.get if state.exists else (0, 0)
    if state.hasTimedOut:
        state.remove()
        yield _row(key, count, forgotten=True)
        return
    times = sorted(int(at.timestamp() * 1000) for batch in batches for at in batch["at"])
    for at in times:
        if count and at > last + idle_ms:  # a key that is touched again is not timed out by Spark
            yield _row(key, count, forgotten=True)
            count = 0
        count, last = count + 1, max(last, at)
    state.update((count, last))
    state.setTimeoutTimestamp(max(last + idle_ms, state.getCurrentWatermarkMs() + 1))
    yield _row(key, count, forgotten=False)


def _row(key: tuple[str], count: int, *, forgotten: bool) -> pd.DataFrame:
    return pd.DataFrame({"key": [key[0]], "events": [count], "forgotten": [forgotten]})


def main(folder: str, idle: str) -> None:
    """Print the counts of what is in the folder now."""
    spark = SparkSession.builder.getOrCreate()
    found = counted(events(spark, folder), float(idle))
    found.writeStream.format("console").outputMode("update").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
