"""Records that are no JSON, or lack what they need: reported, kept, and no reason to stop.

    spark-submit docs/examples/quarantine.py FOLDER GOOD BAD

reads lines that appear in FOLDER; those that can be read go to GOOD as Parquet, the others to BAD as they came, with
the reason. Run it again and it goes on where it was (GOOD holds its checkpoint).
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

EVENT = "id INT, name STRING, amount DECIMAL(10,2), _broken STRING"


def judged(lines: DataFrame) -> DataFrame:
    """Lines (``value STRING``) with their fields and ``reason``: why a line is no event, NULL for one that is."""
    event = F.from_json("value", EVENT, {"columnNameOfCorruptRecord": "_broken", "mode": "PERMISSIVE"})
    reason = F.when(F.col("e._broken").isNotNull() | F.col("e").isNull(), "no JSON of an event").when(
        F.col("e.id").isNull(), "no id"
    )
    return lines.select("value", event.alias("e")).select("value", "e.id", "e.name", "e.amount", reason.alias("reason"))


def keep(batch: DataFrame, number: int, good: str, bad: str) -> dict[str, int]:
    """Write a micro-batch where it belongs, in folders of its number, so that one that is repeated changes nothing; how
    many were bad, by reason.
    """
    batch = batch.persist()
    is_good = F.col("reason").isNull()
    events = batch.where(is_good).select("id", "name", "amount")
    events.write.mode("overwrite").parquet(f"{good}/batch={number}")
    batch.where(~is_good).select("value", "reason").write.mode("overwrite").json(f"{bad}/batch={number}")
    counted = {row["reason"]: row["count"] for row in batch.where(~is_good).groupBy("reason").count().collect()}
    batch.unpersist()
    return counted


def main(folder: str, good: str, bad: str) -> None:
    """Take what is in the folder now, and say what was wrong with it."""
    spark = SparkSession.builder.getOrCreate()

    def told(batch: DataFrame, number: int) -> None:
        for reason, count in sorted(keep(batch, number, good, bad).items()):
            print(f"batch {number}: {count} lines kept aside: {reason}", file=sys.stderr)

    lines = judged(spark.readStream.text(folder)).writeStream.foreachBatch(told)
    lines.option("checkpointLocation", f"{good}/_checkpoint").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
