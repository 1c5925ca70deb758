"""TRUNCATE as a delete of every older row, stored or arriving late (debezium.md section T)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.jvm import expressions
from replicator.transforms.columns.layout import Layout


def select_truncates(records: DataFrame) -> DataFrame:
    """The truncates among ordered records, if they have a position: ``_seq`` and ``source_ts_ms``."""
    return records.where((F.col("op") == "t") & F.col("_seq").isNotNull()).select("_seq", "source_ts_ms")


def survivors(changes: DataFrame, mark: str) -> DataFrame:
    """Changes that the truncate at ``mark`` does not supersede (T2)."""
    return changes.where(F.col("_seq") > mark)


def clear_unknown(rows: DataFrame, mark: str) -> DataFrame:
    """Folded rows above the truncate at ``mark``, with their unknown columns cleared by it (T2)."""
    places = F.transform_values("_column_seq", lambda _, place: clear_position(place, F.lit(mark)))
    own = {"_column_seq": places.alias("_column_seq")}
    return rows.select(*[own.get(column, F.col(names.quote_spark(column))) for column in rows.columns])


def clear_position(place: Column, mark: Column) -> Column:
    """The position of a value in a row above the truncate at ``mark``, which deletes older values; '' is lowest."""
    return F.greatest(place, F.concat(mark, F.lit("-")))


def last_below(seq: Column, marks: Sequence[str]) -> Column:
    """The last of the truncates at ``marks`` below a change; '' if there is none."""
    return F.coalesce(F.array_max(F.filter(expressions.string_array(marks), lambda mark: mark < seq)), F.lit(""))


def deletes(stored: DataFrame, layout: Layout, mark: str) -> DataFrame:
    """Deletes at ``mark`` for the stored rows that the truncate affects: older ones, and those with older columns."""
    reached = stored.where(((F.col("_seq") < mark) & ~F.col("_deleted")) | F.col("_column_seq").isNotNull())
    return to_deletes(reached, layout, F.lit(mark))


def to_deletes(rows: DataFrame, layout: Layout, seq: Column) -> DataFrame:
    """A change per silver row that deletes it at ``seq``."""
    return rows.select(
        *[
            (F.col(names.quote_spark(column)) if column in layout.keys else F.lit(None).cast(kind)).alias(column)
            for column, kind in layout.types.items()
        ],
        seq.alias("_seq"),
        F.lit(True).alias("_deleted"),
        F.lit(None).cast("bigint").alias("_source_ts_ms"),
        F.lit(None).cast("array<string>").alias("_unavailable"),
    )
