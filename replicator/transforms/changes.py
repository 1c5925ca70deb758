"""Bronze -> typed changes, and the rejects with a reason each (architecture section 6, steps 2 and 3).

``records`` are bronze rows that ``debezium.envelope.read`` has described; ``changes`` have one row per record: the
table's columns and ``_seq, _deleted, _source_ts_ms, _unavailable`` and ``_reject``, NULL for a change that can be applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import infer, position, types, unavailable
from replicator.debezium.logical import Field
from replicator.debezium.schema import Form
from replicator.debezium.unavailable import Placeholder
from replicator.transforms.evolve import Layout, stored_name



def survey(records: DataFrame, placeholder: Placeholder) -> DataFrame:
    """What a range holds, one row per (topic, table, form, rule, reason): its ``count`` and what decides how to decode it.

    ``value`` and ``key`` are one example of the form; ``lowest`` is the smallest offset.
    """
    examples = ("flat", "wrapped", "key_wrapped", "key_names", "row_names", "value", "key")
    return records.groupBy("topic", "source_name", "table", "form", "rule", "reason").agg(
        F.count("*").alias("count"),
        F.max("is_snapshot").alias("has_snapshot"),
        F.max(unavailable.in_record(F.col("value"), placeholder)).alias("has_placeholder"),
        F.sum((F.col("op") == "t").cast("int")).alias("truncates"),
        F.max("bare").alias("bare"),
        F.max("rewritten").alias("rewritten"),
        F.max(F.col("position").isNotNull()).alias("positioned"),
        *[F.first(name).alias(name) for name in examples],
    )


def by_mode(records: DataFrame, by_offset: Sequence[str], null_deletes: Sequence[str], enveloped: Sequence[str]) -> DataFrame:
    """Records read as their topic's mode says.

    Topics in ``by_offset`` have no positions (Q8); in ``null_deletes`` a null value is a delete (F2, B6); in
    ``enveloped`` topics an object that is no envelope and has no field of Debezium's is ``unknown_shape`` (A1).
    """
    topic, parts = F.col("topic"), F.split("topic", r"\.")
    deletes = topic.isin(*null_deletes) & (F.col("rule") == "tombstone") & F.col("key").isNotNull()
    stray = topic.isin(*enveloped) & F.col("bare") & F.col("rule").isNull()
    named = F.concat_ws(".", F.element_at(parts, -2), F.element_at(parts, -1))
    return records.select(
        *[column for column in records.columns if column not in ("rule", "reason", "op", "table", "position", "form")],
        F.when(~deletes, F.col("rule")).alias("rule"),
        F.when(stray, "unknown_shape").when(~deletes, F.col("reason")).alias("reason"),
        F.when(deletes, "d").otherwise(F.col("op")).alias("op"),
        F.when(deletes, named).otherwise(F.col("table")).alias("table"),
        F.when(topic.isin(*by_offset), F.lit(position.LOWEST)).otherwise(F.col("position")).alias("position"),
        "form",
    )


def ordered(records: DataFrame, running: DataFrame | None) -> DataFrame:
    """Records with their ``_seq`` (NULL: no position). ``running`` is given when the range has snapshot rows: the
    greatest position before the range, one row per (topic, partition) with ``maximum``."""
    place = F.col("position")
    if running is not None:
        joined = records.join(F.broadcast(running), ["topic", "partition"], how="left")
        before = F.coalesce(F.col("maximum"), F.lit(position.LOWEST))
        records = joined.withColumn("position", position.with_running_maximum(place, F.col("is_snapshot"), before))
    return records.withColumn("_seq", position.seq(F.col("position"), F.col("offset")))


def decode(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, placeholder: Placeholder | None
) -> DataFrame:
    """Ordered records of one table -> changes. ``placeholder`` is given when some record may hold one."""
    parts = [
        _decode_form(records.where(F.col("form") == form.id), form, layout, table, placeholder) for form in forms
    ]
    return reduce(DataFrame.unionByName, parts)


def rejects(records: DataFrame, table: str | None) -> DataFrame:
    """Dead letters of records whose outside already tells that they cannot be applied."""
    return records.where(F.col("reason").isNotNull()).select(
        "topic", "partition", "offset", F.lit(table).alias("table"), F.lit(None).cast("string").alias("seq"),
        "reason", F.lit(None).cast("string").alias("detail"),
    )


def _decode_form(
    records: DataFrame, form: Form, layout: Layout, table: str, placeholder: Placeholder | None
) -> DataFrame:
    parsed = records.select(
        "topic", "partition", "offset", "op", "_seq", F.col("source_ts_ms").alias("_source_ts_ms"), "key",
        _parse("value", form.path, form.fields, wire=True).alias("_row"),
        _parse("value", form.path, form.fields, wire=False).alias("_text"),
        _parse("key", form.key_path, form.key_fields, wire=True).alias("_key"),
        _parse("key", form.key_path, form.key_fields, wire=False).alias("_key_text"),
        *([infer.texts(F.col("value"), form.path).alias("_raw")] if form.raw else []),
    )
    deleted = F.col("op") == "d"
    values, problems, unknown = _columns(form, deleted, placeholder)
    keys, key_problem = _keys(form, layout, values)
    known = values | keys
    rejected = _verdict(form, deleted, key_problem, problems)
    return parsed.select(
        *[known.get(column, F.lit(None)).cast(kind).alias(column) for column, kind in layout.types.items()],
        "_seq",
        deleted.alias("_deleted"),
        "_source_ts_ms",
        unknown.alias("_unavailable"),
        F.when(
            rejected["reason"].isNotNull(),
            F.struct(
                "topic", "partition", "offset", F.lit(table).alias("table"), F.col("_seq").alias("seq"),
                rejected["reason"].alias("reason"), rejected["detail"].alias("detail"),
            ),
        ).alias("_reject"),
    )


def _parse(text: str, path: tuple[str, ...], fields: Sequence[Field], *, wire: bool) -> Column:
    """The struct at ``path``: every field in its wire type, or as STRING to see whether something was there."""
    kinds = [f"{names.spark(field.name)}: {types.wire_type(field.logical) if wire else 'STRING'}" for field in fields]
    ddl = f"STRUCT<{', '.join(kinds)}>"
    for step in reversed(path):
        ddl = f"STRUCT<{names.spark(step)}: {ddl}>"
    parsed = F.from_json(F.col(text), ddl)
    return reduce(lambda column, step: column[step], path, parsed)


def _columns(
    form: Form, deleted: Column, placeholder: Placeholder | None
) -> tuple[dict[str, Column], list[Column], Column]:
    """Values by stored name, the problem of each column, and the names of those that were not sent."""
    values: dict[str, Column] = {}
    problems: list[Column] = []
    missing: list[Column] = []
    for field in form.fields:
        column = stored_name(field.name)
        wire, text = F.col("_row").getField(field.name), F.col("_text").getField(field.name)
        if field.name in form.raw:
            text = F.col("_raw")[F.lit(field.name)]
            wire = text
        decoded = types.decode(field.logical, wire, text)
        value, problem = decoded.value, decoded.problem
        if placeholder is not None:
            unsent = unavailable.is_unavailable(text, placeholder)
            value, problem = F.when(~unsent, value), F.when(~unsent, problem)
            missing.append(F.when(unsent & ~deleted, F.lit(column)))
        values[column] = value
        problems.append(F.when(~deleted & problem.isNotNull(), F.struct(problem.alias("reason"), F.lit(field.name).alias("detail"))))
    unknown = F.array_compact(F.array(*missing)) if missing else F.lit(None).cast("array<string>")
    return values, problems, unknown


def _keys(form: Form, layout: Layout, values: dict[str, Column]) -> tuple[dict[str, Column], Column]:
    """Key columns and what is wrong with the key: from the Kafka key (C1, B4), or declared ones from the row."""
    fields = {stored_name(field.name): field for field in form.key_fields}
    keys: dict[str, Column] = {}
    problem = F.when(F.col("key").isNull() | F.lit(not layout.keys), "key_missing")
    for column in layout.keys:
        if column in fields:
            name = fields[column].name
            decoded = types.decode(fields[column].logical, F.col("_key").getField(name), F.col("_key_text").getField(name))
            keys[column] = decoded.value
        elif column in values:
            keys[column] = values[column]
            problem = F.lit(None).cast("string")
        else:
            return keys, F.lit("key_missing")
    complete = reduce(lambda so_far, key: so_far & key.isNotNull(), keys.values(), F.lit(True))
    return keys, F.coalesce(problem, F.when(~complete, "key_undecodable"))


def _verdict(form: Form, deleted: Column, key_problem: Column, problems: list[Column]) -> Column:
    """The first thing wrong with a record as STRUCT<reason, detail>; both NULL if nothing is."""
    nothing = F.lit(None).cast("string")

    def because(condition: Column, reason: str, detail: Column = nothing) -> Column:
        return F.when(condition, F.struct(F.lit(reason).alias("reason"), detail.alias("detail")))

    key = F.when(key_problem.isNotNull(), F.struct(key_problem.alias("reason"), nothing.alias("detail")))
    row_missing = ~deleted & F.col("_row").isNull()
    good = F.struct(nothing.alias("reason"), nothing.alias("detail"))
    return F.coalesce(
        key,
        because(row_missing, "after_missing") if form.fields else because(~deleted, "after_missing"),
        *problems,
        because(F.col("_seq").isNull(), "position_missing"),
        good,
    )
