"""This project: T1 and T3 are a tick of ``stages.silver``, T2 is what its format does with a batch's changes, T4 a
refresh by ``stages.gold``.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark.sql import Column as Value
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.cdc_ch import star
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, CORES, GOLD, Case, Contender, tables
from benchmarks.cdc_ch.records import SCHEMA, SOURCE
from benchmarks.cdc_ch.sweep import ROWS_PER_FILE
from benchmarks.cdc_ch.systems import engine
from benchmarks.cdc_ch.tables import FACT, KNOWN, TPCC, WIDE, Kept
from replicator import __version__, session, settings
from replicator.debezium import position
from replicator.formats.control import JsonControl
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.operate.maintain import LakeTables, maintain
from replicator.spec import INCREMENTAL, Applied, Column, Declaration, Model, ModelColumn, Progress, SourceSpec, Table
from replicator.stages import gold, silver, tuning
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.transforms.columns.layout import Layout, with_column_metadata
from replicator.transforms.live import select_live

SPEC = SourceSpec(
    SOURCE,
    ".*",
    tables=tuple(
        Declaration(f"{SCHEMA}.{table.name}", tuple(Column(name, kind) for name, kind in table.declared))
        for table in (*TPCC.values(), WIDE)
    ),
)
MODEL = Model(
    FACT.name,
    star.SQL,
    {name: f"{SOURCE}/{SCHEMA}.{name}" for name in star.NAMES},
    FACT.keys,
    tuple(ModelColumn(name, kind, nullable=name not in FACT.keys) for name, kind in FACT.postgres),
    lineage={"lines": ("line_key",), "purchases": ("order_key",), "products": ("product_key",)},
    refresh=INCREMENTAL,
)
KEPT_SECONDS = 0
"""Old versions go at once: what is left is what stays of a run that is longer than `maintenance.keep`."""

_BETWEEN_UPKEEPS = 3600
"""Seconds that go by, as files tell them: a log keeps what is younger than some minutes, and a soak takes no longer."""

_PLACE = ("topic", "partition", "offset")


def made(track: str, work: Path, heap: str, *, deletion_vectors: bool | None = None) -> Contender:
    """One of the tracks; the model of T4 with deletion vectors or without."""
    return on(spark(heap), track, work, deletion_vectors=deletion_vectors)


def on(session_of: SparkSession, track: str, work: Path, *, deletion_vectors: bool | None = None) -> Contender:
    """The same in a session that is there."""
    if track == GOLD:
        return _Gold(session_of, work, replace(MODEL, deletion_vectors=deletion_vectors))
    kinds: dict[str, type[_Ours]] = {COLLAPSE: _Collapse, APPLY: _Apply}
    return kinds.get(track, _Refine)(session_of, work)


def _aged(home: Path) -> None:
    """All files as old as if upkeep came once an hour."""
    for file in (each for each in home.rglob("*") if each.is_file()):
        then = file.stat().st_mtime - _BETWEEN_UPKEEPS
        os.utime(file, (then, then))


def spark(heap: str) -> SparkSession:
    """A session as the product builds it, of as many cores as every system has."""
    keys = {"spark.master": f"local[{CORES}]", "spark.driver.memory": heap}
    return session.session(settings.bare(None).model_copy(update={"spark": keys, "formats": ("delta",)}))


class _Ours(engine.OnSpark):
    def __init__(self, spark: SparkSession, work: Path) -> None:
        self._spark, self._work = spark, work

    def about(self) -> Mapping[str, Any]:
        told = dict(sorted(self._spark.sparkContext.getConf().getAll()))
        hidden = ("spark.app.", "spark.jars", "spark.repl", "spark.submit", "spark.driver.port")
        settings_of = {key: value for key, value in told.items() if not key.startswith(hidden)}
        return {"replicator": __version__, "spark": self._spark.version, "delta": version("delta-spark"), **settings_of}

    def _at(self, home: Path, tables: DeltaFormat | None = None) -> Refinement:
        """As a driver that has just started has it."""
        delta, control = DeltaFormat(), JsonControl(self._spark)
        return Refinement(SPEC, delta, tables or delta, control, Lake(str(home)))

    def _append(self, at: Refinement, folder: Path) -> None:
        """Events into bronze, a file for each topic."""
        spark = tuning.session_for(self._spark, sum(file.stat().st_size for file in folder.glob("*.parquet")))
        records = spark.read.parquet(f"{folder}/*.parquet")
        whole = records.repartition("topic") if tuning.is_large(spark) else records.coalesce(1)
        at.bronze.append(whole.sortWithinPartitions(*_PLACE), at.lake.bronze(SOURCE), None)

    def _refined(self, at: Refinement) -> Mapping[str, float]:
        """All that is new; seconds by table."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for account in silver.refine_pieces(self._spark, at):
            if account.error is not None:
                raise account.error
            seconds[account.table.rpartition(".")[2]] += account.seconds
        return seconds


class _Refine(_Ours):
    """Bronze has the first batch; a run is the tick that takes it, the first one of a driver that goes on."""

    def __init__(self, session_of: SparkSession, work: Path) -> None:
        super().__init__(session_of, work)
        self._now = self._at(work)

    def start(self, case: Case, home: Path) -> None:
        at, folder = self._at(home), Path(case.input)
        self._append(at, folder / "snapshot")
        self._refined(at)
        self._append(at, folder / "batch-0000")

    def arrive(self, case: Case, home: Path, batch: int) -> None:
        if batch:
            self._append(self._now, Path(case.input) / f"batch-{batch:04}")
        else:
            self._now = self._at(home)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - what bronze has
        return self._refined(self._now)

    def upkeep(self, case: Case, home: Path) -> None:  # noqa: ARG002 - all tables
        _aged(home)
        keeper = LakeTables(self._now.lake, self._now.silver)
        for done in maintain(self._spark, keeper.tables_of, keeper.tables(self._spark), KEPT_SECONDS):
            if done.error is not None:
                raise done.error

    def ask(self, case: Case, home: Path, query: str) -> Iterable[Sequence[Any]]:  # noqa: ARG002 - it names its tables
        at = self._at(home)
        return engine.asked(query, lambda name: self._live(at, name), self._spark)

    def export(self, case: Case, home: Path, out: Path) -> None:
        at = self._at(home)
        for table in tables(case):
            engine.exported(self._live(at, table.name), out, table.name)

    def _live(self, at: Refinement, name: str) -> DataFrame:
        return select_live(at.silver.read(self._spark, at.lake.silver(SOURCE, f"{SCHEMA}.{name}")))


