"""What the systems on Spark share: counting what it did, and writing results where the gate reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def counted(spark: SparkSession) -> Mapping[str, int]:
    """Jobs and tasks since the session began."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - pyspark tells neither
    return {
        "jobs": int(context.dagScheduler().numTotalJobs()),
        "tasks": int(context.taskScheduler().nextTaskId()),
    }


def exported(rows: DataFrame, out: Path, table: str) -> None:
    """All rows as Parquet."""
    rows.write.mode("overwrite").parquet(str(out / table))
