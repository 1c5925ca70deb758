"""A gold model's rows now against the rows it had: the difference, by key (reference/gold.md, step 5)."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium.widening import widen
from replicator.spec import Evolution
from replicator.transforms import merge
from replicator.transforms.columns.layout import normalize_type
from replicator.transforms.comparison.comparable import is_different

ROW_NUMBER = "_ number"
"""Beside a row of :class:`ModelDiff`: the how many-th fresh row with its key it is; NULL where there is none."""

RESERVED = ("_op", "_deleted")
"""What no column of a model can be called, in any case: a difference and a table of silver have these of ours."""

_THERE, _COUNT = "_ there", "_ count"


@dataclass(frozen=True)
class ModelDiff:
    """A model's rows beside those that it had: ``rows`` has one per key, more where fresh rows share one, with the
    model's columns and ``_op`` (``upsert``; ``delete`` with the key alone; NULL: both sides are the same).

    ``differs`` tells the rows to write; with ``repeats`` some of these may be what the model had. ``counts`` count,
    over all of ``rows``, those of the model now (``rows``), keys that it may not have (``broken``: they repeat, or hold
    a NULL), and rows to write by what is done (``upsert``, ``delete``).
    """

    rows: DataFrame
    differs: Column
    counts: Mapping[str, Column]
    repeats: bool = False


def compare(stored: DataFrame | None, fresh: DataFrame, key: Sequence[str]) -> ModelDiff:
    """Both sides in one look: the fresh rows are numbered in the order in which they are joined. ``stored`` is None
    before the first build.
    """
    return _counting(_joined(stored, _numbered(fresh, key), fresh.columns, key), key)


def overwrite_keys(keys: DataFrame, fresh: DataFrame, key: Sequence[str]) -> ModelDiff:
    """The fresh rows under these ``keys``, one row each, to be written whatever the model had there, and the keys
    without one, to be deleted.
    """
    sides = merge.Sides()
    asked, numbered = keys.alias(sides.stored), _numbered(fresh, key).alias(sides.change)
    both = asked.join(numbered, merge.same_key(key, sides), how="full")  # left, it would send the rows to all tasks
    values = [(sides.of_stored(c) if c in key else sides.of_change(c)).alias(c) for c in fresh.columns]
    number = sides.of_change(ROW_NUMBER)
    op = F.when(number.isNull(), "delete").otherwise("upsert")
    return replace(_counting(both.select(*values, number.alias(ROW_NUMBER), op.alias("_op")), key), repeats=True)


def _numbered(fresh: DataFrame, key: Sequence[str]) -> DataFrame:
    order = [F.col(names.quote_spark(column)) for column in key]
    return fresh.withColumn(ROW_NUMBER, F.row_number().over(Window.partitionBy(*order).orderBy(*order)))


def _counting(rows: DataFrame, key: Sequence[str]) -> ModelDiff:
    number, op = F.col(names.quote_spark(ROW_NUMBER)), F.col("_op")
    incomplete = reduce(operator.or_, [F.col(names.quote_spark(column)).isNull() for column in key])
    counts = {"rows": number.isNotNull(), "broken": number == F.when(incomplete, 1).otherwise(2)}
    return ModelDiff(rows, op.isNotNull(), counts | {kind: op == kind for kind in ("upsert", "delete")})


def _joined(stored: DataFrame | None, fresh: DataFrame, columns: Sequence[str], key: Sequence[str]) -> DataFrame:
    if stored is None:
        return fresh.select(*map(names.quote_spark, [*columns, ROW_NUMBER]), F.lit("upsert").alias("_op"))
    sides = merge.Sides()
    old = stored.select(*map(names.quote_spark, columns)).withColumn(_THERE, F.lit(True)).alias(sides.stored)
    both = old.join(fresh.alias(sides.change), merge.same_key(key, sides), how="full")
    gone, added = sides.of_change(ROW_NUMBER).isNull(), sides.of_stored(_THERE).isNull()
    is_other = is_different(fresh, columns, sides.of_stored, sides.of_change)
    op = F.when(gone, "delete").when(added | is_other, "upsert")

    def value(column: str) -> Column:
        new, kept = sides.of_change(column), sides.of_stored(column)
        return (F.coalesce(new, kept) if column in key else new).alias(column)

    return both.select(*map(value, columns), sides.of_change(ROW_NUMBER).alias(ROW_NUMBER), op.alias("_op"))


def count_keys(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """One row per key: how often it occurs (``count``) and whether a model may not have it (``broken``): more than
    once, or with a NULL in it.
    """
    incomplete = F.lit(False)
    for column in key:
        incomplete = incomplete | F.col(names.quote_spark(column)).isNull()
    counted = rows.groupBy(*map(names.quote_spark, key)).agg(F.count("*").alias(_COUNT))
    count = F.col(names.quote_spark(_COUNT))
    return counted.select(count.alias("count"), ((count > 1) | incomplete).alias("broken"))


def required_evolution(stored: Mapping[str, str], fresh: Mapping[str, str]) -> Evolution:
    """What a model's table, of which nothing is :func:`incompatible_columns`, lacks to take its rows, by Spark's types
    per column: columns to add and to widen.
    """
    added = tuple((column, kind) for column, kind in fresh.items() if column not in stored)
    return Evolution(added, tuple((column, fresh[column]) for column, kind in stored.items() if fresh[column] != kind))


def incompatible_columns(stored: Mapping[str, str], fresh: Mapping[str, str]) -> list[str]:
    """What is to be said of each column that was dropped, or has a type now that does not hold the values of before."""
    found = [f"{column} is gone" for column in stored if column not in fresh]
    for column, kind in stored.items():
        now = fresh.get(column, kind)
        wider = widen(kind, now)
        if now != kind and (wider is None or normalize_type(wider) != normalize_type(now)):
            found.append(f"{column} is {now}, no longer {kind}")
    return found


def unknown_member(rows: DataFrame, member: Mapping[str, object]) -> DataFrame:
    """The unknown member of a dimension with these *rows*: one row with their columns and types, NULL where *member*
    says nothing.
    """
    fields = [F.lit(member.get(field.name)).cast(field.dataType).alias(field.name) for field in rows.schema]
    return rows.sparkSession.range(1).select(*fields)


def with_unknown_member(rows: DataFrame, member: Mapping[str, object] | None) -> DataFrame:
    """All rows of a model with its unknown member, where it has one."""
    return rows if member is None else rows.unionByName(unknown_member(rows, member))
