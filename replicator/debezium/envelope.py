"""Classification of bronze records: shape, operation, table and position (debezium.md sections A, B, F, H).

:func:`describe` adds these as columns without decoding a single column of the row: that needs the record's schema,
which is found by the columns ``form`` and ``wrapped``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import classification, headers, position, unavailable
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.source_block import SCHEMA_FIELDS, SOURCE_FIELDS
from replicator.jvm import plan_cache
from replicator.spec import Reading

_METADATA = tuple(field.split(" ")[0] for field in SOURCE_FIELDS.split(", "))
_BODY = (
    f"op STRING, source STRUCT<{SOURCE_FIELDS}>, ddl STRING, status STRING, id STRING, "
    "aggregate_type STRING, additional_data STRING, specversion STRING"
)
_HEAD = f"schema STRING, payload STRUCT<after STRING, {_BODY}>, after STRING, {_BODY}"
_FLAT = ", ".join(
    ["__op STRING", "__deleted STRING"] + [f"__{name} STRING, __source_{name} STRING" for name in _METADATA]
)
DEFAULT_READING = Reading()
"""The reading of a source that declares nothing about its records."""

CLOUDEVENT, UNIONS, MONGODB = "cloudevent", "unions", "mongodb"
"""Shapes that must be rewritten as plain records before their rows can be read (A5, A6, K1)."""

_AVRO = r'\{"(?:string|int|long|float|double|boolean|bytes|array|map|Value|[^"\\]*\.[^"\\]*)":'


def describe(records: DataFrame, reading: Reading = DEFAULT_READING) -> DataFrame:
    """Add to each bronze record its description; one row per record, nothing dropped.

    Adds ``rule`` (why the record is ignored, R3), ``reason`` (why it is a dead letter, R4), or neither for a change of
    a row, and:

    - ``op``, ``source_name``, ``source_ts_ms``, ``is_snapshot``;
    - ``table``: ``<database or schema>.<table>``, NULL if the record does not name it;
    - ``position``: the record's own (Q4); ``stream``: the scope in which positions rise with the offsets, NULL where
      they need not; ``transaction``: the source's transaction id, if the record has one;
    - ``happened``: ``position.change_identity`` followed by ``_snapshot_clock``; NULL for a flattened row without its
      operation, and where no table of the source is append-only;
    - ``flat``, ``wrapped``, ``key_wrapped``, ``key_names``, and ``row_names`` where no schema block names the columns;
    - ``form``: records of one form are decoded alike;
    - ``bare``: an object without any of Debezium's fields, which is a flattened row only if the topic has no envelopes;
    - ``rewritten``: the record has ``__deleted``, so the deletes of its topic are rows (F2);
    - ``held``: some value may be the placeholder (E2);
    - ``shape``: the kind of record if it may not be a plain one; NULL nearly always;
    - ``told``: FALSE here; TRUE where a template described the record, see ``template_matching.describe``.
    """
    return plan_cache.apply(records, _describe, reading)


def _describe(records: DataFrame, reading: Reading) -> DataFrame:
    described = records
    rows, binlog = reading.flattened, reading.binlog
    forms, judgements = _forms(binlog if reading.append_only else None), _classification(rows)
    steps = (_heads(), _bodies(), _operations(rows, binlog), _names(), _positions(binlog), forms, judgements)
    for step in steps:
        described = described.select("*", *step)
        if reading.shards and step is steps[3]:
            described = described.withColumn("table", _merged_table(reading.shards))
    held = unavailable.may_hold_placeholder(F.col("value"), Placeholder(reading.placeholder))
    described = described.withColumn("held", held).withColumn("told", F.lit(False))
    return described.select(*records.columns, *DESCRIPTION_COLUMNS, _final_reason())


DESCRIPTION_COLUMNS = (
    "op",
    "source_name",
    "table",
    "source_ts_ms",
    "is_snapshot",
    "position",
    "stream",
    "transaction",
    "happened",
    "flat",
    "wrapped",
    "key_wrapped",
    "key_names",
    "row_names",
    "form",
    "bare",
    "rewritten",
    "held",
    "shape",
    "rule",
    "told",
)
"""The columns that :func:`describe` adds besides ``reason``."""


def _merged_table(shards: Sequence[tuple[str, str]]) -> Column:
    """The table that takes the rows of a shard; the record's own table if it is no shard."""
    table = F.col("table")
    return F.coalesce(*[F.when(table.rlike(f"^(?:{shard})$"), F.lit(into)) for shard, into in shards], table)


