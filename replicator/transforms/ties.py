"""Ties: different changes of one key at one place of the source, from different partitions (debezium.md Q11).

A change that is sent again after its key moved to another partition is identical. If two changes differ, only unrelated
offsets give their order, which is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from replicator import names
from replicator.debezium import position
from replicator.transforms.user_view import JSON_OPTIONS


def candidate_tables(records: DataFrame, split: Collection[str]) -> DataFrame:
    """One row per ``table`` with records of one place in two partitions; other tables have no ties. ``records`` are
    described records, with the topic modes applied, and their ``epoch``.

    Places that are not final yet are left out: those of snapshot rows (Q5), and in ``split`` tables the major parts of
    places (Q12).
    """
    is_split = F.col("table").isin(*sorted(split))
    place = F.when(is_split, position.minor(F.col("position"))).otherwise(F.concat("epoch", "position"))
    usable = F.col("rule").isNull() & F.col("reason").isNull() & (F.col("position") != position.LOWEST)
    part = F.xxhash64("topic", "partition")
    of_place = (
        records.where(usable)
        .groupBy("table", F.xxhash64(place).alias("_place"))
        .agg((F.min(part) != F.max(part)).alias("_several"))
    )
    return of_place.where("_several").select("table").distinct()


def across_partitions(changes: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """The keys, one row per key and place, for which two partitions have different changes; ``changes`` are decoded,
    with ``_at``.

    ``columns`` are all of the table's. Changes that only offsets order have no place.
    """
    kinds = changes.schema
    values = [_hashable(names.quote_spark(column), kinds[column].dataType) for column in columns]
    # the hash skips NULLs: hash also whether each value is NULL
    content = F.xxhash64("_deleted", *[part for value in values for part in (value.isNull(), value)])
    hashed = changes.where(F.col("_reject").isNull() & ~position.is_by_offset(F.col("_seq"))).select(
        *map(names.quote_spark, keys),
        position.without_offset(F.col("_seq")).alias("@place"),  # no key can have such a name
        F.xxhash64("_at.topic", "_at.partition").alias("@part"),
        content.alias("@said"),
    )
    several = [(F.min(name) != F.max(name)).alias(name) for name in ("@part", "@said")]
    of_place = hashed.groupBy(*map(names.quote_spark, keys), "@place").agg(*several)
    return of_place.where(F.col("@part") & F.col("@said")).select(*map(names.quote_spark, keys))


def _hashable(column: str, kind: DataType) -> Column:
    """The column in a form that has a hash: maps, also nested ones, have none."""
    return F.to_json(column, JSON_OPTIONS) if isinstance(kind, (ArrayType, MapType, StructType)) else F.col(column)
