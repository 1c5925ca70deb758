"""Of the records of a table those that can decide what its rows become: what an other one replaces whole need not be
parsed (performance.md A5, architecture section 6 step 2).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator.debezium import unavailable
from replicator.debezium.unavailable import Placeholder
from replicator.transforms import decode


def deciding(ordered: DataFrame, *, scattered: bool, held: Placeholder | None) -> DataFrame:
    """Ordered records, each with its key in Kafka -> of each key in one form the newest by ``_seq``, with what
    :func:`decode.decode` reads; one without a position counts as the newest, so that nobody overlooks it.

    All records stay of a key that came from several partitions, where some are ``scattered`` (Q11), and of one with a
    record that may hold the placeholder, where it is ``held``: what a newer change left out an older one tells (M6).
    """
    # the hash tells keys apart at once: their texts begin alike
    key = (F.xxhash64("form", "key"), "form", "key")
    newest_first = Window.partitionBy(*key).orderBy(F.col("_seq").desc_nulls_first())
    together = Window.partitionBy(*key)
    read = ordered.select(*decode.READ)
    marks: dict[str, Column] = {"_place": F.row_number().over(newest_first)}
    stays = F.col("_place") == 1
    if scattered:
        part = F.struct("topic", "partition")
        everywhere = Window.partitionBy(F.xxhash64("key"), "key")
        marks["_scattered"] = F.min(part).over(everywhere) != F.max(part).over(everywhere)
        stays = stays | F.col("_scattered")
    if held is not None:
        marks["_held"] = F.max(unavailable.in_record(F.col("value"), held)).over(together)
        stays = stays | F.col("_held")
    return read.withColumns(marks).where(stays).select(*decode.READ)