# Each step is built once for all batches: a Column only names its inputs, and building one costs calls to the JVM.


@cache
def _heads() -> tuple[Column, ...]:
    """The parsed texts of value and key."""
    value, key = F.col("value"), F.col("key")
    head = F.from_json(value, _HEAD)
    # the many fields of flattened rows, and a key's wrapper, are parsed only where their names may occur
    flat = F.when(_may_have(value, "__"), F.from_json(value, f"payload STRUCT<{_FLAT}>, {_FLAT}"))
    key_head = F.when(_may_have(key, "payload"), F.from_json(key, "schema STRING, payload STRING"))
    return (
        head.alias("_head"),
        flat.alias("_marks"),
        key_head.alias("_key"),
        classification.is_object(value).alias("_object"),
    )


def _may_have(text: Column, name: str) -> Column:
    """Whether a name may occur in JSON, literally or spelled with escapes."""
    return text.contains(name) | text.contains("\\u")


@cache
def _bodies() -> tuple[Column, ...]:
    """The record without its schema wrapper."""
    wrapped = F.col("_head.payload").isNotNull() & F.col("_head.op").isNull()
    head, flat = F.col("_head"), F.col("_marks")
    body = F.when(wrapped, _fields_of(head["payload"], _BODY)).otherwise(_fields_of(head, _BODY))
    marks = F.when(wrapped, flat["payload"]).otherwise(_fields_of(flat, _FLAT))
    return (
        F.coalesce(wrapped, F.lit(False)).alias("wrapped"),
        body.alias("_body"),
        F.when(wrapped, head["payload"]["after"]).otherwise(head["after"]).alias("_after"),
        F.when(flat.isNotNull(), marks).alias("_flat"),
        # what else later steps need of the head, so that the whole of it is not carried along
        head["schema"].alias("_schema"),
        head["payload"].isNull().alias("_payloadless"),
    )


@cache
def _final_reason() -> Column:
    return F.when(F.col("rule").isNull(), F.col("reason")).alias("reason")


def _fields_of(head: Column, ddl: str) -> Column:
    names = [field.split(" ")[0] for field in _split(ddl)]
    return F.struct(*[head[name].alias(name) for name in names])


def _split(ddl: str) -> list[str]:
    """Top-level fields of a DDL text."""
    fields, depth, start = [], 0, 0
    for index, character in enumerate(ddl):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            fields.append(ddl[start:index].strip())
            start = index + 1
    return [*fields, ddl[start:].strip()]


@cache
def _operations(flattened: tuple[str, ...], binlog: str) -> tuple[Column, ...]:
    """Operation and source block, for envelopes and flattened rows alike."""
    body, marks = F.col("_body"), F.col("_flat")
    flat_source = position.flattened_source(
        {name: F.coalesce(marks[f"__source_{name}"], marks[f"__{name}"]) for name in _METADATA if name != "name"},
        binlog,
    )
    flat = body["source"].isNull() & body["op"].isNull()
    if flattened:
        flat = flat | F.col("topic").isin(*flattened)
    deleted = F.lower(marks["__deleted"]) == "true"
    op = F.when(~flat, body["op"]).when(deleted, F.lit("d")).otherwise(F.coalesce(marks["__op"], F.lit("u")))
    source = F.when(flat, flat_source).otherwise(body["source"])
    return flat.alias("flat"), source.alias("_source"), op.alias("op")


@cache
def _names() -> tuple[Column, ...]:
    """The names of source and table, and the key's columns."""
    parts = F.split(F.col("topic"), r"\.")
    source = F.col("_source")
    from_topic = F.when(F.col("flat") & (F.size(parts) >= 3), parts)
    table = F.coalesce(source["table"], source["table_name"], F.element_at(from_topic, -1))
    of_topic = F.element_at(from_topic, -2)
    schema = F.coalesce(source["schema"], F.when(_is_in_schema(), of_topic), source["db"], of_topic)
    key_wrapped = headers.is_wrapped(F.col("key"), F.col("_key.schema"), F.col("_key.payload"))
    key_text = F.when(key_wrapped, F.col("_key.payload")).otherwise(F.col("key"))
    key_names = F.when(classification.is_object(key_text), F.json_object_keys(key_text))
    return (
        F.coalesce(source["name"], parts[0]).alias("source_name"),
        F.when((schema != "") & (table != ""), F.concat_ws(".", schema, table)).alias("table"),
        source["ts_ms"].alias("source_ts_ms"),
        F.coalesce(F.col("op") == "r", F.lit(False)).alias("is_snapshot"),
        key_wrapped.alias("key_wrapped"),
        key_names.alias("key_names"),
        key_text.alias("_key_text"),
        _row_text().alias("_row_text"),
        position.parse_numbers(source).alias("_numbers"),
    )


