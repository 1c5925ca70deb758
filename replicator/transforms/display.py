"""Values as they are shown to people."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator import names


def as_texts(columns: Iterable[str]) -> list[Column]:
    """Return the columns as Spark writes them, to be collected: Python does not have all dates and times of Spark."""
    return [F.col(names.quote_spark(column)).cast("string").alias(column) for column in columns]
