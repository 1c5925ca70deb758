"""The difference between a gold model's fresh and stored rows, by key (reference/gold.md, step 5)."""

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
from replicator.transforms.literals import literal

ROW_NUMBER = "_ number"
"""The column of :class:`ModelDiff` with the number of a fresh row among those of its key; NULL if there is no fresh
row.
"""

RESERVED = ("_op", "_deleted")
"""Names that no column of a model can have, in any case: a difference and a silver table use them."""

_THERE, _COUNT = "_ there", "_ count"


@dataclass(frozen=True)
class ModelDiff:
    """A model's fresh rows compared with the stored ones: ``rows`` has one row per key, more if fresh rows share one,
    with the model's columns and ``_op`` (``upsert``; ``delete`` with the key alone; NULL: both sides are equal).

    ``differs`` is the condition for rows to write; with ``repeats`` some of these may equal the stored row. ``counts``
    are conditions to count over all of ``rows``: the model's fresh rows (``rows``), invalid keys (``broken``: they
    repeat, or contain a NULL), and rows to write by operation (``upsert``, ``delete``).
    """

    rows: DataFrame
    differs: Column
    counts: Mapping[str, Column]
    repeats: bool = False


def compare(stored: DataFrame | None, fresh: DataFrame, key: Sequence[str]) -> ModelDiff:
    """Compare both sides in one pass: fresh rows are numbered within their key in the order of the join. ``stored`` is
    None before the first build.
    """
    return _counting(_joined(stored, _numbered(fresh, key), fresh.columns, key), key)


def overwrite_keys(keys: DataFrame, fresh: DataFrame, key: Sequence[str]) -> ModelDiff:
    """Upserts for the fresh rows of these ``keys``, one row each, whatever the model has stored, and deletes for the
    keys without a fresh row.
    """
    sides = merge.Sides()
    asked, numbered = keys.alias(sides.stored), _numbered(fresh, key).alias(sides.change)
    both = asked.join(
        numbered, merge.same_key(key, sides), how="full"
    )  # a left join would broadcast the rows to all tasks
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
    """One row per key: how often it occurs (``count``) and whether it is invalid (``broken``): it repeats, or contains
    a NULL.
    """
    incomplete = F.lit(False)
    for column in key:
        incomplete = incomplete | F.col(names.quote_spark(column)).isNull()
    counted = rows.groupBy(*map(names.quote_spark, key)).agg(F.count("*").alias(_COUNT))
    count = F.col(names.quote_spark(_COUNT))
    return counted.select(count.alias("count"), ((count > 1) | incomplete).alias("broken"))


def required_evolution(stored: Mapping[str, str], fresh: Mapping[str, str]) -> Evolution:
    """The columns to add and to widen so that a model's table can take the fresh rows, by Spark type per column. There
    must be no :func:`incompatible_columns`.
    """
    added = tuple((column, kind) for column, kind in fresh.items() if column not in stored)
    return Evolution(added, tuple((column, fresh[column]) for column, kind in stored.items() if fresh[column] != kind))


def incompatible_columns(stored: Mapping[str, str], fresh: Mapping[str, str]) -> list[str]:
    """A message for each column that was dropped, or whose new type cannot hold the old values."""
    found = [f"{column} was removed" for column in stored if column not in fresh]
    for column, kind in stored.items():
        now = fresh.get(column, kind)
        wider = widen(kind, now)
        if now != kind and (wider is None or normalize_type(wider) != normalize_type(now)):
            found.append(f"{column} changed from {kind} to {now}")
    return found


def unknown_member(rows: DataFrame, member: Mapping[str, object]) -> DataFrame:
    """The unknown member of a dimension with these *rows*: one row with their columns and types, NULL in columns that
    *member* does not give.
    """
    fields = [literal(member.get(field.name), field.dataType).alias(field.name) for field in rows.schema]
    return rows.sparkSession.range(1).select(*fields)


def with_unknown_member(rows: DataFrame, member: Mapping[str, object] | None) -> DataFrame:
    """All rows of a model, with its unknown member if it has one."""
    return rows if member is None else rows.unionByName(unknown_member(rows, member))
