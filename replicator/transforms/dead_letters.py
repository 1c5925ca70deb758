"""Dead letters: the coordinates of a record and why it cannot be applied (debezium.md R4)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.jvm import expressions

COORDINATES = ("topic", "partition", "offset")
"""The columns that identify a record, and its dead letter."""

ADDRESS = ("topic", "topic_id", "partition", "offset")
"""The columns by which a dead letter names its record."""

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
"""The stored columns of a dead letter and their Spark types; ``first_seen`` (UTC) is when it was first written, and
does not change.
"""


def to_dead_letter(table: str | None, reason: Column, detail: Column, seq: Column, at: str = "") -> Column:
    """STRUCT of all COLUMNS but ``first_seen``. ``at`` is the prefix of the ADDRESS columns' names."""
    return expressions.struct(
        {
            **{name: F.col(f"{at}{name}") for name in ADDRESS},
            "table": F.lit(table).cast("string"),
            "seq": seq.cast("string"),
            "reason": reason,
            "detail": detail.cast("string"),
        }
    )
