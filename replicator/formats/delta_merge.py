"""The effect of a batch on the rows of a Delta table, shared by all merge strategies: Delta's MERGE, the rewrite of a
small table (docs/decisions/0009), the rewrite of touched files (``delta_rewrite``) and deletion vectors
(``delta_deletion_vectors``). All leave the same rows, change feed and metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from replicator import names
from replicator.jvm import expressions, gateway
from replicator.transforms import merge

SIDES = merge.Sides()

METRICS = {"insert": "numTargetRowsInserted", "update": "numTargetRowsUpdated", "delete": "numTargetRowsDeleted"}
"""The actions on a row and the metric under which Delta's history counts each."""

_KEEP, _INSERT, _UPDATE, _DELETE = "keep", *METRICS


@dataclass(frozen=True)
class MergeSpec:
    """``changes``, one row per key, and the conditions and values to merge them by, over ``SIDES``. A stored row is
    deleted, else updated, else kept; a new one is inserted or skipped. ``updates`` and ``inserts`` are values by
    column; a column without an update keeps its value.
    """

    changes: DataFrame
    keys: Sequence[str]
    updates: Mapping[str, Column]
    inserts: Mapping[str, Column]
    update_if: Column
    delete_if: Column = field(default_factory=lambda: F.lit(False))
    insert_if: Column = field(default_factory=lambda: F.lit(True))


def statement(target: DeltaTable, merging: MergeSpec) -> DeltaMergeBuilder:
    """Build Delta's MERGE."""
    updates: dict[str, Column | str] = {names.quote_spark(c): value for c, value in merging.updates.items()}
    inserts: dict[str, Column | str] = {names.quote_spark(c): value for c, value in merging.inserts.items()}
    return (
        target.alias(SIDES.stored)
        .merge(merging.changes.alias(SIDES.change), merge.same_key(merging.keys, SIDES))
        .whenMatchedDelete(merging.delete_if)
        .whenMatchedUpdate(merging.update_if, updates)
        .whenNotMatchedInsert(merging.insert_if, inserts)
    )


def resolve_actions(stored: DataFrame, merging: MergeSpec, beside: Sequence[str] = ()) -> DataFrame:
    """One row per key: its ``action``, the row before (``old``) and after (``new``), and the columns ``beside`` that
    ``stored`` has in addition to the table's.
    """
    key, columns = merging.keys[0], [each for each in stored.schema if each.name not in beside]
    is_new, is_untouched = SIDES.of_stored(key).isNull(), SIDES.of_change(key).isNull()
    action = (
        F.when(is_untouched, _KEEP)
        .when(is_new, F.when(merging.insert_if, _INSERT))
        .when(merging.delete_if, _DELETE)
        .when(merging.update_if, _UPDATE)
        .otherwise(_KEEP)
    )

    def after(column: str, kind: DataType) -> Column:
        updated = merging.updates.get(column, SIDES.of_stored(column))
        return F.when(is_new, merging.inserts[column]).otherwise(updated).cast(gateway.cast_type(kind))

    old = expressions.struct({each.name: SIDES.of_stored(each.name) for each in columns})
    new = expressions.struct({each.name: after(each.name, each.dataType) for each in columns})
    both = stored.alias(SIDES.stored).join(
        merging.changes.alias(SIDES.change), merge.same_key(merging.keys, SIDES), how="full"
    )
    resolved = both.select(action.alias("action"), old.alias("old"), new.alias("new"), *map(SIDES.of_stored, beside))
    return resolved.where(F.col("action").isNotNull())


def action_counts() -> dict[str, Column]:
    """The conditions to count resolved rows by, named as in METRICS."""
    return {metric: F.col("action") == action for action, metric in METRICS.items()}


def images(settled_rows: DataFrame) -> DataFrame:
    """The table's new rows, and the rows of its change feed, which have a ``_change_type``."""
    old, new, action = F.col("old"), F.col("new"), F.col("action")

    def image(row: Column, kind: str | None) -> Column:
        return expressions.struct({"row": row, "_change_type": F.lit(kind).cast("string")})

    several = (
        F.when(action == _KEEP, F.array(image(old, None)))
        .when(action == _INSERT, F.array(image(new, None), image(new, "insert")))
        .when(action == _DELETE, F.array(image(old, "delete")))
        .otherwise(F.array(image(new, None), image(old, "update_preimage"), image(new, "update_postimage")))
    )
    exploded = settled_rows.select(F.explode(several).alias("image"))
    return exploded.select("image.row.*", "image._change_type")
