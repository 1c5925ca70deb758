"""Rebuild the requested tables, then the requested models in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from replicator import names
from replicator.errors import ConfigError
from replicator.operate.rebuild import RebuildOptions, attempt, rebuild, type_differences
from replicator.operate.rebuilding import swap
from replicator.operate.rebuilding.rebuild_result import EQUAL, PAUSED, RebuildResult, summarize
from replicator.operate.row.trace import find_table
from replicator.spec import Model
from replicator.stages import gold
from replicator.stages.models.refresh_work import Keys
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.tick import pauses
from replicator.transforms import model as transform


@dataclass(frozen=True)
class Selection:
    """The tables and models to rebuild, in this order; ``keys`` are the keys of all models."""

    tables: tuple[tuple[Refinement, str], ...]
    models: tuple[Model, ...]
    keys: Keys = field(default_factory=dict)


def resolve_selection(
    spark: SparkSession, sources: Sequence[Refinement], models: Sequence[Model], wanted: Sequence[str] | None
) -> Selection:
    """Resolve names to tables and models; all of them if ``wanted`` is None. ``models`` are in the order of their
    dependencies. ``gold.<name>`` names a model too, unless a table has that name.

    Raises ConfigError for a name that is unknown or ambiguous, or names a paused table.
    """
    if wanted is None:
        return Selection(tuple(_list_tables(spark, sources)), tuple(models), gold.keys_of(models))
    tables = {table.rpartition(".")[2]: table for _, table in _list_tables(spark, sources)}
    known = {model.name: model for model in models}
    ambiguous = sorted(set(wanted) & known.keys() & tables.keys())
    if ambiguous:
        fix = f"Name the table {tables[ambiguous[0]]}, or gold.{ambiguous[0]} for the model."
        raise ConfigError(f"{ambiguous[0]} is both a model and a table", fix=fix)
    known |= {f"gold.{name}": model for name, model in known.items() if f"gold.{name}" not in tables.values()}
    names = [model.name for model in models]
    found = [find_table(spark, sources, name, names) for name in dict.fromkeys(wanted) if name not in known]
    paused = [table for at, table in found if _is_paused(at, table)]
    if paused:
        raise ConfigError(f"{paused[0]} is paused", fix=f"Resume it first: `replicator tables resume {paused[0]}`.")
    return Selection(
        tuple(found),
        tuple(model for model in models if any(known.get(name) is model for name in wanted)),
        gold.keys_of(models),
    )


def carry_out(spark: SparkSession, what: Selection, at: Warehouse, how: RebuildOptions) -> Iterator[RebuildResult]:
    """Rebuild a selection and yield one result each. A table or model that stops has its error in its result, and the
    others continue; for a rebuild of one column the error is raised. Paused tables are left unchanged. Raises
    ConfigError where a column is requested for anything but exactly one table.
    """
    if how.column is not None:
        if len(what.tables) != 1 or what.models:
            raise ConfigError("--column needs exactly one table", fix="Name it as `replicator status` does.")
        yield rebuild(spark, *what.tables[0], how)
        return
    for where, table in what.tables:
        name = where.lake.silver(where.source.name, table).name
        is_paused = _is_paused(where, table)
        yield (
            RebuildResult(name, verdict=PAUSED)
            if is_paused
            else attempt(name, partial(rebuild, spark, where, table, how))
        )
    for model in what.models:
        yield attempt(model.name, partial(rebuild_model, spark, model, at, how, what.keys))


def rebuild_model(spark: SparkSession, model: Model, at: Warehouse, how: RebuildOptions, keys: Keys) -> RebuildResult:
    """Compute one model in full and write what differs; all rows are replaced where its columns or its key differ from
    its table's. ``keys`` are the keys of the models that it may read.

    Raises TableMissing, ConfigError, ChecksFailed as a refresh does.
    """
    with gold.compute_full(spark, model, at, keys) as computed:
        present = computed.work.stored
        other = [] if present is None else type_differences(present, computed.rows)
        same_key = present is not None and _is_key(present, model.key)
        with swap.compare_tables(computed.table, present, computed.rows, other, same_key=same_key) as found:
            result = replace(summarize(found), rows=computed.count, warnings=computed.warnings)
            if not how.dry and result.verdict != EQUAL:
                gold.commit(model, at, computed.work, lambda _, progress: found.write(at.gold, progress))
    return result


def _is_key(rows: DataFrame, key: Sequence[str]) -> bool:
    """Whether these columns exist and are unique over the rows."""
    return set(key) <= set(rows.columns) and transform.count_keys(rows, key).where("broken").isEmpty()


def _is_paused(at: Refinement, table: str) -> bool:
    return table in pauses.load(at.control, at.lake, at.source.name)


def _list_tables(spark: SparkSession, sources: Sequence[Refinement]) -> list[tuple[Refinement, str]]:
    return [
        (at, names.decode_table(folder))
        for at in sources
        for folder in at.silver.tables(spark, at.lake.silver_root(at.source.name))
    ]