def _is_in_schema() -> Column:
    """Whether a flattened row has a field, NULL in some snapshot rows, of a connector that names tables by schema."""
    fields = [f'"__{prefix}{name}"' for name in SCHEMA_FIELDS for prefix in ("", "source_")]
    return F.col("flat") & reduce(or_, [F.col("value").contains(field) for field in fields])


@cache
def _positions(binlog: str) -> tuple[Column, ...]:
    """The place in the source's order, and the row's columns."""
    return (
        position.build(F.col("_source"), F.col("is_snapshot"), binlog, F.col("_numbers")).alias("position"),
        position.stream(F.col("_source"), binlog).alias("stream"),
        F.col("_source.txId").alias("transaction"),
        F.json_object_keys("_row_text").alias("row_names"),
        F.col("_flat.__deleted").isNotNull().alias("rewritten"),
    )


@cache
def _forms(binlog: str | None) -> tuple[Column, ...]:
    """Form, shape, whether the record lacks all of Debezium's fields, and, given ``binlog``, where it happened."""
    form = F.xxhash64("flat", "wrapped", "_schema", "key_wrapped", "_key.schema", "key_names", "row_names")
    marked = F.col("_flat.__op").isNotNull() | F.col("_flat.__deleted").isNotNull() | F.col("position").isNotNull()
    inputs = (F.col("_source"), F.col("position"), F.col("is_snapshot"), F.col("_numbers"))
    has_op = ~F.col("flat") | F.col("_flat.__op").isNotNull()
    happened = F.lit(None)
    if binlog is not None:
        happened = F.when(has_op, F.concat(position.change_identity(*inputs, binlog), _snapshot_clock()))
    bare = (F.col("flat") & ~marked).alias("bare")
    return form.alias("form"), bare, _shape().alias("shape"), happened.cast("string").alias("happened")


@cache
def _classification(flattened: tuple[str, ...]) -> tuple[Column, ...]:
    rule = classification.ignore_rule()
    if flattened:
        rule = F.when(~F.col("topic").isin(*flattened) | (rule == classification.TOMBSTONE), rule)
    # without the looked-up document, an update from MongoDB contains only what changed (K2)
    is_part = (F.col("shape") == MONGODB) & (F.col("op") == "u") & F.col("_row_text").isNull()
    return rule.alias("rule"), F.coalesce(
        classification.dead_letter_reason(), F.when(is_part, "mongodb_partial_update")
    ).alias("reason")


def _snapshot_clock() -> Column:
    """The connector's clock of a snapshot row, in nanoseconds as digits; '' if it is missing (A4), and for any other
    record. It distinguishes equal rows, and is the same in a record that a producer sends twice.
    """
    clock = F.coalesce(F.get_json_object("value", "$.payload.ts_ns"), F.get_json_object("value", "$.ts_ns"))
    is_clock = F.col("is_snapshot") & ~F.col("flat") & clock.rlike("^[0-9]{19}$")
    return F.when(is_clock, clock).otherwise("")


def _shape() -> Column:
    """The kind of record if it may not be a plain one, by cheap signs; ``Normalizer.texts`` looks closer.

    ``get_json_object`` writes compact JSON, so a column that holds an object is recognised by its colon.
    """
    body, marks, row = F.col("_body"), F.col("_flat"), F.col("_row_text")
    own = (F.col("_source.snapshot"), body["op"], marks["__op"], marks["__deleted"])
    in_head = reduce(lambda found, held: found | F.coalesce(held.startswith("{"), F.lit(False)), own, F.lit(False))
    in_row = (row.contains(':{"') | row.contains(':[{"')) & row.rlike(_AVRO)
    in_key = F.col("_key_text").rlike(r"^\s*\{.*\{")
    return (
        F.when(F.col("flat") & body["specversion"].isNotNull(), CLOUDEVENT)
        .when(F.lower(F.col("_source.connector")) == "mongodb", MONGODB)
        .when(in_head | in_row | in_key, UNIONS)
    )


def _row_text() -> Column:
    """The row as compact JSON, only where no schema block names its columns."""
    value, flat = F.col("value"), F.col("flat")
    wrapped = F.when(F.col("wrapped"), F.get_json_object(value, "$.payload")).otherwise(value)
    row = F.when(flat, wrapped).otherwise(F.col("_after"))
    return F.when(F.col("_schema").isNull(), row)
