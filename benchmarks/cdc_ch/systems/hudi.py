"""B2: Hudi's own Spark writer, fed by B1's parse, in three settings: merge on read with the record index, copy on write
with bloom filters, and merge on read with the bucket index.

Its streaming tool would write with the same client; what it does before is parsing, which B1 does for it here. Hudi is
given one change per key, so it need not combine them (Spark's window is quicker at that), orders by ``lsn`` what it
merges, and deletes what ``_hoodie_is_deleted`` says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.cdc_ch.contender import APPLY, CORES, Case, Contender, events, tables
from benchmarks.cdc_ch.sweep import ROWS_PER_FILE
from benchmarks.cdc_ch.systems import blog, engine
from benchmarks.cdc_ch.tables import WIDE, Kept
from replicator import jars
from replicator.jvm import sparkline

_GONE = "_hoodie_is_deleted"
_ON_READ, _ON_WRITE = "MERGE_ON_READ", "COPY_ON_WRITE"
SETTINGS = {
    **engine.SETTINGS,
    **engine.TUNED,
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
OPTIONS = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.table.ordering.fields": "lsn",
    # one change per key is what it is given
    "hoodie.combine.before.upsert": "false",
    "hoodie.upsert.shuffle.parallelism": str(CORES),
    "hoodie.delete.shuffle.parallelism": str(CORES),
    "hoodie.bloom.index.parallelism": str(CORES),
    # a server for executors on other machines, and statistics for queries that are not asked
    "hoodie.embed.timeline.server": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    # the same for every system
    "hoodie.parquet.compression.codec": "zstd",
}
"""Of every write; what is not here is as Hudi has it, cleaning and its metadata table included."""


@dataclass(frozen=True)
class Kind:
    """A setting: which ``table`` type, and the ``options`` of its index."""

    table: str
    options: Mapping[str, str] = field(default_factory=dict)


KINDS = {
    "mor": Kind(
        _ON_READ,
        {
            "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
            "hoodie.metadata.global.record.level.index.enable": "true",
            # ten by default, each a file and a task of every batch
            "hoodie.metadata.global.record.level.index.min.filegroup.count": str(CORES),
        },
    ),
    "cow": Kind(_ON_WRITE, {"hoodie.index.type": "BLOOM"}),
    "bucket": Kind(_ON_READ, {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "SIMPLE"}),
}
"""By its name behind ``B2``."""


def made(track: str, heap: str, kind: str) -> Contender:
    """One of the tracks."""
    return on(engine.session(heap, "hudi", SETTINGS), track, kind)


def on(session_of: SparkSession, track: str, kind: str) -> Contender:
    """The same in a session that is there, with Hudi."""
    return (_Apply if track == APPLY else _Refine)(session_of, KINDS[kind])


class _Hudi(engine.OnSpark):
    def __init__(self, spark: SparkSession, kind: Kind) -> None:
        self._spark, self._kind = spark, kind

    def about(self) -> Mapping[str, Any]:
        told = {"spark": self._spark.version, "hudi": _version(), "table": self._kind.table}
        return {**told, **SETTINGS, **OPTIONS, **self._kind.options}

    def start(self, case: Case, home: Path) -> None:
        pass

    def _load(self, rows: DataFrame, table: Kept, home: Path, count: int) -> None:
        """Hudi's own way for what is there first: sorted by key, so that ranges of keys leave files out."""
        first = rows.select(*table.names, F.lit(0).cast("bigint").alias("lsn"), F.lit(False).alias(_GONE))
        sizes = {"hoodie.bulkinsert.shuffle.parallelism": _files(count), "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}
        self._write(first, table, home, {**sizes, **self._told(table, count, "bulk_insert")})

    def _upsert(self, changes: DataFrame, table: Kept, home: Path, count: int) -> None:
        """Into a table that began with so many rows."""
        shaped = changes.select(*table.names, "lsn", (F.col("op") == "d").alias(_GONE))
        self._write(shaped, table, home, self._told(table, count, "upsert"))

    def _told(self, table: Kept, count: int, operation: str) -> Mapping[str, str]:
        return {
            **OPTIONS,
            **self._kind.options,
            "hoodie.table.name": table.name,
            "hoodie.datasource.write.table.type": self._kind.table,
            "hoodie.datasource.write.recordkey.field": ",".join(table.keys),
            "hoodie.datasource.write.operation": operation,
            # as many files as every lake begins with
            "hoodie.bucket.index.num.buckets": _files(count),
        }

    def _write(self, rows: DataFrame, table: Kept, home: Path, told: Mapping[str, str]) -> None:
        rows.write.format("hudi").options(**told).mode("append").save(str(home / table.name))

    def _save(self, table: Kept, home: Path, out: Path) -> None:
        engine.exported(self._at(home, table.name).select(*table.names), out, table.name)

    def _at(self, home: Path, name: str) -> DataFrame:
        return self._spark.read.format("hudi").load(str(home / name))


class _Refine(_Hudi):
    def start(self, case: Case, home: Path) -> None:
        for table in tables(case):
            rows = self._spark.read.parquet(_start(case, table))
            self._load(blog.stamped(rows, table), table, home, _count(case, table))

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:
        phases = {}
        for table in tables(case):
            started = time.perf_counter()
            if files := events(case, table, batch):
                changes = blog.ordered(self._spark.read.parquet(*files), table)
                self._upsert(changes, table, home, _count(case, table))
                phases[table.name] = time.perf_counter() - started
        return phases

    def upkeep(self, case: Case, home: Path) -> None:
        """Compaction of the logs; copy on write has none, and Hudi fills its small files as it writes."""
        for table in tables(case) if self._kind.table == _ON_READ else []:
            self._spark.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{home / table.name}')").collect()

    def ask(self, case: Case, home: Path, query: str) -> Iterable[Sequence[Any]]:  # noqa: ARG002 - it names its tables
        return engine.asked(query, lambda name: self._at(home, name), self._spark)

    def export(self, case: Case, home: Path, out: Path) -> None:
        for table in tables(case):
            self._save(table, home, out)


class _Apply(_Hudi):
    def start(self, case: Case, home: Path) -> None:
        self._load(self._spark.read.parquet(f"{case.target}/*.parquet"), WIDE, home, case.rows)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        self._upsert(self._spark.read.parquet(f"{case.input}/changes.parquet"), WIDE, home, case.rows)
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the one table
        self._save(WIDE, home, out)


def _start(case: Case, table: Kept) -> str:
    return f"{case.input}/start/{table.name}.parquet"


def _count(case: Case, table: Kept) -> int:
    """Rows that are there first, by the file's footer."""
    return int(pq.read_metadata(_start(case, table)).num_rows)


def _files(count: int) -> str:
    return str(max(1, -(-count // ROWS_PER_FILE)))


def _version() -> str:
    bundles = (each.split(":") for each in jars.load_lock(sparkline.installed().name, ("hudi",)))
    return next(version for group, _, version in bundles if group == "org.apache.hudi")
