"""The dead letter as a noun: one Kafka place and why its record cannot be applied (debezium.md R4)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.jvm import expressions

COORDINATES = ("topic", "partition", "offset")
"""What makes a record unique, and the letter about it."""

ADDRESS = ("topic", "topic_id", "partition", "offset")
"""How a letter names its record."""

COLUMNS = {
    "topic": "string",
    "topic_id": "string",
    "partition": "int",
    "offset": "bigint",
    "table": "string",
    "seq": "string",
    "reason": "string",
    "detail": "string",
    "first_seen": "timestamp",
}
"""A letter at rest, with Spark's types; ``first_seen`` (UTC) is when it was buried first, and stays."""


def to_dead_letter(table: str | None, reason: Column, detail: Column, seq: Column, at: str = "") -> Column:
    """STRUCT of all COLUMNS but ``first_seen``. ``at`` is what the names of the record's place begin with."""
    return expressions.struct(
        {
            **{name: F.col(f"{at}{name}") for name in ADDRESS},
            "table": F.lit(table).cast("string"),
            "seq": seq.cast("string"),
            "reason": reason,
            "detail": detail.cast("string"),
        }
    )
