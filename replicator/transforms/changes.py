"""Bronze -> typed changes, and the rejects with a reason each (architecture section 6, steps 2 and 3).

``records`` are bronze rows that ``debezium.envelope.read`` has described; ``changes`` have one row per record: the
table's columns and ``_seq, _deleted, _source_ts_ms, _unavailable`` and ``_reject``, NULL for a change that can be
applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import infer, position, types, unavailable
from replicator.debezium.logical import Field, Logical
from replicator.debezium.schema import Form
from replicator.debezium.unavailable import Placeholder
from replicator.transforms.evolve import Layout, stored_name


def survey(records: DataFrame, placeholder: Placeholder) -> DataFrame:
    """What a range holds, one row per (topic, table, form, rule, reason): its ``count`` and what decides how to
    decode it.

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


def by_mode(
    records: DataFrame, by_offset: Sequence[str], null_deletes: Mapping[str, str | None], enveloped: Sequence[str]
) -> DataFrame:
    """Records read as their topic's mode says.

    Topics in ``by_offset`` have no positions (Q8); in ``null_deletes`` a null value is a delete (F2, B6) from the table
    that the topic carries, or a dead letter where it carries several (None); in ``enveloped`` topics an object
    that is no envelope and has no field of Debezium's is ``unknown_shape`` (A1).
    """
    topic = F.col("topic")
    deletes = topic.isin(*null_deletes) & F.col("rule").eqNullSafe("tombstone") & F.col("key").isNotNull()
    stray = topic.isin(*enveloped) & F.col("bare") & F.col("rule").isNull() & F.col("reason").isNull()
    known = [F.when(topic == name, F.lit(table)) for name, table in null_deletes.items()]
    carried = F.coalesce(*known, F.lit(None).cast("string"))
    return records.select(
        *[column for column in records.columns if column not in ("rule", "reason", "op", "table", "position", "form")],
        F.when(~deletes, F.col("rule")).alias("rule"),
        F.when(stray, "unknown_shape")
        .when(~deletes, F.col("reason"))
        .when(carried.isNull(), "unknown_table")
        .alias("reason"),
        F.when(deletes, "d").otherwise(F.col("op")).alias("op"),
        F.when(deletes, carried).otherwise(F.col("table")).alias("table"),
        F.when(topic.isin(*by_offset), F.lit(position.LOWEST)).otherwise(F.col("position")).alias("position"),
        "form",
    )


def ordered(records: DataFrame, *, snapshots: bool, running: DataFrame | None) -> DataFrame:
    """Records with their ``_seq`` (NULL: no position).

    ``snapshots``: there are snapshot rows among them, which rank above all before them (Q5). ``running`` is the
    greatest
    position before the range, one row per (topic, partition) with ``maximum``; None when the range starts with the
    topic.
    """
    if snapshots:
        before = F.lit(position.LOWEST)
        if running is not None:
            records = records.join(F.broadcast(running), ["topic", "partition"], how="left")
            before = F.coalesce(F.col("maximum"), before)
        place = position.with_running_maximum(F.col("position"), F.col("is_snapshot"), before)
        records = records.withColumn("position", place)
    return records.withColumn("_seq", position.seq(F.col("position"), F.col("offset")))


def decode(
    records: DataFrame, forms: Sequence[Form], layout: Layout, table: str, placeholder: Placeholder | None
) -> DataFrame:
    """Ordered records of one table -> changes. ``placeholder`` is given when some record may hold one."""
    parts = [_decode_form(records.where(F.col("form") == form.id), form, layout, table, placeholder) for form in forms]
    return reduce(DataFrame.unionByName, parts)


def rejects(records: DataFrame, table: str | None) -> DataFrame:
    """Dead letters of records whose outside already tells that they cannot be applied."""
    return records.where(F.col("reason").isNotNull()).select(
        "topic",
        "partition",
        "offset",
        F.lit(table).alias("table"),
        F.lit(None).cast("string").alias("seq"),
        "reason",
        F.lit(None).cast("string").alias("detail"),
    )


def _decode_form(
    records: DataFrame, form: Form, layout: Layout, table: str, placeholder: Placeholder | None
) -> DataFrame:
    """In steps, each a projection of its own, since Spark repeats an expression wherever it is mentioned."""
    place = ("topic", "partition", "offset", "op", "_seq")
    parsed = records.select(
        *place,
        F.col("source_ts_ms").alias("_source_ts_ms"),
        "key",
        _parse("value", form.path, form.fields, wire=True).alias("_row"),
        _parse("value", form.path, form.fields, wire=False).alias("_text"),
        _parse("key", form.key_path, form.key_fields, wire=True).alias("_key"),
        _parse("key", form.key_path, form.key_fields, wire=False).alias("_key_text"),
        *([infer.texts(F.col("value"), form.path).alias("_raw")] if form.raw else []),
    )
    cells = {
        f"_c{i}": _cell(field.name, field.logical, field.name in form.raw, placeholder)
        for i, field in enumerate(form.fields)
    }
    keys = {f"_k{i}": _key_cell(field.name, field.logical) for i, field in enumerate(form.key_fields)}
    decoded = parsed.select(
        *place,
        "_source_ts_ms",
        "key",
        F.col("_row").isNull().alias("_rowless"),
        *[cell.alias(name) for name, cell in (cells | keys).items()],
    )
    values, key_problem = _values(form, layout)
    verdict = _verdict(form, key_problem)
    columns = [values.get(column, F.lit(None)).cast(kind).alias(column) for column, kind in layout.types.items()]
    judged = decoded.select(
        *[F.col(name).alias(f"_at_{name}") for name in place],
        *columns,
        "_source_ts_ms",
        _unavailable(form, placeholder).alias("_unavailable"),
        verdict.alias("_verdict"),
    )
    reject = F.struct(
        F.col("_at_topic").alias("topic"),
        F.col("_at_partition").alias("partition"),
        F.col("_at_offset").alias("offset"),
        F.lit(table).alias("table"),
        F.col("_at__seq").alias("seq"),
        "_verdict.reason",
        "_verdict.detail",
    )
    return judged.select(
        *map(names.spark, layout.types),
        F.col("_at__seq").alias("_seq"),
        (F.col("_at_op") == "d").alias("_deleted"),
        "_source_ts_ms",
        "_unavailable",
        F.when(F.col("_verdict.reason").isNotNull(), reject).alias("_reject"),
    )


