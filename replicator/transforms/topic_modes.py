"""Topic modes: how records of a topic are interpreted where that differs from what each looks like alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import position
from replicator.debezium.classification import TOMBSTONE
from replicator.transforms import lone_tombstones


@dataclass(frozen=True)
class TopicModes:
    """The modes of topics, by topic name.

    - ``by_offset``: records have no positions (Q8).
    - ``scattered``: such topics with several partitions, where nothing says what a truncate came after (T4).
    - ``null_deletes``: a null value is a delete (F2, B6) from the table that the topic carries, or a dead letter if it
      carries several (None).
    - ``lone_deletes``: the same for a lone tombstone (B5).
    - ``envelope_topics``: an object that is neither an envelope nor has a field of Debezium's is ``unknown_shape``
      (A1).
    - ``marked``: so is a flattened row that does not say whether it is deleted: nulls delete nothing there, and may be
      the only trace of its delete (B6).
    - ``by_time``: tables in the order of ``source.ts_ms`` (Q9), unless nulls delete from them: nulls have no time.
    """

    by_offset: Sequence[str]
    null_deletes: Mapping[str, str | None]
    lone_deletes: Mapping[str, str | None]
    envelope_topics: Sequence[str]
    marked: Sequence[str] = ()
    by_time: Sequence[str] = ()
    scattered: Sequence[str] = ()

    def deletes(self) -> Column:
        """Whether a record without a value is a delete."""
        topic, lone = F.col("topic"), _is_lone()
        null = lone | F.col("rule").eqNullSafe(TOMBSTONE)
        is_declared = (topic.isin(*self.null_deletes) & null) | (topic.isin(*self.lone_deletes) & lone)
        return F.col("key").isNotNull() & is_declared

    def sole_table(self) -> Column:
        """The table of such a delete; NULL if the topic carries several."""
        tables = {**self.lone_deletes, **self.null_deletes}
        known = [F.when(F.col("topic") == name, F.lit(table)) for name, table in tables.items()]
        return F.coalesce(*known, F.lit(None).cast("string"))

    def is_ordered_by_time(self) -> Column:
        """Whether a record is ordered by time instead of position."""
        in_time = F.col("table").isin(*self.by_time) & ~F.col("topic").isin(*self.null_deletes)
        return F.coalesce(in_time, F.lit(False))

    def has_unknown_shape(self) -> Column:
        """Whether an object has a different shape from the records of its topic."""
        topic, unmarked = F.col("topic"), F.col("flat") & ~F.col("rewritten")
        return (topic.isin(*self.envelope_topics) & F.col("bare")) | (topic.isin(*self.marked) & unmarked)


def apply_modes(records: DataFrame, modes: TopicModes) -> DataFrame:
    """Set ``rule``, ``reason``, ``op``, ``table``, ``position`` and ``is_snapshot`` of described records by mode."""
    deletes, carried, timed = modes.deletes(), modes.sole_table(), modes.is_ordered_by_time()
    without = F.col("topic").isin(*modes.by_offset) & ~timed
    place = (
        F.when(timed, position.from_timestamp(F.col("source_ts_ms")))
        .when(without, F.lit(position.LOWEST))
        .otherwise(F.col("position"))
    )
    is_change = F.col("rule").isNull() & F.col("reason").isNull()
    truncates = F.col("op").eqNullSafe("t") & is_change
    replaced = ("rule", "reason", "op", "table", "position", "is_snapshot", "form")
    return records.select(
        *[column for column in records.columns if column not in replaced],
        F.when(~deletes, F.when(_is_lone(), TOMBSTONE).otherwise(F.col("rule"))).alias("rule"),
        F.when(modes.has_unknown_shape() & is_change, "unknown_shape")
        .when(truncates & without & F.col("topic").isin(*modes.scattered), "truncate_unordered")
        .when(truncates & place.isNull(), "position_missing")
        .when(~deletes, F.col("reason"))
        .when(carried.isNull(), "unknown_table")
        .alias("reason"),
        F.when(deletes, "d").otherwise(F.col("op")).alias("op"),
        F.when(deletes, carried).otherwise(F.col("table")).alias("table"),
        place.alias("position"),
        (F.col("is_snapshot") & ~timed & ~without).alias("is_snapshot"),
        "form",
    )


def _is_lone() -> Column:
    return F.coalesce(F.col("rule") == lone_tombstones.LONE, F.lit(False))
