"""Compare a gold table with what its model computes from the versions of its inputs that the table was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from replicator.errors import TableMissing, TableStopped
from replicator.spec import Model, Table
from replicator.stages.models import model_inputs, refresh_work, sql_settings
from replicator.stages.models.model_rows import rows_of
from replicator.stages.models.refresh_work import Keys
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.model import with_unknown_member


@dataclass(frozen=True)
class ModelComparison:
    """A gold table at its newest ``version`` (``stored``), and all rows that its model computes (``computed``).
    ``behind`` is the number of later commits of the inputs.
    """

    stored: DataFrame
    computed: DataFrame
    version: int
    behind: int


def compare(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> ModelComparison:
    """Return a gold table and the rows that it should have; ``keys`` are those of the models that it may read. Raises
    TableMissing; TableStopped if it is not known what the table was made from, or if the model or an input was replaced
    since.
    """
    table = at.lake.gold(model.name, model.key)
    control, version = _load_newest(spark, model, table, at)
    inputs = model_inputs.find(spark, model, at, keys)
    now = refresh_work.control_row(spark, model, inputs)
    control = control and sql_settings.with_settings(control, spark)
    if control is None or any(control.get(part) != now[part] for part in ("sql", "settings", "key", "unknown_member")):
        message = (
            "it is not recorded what it was built from"
            if control is None
            else "the model has changed since it was built"
        )
        raise TableStopped(message, where=table.location, fix="Run gold first.")
    recorded = {name: control["inputs"].get(name) or [None, 0] for name in inputs}
    replaced = [name for name, each in inputs.items() if recorded[name][0] != each.identity]
    if replaced:
        message = f"its input {replaced[0]} was replaced by another table"
        raise TableStopped(message, where=table.location, fix="Run gold first.")
    past_inputs = {name: replace(each, version=recorded[name][1]) for name, each in inputs.items()}
    views = {name: model_inputs.view(spark, each).rows for name, each in past_inputs.items()}
    behind = sum(each.version - past_inputs[name].version for name, each in inputs.items())
    fresh = with_unknown_member(rows_of(spark, model, views), model.unknown_member)
    return ModelComparison(at.gold.read(spark, table, version), fresh, version, behind)


def _load_newest(
    spark: SparkSession, model: Model, table: Table, at: Warehouse
) -> tuple[Mapping[str, Any] | None, int]:
    """Return the control row of a table's newest refresh (None if it has none) and the table's version, both of one
    commit: a refresh that ends in between removes the previous control row.
    """
    while True:
        done, version = at.gold.progress(spark, table, model.name), at.gold.version(spark, table)
        if done is None or version is None:
            raise TableMissing(f"gold table {model.name} does not exist yet", where=table.location, fix="Run gold.")
        row = at.control.get(at.lake.inputs(model.name, done.version))
        if at.gold.progress(spark, table, model.name) == done:
            return row, version
