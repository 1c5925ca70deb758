"""Rows to and from a Hudi table: conversion to its schema, and the actions of a merge with its stored rows.

``_action`` is what is done with a row: ``insert``, ``update``, ``delete`` or NULL for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.formats.hudi_timeline import Commit
from replicator.transforms import merge


def to_table_schema(rows: DataFrame, commit: Commit, *more: Column) -> DataFrame:
    """Select the columns of the commit's schema, in its order, types and metadata: Hudi stores integers of less than
    32 bits as 32 bits.
    """
    return rows.select(
        *[
            F.col(names.quote_spark(field.name)).cast(field.dataType).alias(field.name, metadata=field.metadata)
            for field in commit.note.schema
        ],
        *more,
    )


def difference_actions(stored: DataFrame, difference: DataFrame, keys: Sequence[str]) -> DataFrame:
    """A difference with its ``_action`` on the stored rows. A deleted row has the stored values: Hudi needs its
    partition.
    """
    sides = merge.Sides()
    there = stored.withColumn("_there", F.lit(True)).alias(sides.stored)
    both = difference.alias(sides.change).join(there, merge.same_key(keys, sides), how="left")
    is_there, is_upsert = sides.of_stored("_there"), sides.of_change("_op") == "upsert"
    action = F.when(is_upsert, F.when(is_there, "update").otherwise("insert")).when(is_there, "delete")

    def value(column: str) -> Column:
        return F.when(is_upsert, sides.of_change(column)).otherwise(sides.of_stored(column)).alias(column)

    return both.select(*[value(column) for column in stored.columns], action.alias("_action"))


def merge_actions(stored: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Changes merged with the stored rows, one row per changed key, with its ``_action``."""
    sides = merge.Sides()
    both = changes.alias(sides.change).join(stored.alias(sides.stored), merge.same_key(keys, sides), how="left")
    is_new = sides.of_stored("_seq").isNull()
    action = F.when(is_new, F.lit("insert")).when(merge.has_effect(sides), F.lit("update"))
    result = merge.merged_columns(stored.columns, keys, sides)

    def pick(column: str) -> Column:
        change = sides.of_change(column)
        return change if column in keys else F.when(is_new, change).otherwise(result[column])

    return both.select(*[pick(column).alias(column) for column in stored.columns], action.alias("_action"))