def _parse(text: str, path: tuple[str, ...], fields: Sequence[Field], *, wire: bool) -> Column:
    """The struct at ``path``: every field in its wire type, or as STRING to see whether something was there."""
    kinds = [f"{names.spark(field.name)}: {types.wire_type(field.logical) if wire else 'STRING'}" for field in fields]
    ddl = f"STRUCT<{', '.join(kinds)}>"
    for step in reversed(path):
        ddl = f"STRUCT<{names.spark(step)}: {ddl}>"
    parsed = F.from_json(F.col(text), ddl)
    return reduce(lambda column, step: column[step], path, parsed)


@lru_cache(maxsize=4096)
def _cell(name: str, logical: Logical, is_raw: bool, placeholder: Placeholder | None) -> Column:
    """STRUCT<value, problem, unsent> of one column of the row; built once, since a Column only names its inputs."""
    wire, text = F.col("_row").getField(name), F.col("_text").getField(name)
    if is_raw:
        wire = text = F.col("_raw")[F.lit(name)]
    decoded = types.decode(logical, wire, text)
    unsent = F.lit(False) if placeholder is None else unavailable.is_unavailable(text, placeholder)
    return F.struct(decoded.value.alias("value"), decoded.problem.alias("problem"), unsent.alias("unsent"))


@lru_cache(maxsize=1024)
def _key_cell(name: str, logical: Logical) -> Column:
    """One column of the Kafka key; a part that does not fit its type is NULL, and so the key cannot be read."""
    wire, text = F.col("_key").getField(name), F.col("_key_text").getField(name)
    return types.decode(logical, wire, text).value


def _values(form: Form, layout: Layout) -> tuple[dict[str, Column], Column]:
    """Values by stored name, keys from the Kafka key (C1, B4) or declared ones from the row; what is wrong with
    the key.
    """
    values = {
        stored_name(field.name): F.when(~F.col(f"_c{i}.unsent"), F.col(f"_c{i}.value"))
        for i, field in enumerate(form.fields)
    }
    in_key = {stored_name(field.name): F.col(f"_k{i}") for i, field in enumerate(form.key_fields)}
    missing = F.when(F.col("key").isNull() | F.lit(not layout.keys), "key_missing")
    known = in_key
    if layout.keys_from_row and not set(layout.keys) <= set(in_key):
        known = values | in_key
        missing = F.when(F.lit(not set(layout.keys) <= set(known)), "key_missing")
    keys = {column: known.get(column, F.lit(None)) for column in layout.keys}
    complete = reduce(lambda so_far, key: so_far & key.isNotNull(), keys.values(), F.lit(True))
    return values | keys, F.coalesce(missing, F.when(~complete, "key_undecodable"))


def _unavailable(form: Form, placeholder: Placeholder | None) -> Column:
    """Stored names of the columns that were not sent."""
    if placeholder is None or not form.fields:
        return F.lit(None).cast("array<string>")
    unsent = [
        F.when(F.col(f"_c{i}.unsent") & (F.col("op") != "d"), F.lit(stored_name(field.name)))
        for i, field in enumerate(form.fields)
    ]
    return F.array_compact(F.array(*unsent))


def _verdict(form: Form, key_problem: Column) -> Column:
    """The first thing wrong with a record as STRUCT<reason, detail>; both NULL if nothing is."""
    nothing = F.lit(None).cast("string")
    is_row = F.col("op") != "d"

    def because(condition: Column, reason: Column, detail: Column = nothing) -> Column:
        return F.when(condition, F.struct(reason.alias("reason"), detail.alias("detail")))

    wrong = [
        because(
            is_row & ~F.col(f"_c{i}.unsent") & F.col(f"_c{i}.problem").isNotNull(),
            F.col(f"_c{i}.problem"),
            F.lit(field.name),
        )
        for i, field in enumerate(form.fields)
    ]
    rowless = F.col("_rowless") if form.fields else F.lit(True)
    return F.coalesce(
        because(key_problem.isNotNull(), key_problem),
        because(is_row & rowless, F.lit("after_missing")),
        *wrong,
        because(F.col("_seq").isNull(), F.lit("position_missing")),
        F.struct(nothing.alias("reason"), nothing.alias("detail")),
    )
