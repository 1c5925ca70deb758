"""Which columns the table of a gold model has to gain or widen, and which changes it cannot follow."""

from __future__ import annotations

from pyspark.sql import DataFrame

from replicator.errors import SchemaRefused
from replicator.spec import Evolution, Model
from replicator.stages.models.refresh_work import Work
from replicator.transforms import model as transform


def required(model: Model, work: Work, stored: DataFrame, fresh: DataFrame) -> Evolution:
    """The evolution that gives the table the model's columns. Raises SchemaRefused if it cannot follow them."""
    before, now = dict(stored.dtypes), dict(fresh.dtypes)
    incompatible = transform.incompatible_columns(before, now)
    if incompatible:
        raise SchemaRefused(
            f"the model's columns changed incompatibly: {', '.join(incompatible)}",
            where=model.name,
            fix=f"`replicator rebuild {model.name}` builds it again.",
        )
    if work.rekeyed and has_key(model, stored):
        _refuse_duplicate_keys(model, stored)
    return transform.required_evolution(before, now)


def refuse_unfit(model: Model, work: Work) -> None:
    """Raise SchemaRefused if the model's table cannot take the rows that the model computes now."""
    if work.stored is not None:
        required(model, work, work.stored, transform.with_unknown_member(work.full_rows(), model.unknown_member))


def has_key(model: Model, stored: DataFrame) -> bool:
    """Whether the table has the columns of the model's key."""
    return set(model.key) <= set(stored.columns)


def _refuse_duplicate_keys(model: Model, stored: DataFrame) -> None:
    """Refuse a new key that does not identify the rows of the table: nothing could be merged into them."""
    if not transform.count_keys(stored, model.key).where("broken").isEmpty():
        raise SchemaRefused(
            f"the model's key is now {', '.join(model.key)}, which is not unique or is NULL in existing rows "
            "of its table",
            where=model.name,
            fix=f"`replicator rebuild {model.name}` builds it again.",
        )
