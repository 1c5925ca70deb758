"""Bronze records as silver takes them: what a range holds, how it is read, its order, what can never be applied
(architecture section 6).

``records`` are bronze rows that ``debezium.envelope.read`` has described; ``decode.decode`` makes changes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import prepared
from replicator.debezium import depth, headers, position
from replicator.debezium.alike import EXAMPLE
from replicator.debezium.envelope import TOMBSTONE
from replicator.transforms import compaction, reach
from replicator.transforms.letters import letter

_KEYS_ERROR = 0.05
PASSED = "_passed"
"""Of a record the greatest position before it, where other tables' records tell, too: see :func:`passed`."""


def survey(records: DataFrame) -> DataFrame:
    """What a range holds, one row per (topic, table, form, rule, reason): its ``count`` and what decides how to
    decode it.

    ``value``, ``key`` and their names are those of one example, of a record that was described by its own words;
    ``exampled`` says whether there was one. ``keys`` says about how many keys there are.
    """
    return prepared.once(records, _survey)


def _survey(records: DataFrame) -> DataFrame:
    example = F.struct(F.lit(True).alias("exampled"), *EXAMPLE)
    found = records.groupBy("topic", "source_name", "table", "form", "rule", "reason").agg(
        F.count("*").alias("count"),
        F.max("is_snapshot").alias("has_snapshot"),
        F.max("held").alias("has_placeholder"),
        F.sum((F.col("op") == "t").cast("int")).alias("truncates"),
        F.max("bare").alias("bare"),
        F.max("rewritten").alias("rewritten"),
        # a set lets Spark aggregate by hash, where texts alone would make it sort all records
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


def by_mode(
    records: DataFrame,
    by_offset: Sequence[str],
    null_deletes: Mapping[str, str | None],
    lone_deletes: Mapping[str, str | None],
    enveloped: Sequence[str],
    *,
    marked: Sequence[str] = (),
    by_time: Sequence[str] = (),
    scattered: Sequence[str] = (),
) -> DataFrame:
    """Records read as their topic's mode says.

    Topics in ``by_offset`` have no positions (Q8); in ``null_deletes`` a null value is a delete (F2, B6) from the table
    that the topic carries, or a dead letter where it carries several (None); in ``lone_deletes`` a tombstone that
    compaction left alone is (B5); in ``enveloped`` topics an object that is no envelope and has no field of Debezium's
    is ``unknown_shape`` (A1), and in ``marked`` ones any flattened row that does not say whether it is deleted: nulls
    delete nothing there, and may be all that tells of its delete (B6). Tables ``by_time`` stand in the order of
    ``source.ts_ms`` (Q9), unless nulls delete from them: those have no time. In ``scattered`` topics, by offset in
    several partitions, nothing says what a truncate came after (T4).
    """
    topic = F.col("topic")
    lone = F.coalesce(F.col("rule") == compaction.LONE, F.lit(False))
    null = lone | F.col("rule").eqNullSafe(TOMBSTONE)
    deletes = F.col("key").isNotNull() & ((topic.isin(*null_deletes) & null) | (topic.isin(*lone_deletes) & lone))
    unmarked = F.col("flat") & ~F.col("rewritten")
    strange = (topic.isin(*enveloped) & F.col("bare")) | (topic.isin(*marked) & unmarked)
    stray = strange & F.col("rule").isNull() & F.col("reason").isNull()
    known = [F.when(topic == name, F.lit(table)) for name, table in {**lone_deletes, **null_deletes}.items()]
    carried = F.coalesce(*known, F.lit(None).cast("string"))
    timed = F.coalesce(F.col("table").isin(*by_time) & ~topic.isin(*null_deletes), F.lit(False))
    without = topic.isin(*by_offset) & ~timed
    place = (
        F.when(timed, position.by_time(F.col("source_ts_ms")))
        .when(without, F.lit(position.LOWEST))
        .otherwise(F.col("position"))
    )
    truncates = F.col("op").eqNullSafe("t") & F.col("rule").isNull() & F.col("reason").isNull()
    replaced = ("rule", "reason", "op", "table", "position", "is_snapshot", "form")
    return records.select(
        *[column for column in records.columns if column not in replaced],
        F.when(~deletes, F.when(lone, TOMBSTONE).otherwise(F.col("rule"))).alias("rule"),
        F.when(stray, "unknown_shape")
        .when(truncates & without & topic.isin(*scattered), "truncate_unordered")
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


def ordered(
    records: DataFrame, *, snapshots: bool, running: DataFrame | None, marks: Column | None = None
) -> DataFrame:
    """Records with their ``_seq`` (NULL: no position). Each brings its ``epoch`` (Q2).

    ``snapshots``: there are snapshot rows among them, which rank above all before them (Q5). ``running`` is the
    greatest position before the range, one row per (topic, partition, epoch, folder) with ``maximum`` and the offset of
    a record that ``holds`` it; None when the range starts with the topic. Where records of other tables came between,
    these have PASSED. ``marks`` is given where some change stands below an earlier one of its own transaction (Q12): a
    record's mark before the range (``reach.MARK``), NULL where there is none.
    """
    if marks is not None:
        records = reach.of_one_transaction(records, marks)
    if snapshots:
        before, folder = F.lit(position.LOWEST), headers.folder(F.col("headers"))
        if running is not None:
            records = records.withColumn("folder", folder)
            records = records.join(F.broadcast(running), ["topic", "partition", "epoch", "folder"], how="left")
            before = F.coalesce(F.when(F.col("holds") < F.col("offset"), F.col("maximum")), before)
        if PASSED in records.columns:
            before = F.greatest(before, F.col(PASSED))
        place = position.with_running_maximum(F.col("position"), F.col("is_snapshot"), before, folder)
        records = records.withColumn("position", place)
    return records.withColumn("_seq", position.seq(F.col("position"), F.col("offset"), F.col("epoch")))


def passed(records: DataFrame) -> DataFrame:
    """Described records of whole topics with what their partition had passed before each (Q5), for the time when those
    of other tables are gone.
    """
    return records.withColumn(PASSED, position.passed(F.col("position"), headers.folder(F.col("headers"))))


def rejects(records: DataFrame, table: str | None) -> DataFrame:
    """Dead letters of records whose outside already tells that they cannot be applied."""
    is_deep = (F.col("reason") == "malformed_json") & depth.is_too_deep(F.col("value"))
    reason = F.when(is_deep, "too_deep").otherwise(F.col("reason"))
    buried = letter(table, reason, detail=F.lit(None), seq=F.lit(None))
    return records.where(F.col("reason").isNotNull()).select(buried.alias("letter")).select("letter.*")
