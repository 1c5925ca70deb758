"""Many changes per key -> one (debezium.md M5, M6): never "the newest" where a newer change left a column out."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator import names
from replicator.transforms import merge


def fold(changes: DataFrame, keys: Sequence[str], partial: bool) -> DataFrame:
    """Decoded changes -> one silver-shaped row per key.

    Expects the table's columns, ``_seq``, ``_deleted``, ``_source_ts_ms`` and ``_unavailable ARRAY<STRING>``
    (names of the
    columns that the change does not know; NULL or empty: it knows them all). ``partial`` says that some change of
    the batch has one: without it the newest change of a key wins whole, which gives the same bytes (M6, P9).
    """
    columns = [c for c in changes.columns if c not in (*merge.SYSTEM_COLUMNS, "_unavailable")]
    return _registers(changes, columns, keys) if partial else _newest(changes, columns, keys)


def _newest(changes: DataFrame, columns: Sequence[str], keys: Sequence[str]) -> DataFrame:
    newest_first = Window.partitionBy(*map(names.spark, keys)).orderBy(F.col("_seq").desc())
    ranked = changes.withColumn("_rank", F.row_number().over(newest_first))
    registers = [cleared(column, keys).alias(column) for column in columns]
    nothing = F.lit(None).cast("map<string,string>").alias("_column_seq")
    return ranked.where(F.col("_rank") == 1).select(*registers, "_seq", "_deleted", nothing, "_source_ts_ms")


def _registers(changes: DataFrame, columns: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Each register takes the value at its greatest position."""
    registers = [column for column in columns if column not in keys]
    at = {column: f"@{index}" for index, column in enumerate(registers)}  # no column can have such a name
    placed = changes.select(
        *[cleared(column, keys).alias(column) for column in columns],
        "_seq",
        "_deleted",
        "_source_ts_ms",
        *[place(column).alias(at[column]) for column in registers],
    )
    folded = placed.groupBy(*map(names.spark, keys)).agg(
        *[F.max_by(names.spark(column), at[column]).alias(column) for column in registers],
        *[F.max(at[column]).alias(at[column]) for column in registers],
        F.max_by("_deleted", "_seq").alias("_deleted"),
        F.max_by("_source_ts_ms", "_seq").alias("_source_ts_ms"),
        F.max("_seq").alias("_seq"),
    )
    positions = {column: F.col(at[column]) for column in registers}
    column_seq = merge.column_positions(positions, F.col("_seq"), F.col("_deleted"))
    return folded.select(
        *map(names.spark, columns), "_seq", "_deleted", column_seq.alias("_column_seq"), "_source_ts_ms"
    )


def cleared(column: str, keys: Sequence[str]) -> Column:
    """A deleted row keeps its key and nothing else (M1)."""
    value = F.col(names.spark(column))
    return value if column in keys else F.when(~F.col("_deleted"), value)


def place(column: str) -> Column:
    """A register's position in one change: its ``_seq``, ``_seq-`` under a delete, or '' where it is not known."""
    unknown = F.coalesce(F.array_contains("_unavailable", column), F.lit(False)) & ~F.col("_deleted")
    return F.when(unknown, F.lit("")).otherwise(merge.default_position(F.col("_seq"), F.col("_deleted")))
