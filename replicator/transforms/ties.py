"""Changes of one key at one place of the source that came from different partitions (debezium.md Q11).

The same change sent again after keys moved to other partitions is identical; where it is not, the order of the two is
that of unrelated offsets, and somebody should look.
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
    """Records read as their topics are, with their ``epoch`` -> one row per ``table`` of which two partitions hold a
    record of one place. Of other tables no partitions contradict each other, unless the place of a record is yet to be
    settled: that of a row of a snapshot (Q5). In ``split`` tables major parts of places are (Q12), and are left out.
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
    """Decoded changes with ``_at`` -> one row per key and place where two partitions say different things: the keys.

    ``columns`` are all of the table's. Changes that only offsets order have no place.
    """
    kinds = changes.schema
    values = [_hashable(names.quote_spark(column), kinds[column].dataType) for column in columns]
    # a hash leaves NULLs out: whether there is one is told before each
    said = F.xxhash64("_deleted", *[part for value in values for part in (value.isNull(), value)])
    told = changes.where(F.col("_reject").isNull() & ~position.is_by_offset(F.col("_seq"))).select(
        *map(names.quote_spark, keys),
        position.without_offset(F.col("_seq")).alias("@place"),  # no key can have such a name
        F.xxhash64("_at.topic", "_at.partition").alias("@part"),
        said.alias("@said"),
    )
    several = [(F.min(name) != F.max(name)).alias(name) for name in ("@part", "@said")]
    of_place = told.groupBy(*map(names.quote_spark, keys), "@place").agg(*several)
    return of_place.where(F.col("@part") & F.col("@said")).select(*map(names.quote_spark, keys))


def _hashable(column: str, kind: DataType) -> Column:
    """Maps have no hash, also within other values."""
    return F.to_json(column, JSON_OPTIONS) if isinstance(kind, (ArrayType, MapType, StructType)) else F.col(column)
