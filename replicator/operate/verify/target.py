"""Comparison of gold with the serving database, as of the gold version in the target's ledger, in one transaction."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from replicator.database_snapshots import ReadableSink, TargetColumn
from replicator.errors import ConfigError, TableMissing, TableStopped
from replicator.operate.verify import ranges
from replicator.operate.verify.equality import Pair, find_differences, to_verdict
from replicator.operate.verify.parquet_extract import ComparedColumn, ExtractQuery, extract, with_text_fallback
from replicator.operate.verify.verdict import TARGET, Comparison, Verdict, VerifyOptions
from replicator.protocols import Sink
from replicator.spec import Model, Progress, Target
from replicator.stages import tuning
from replicator.stages.models.warehouse import Warehouse


@dataclass(frozen=True)
class _TargetTable:
    at: Warehouse
    model: Model
    target: Target
    sink: Sink


def comparison(at: Warehouse, model: Model, target: Target, sinks: Mapping[str, Sink]) -> Comparison:
    """Return the comparison of one model with its target. Raises ConfigError for a target that is not configured."""
    if target.connection not in sinks:
        raise ConfigError(f"target {target.connection!r} does not exist", where=model.name)
    place = _TargetTable(at, model, target, sinks[target.connection])

    def size(spark: SparkSession) -> int:
        return 3 * at.gold.read(spark, at.lake.gold(model.name)).count()

    return Comparison(TARGET, model.name, target.connection, partial(_compare, place=place), size)


def _compare(spark: SparkSession, verdict: Verdict, options: VerifyOptions, *, place: _TargetTable) -> Verdict:
    at, model = place.at, place.model
    table = at.lake.gold(model.name, model.key)
    spark = tuning.session_for(spark, at.gold.size(spark, table))
    if not isinstance(place.sink, ReadableSink):
        raise ConfigError(f"target {place.target.connection} cannot be read back")
    with tempfile.TemporaryDirectory(prefix="replicator-verify-") as folder:
        with place.sink.read_back(model) as view:
            version, newest = _published_version(spark, place, view.progress)
            gold = at.gold.read(spark, table, version)
            target_columns = view.as_served(gold)
            columns = with_text_fallback(_compared_columns(target_columns, model), model.key)
            values = {each.name: each.value for each in target_columns}
            gold_rows = gold.select([each.from_value(values[each.name]).alias(each.name) for each in columns])
            parts = ranges.build(gold_rows, model.key, options.share)
            wanted = ExtractQuery(view.table, columns, ranges=parts)
            target_rows = extract(spark, view.snapshot, wanted, Path(folder), options.advance)
        pair = Pair(gold_rows, target_rows, model.key, {each.name: each.codec.meaning for each in columns}, parts)
        unknown = tuple(f"{each.name}: {each.type}" for each in target_columns if each.codec is None)
        verdict = replace(verdict, behind=newest - version, position=f"gold version {version}", not_compared=unknown)
        return to_verdict(verdict, pair, find_differences(pair, options), options)


def _published_version(spark: SparkSession, place: _TargetTable, recorded: Progress | None) -> tuple[int, int]:
    """Return the gold version that the target has, and gold's newest. Raises TableMissing, TableStopped."""
    table = place.at.lake.gold(place.model.name)
    identity, newest = place.at.gold.identity(spark, table), place.at.gold.version(spark, table)
    if identity is None or newest is None:
        raise TableMissing(f"gold table {place.model.name} does not exist yet", where=table.location, fix="Run gold.")
    if recorded is None:
        raise TableMissing("the model was never published", where=place.model.name, fix="Run `replicator run publish`.")
    if recorded.input != identity:
        raise TableStopped(
            "the published table belongs to another gold table, previously at this place",
            where=place.model.name,
            fix="`replicator run publish` sends the whole model.",
        )
    return recorded.version, newest


def _compared_columns(shown: Sequence[TargetColumn], model: Model) -> tuple[ComparedColumn, ...]:
    """Return the target's columns that can be compared. Raises TableStopped where a key column cannot."""
    missing_keys = [each.name for each in shown if each.codec is None and each.name in model.key]
    if missing_keys:
        raise TableStopped(f"its key column {missing_keys[0]} cannot be compared", where=model.name)
    return tuple(
        ComparedColumn(each.name, each.name, each.kind, each.codec) for each in shown if each.codec is not None
    )