class _Collapse(_Ours):
    """The same tick over all batches, into tables that keep nothing."""

    def start(self, case: Case, home: Path) -> None:
        at = self._at(home)
        for folder in sorted(Path(case.input).glob("batch-*")):
            self._append(at, folder)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - what bronze has
        return self._refined(self._at(home, _Discarding()))

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - what bronze has
        self._refined(self._at(home, _Keeping(out)))


class _Discarding(DeltaFormat):
    """No table is ever there, and changes go nowhere."""

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:  # noqa: ARG002 - nowhere
        changes.write.format("noop").mode("overwrite").save()
        return Applied(1, 0, 0, 0)


class _Keeping(DeltaFormat):
    """No table is ever there, and changes go where the gate reads them."""

    def __init__(self, out: Path) -> None:
        super().__init__()
        self._out = out

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:  # noqa: ARG002 - no table
        name = table.name.rpartition(".")[2]
        rows = changes.select(*KNOWN[name].names, F.col("_deleted").alias("deleted"))
        engine.exported(rows, self._out, name)
        return Applied(1, 0, 0, 0)


class _Apply(_Ours):
    """A table of silver that is there, and changes in silver's shape: what is left is the format's ``apply``, in the
    session that the stage chooses for so many bytes.
    """

    def start(self, case: Case, home: Path) -> None:
        spark = self._spark.newSession()
        spark.conf.set("spark.sql.files.maxRecordsPerFile", ROWS_PER_FILE)
        rows = spark.read.parquet(f"{case.target}/*.parquet")
        _put(_silver(rows, WIDE, F.lit(1), F.lit(False)), WIDE, home, 1)

    def ready(self, case: Case) -> None:
        changes = self._spark.read.parquet(f"{case.input}/changes.parquet")
        shaped = _silver(changes, WIDE, F.col("lsn"), F.col("op") == "d")
        shaped.coalesce(1).write.mode("overwrite").parquet(str(self._changes(case)))

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        changes = self._changes(case)
        size = sum(file.stat().st_size for file in changes.glob("*.parquet"))
        spark = tuning.session_for_records(self._spark, size, 1)
        tuning.tune_for_tables(spark)
        _put(spark.read.parquet(str(changes)), WIDE, home, 2)
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the one table
        rows = DeltaFormat().read(self._spark, _table(WIDE, home))
        engine.exported(select_live(rows), out, WIDE.name)

    def _changes(self, case: Case) -> Path:
        return self._work / "prepared" / Path(case.input).name


class _Gold(_Ours):
    """An incremental model, built; its lines have changed since. A run is its refresh."""

    def __init__(self, session_of: SparkSession, work: Path, model: Model) -> None:
        super().__init__(session_of, work)
        self._model = model

    def start(self, case: Case, home: Path) -> None:
        for name in star.NAMES:
            rows = self._spark.read.parquet(f"{case.input}/start/{name}.parquet")
            _put(_silver(rows, KNOWN[name], F.lit(1), F.lit(False)), KNOWN[name], home, 1)
        self._refreshed(home)
        changed = self._spark.read.parquet(f"{case.input}/changes/lines.parquet")
        _put(_silver(changed, KNOWN["lines"], F.lit(2), F.lit(False)), KNOWN["lines"], home, 2)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        self._refreshed(home)
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the one model
        rows = DeltaFormat().read(self._spark, Lake(str(home)).gold(self._model.name))
        engine.exported(rows.select(*FACT.names), out, FACT.name)

    def _refreshed(self, home: Path) -> None:
        tables = DeltaFormat()
        at = Warehouse(tables, tables, JsonControl(self._spark), Lake(str(home)))
        for built in gold.refresh(self._spark, [self._model], at):
            if built.error is not None:
                raise built.error


def _put(changes: DataFrame, table: Kept, home: Path, number: int) -> None:
    layout = Layout({name: table.spark(name).lower() for name in table.names}, table.keys)
    DeltaFormat().apply(with_column_metadata(changes, layout), _table(table, home), Progress("bronze", number))


def _table(table: Kept, home: Path) -> Table:
    return replace(Lake(str(home)).silver(SOURCE, f"{SCHEMA}.{table.name}", table.keys), complete=True)


def _silver(rows: DataFrame, table: Kept, lsn: Value, deleted: Value) -> DataFrame:
    """Rows as silver has them; a deleted one keeps its key alone (debezium.md M1)."""
    place = F.concat(F.lpad(F.lower(F.hex(lsn.cast("bigint"))), 20, "0"), F.lit("0" * 16))
    cleared = [F.when(~deleted, F.col(name)).alias(name) for name in table.names if name not in table.keys]
    return rows.select(
        *table.keys,
        *cleared,
        position.seq(place, lsn.cast("bigint")).alias("_seq"),
        deleted.alias("_deleted"),
        F.lit(None).cast("map<string,string>").alias("_column_seq"),
        F.lit(1_767_225_600_000).cast("bigint").alias("_source_ts_ms"),
    )
