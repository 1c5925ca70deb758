"""B0, what people write who follow a blog: per table a full ``from_json``, ``row_number`` over the key, one MERGE; and
B1, the same code in a session and on tables that are tuned by settings alone.

Two things are better than in most posts, or results would be wrong: changes are ordered by ``source.lsn`` (times tie),
and tombstones are left out before they are parsed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks.cdc_ch import star
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, CORES, GOLD, Case, Contender, events, tables
from benchmarks.cdc_ch.sweep import ROWS_PER_FILE
from benchmarks.cdc_ch.systems import engine
from benchmarks.cdc_ch.tables import FACT, KNOWN, TIME, WIDE, Kept

ORIGIN = (
    "STRUCT<version: STRING, connector: STRING, name: STRING, ts_ms: BIGINT, snapshot: STRING, db: STRING, "
    "sequence: STRING, ts_us: BIGINT, ts_ns: BIGINT, schema: STRING, table: STRING, txId: BIGINT, lsn: BIGINT, "
    "xmin: BIGINT>"
)
SETTINGS = {
    **engine.SETTINGS,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
TUNED = {
    **engine.TUNED,
    "spark.databricks.delta.snapshotPartitions": str(CORES),
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "100",
}


def made(track: str, work: Path, heap: str, *, tuned: bool) -> Contender:
    """One of the tracks."""
    return on(spark(heap, tuned=tuned), track, work, tuned=tuned)


def on(session_of: SparkSession, track: str, work: Path, *, tuned: bool) -> Contender:
    """The same in a session that is there."""
    kinds: dict[str, type[_Blog]] = {COLLAPSE: _Collapse, APPLY: _Apply, GOLD: _Rebuild}
    return kinds.get(track, _Refine)(session_of, work, tuned=tuned)


def spark(heap: str, *, tuned: bool) -> SparkSession:
    """A session with Delta and what is told above, and nothing else."""
    return engine.session(heap, "delta", {**SETTINGS, **(TUNED if tuned else {})})


class _Blog(engine.OnSpark):
    def __init__(self, spark: SparkSession, work: Path, *, tuned: bool) -> None:
        self._spark, self._work, self._tuned = spark, work, tuned

    def about(self) -> Mapping[str, Any]:
        told = {"spark": self._spark.version, "delta": version("delta-spark")}
        return {**told, **SETTINGS, **(TUNED if self._tuned else {})}

    def start(self, case: Case, home: Path) -> None:
        pass

    def _load(self, rows: DataFrame, table: Kept, home: Path) -> None:
        if self._tuned:
            stats = "spark.databricks.delta.properties.defaults.dataSkippingStatsColumns"
            self._spark.conf.set(stats, ",".join(table.keys))
        rows.write.format("delta").option("maxRecordsPerFile", ROWS_PER_FILE).save(str(home / table.name))

    def _collapsed(self, case: Case, table: Kept, batch: int | None = None) -> DataFrame | None:
        """The newest change of each key, with its ``op``; None where the table has no events."""
        files = events(case, table, batch)
        return newest(self._spark.read.parquet(*files), table) if files else None

    def _merge(self, changes: DataFrame, table: Kept, home: Path) -> None:
        same_key = " AND ".join(f"t.{key} = s.{key}" for key in table.keys)
        values: dict[str, str | Column] = {name: f"s.{name}" for name in table.names}
        target = DeltaTable.forPath(self._spark, str(home / table.name)).alias("t")
        merge = target.merge(changes.alias("s"), same_key).whenMatchedDelete("s.op = 'd'")
        merge.whenMatchedUpdate(set=values).whenNotMatchedInsert("s.op <> 'd'", values).execute()


class _Refine(_Blog):
    def start(self, case: Case, home: Path) -> None:
        for table in tables(case):
            rows = self._spark.read.parquet(f"{case.input}/start/{table.name}.parquet")
            self._load(stamped(rows, table), table, home)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:
        phases = {}
        for table in tables(case):
            started = time.perf_counter()
            changes = self._collapsed(case, table, batch)
            if changes is not None:
                self._merge(changes, table, home)
                phases[table.name] = time.perf_counter() - started
        return phases

    def upkeep(self, case: Case, home: Path) -> None:
        for table in tables(case):
            DeltaTable.forPath(self._spark, str(home / table.name)).optimize().executeCompaction()

    def ask(self, case: Case, home: Path, query: str) -> Iterable[Sequence[Any]]:  # noqa: ARG002 - it names its tables
        return engine.asked(query, lambda name: self._at(home, name), self._spark)

    def export(self, case: Case, home: Path, out: Path) -> None:
        for table in tables(case):
            engine.exported(self._at(home, table.name), out, table.name)

    def _at(self, home: Path, name: str) -> DataFrame:
        return self._spark.read.format("delta").load(str(home / name))


class _Collapse(_Blog):
    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - nothing is kept
        for table in tables(case):
            changes = self._collapsed(case, table)
            if changes is not None:
                changes.write.format("noop").mode("overwrite").save()
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - nothing was kept
        for table in tables(case):
            changes = self._collapsed(case, table)
            if changes is not None:
                rows = changes.select(*table.names, (F.col("op") == "d").alias("deleted"))
                engine.exported(rows, out, table.name)


class _Apply(_Blog):
    def start(self, case: Case, home: Path) -> None:
        self._load(self._spark.read.parquet(f"{case.target}/*.parquet"), WIDE, home)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        self._merge(self._spark.read.parquet(f"{case.input}/changes.parquet"), WIDE, home)
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the one table
        engine.exported(self._spark.read.format("delta").load(str(home / WIDE.name)), out, WIDE.name)


class _Rebuild(_Blog):
    """The whole model, each time anew; its inputs are as they have become."""

    def start(self, case: Case, home: Path) -> None:
        inputs = {name: self._spark.read.parquet(f"{case.input}/start/{name}.parquet") for name in star.NAMES}
        changed = self._spark.read.parquet(f"{case.input}/changes/lines.parquet")
        inputs["lines"] = inputs["lines"].join(changed, "line", "left_anti").unionByName(changed)
        for name, rows in inputs.items():
            self._load(rows, KNOWN[name], home)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        inputs = {name: self._spark.read.format("delta").load(str(home / name)) for name in star.NAMES}
        rows = self._spark.sql(star.SQL, None, **inputs)
        rows.write.format("delta").mode("overwrite").save(str(home / FACT.name))
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the one model
        engine.exported(self._spark.read.format("delta").load(str(home / FACT.name)), out, FACT.name)


def newest(records: DataFrame, table: Kept) -> DataFrame:
    """The pattern: Kafka records of a topic -> the newest change of each key, its columns and ``op``."""
    return ordered(records, table).drop("lsn")


def ordered(records: DataFrame, table: Kept) -> DataFrame:
    """The same with the ``lsn``, behind ``op``."""
    row = f"STRUCT<{', '.join(f'{name}: {_wire(table, name)}' for name in table.names)}>"
    schema = f"before {row}, after {row}, source {ORIGIN}, transaction STRING, op STRING, ts_ms BIGINT"
    changes = records.where("value IS NOT NULL").select(F.from_json("value", schema).alias("e")).select("e.*")
    image = F.when(F.col("op") == "d", F.col("before")).otherwise(F.col("after"))
    rows = changes.select(image.alias("row"), "op", "source.lsn").select("row.*", "op", "lsn")
    latest = Window.partitionBy(*table.keys).orderBy(F.col("lsn").desc())
    ranked = rows.withColumn("rank", F.row_number().over(latest)).where("rank = 1").drop("rank")
    return stamped(ranked, table)


def _wire(table: Kept, name: str) -> str:
    """What ``from_json`` makes of a column: it reads decimals from texts."""
    return "BIGINT" if dict(table.columns)[name] == TIME else table.spark(name)


def stamped(rows: DataFrame, table: Kept) -> DataFrame:
    """Times as TIMESTAMP."""
    kinds = dict(rows.dtypes)
    times = [name for name, kind in table.columns if kind == TIME]
    stamps = {n: F.timestamp_micros(n) if kinds[n] == "bigint" else F.col(n).cast("timestamp") for n in times}
    return rows.withColumns(stamps) if stamps else rows
