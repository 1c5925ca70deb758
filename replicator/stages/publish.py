"""Gold -> the serving database: publish rows changed since the ledger's version, all models in one batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from replicator import names
from replicator.errors import ConfigError, LoginRefused, ReplicatorError, StaleWriter, TableMissing, TargetRefused
from replicator.jvm.failures import FAILURES
from replicator.lake import Lake
from replicator.protocols import Difference, Sink, TableFormat
from replicator.spec import Applied, Model, Progress, Table, blocked_models
from replicator.stages import engine_errors, tuning
from replicator.stages.models import table_versions
from replicator.stages.models.table_versions import VersionRef

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TASK_ROWS, _TASK_BYTES, _UNPACKED = 100_000, 32 << 20, 8
"""Limits of what one task sends, since it is held in the driver's memory: rows, and bytes, which are a multiple of
those on disk; by bytes a task gets no fewer than a twentieth of the rows.
"""

_OTHER_TABLE = (
    "the target had the rows of another gold table, and now has these. If no model was renamed or given this target, "
    "and that table was not removed, two lakes publish to the same target alternately"
)
_SEND_ALL = "Restore the newest gold. Or make the target match this one: `replicator republish {}`."


@dataclass(frozen=True)
class PublishResult:
    """The result for one model: ``rows`` of its difference, what the target did with them, seconds of the whole batch.

    ``error`` says why the model was not published; ``applied`` is None then. ``warnings`` are about a publication that
    succeeded.
    """

    model: str
    rows: int
    applied: Applied | None
    seconds: float
    error: ReplicatorError | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Pending:
    difference: Difference
    rows: int
    warnings: tuple[str, ...] = ()


def publish(
    spark: SparkSession, models: Iterable[Model], gold: TableFormat, lake: Lake, sink: Sink
) -> list[PublishResult]:
    """Make the targets equal to gold. Returns one result per model that had something new, in the given order.

    A model without a target, or whose newest version is in the ledger, is skipped. A model that cannot be published
    has its error in its result and the others continue: **the caller must check**. Raises Unreachable if the target
    does not answer, LoginRefused if it refuses the login; nothing is visible then.
    """
    started = time.monotonic()
    wanted = [model for model in models if model.target is not None]
    pending: dict[str, _Pending] = {}
    errors: dict[str, ReplicatorError] = {}
    applied: dict[str, Applied] = {}
    with ExitStack() as stack:
        for model in wanted:
            found = _find_pending(spark, model, (gold, lake.gold(model.name, model.key)), sink, stack)
            if isinstance(found, ReplicatorError):
                errors[model.name] = found
            elif found is not None:
                pending[model.name] = found
        for name, cause in blocked_models([each.difference.model for each in pending.values()], errors).items():
            errors[name] = TargetRefused.waits(name, cause)
        pending = {name: each for name, each in pending.items() if name not in errors}
        try:
            applied |= sink.publish([each.difference for each in pending.values()]) if pending else {}
        except TargetRefused as error:
            applied |= error.applied
            errors |= error.refused or dict.fromkeys(pending, error)
    seconds = time.monotonic() - started
    results = (_to_result(model.name, pending.get(model.name), applied, errors, seconds) for model in wanted)
    return [published for published in results if published is not None]


def _to_result(
    name: str,
    sent: _Pending | None,
    applied: Mapping[str, Applied],
    errors: Mapping[str, ReplicatorError],
    seconds: float,
) -> PublishResult | None:
    """The result for a model; None if there was nothing to publish."""
    if sent is None:
        return PublishResult(name, 0, None, seconds, errors[name]) if name in errors else None
    warnings = sent.warnings if name in applied else ()
    return PublishResult(name, sent.rows, applied.get(name), seconds, errors.get(name), warnings)


def _find_pending(
    spark: SparkSession, model: Model, place: tuple[TableFormat, Table], sink: Sink, stack: ExitStack
) -> _Pending | ReplicatorError | None:
    try:
        return _pending(spark, model, place, sink, stack)
    except LoginRefused:
        raise
    except (ConfigError, TableMissing, StaleWriter, TargetRefused) as error:
        return error
    except FAILURES as error:
        return engine_errors.to_table_error(error, model.name)


def _pending(
    spark: SparkSession, model: Model, place: tuple[TableFormat, Table], sink: Sink, stack: ExitStack
) -> _Pending | None:
    """The difference that the target lacks; None if it is up to date."""
    gold, table = place
    version_now = table_versions.current(spark, gold, table)
    identity, upto, commit = version_now
    if identity is None or upto is None:
        message, fix = f"gold table {model.name} does not exist yet.", "Run gold first."
        raise TableMissing(message, where=table.location, fix=fix)
    size = gold.size(spark, table)
    spark = tuning.session_for(spark, size)
    recorded = sink.progress(model)
    progress = Progress(identity, upto, commit)
    if recorded is not None and recorded.version == upto and recorded.covers(progress):
        return None
    rows = gold.read(spark, table, upto)
    _refuse_missing_columns(model, rows)
    if recorded is None:
        return _full_difference(model, rows, progress, size)
    if recorded.input != identity:
        return replace(_full_difference(model, rows, progress, size), warnings=(_OTHER_TABLE,))
    if recorded.version > upto:
        message = (
            f"the ledger has version {recorded.version} of gold table {model.name}, but the table is at "
            f"version {upto}: it was reverted."
        )
        raise StaleWriter(message, where=table.location, fix=_SEND_ALL.format(model.name))
    version_before = VersionRef(recorded.input, recorded.version, recorded.commit)
    keys = table_versions.changed_keys(spark, gold, table, version_before, version_now)
    if keys is None:
        return _full_difference(model, rows, progress, size)
    difference, count = _keyed_difference(model, rows, keys, size, stack)
    return _Pending(Difference(model, difference, progress, since=recorded), count)


def _full_difference(model: Model, rows: DataFrame, progress: Progress, size: int) -> _Pending:
    upserts, count = rows.select(*_columns(model), F.lit("upsert").alias("_op")), rows.count()
    return _Pending(Difference(model, _repartition(upserts, count, size), progress, complete=True), count)


def _keyed_difference(
    model: Model, rows: DataFrame, keys: DataFrame, size: int, stack: ExitStack
) -> tuple[DataFrame, int]:
    """Changed keys with their rows: an upsert if gold has the row, else a delete. One row per key, and their count."""
    key = [names.quote_spark(name) for name in model.key]
    changed, tally = stack.enter_context(tuning.persist_and_count(keys.select(*key), {"all": F.lit(True)}))
    count = tally["all"]
    present = rows.select(*_columns(model), F.lit("upsert").alias("_op"))
    joined = changed.join(present.join(changed, list(model.key), "left_semi"), list(model.key), "left")
    operation = F.coalesce(F.col("_op"), F.lit("delete")).alias("_op")
    difference = _repartition(joined.select(*_columns(model), operation), count, size)
    # an empty relation costs no Spark job, and the ledger still moves on
    return difference if count else difference.limit(0), count


def _repartition(rows: DataFrame, count: int, size: int) -> DataFrame:
    """Split ``count`` rows of a table of ``size`` bytes on disk into as many tasks as the driver's memory requires."""
    by_size = min(count * 20 // _TASK_ROWS, ceil(size * _UNPACKED / _TASK_BYTES))
    tasks = max(ceil(count / _TASK_ROWS), by_size)
    return rows.repartition(tasks) if tasks > 1 else rows


def _columns(model: Model) -> list[Column]:
    """The declared columns; those that start with ``_`` are not published."""
    return [F.col(names.quote_spark(column.name)) for column in model.columns]


def _refuse_missing_columns(model: Model, rows: DataFrame) -> None:
    missing = [column.name for column in model.columns if column.name not in rows.columns]
    if missing:
        message = f"model {model.name} declares columns that its gold table lacks: {', '.join(missing)}."
        raise TargetRefused(message, where=model.name, fix="Run gold again, or fix the model's columns.")
