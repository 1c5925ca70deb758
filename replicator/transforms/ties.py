"""Changes of one key at one place of the source that came from different partitions (debezium.md Q11).

The same change sent again after keys moved to other partitions is identical; where it is not, the order of the two is
that of unrelated offsets, and somebody should look.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position


def across_partitions(changes: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Decoded changes with ``_at`` -> one row per key and place where two partitions say different things: the keys.

    ``columns`` are all of the table's. Changes that only offsets order have no place.
    """
    values = F.to_json(F.struct("_deleted", *map(names.spark, columns)), {"ignoreNullFields": "false"})
    told = changes.where(F.col("_reject").isNull() & ~position.is_by_offset(F.col("_seq"))).select(
        *map(names.spark, keys),
        position.place(F.col("_seq")).alias("_place"),
        F.struct("_at.topic", "_at.partition").alias("_part"),
        F.xxhash64(values).alias("_said"),
    )
    of_place = told.groupBy(*map(names.spark, keys), "_place").agg(
        F.size(F.collect_set("_part")).alias("_parts"), F.size(F.collect_set("_said")).alias("_things")
    )
    return of_place.where((F.col("_parts") > 1) & (F.col("_things") > 1)).select(*map(names.spark, keys))
