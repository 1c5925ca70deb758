"""Fold many changes per key into one (debezium.md M5, M6): not simply the newest, since it may lack a column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator import names
from replicator.jvm import expressions
from replicator.transforms import merge


def fold(changes: DataFrame, keys: Sequence[str], unknown: Collection[str]) -> DataFrame:
    """Fold decoded changes into one silver-shaped row per key.

    Expects the table's columns, ``_seq``, ``_deleted``, ``_source_ts_ms`` and ``_unavailable ARRAY<STRING>``
    (names of the columns that the change does not know; NULL or empty: it knows them all). ``unknown`` are the
    columns that some change of the batch does not know (:func:`unknown_columns`): if there are none, the newest
    change of a key wins as a whole, which gives the same bytes (M6, P9).
    """
    columns = [c for c in changes.columns if c not in (*merge.SYSTEM_COLUMNS, "_unavailable")]
    lacking = [
        column for column in columns if column in unknown and column not in keys
    ]  # Kafka's key has those of a row
    return _fold_registers(changes, columns, keys, lacking) if lacking else _take_newest(changes, columns, keys)


def unknown_columns() -> Column:
    """Aggregate of all changes of a batch, ARRAY<STRING>: the columns that some change does not know."""
    return F.array_distinct(F.flatten(F.collect_set("_unavailable")))


def _take_newest(changes: DataFrame, columns: Sequence[str], keys: Sequence[str]) -> DataFrame:
    newest_first = Window.partitionBy(*map(names.quote_spark, keys)).orderBy(F.col("_seq").desc())
    ranked = changes.withColumn("_rank", F.row_number().over(newest_first))
    registers = [value_unless_deleted(column, keys).alias(column) for column in columns]
    nothing = F.lit(None).cast("map<string,string>").alias("_column_seq")
    return ranked.where(F.col("_rank") == 1).select(*registers, "_seq", "_deleted", nothing, "_source_ts_ms")


def _fold_registers(
    changes: DataFrame, columns: Sequence[str], keys: Sequence[str], lacking: Sequence[str]
) -> DataFrame:
    """Each register takes the value at its greatest position; registers that every change knows share one."""
    at = {column: f"@{index}" for index, column in enumerate(lacking)}  # no column can have such a name
    alike = [column for column in columns if column not in lacking and column not in keys]
    placed = changes.select(
        *map(names.quote_spark, keys),
        *[value_unless_deleted(column, keys).alias(column) for column in at],
        *(
            [F.struct(*[value_unless_deleted(column, keys).alias(column) for column in alike]).alias("@row")]
            if alike
            else []
        ),
        "_seq",
        "_deleted",
        "_source_ts_ms",
        merge.default_position(F.col("_seq"), F.col("_deleted")).alias("@place"),
        *[register_position(column).alias(at[column]) for column in at],
    )
    folded = placed.groupBy(*map(names.quote_spark, keys)).agg(
        *[F.max_by(names.quote_spark(column), at[column]).alias(column) for column in at],
        *[F.max(at[column]).alias(at[column]) for column in at],
        *([F.max_by("@row", "@place").alias("@row")] if alike else []),
        F.max("@place").alias("@place"),
        F.max_by("_deleted", "_seq").alias("_deleted"),
        F.max_by("_source_ts_ms", "_seq").alias("_source_ts_ms"),
        F.max("_seq").alias("_seq"),
    )
    values = {column: F.col("@row").getField(column).alias(column) for column in alike}
    return folded.select(
        *[values.get(column, F.col(names.quote_spark(column))) for column in columns],
        "_seq",
        "_deleted",
        _column_seq(at, alike).alias("_column_seq"),
        "_source_ts_ms",
    )


def _column_seq(at: Mapping[str, str], alike: Sequence[str]) -> Column:
    seq, deleted, rest = F.col("_seq"), F.col("_deleted"), F.col("@place")
    own = [expressions.struct({"key": F.lit(column), "value": F.col(place)}) for column, place in at.items()]
    others = F.when(rest != merge.default_position(seq, deleted), merge.same_position(alike, rest))
    return merge.non_default_positions(F.concat(F.array(*own), F.coalesce(others, merge.no_positions())), seq, deleted)


def value_unless_deleted(column: str, keys: Sequence[str]) -> Column:
    """The column's value; NULL in a deleted row, which keeps only its key (M1)."""
    value = F.col(names.quote_spark(column))
    return value if column in keys else F.when(~F.col("_deleted"), value)


def register_position(column: str) -> Column:
    """A register's position in one change: its ``_seq``, ``_seq-`` in a delete, or '' if the value is unknown."""
    unknown = F.coalesce(F.array_contains("_unavailable", column), F.lit(False)) & ~F.col("_deleted")
    return F.when(unknown, F.lit("")).otherwise(merge.default_position(F.col("_seq"), F.col("_deleted")))
