"""Events for canonical topics: changes of a table as its feed declares them.

An event is JSON: ``id``, ``type`` (the feed), ``version`` (of its schema), ``op``, ``time`` (the source's), ``key``,
``before`` and ``after`` (NULL where the feed has no row), ``complete`` and ``source``. Decimals are strings, so that no
consumer rounds them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.debezium.widening import widen
from replicator.spec import Feed
from replicator.transforms import merge
from replicator.transforms.columns.layout import normalize_type
from replicator.transforms.history import to_timestamp
from replicator.transforms.json_values import stringify_map_keys
from replicator.transforms.live import source_spelling
from replicator.transforms.merge import SYSTEM_COLUMNS
from replicator.transforms.user_view import JSON_OPTIONS

CREATE, READ, UPDATE, DELETE = "create", "read", "update", "delete"
"""The values of ``op``. ``read``: a row that existed when the feed began."""

_PREFIX = "_replicator_"


def images(stored: DataFrame, keys: Sequence[str], feed: Feed) -> DataFrame:
    """Stored rows as the feed shows them, one per key.

    Columns: ``key STRUCT``; ``image STRUCT``, NULL if the row is deleted or not part of the feed; ``sequence STRING``,
    the ``_seq``, NULL for gold; ``known STRING``, the positions of its columns that differ from the row's (JSON);
    ``time BIGINT``; ``complete BOOLEAN``, whether all its columns are known. Single changes that have ``_at`` keep it
    as ``at``, the coordinates of the record; ``sequence`` identifies a change only within its key.

    ``keys`` are stored names. Raises Spark's own error if an expression of the feed names a missing column.
    """
    is_silver = "_deleted" in stored.columns
    carried = [name for name in (*SYSTEM_COLUMNS, "_at") if is_silver and name in stored.columns]
    own = [field for field in stored.schema if field.name not in carried]
    named = {field.name: source_spelling(field) if is_silver else field.name for field in own}
    system = [F.col(name).alias(f"{_PREFIX}{name}") for name in carried]
    rows = stored.select(*[F.col(names.quote_spark(at)).alias(name) for at, name in named.items()], *system)
    shown = F.lit(True) if feed.where is None else F.coalesce(F.expr(feed.where), F.lit(False))
    nothing = F.lit(None).cast("string")
    known = F.col(f"{_PREFIX}_column_seq") if is_silver else None
    return rows.select(
        F.struct(*[_key_column(rows, named[key], _name_of_key(named[key], feed)) for key in keys]).alias("key"),
        F.when((~F.col(f"{_PREFIX}_deleted") & shown) if is_silver else shown, _image(rows, feed, is_silver)).alias(
            "image"
        ),
        (F.col(f"{_PREFIX}_seq") if is_silver else nothing).alias("sequence"),
        (nothing if known is None else F.to_json(known)).alias("known"),
        (F.col(f"{_PREFIX}_source_ts_ms") if is_silver else nothing.cast("bigint")).alias("time"),
        (F.lit(True) if known is None else _is_complete(known)).alias("complete"),
        *([F.col(f"{_PREFIX}_at").alias("at")] if "_at" in carried else []),
    )


def align_columns(before: DataFrame, after: DataFrame) -> DataFrame:
    """An older version of the stored rows with today's columns: NULL in those that were added later."""
    held = set(before.columns)
    columns = [
        (F.col(names.quote_spark(field.name)) if field.name in held else F.lit(None))
        .cast(field.dataType)
        .alias(field.name, metadata=field.metadata)
        for field in after.schema
    ]
    return before.select(*columns)


def incompatible_types(before: DataFrame, after: DataFrame) -> list[str]:
    """Columns of both whose new type cannot hold every value of the old one: the name was reused for other values."""
    now = dict(after.dtypes)
    both = [(column, kind, now[column]) for column, kind in before.dtypes if column in now]
    return [column for column, kind, other in both if normalize_type(widen(kind, other) or "") != normalize_type(other)]


