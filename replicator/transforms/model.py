"""A gold model's rows now against the rows it had: the difference, by key (reference/gold.md, step 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium.widening import widen
from replicator.spec import Evolution
from replicator.transforms import merge
from replicator.transforms.layout import normal


def difference(stored: DataFrame | None, fresh: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows to write, one per key: the model's columns and ``_op`` (``upsert``, or ``delete`` with the key alone).

    Rows that are the same on both sides do not appear. ``stored`` is None before the first build.
    """
    columns = fresh.columns
    if stored is None:
        return fresh.select(*map(names.spark, columns), F.lit("upsert").alias("_op"))
    sides = merge.Sides(stored="old", change="new")
    old, new = stored.select(*map(names.spark, columns)), fresh
    marked = (
        old.withColumn("_there", F.lit(True))
        .alias(sides.stored)
        .join(new.withColumn("_there", F.lit(True)).alias(sides.change), merge.same_key(key, sides), how="full")
    )
    gone, added = sides.of_change("_there").isNull(), sides.of_stored("_there").isNull()
    changed = F.lit(False)
    for column in columns:
        changed = changed | ~sides.of_stored(column).eqNullSafe(sides.of_change(column))
    op = F.when(gone, "delete").when(added | changed, "upsert")

    def value(column: str) -> Column:
        kept = (
            F.coalesce(sides.of_change(column), sides.of_stored(column)) if column in key else sides.of_change(column)
        )
        return kept.alias(column)

    return marked.select(*[value(column) for column in columns], op.alias("_op")).where(F.col("_op").isNotNull())


def keys(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """One row per key: how often it occurs (``count``) and whether a model may not have it (``broken``): more than
    once, or with a NULL in it.
    """
    incomplete = F.lit(False)
    for column in key:
        incomplete = incomplete | F.col(names.spark(column)).isNull()
    counted = rows.groupBy(*map(names.spark, key)).count()
    return counted.select("count", ((F.col("count") > 1) | incomplete).alias("broken"))


def growth(stored: Mapping[str, str], fresh: Mapping[str, str]) -> Evolution | None:
    """What a model's table lacks to take its rows, by Spark's types per column: columns to add and to widen. None where
    a column was dropped, or has a type now that does not hold the values of before.
    """
    if any(column not in fresh for column in stored):
        return None
    widened = {column: kind for column, kind in stored.items() if fresh[column] != kind}
    for column, kind in widened.items():
        wider = widen(kind, fresh[column])
        if wider is None or normal(wider) != normal(fresh[column]):
            return None
    added = tuple((column, kind) for column, kind in fresh.items() if column not in stored)
    return Evolution(added, tuple((column, fresh[column]) for column in widened))


def unknown(rows: DataFrame, member: Mapping[str, object]) -> DataFrame:
    """The unknown member of a dimension with these *rows*: one row with their columns and types, NULL where *member*
    says nothing.
    """
    fields = [F.lit(member.get(field.name)).cast(field.dataType).alias(field.name) for field in rows.schema]
    return rows.sparkSession.range(1).select(*fields)


def complete(rows: DataFrame, member: Mapping[str, object] | None) -> DataFrame:
    """All rows of a model with its unknown member, where it has one."""
    return rows if member is None else rows.unionByName(unknown(rows, member))
