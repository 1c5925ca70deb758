"""Bronze records as input of silver: a survey of a range, the order of its records, and those that can never be applied
(architecture section 6).

``records`` are bronze rows described by ``debezium.envelope.read``; ``decode.decode`` turns them into changes.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import depth, headers, position
from replicator.debezium.template_matching import EXAMPLE_COLUMNS
from replicator.jvm import plan_cache
from replicator.transforms import watermarks
from replicator.transforms.dead_letters import to_dead_letter

_KEYS_ERROR = 0.05
PASSED_POSITION = "_passed"
"""The column with the greatest position before a record, other tables' records included: see
:func:`with_passed_position`.
"""


def survey(records: DataFrame) -> DataFrame:
    """Survey a range: one row per (topic, table, form, rule, reason) with its ``count`` and what decides how to decode
    it.

    ``value``, ``key`` and their names are those of one example, a record that was described from its own text;
    ``exampled`` is whether there is one. ``keys`` is the approximate number of distinct keys.
    """
    return plan_cache.apply(records, _survey)


def _survey(records: DataFrame) -> DataFrame:
    example = F.struct(F.lit(True).alias("exampled"), *EXAMPLE_COLUMNS)
    found = records.groupBy("topic", "source_name", "table", "form", "rule", "reason").agg(
        F.count("*").alias("count"),
        F.max("is_snapshot").alias("has_snapshot"),
        F.max("held").alias("has_placeholder"),
        F.sum((F.col("op") == "t").cast("int")).alias("truncates"),
        F.max("bare").alias("bare"),
        F.max("rewritten").alias("rewritten"),
        # with a set Spark aggregates by hash; with strings alone it would sort all records
        F.array_max(F.collect_set("shape")).alias("shape"),
        F.max(F.col("position").isNotNull()).alias("positioned"),
        F.max(F.col("key").isNull()).alias("has_null_key"),
        F.approx_count_distinct("key", _KEYS_ERROR).alias("keys"),
        F.max((F.col("op") == "d") & F.col("key").isNull()).alias("has_keyless_delete"),
        F.max(headers.is_key_change(F.col("headers"))).alias("has_key_change"),
        *[F.first(name).alias(name) for name in ("flat", "wrapped", "key_wrapped")],
        F.first(F.when(~F.col("told"), example), ignorenulls=True).alias("_example"),
    )
    return found.select("*", "_example.*").drop("_example")


def with_seq(
    records: DataFrame, *, snapshots: bool, running: DataFrame | None, marks: Column | None = None
) -> DataFrame:
    """Add ``_seq`` (NULL: no position) to records, which have their ``epoch`` (Q2).

    ``snapshots``: there are snapshot rows among them, which rank above all before them (Q5). ``running`` is the
    greatest position before the range, one row per (topic, partition, epoch, folder) with ``maximum`` and the offset of
    a record that ``holds`` it; None if the range starts with the topic. If records of other tables came in between, the
    records have PASSED_POSITION. ``marks`` is given if some change is below an earlier one of its own transaction
    (Q12): a record's watermark before the range (``watermarks.WATERMARK_TYPE``), NULL if there is none.
    """
    if marks is not None:
        records = watermarks.align_transactions(records, marks)
    if snapshots:
        before, folder = F.lit(position.LOWEST), headers.folder(F.col("headers"))
        if running is not None:
            records = records.withColumn("folder", folder)
            records = records.join(F.broadcast(running), ["topic", "partition", "epoch", "folder"], how="left")
            before = F.coalesce(F.when(F.col("holds") < F.col("offset"), F.col("maximum")), before)
        if PASSED_POSITION in records.columns:
            before = F.greatest(before, F.col(PASSED_POSITION))
        place = position.with_running_maximum(F.col("position"), F.col("is_snapshot"), before, folder)
        records = records.withColumn("position", place)
    return records.withColumn("_seq", position.seq(F.col("position"), F.col("offset"), F.col("epoch")))


def with_passed_position(records: DataFrame) -> DataFrame:
    """Add PASSED_POSITION to described records of whole topics: the greatest position in the partition before each
    (Q5), kept for when the records of other tables are filtered out.
    """
    return records.withColumn(
        PASSED_POSITION, position.running_maximum(F.col("position"), headers.folder(F.col("headers")))
    )


def dead_letters_of(records: DataFrame, table: str | None) -> DataFrame:
    """Dead letters of records whose description already shows that they cannot be applied."""
    is_deep = (F.col("reason") == "malformed_json") & depth.is_too_deep(F.col("value"))
    reason = F.when(is_deep, "too_deep").otherwise(F.col("reason"))
    buried = to_dead_letter(table, reason, detail=F.lit(None), seq=F.lit(None))
    return records.where(F.col("reason").isNotNull()).select(buried.alias("letter")).select("letter.*")
