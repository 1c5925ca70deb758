"""Schema evolution of a Delta table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from replicator import names
from replicator.formats import delta_fencing, delta_write
from replicator.protocols import Fence
from replicator.spec import Evolution, Table
from replicator.transforms.columns.reshape import TRAILING_COLUMNS


def changes_types(rows: DataFrame, wanted: DataFrame) -> bool:
    """Whether the evolved rows have another type for some column of the table."""
    kinds = dict(wanted.dtypes)
    return any(kind != kinds[column] for column, kind in rows.dtypes)


def rewrite(wanted: DataFrame, table: Table, parts: Sequence[str], fence: Fence) -> None:
    """Rewrite all rows in one commit, partitioned as before."""
    wanted = wanted if parts else delta_write.sort_by_key(wanted, table)
    writer = wanted.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    with delta_fencing.fenced_commit(wanted.sparkSession, fence, table.location):
        writer.partitionBy(*parts).save(table.location)


def add(spark: SparkSession, table: Table, columns: Sequence[str], evolution: Evolution, fence: Fence) -> None:
    """Add the new columns, one commit each, after the table's own ``columns``; existing ones are left as they are."""
    last = [column for column in columns if column not in TRAILING_COLUMNS][-1]
    for column, kind in evolution.added:
        if column not in columns:
            added = f"ADD COLUMN {names.quote_spark(column)} {kind} AFTER {names.quote_spark(last)}"
            with delta_fencing.fenced_commit(spark, fence, table.location):
                spark.sql(f"ALTER TABLE delta.{names.quote_spark(table.location)} {added}")
            last = column
