"""The shape of a dead letter (debezium.md R4): one row per record that cannot be applied."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

PLACE = ("topic", "partition", "offset")
"""What tells a record from all others."""


def letter(place: Sequence[Column], table: str | None, reason: Column, seq: Column, detail: Column) -> Column:
    """STRUCT<topic, partition, offset, table, seq, reason, detail>; ``place`` holds the values of PLACE."""
    where = [column.alias(name) for column, name in zip(place, PLACE, strict=True)]
    told = {"table": F.lit(table), "seq": seq, "reason": reason, "detail": detail}
    return F.struct(*where, *[column.cast("string").alias(name) for name, column in told.items()])
