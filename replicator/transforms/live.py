"""The user view of silver: live rows (of a history: its intervals) with the source's own column names."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from replicator import names
from replicator.transforms import history
from replicator.transforms.merge import SYSTEM_COLUMNS


def select_live(rows: DataFrame, *extra: str) -> DataFrame:
    """One row per live key: the source's columns in its spelling, and ``extra`` system columns (``_source_ts_ms``).

    For a history one row per interval, with ``history.COLUMNS``. A table that is not silver (gold) is returned as it
    is.
    """
    if "_deleted" not in rows.columns:
        return rows
    columns = [
        F.col(names.quote_spark(field.name)).alias(source_spelling(field))
        for field in rows.schema
        if field.name not in SYSTEM_COLUMNS
    ]
    is_shown = history.is_interval() if history.KEY in rows.columns else ~F.col("_deleted")
    return rows.where(is_shown).select(*columns, *extra)


def source_spelling(field: StructField) -> str:
    """The source's own spelling of a stored column."""
    return field.metadata.get("name") or names.decode(field.name)
