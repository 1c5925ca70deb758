"""Silver -> gold: each model whose inputs moved is recomputed, and only what differs is written.

Effects of one refresh, in this order: 1. the control row (which version of every input), 2. the merge of the
difference with
the control row's number as progress. The merge makes the row count; a row without it is written again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.errors import ChecksFailed, ConfigError, ReplicatorError, SchemaRefused, TableMissing
from replicator.lake import Lake
from replicator.protocols import Control, TableFormat
from replicator.spec import Applied, Model, Progress, Table
from replicator.stages import cut, tuning
from replicator.transforms import model as transform
from replicator.transforms.live import live

_SIDE_BY_SIDE = 2


@dataclass(frozen=True)
class Warehouse:
    """Everything that gold needs: where the inputs are, where the models go, where the control rows are."""

    silver: TableFormat
    gold: TableFormat
    control: Control
    lake: Lake


@dataclass(frozen=True)
class Built:
    """What became of one model: ``rows`` it has now, what the merge did, seconds. ``error``: it stopped, gold is
    as before.
    """

    model: str
    rows: int = 0
    applied: Applied | None = None
    seconds: float = 0.0
    error: ReplicatorError | None = None


@dataclass(frozen=True)
class _Input:
    """One input at the version that this refresh reads."""

    format: TableFormat
    table: Table
    identity: str
    version: int


def refresh(spark: SparkSession, models: Iterable[Model], at: Warehouse) -> list[Built]:
    """Bring models up to date, in the given (dependency) order. One report per model whose inputs moved.

    A model that cannot be built has its error in its report, and the others go on: **the caller must look**. Models
    that do not read each other are built side by side, since planning one keeps a single core busy.
    """
    reports: list[Built | None] = []
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="gold") as pool:
        for wave in waves(models):
            reports += pool.map(lambda model: _timed(spark, model, at), wave)
    return [report for report in reports if report is not None]


def waves(models: Iterable[Model]) -> Iterator[list[Model]]:
    """The models in their order, cut wherever one reads a model of the same group."""
    wave: list[Model] = []
    for model in models:
        if {each.name for each in wave} & set(model.inputs.values()):
            yield wave
            wave = []
        wave.append(model)
    if wave:
        yield wave


def _timed(spark: SparkSession, model: Model, at: Warehouse) -> Built | None:
    started = time.monotonic()
    try:
        report = _refresh(spark, model, at)
    except ReplicatorError as error:
        report = Built(model.name, error=error)
    return None if report is None else replace(report, seconds=time.monotonic() - started)


def _refresh(spark: SparkSession, model: Model, at: Warehouse) -> Built | None:
    for source in dict.fromkeys(given.partition("/")[0] for given in model.inputs.values() if "/" in given):
        cut.refuse_half(at.control, at.lake, source)
    table = at.lake.gold(model.name, model.key)
    inputs = {name: _input(spark, given, at) for name, given in model.inputs.items()}
    done = at.gold.progress(spark, table, model.name)
    control = _control_row(model, inputs)
    if done is not None and at.control.get(at.lake.inputs(model.name, done.version)) == control:
        return None
    size = sum(each.format.size(spark, each.table) for each in inputs.values())
    spark = tuning.session_for(spark, size)
    with tuning.kept(_rows(spark, model, inputs)) as fresh:
        return _write(spark, model, at, fresh, control, 0 if done is None else done.version + 1)


def _write(
    spark: SparkSession, model: Model, at: Warehouse, fresh: DataFrame, control: Mapping[str, Any], number: int
) -> Built:
    table = at.lake.gold(model.name, model.key)
    rows, broken = _counted(fresh, model)
    if broken:
        raise ChecksFailed(
            f"{broken} keys of {', '.join(model.key)} are NULL or occur more than once",
            where=model.name,
            mend="Gold was left as it was. Mend the model's SQL or its `key`.",
        )
    stored = None if at.gold.version(spark, table) is None else at.gold.read(spark, table)
    if stored is not None and dict(stored.dtypes) != dict(fresh.dtypes):
        raise SchemaRefused(
            "the model's columns or types are not those of its table",
            where=table.location,
            mend="Move the table away; the next run builds it anew and publishes what differs.",
        )
    with tuning.kept(transform.difference(stored, fresh, model.key)) as difference:
        at.control.put(at.lake.inputs(model.name, number), control)
        applied = at.gold.put(difference, table, Progress(model.name, number))
    at.control.remove(at.lake.inputs(model.name, number - 1))
    return Built(model.name, rows, applied)


def _counted(fresh: DataFrame, model: Model) -> tuple[int, int]:
    """Rows, and keys that are broken, in one job."""
    counted = transform.keys(fresh, model.key).agg(
        F.coalesce(F.sum("count"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum(F.col("broken").cast("int")), F.lit(0)).alias("broken"),
    )
    row = counted.first()
    return (0, 0) if row is None else (row["rows"], row["broken"])


def _input(spark: SparkSession, given: str, at: Warehouse) -> _Input:
    source, slash, name = given.partition("/")
    kind, table = (at.silver, at.lake.silver(source, name)) if slash else (at.gold, at.lake.gold(given))
    identity, version = kind.identity(spark, table), kind.version(spark, table)
    if identity is None or version is None:
        raise TableMissing(
            f"input {given} does not exist yet", where=table.location, mend="Run silver for its source first."
        )
    return _Input(kind, table, identity, version)


def _rows(spark: SparkSession, model: Model, inputs: Mapping[str, _Input]) -> DataFrame:
    """The model's SQL over the live rows of its inputs, in the order of its declared columns."""
    views = {
        name: live(each.format.read(spark, each.table, each.version), "_source_ts_ms") for name, each in inputs.items()
    }
    try:
        rows = spark.sql(model.sql, **views)  # type: ignore[arg-type]
    except AnalysisException as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"the SQL of model {model.name} is refused: {first}", mend="Mend conf/models.") from error
    missing = [column.name for column in model.columns if column.name not in rows.columns]
    if missing:
        raise ConfigError(
            f"the SQL of model {model.name} does not give its columns {', '.join(missing)}", mend="Mend conf/models."
        )
    return rows


def _control_row(model: Model, inputs: Mapping[str, _Input]) -> dict[str, Any]:
    """What a refresh read: the SQL, and every input's id and version."""
    versions = {name: [each.identity, each.version] for name, each in inputs.items()}
    return {"sql": hashlib.sha256(model.sql.encode()).hexdigest(), "inputs": versions}