def depends_on(feed: Feed, stored: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether events of the feed depend on one of these stored columns."""
    if not feed.select or set(keys) & set(columns):
        return True
    try:
        images(stored.drop(*columns), keys, feed)
    except AnalysisException:
        return True
    return False


def from_images(before: DataFrame, after: DataFrame) -> DataFrame:
    """One row per key whose images differ: the columns of :func:`images` as of ``after``, with ``before``, ``after``
    and ``op`` in place of ``image``. A key that is only in ``before`` keeps its values from there.
    """
    old = before.select(
        F.to_json("key", JSON_OPTIONS).alias("_text"), *[F.col(name).alias(f"_was_{name}") for name in before.columns]
    )
    both = after.withColumn("_text", F.to_json("key", JSON_OPTIONS)).join(old, "_text", how="full")
    others = [F.coalesce(name, f"_was_{name}").alias(name) for name in after.columns if name != "image"]
    was, is_ = F.col("_was_image"), F.col("image")
    op = F.when(was.isNull(), CREATE).when(is_.isNull(), DELETE).otherwise(UPDATE)
    same = F.to_json(F.struct(was.alias("v")), JSON_OPTIONS) == F.to_json(F.struct(is_.alias("v")), JSON_OPTIONS)
    return both.where(~same).select(*others, was.alias("before"), is_.alias("after"), op.alias("op"))


def from_snapshot(rows: DataFrame) -> DataFrame:
    """Changes as of :func:`from_images`, with ``op`` = ``read``, for the rows that exist when a feed begins."""
    nothing = F.lit(None).cast(rows.schema["image"].dataType)
    others = [name for name in rows.columns if name != "image"]
    seen = rows.where(F.col("image").isNotNull())
    return seen.select(*others, nothing.alias("before"), F.col("image").alias("after"), F.lit(READ).alias("op"))


def from_records(records: DataFrame) -> DataFrame:
    """Changes as of :func:`from_images`, from single records: images with ``letter`` (Debezium's op), ``was`` (the
    image before) and ``had`` (whether the record has it). A row that was never part of the feed causes no event; one
    that may have been causes a ``delete``.
    """
    letter, is_here, was = F.col("letter"), F.col("image").isNotNull(), F.col("was").isNotNull()
    knows = F.coalesce("had", F.lit(False))
    is_new = letter.isin("c", "r") | (knows & ~was)
    op = (
        F.when(is_here & (letter == "r"), READ)
        .when(is_here, F.when(is_new, CREATE).otherwise(UPDATE))
        .when(~letter.isin("c", "r") & (was | ~knows), DELETE)
    )
    names_ = [name for name in records.columns if name not in ("image", "letter", "was", "had")]
    seen = records.select(*names_, F.col("was").alias("before"), F.col("image").alias("after"), op.alias("op"))
    return seen.where(F.col("op").isNotNull())


def to_messages(changes: DataFrame, feed: Feed, identity: Column, place: Column, source: Column) -> DataFrame:
    """Changes as messages for an ``Outlet``. ``identity``, together with feed, version and key, makes the event's id,
    which is the same whenever it is sent again; ``place`` orders the events of a key; ``source`` is the event's origin.
    """
    key = F.to_json("key", JSON_OPTIONS)
    identified = changes.withColumn("_key", key).withColumn(
        "_id",
        F.substring(F.sha2(F.to_json(F.struct(F.lit(feed.name), F.lit(feed.version), key, identity)), 256), 1, 32),
    )
    value = F.struct(
        F.col("_id").alias("id"),
        F.lit(feed.name).alias("type"),
        F.lit(feed.version).alias("version"),
        "op",
        to_timestamp(F.col("time")).alias("time"),
        "key",
        "before",
        "after",
        "complete",
        source.alias("source"),
    )
    sent = identified.select(
        F.col("_key").alias("key"),
        F.to_json(value, JSON_OPTIONS).alias("value"),
        _headers(feed, F.col("_id"), place).alias("headers"),
        F.concat(place, F.lit(" ")).alias("place"),
        "op",
    )
    if feed.tombstones:
        gone = sent.where(F.col("op") == DELETE)
        empty = [F.lit(None).cast("string").alias("value"), F.lit(None).cast(_HEADERS).alias("headers")]
        sent = sent.unionByName(gone.select("key", *empty, F.concat("place", F.lit("tombstone")).alias("place"), "op"))
    return sent.drop("op")


_HEADERS = "array<struct<key:string,value:binary>>"


def _headers(feed: Feed, identity: Column, place: Column) -> Column:
    """The CloudEvents headers for Kafka (binary mode): consumers deduplicate by ``ce_id`` alone."""
    values = {
        "ce_specversion": F.lit("1.0"),
        "ce_id": identity,
        "ce_type": F.lit(f"{feed.name}.v{feed.version}"),
        "ce_source": F.lit(feed.table),
        "ce_sequence": place,
        "content-type": F.lit("application/json"),
    }
    pairs = [F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in values.items()]
    return F.array(*pairs)


def _image(rows: DataFrame, feed: Feed, is_silver: bool) -> Column:
    """The row as the feed shows it; of gold without the internal columns, whose names begin with ``_``."""
    wanted = dict(feed.select) or {
        name: names.quote_spark(name)
        for name in rows.columns
        if not (name.startswith(_PREFIX) if is_silver else name.startswith("_"))
    }
    kinds = rows.select(*[F.expr(text).alias(name) for name, text in wanted.items()]).schema
    return F.struct(*[_as_json(F.expr(text), kinds[name].dataType).alias(name) for name, text in wanted.items()])


def _key_column(rows: DataFrame, column: str, name: str) -> Column:
    return _as_json(F.col(names.quote_spark(column)), rows.schema[column].dataType).alias(name)


def _name_of_key(column: str, feed: Feed) -> str:
    """The name of a key column: the feed's, if it selects the column unchanged."""
    return next((name for name, text in feed.select if text.strip().strip("`") == column), column)


def _as_json(value: Column, kind: T.DataType) -> Column:
    wanted = _of_json(kind)
    return value if wanted == kind else stringify_map_keys(value, kind).cast(wanted)


def _of_json(kind: T.DataType) -> T.DataType:
    """The type to cast to so that Spark writes its JSON without loss."""
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_of_json(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(T.StringType(), _of_json(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(f.name, _of_json(f.dataType), f.nullable) for f in kind])
    as_text = (T.DecimalType, T.DayTimeIntervalType, T.YearMonthIntervalType)
    return T.StringType() if isinstance(kind, as_text) else kind


def _is_complete(column_seq: Column) -> Column:
    """Whether every column's value is known (debezium.md M2 to M4)."""
    unknown = F.exists(F.map_values(column_seq), merge.is_unknown)
    return ~F.coalesce(unknown, F.lit(False))
