"""Skip rules: records that are not rows by the source's declaration (debezium.md H4, I1, I4)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from replicator.spec import EVENT_ID, SourceSpec


def apply_declared(records: DataFrame, source: SourceSpec) -> DataFrame:
    """Mark described records with the rules ``signal``, ``outbox_update`` and ``outbox_delete`` where they apply."""
    rule = _rule(source)
    return records if rule is None else _ruled(records, rule)


def mark_duplicate_events(records: DataFrame, stored: Mapping[str, DataFrame], tables: Column) -> DataFrame:
    """Mark events of the outbox router that occurred before with the rule ``outbox_duplicate`` (I1).

    ``tables`` is the condition for such events; ``stored`` has, by table, the ``id`` of each event in silver. Of
    several in one batch the first is kept.
    """
    event = F.get_json_object("key", f"$.payload.{EVENT_ID}")
    is_event = tables & F.col("rule").isNull() & F.col("reason").isNull() & event.isNotNull()
    first = Window.partitionBy("table", "_event").orderBy("partition", "offset")
    events = records.where(is_event).withColumn("_event", event).withColumn("_place", F.row_number().over(first))
    again = F.col("_place") > 1
    for number, (table, ids) in enumerate(stored.items()):
        known = f"_known_{number}"
        there = ids.select(F.lit(table).alias("table"), F.col(EVENT_ID).alias("_event"), F.lit(True).alias(known))
        events = events.join(there, ["table", "_event"], how="left")
        again = again | F.coalesce(F.col(known), F.lit(False))
    others = [F.col(name) for name in records.columns if name != "rule"]
    marked = events.select(*others, F.when(again, "outbox_duplicate").alias("rule"))
    return records.where(~is_event).unionByName(marked)


def _rule(source: SourceSpec) -> Column | None:
    rules = []
    if source.signals is not None:
        rules.append(F.when(F.col("table") == source.signals, "signal"))
    logs = [
        declared.table for declared in source.tables if declared.outbox is not None and declared.outbox.mode == "log"
    ]
    is_log = F.col("table").isin(*logs)
    if source.default.outbox is not None and source.default.outbox.mode == "log":
        is_log = ~F.col("table").isin(*[declared.table for declared in source.tables if declared.table not in logs])
    if logs or source.default.outbox is not None:
        has_operation = ~F.col("flat") | F.col("value").contains("__op")  # else it may be an insert (F4)
        rules.append(F.when(is_log & has_operation & (F.col("op") == "u"), "outbox_update"))
        rules.append(F.when(is_log & F.col("op").isin("d", "t"), "outbox_delete"))
    return F.coalesce(*rules) if rules else None


def _ruled(records: DataFrame, rule: Column) -> DataFrame:
    """Set the rule on records without a rule or reason."""
    is_change = F.col("rule").isNull() & F.col("reason").isNull()
    others = [F.col(name) for name in records.columns if name != "rule"]
    return records.select(*others, F.coalesce("rule", F.when(is_change, rule)).alias("rule"))
