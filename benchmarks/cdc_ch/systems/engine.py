"""What the systems on Spark share: a session, counting what it did, and writing results where the gate reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.cdc_ch import reads
from benchmarks.cdc_ch.contender import CORES, Contender
from replicator import jars, settings
from replicator.jvm import sparkline

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    # the same for every system
    "spark.sql.parquet.compression.codec": "zstd",
}
TUNED = {
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}
"""What every small batch gains by, whatever keeps the tables."""


def session(heap: str, kept_in: str, told: Mapping[str, str]) -> SparkSession:
    """A session with the JARs of a table format and what it is told, and nothing else."""
    paths = jars.locate(jars.load_lock(sparkline.installed().name, (kept_in,)), settings.cache_dir())
    builder = SparkSession.builder.master(f"local[{CORES}]")
    launched = {"spark.driver.memory": heap, "spark.jars": ",".join(map(str, paths))}
    for key, value in {**told, **launched}.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


class OnSpark(Contender):
    """A system in a session: what that does is counted, and it ends with the system."""

    _spark: SparkSession

    def counted(self) -> Mapping[str, int]:
        """Jobs and tasks since the session began."""
        context = self._spark.sparkContext._jsc.sc()  # noqa: SLF001 - pyspark tells neither
        return {
            "jobs": int(context.dagScheduler().numTotalJobs()),
            "tasks": int(context.taskScheduler().nextTaskId()),
        }

    def close(self) -> None:
        """The session, and what else there is."""
        self._spark.stop()
        super().close()


def asked(query: str, table: Callable[[str], DataFrame], spark: SparkSession) -> list[Row]:
    """The rows of a query over tables by their names."""
    return spark.sql(query, None, **{name: table(name) for name in reads.sources(query)}).collect()


def exported(rows: DataFrame, out: Path, table: str) -> None:
    """All rows as Parquet."""
    rows.write.mode("overwrite").parquet(str(out / table))
