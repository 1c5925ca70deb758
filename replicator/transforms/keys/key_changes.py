"""Rows that change their key: the values that they inherit (debezium.md M7), and deletes to suppress when rows swap
keys (C5).

Changes have ``key_headers.MOVE_COLUMNS`` here. An *arrival* is the insert under the new key, a *departure* the delete
under the old one. Key changes are rare, and none of this is planned for a batch without one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StringType, StructType

from replicator import names
from replicator.debezium import position
from replicator.transforms import decode, fold, merge, truncate
from replicator.transforms.keys import fillers, key_swaps
from replicator.transforms.keys.key_headers import MOVE_COLUMNS
from replicator.transforms.table_transform.steps import PASSES
from replicator.transforms.user_view import JSON_OPTIONS


def registers(changes: DataFrame, keys: Sequence[str]) -> list[str]:
    """The columns that are neither keys nor our own."""
    ours = {*merge.SYSTEM_COLUMNS, *MOVE_COLUMNS, "_unavailable", "_reject", PASSES}
    return [column for column in changes.columns if column not in keys and column not in ours]


def key_struct(keys: Sequence[str]) -> Column:
    """``_key STRUCT`` of the key columns, so that their names cannot collide with ours."""
    return F.struct(*map(names.quote_spark, keys)).alias("_key")


def image(columns: Sequence[str]) -> Column:
    """The values of a row as JSON, equal for equal rows."""
    return F.to_json(F.struct(*map(names.quote_spark, columns)), JSON_OPTIONS) if columns else F.lit("{}")


def change_image(columns: Sequence[str]) -> Column:
    """:func:`image` of the row in a change; NULL if the change does not know every column."""
    return F.when(F.size(decode.unavailable_columns()) == 0, image(columns))


def stored_image(columns: Sequence[str]) -> Column:
    """:func:`image` of a silver row; NULL if some column is unknown, or has another position than the row."""
    return F.when(F.col("_column_seq").isNull(), image(columns))


def incomplete_arrivals(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Arrivals that lack values: ``_link`` (its id), ``_q`` (its ``_seq``), ``_from`` (its record's coordinates),
    ``_old`` and ``_old_text``.
    """
    lacking = changes.where(F.col("_old").isNotNull() & (F.size("_unavailable") > 0))
    place = F.col("_seq").alias("_q"), F.col("_at").alias("_from")
    return lacking.select(_link(keys).alias("_link"), *place, "_old", "_old_text")


def departures(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """All departures: the key, ``_seq`` and ``_at``, whether or not the delete is applied."""
    return changes.where("_left").select(*map(names.quote_spark, keys), "_seq", "_at")


def affected_keys(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The keys that moved rows came from, came to and left; not distinct."""
    moved = changes.where(F.col("_left") | F.col("_old").isNotNull())
    both = moved.select(F.explode(F.array(key_struct(keys), "_old")).alias("_key"))
    return both.where(F.col("_key").isNotNull()).select("_key.*")


@dataclass(frozen=True)
class KeyHistory:
    """The sources for a row's values under its old key: ``changes``; the :func:`departures` of these or other changes
    (``left``); and silver (``stored``), if needed. ``truncates`` (their ``_seq``) cleared what came before them.
    """

    changes: DataFrame
    left: DataFrame
    truncates: Sequence[str]
    stored: DataFrame | None = None


def inherited_values(changes: DataFrame, known: KeyHistory, keys: Sequence[str], columns: Collection[str]) -> DataFrame:
    """The values of :func:`incomplete_arrivals` under their old keys, one row per arrival for which some of these
    columns is known: ``_there`` (the arrival), and ``_was STRUCT<values, known>``, the columns and the names of those
    that are known. A value is the newest register below the arrival, its own departure excluded (M7), and above the
    last truncate below it (T2).

    Only for rows whose departure was seen: partitions may be read at different speeds, and later changes under the old
    key may still be missing (C3).
    """
    place = [F.when(F.col("_counts"), F.col(f"_p{i}")) for i, _ in enumerate(columns)]
    of_links = _under_old_keys(incomplete_arrivals(changes, keys), known, keys, columns).groupBy("_link")
    newest = of_links.agg(
        F.max("_seen").alias("_seen"),
        *[F.max_by(f"_v{i}", at).alias(f"_v{i}") for i, at in enumerate(place)],
        *[F.max(at).alias(f"_p{i}") for i, at in enumerate(place)],
    )
    values = F.struct(*[F.col(f"_v{i}").alias(column) for i, column in enumerate(columns)])
    known_names = [F.when(~merge.is_unknown(F.col(f"_p{i}")), F.lit(column)) for i, column in enumerate(columns)]
    was = F.struct(values.alias("values"), F.array_compact(F.array(*known_names)).alias("known"))
    found = newest.where("_seen").select(F.col("_link").alias("_there"), was.alias("_was"))
    return found.where(F.size("_was.known") > 0)


def fill_inherited(changes: DataFrame, values: DataFrame, keys: Sequence[str], columns: Collection[str]) -> DataFrame:
    """Fill the missing values of these columns where they were found, as known at the arrival's own position."""
    joined = changes.join(values, _link(keys) == F.col("_there"), how="left")
    known = F.col("_was.known")

    def value(column: str) -> Column:
        missing = F.array_contains("_unavailable", column) & F.array_contains(known, column)
        own = F.col(names.quote_spark(column))
        return F.when(missing, F.col("_was.values").getField(column)).otherwise(own).alias(column)

    left = F.when(known.isNull(), F.col("_unavailable")).otherwise(F.array_except(F.col("_unavailable"), known))
    filled = {column: value(column) for column in columns} | {"_unavailable": left.alias("_unavailable")}
    return joined.select(*[filled.get(column, F.col(names.quote_spark(column))) for column in changes.columns])


def contested_keys(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keys that some transaction gave a row and then took one from, with a key change on either side (C5)."""
    is_move = F.col("_left") | F.col("_old").isNotNull()
    of_transaction = (
        changes.where(F.col("_tx").isNotNull())
        .groupBy(key_struct(keys), "_tx")
        .agg(
            F.min(F.when(F.col("_inserted"), F.col("_seq"))).alias("_came"),
            F.max(F.when(F.col("_deleted"), F.col("_seq"))).alias("_went"),
            F.max(is_move).alias("_moved"),
        )
    )
    return of_transaction.where("_came < _went AND _moved").select("_key.*").distinct()


def suppressed_deletes(changes: DataFrame, images: DataFrame, held: DataFrame | None, keys: Sequence[str]) -> DataFrame:
    """The deletes of contested keys that must not be applied: the keys, ``_seq`` and ``_action`` (see
    ``key_swaps.verdicts``).

    ``changes`` is all that is known of these keys, ``images`` are their deletes decoded with ``decode.decode_before``,
    ``held`` the silver rows that were there before.
    """
    columns = registers(images, keys)
    at = [*map(names.quote_spark, keys), "_seq"]
    plain = [F.col(names.quote_spark(c)) for c, kind in images.dtypes if c in columns and "<" not in kind]
    was = F.struct(image(columns).alias("image"), fillers.has_other(plain).alias("whole")).alias("_was")
    kind = F.when(F.col("_deleted"), key_swaps.DELETE).when(F.col("_inserted"), key_swaps.INSERT)
    event = F.struct(
        "_seq",
        F.when(~position.is_by_offset(F.col("_seq")), position.without_offset(F.col("_seq"))).alias("place"),
        "_tx",
        F.coalesce(kind, F.lit(key_swaps.WRITE)).alias("kind"),
        F.when(F.col("_deleted"), F.col("_was.image")).otherwise(change_image(columns)).alias("image"),
        F.coalesce("_was.whole", F.lit(False)).alias("whole"),
        position.transaction_lsn(F.col("_seq"), F.col("_tx")).alias("own"),
    )
    events = changes.join(images.select(*at, was), [*keys, "_seq"], how="left").groupBy(key_struct(keys))
    by_key = events.agg(F.collect_list(event).alias("_events"))
    rows = F.lit(None).cast("array<string>")
    if held is not None:
        before = held.select(key_struct(keys), F.array(stored_image(columns)).alias("_held"))
        by_key, rows = by_key.join(before, "_key", how="left"), F.col("_held")
    found = F.explode(_verdicts(F.col("_events"), rows))
    return by_key.select("_key.*", found.alias("_seq", "_action"))


def drop_move_columns(changes: DataFrame) -> DataFrame:
    """Drop MOVE_COLUMNS from changes, except for ``_at``."""
    return changes.drop(*[column for column in MOVE_COLUMNS if column != "_at"])


def _link(keys: Sequence[str]) -> Column:
    return F.concat(F.to_json(F.struct(*map(names.quote_spark, keys)), JSON_OPTIONS), F.lit("@"), F.col("_seq"))


def _under_old_keys(links: DataFrame, known: KeyHistory, keys: Sequence[str], columns: Collection[str]) -> DataFrame:
    """Everything known of the old key of each arrival: registers (see ``_of_changes``), whether they count for it, and
    whether its row was ``_seen`` to leave. Offsets give an order within one partition only (Q8): if the row left in
    another partition than it arrived in, nothing is known.
    """
    left = _keyed(known.left, keys, F.lit(True).alias("_gone"), F.lit(False).alias("_is_held"), F.col("_at"))
    rows = _of_changes(known.changes, keys, columns).unionByName(left, allowMissingColumns=True)
    if known.stored is not None:
        held = _of_silver(known.stored, known.changes.schema, keys, columns)
        rows = rows.unionByName(held, allowMissingColumns=True)
    is_old = reduce(and_, [F.col("_old").getField(key) == F.col(f"_k{i}") for i, key in enumerate(keys)])
    is_left, is_there = (F.coalesce(each, F.lit(False)) for each in (F.col("_left"), ~F.col("_left")))
    was, q = F.col("_was"), F.col("_q")
    by_offset, is_copy = position.is_by_offset(q), position.is_duplicate(was, q)
    here = [F.col(f"_at.{part}") == F.col(f"_from.{part}") for part in ("topic", "partition")]
    last = F.max(F.when(is_there & (was < q), was)).over(Window.partitionBy("_link"))
    own = is_left & (is_copy | (by_offset & (was > F.coalesce(last, F.lit("")))))  # its tombstone may be a delete, too
    has_left = F.when(by_offset, reduce(and_, here, was < q)).otherwise(is_copy)
    seen = (F.col("_gone") & has_left) | (F.col("_is_held") & (was > q) & ~by_offset)
    joined = links.withColumn("_cut", truncate.last_below(q, known.truncates)).join(rows, is_old)
    counts = (was > F.col("_cut")) & (was < q) & ~own
    return joined.withColumns({"_counts": counts, "_seen": seen, **_since_cut(len(columns))})


def _since_cut(columns: int) -> dict[str, Column]:
    """The positions ``_p`` after the last truncate: a silver row may be newer than it, and some of its values older."""

    def since(place: Column) -> Column:
        return F.when(F.col("_is_held"), truncate.clear_position(place, F.col("_cut"))).otherwise(place)

    return {f"_p{i}": since(F.col(f"_p{i}")) for i in range(columns)}


def _keyed(rows: DataFrame, keys: Sequence[str], *more: Column) -> DataFrame:
    """The key of each row and its ``_seq``, under names that no column has, and ``more`` columns."""
    own = [F.col(names.quote_spark(key)).alias(f"_k{i}") for i, key in enumerate(keys)]
    return rows.select(*own, F.col("_seq").alias("_was"), *more)


def _of_changes(changes: DataFrame, keys: Sequence[str], columns: Collection[str]) -> DataFrame:
    """The registers of these columns in changes that can be applied: values ``_v`` and positions ``_p``."""
    good = changes.where(F.col("_reject").isNull() & ~F.col("_stays"))
    values = [fold.value_unless_deleted(column, keys).alias(f"_v{i}") for i, column in enumerate(columns)]
    places = [fold.register_position(column).alias(f"_p{i}") for i, column in enumerate(columns)]
    return _keyed(good, keys, F.col("_left"), *values, *places)


def _of_silver(stored: DataFrame, as_in: StructType, keys: Sequence[str], columns: Collection[str]) -> DataFrame:
    """The same for silver rows; silver may not have all of the columns yet."""
    default = merge.default_position(F.col("_seq"), F.col("_deleted"))
    values = [
        (F.col(names.quote_spark(c)) if c in stored.columns else F.lit(None).cast(as_in[c].dataType)).alias(f"_v{i}")
        for i, c in enumerate(columns)
    ]
    places = [F.coalesce(F.col("_column_seq")[F.lit(c)], default).alias(f"_p{i}") for i, c in enumerate(columns)]
    own = F.col("_deleted").alias("_gone"), F.lit(True).alias("_is_held")
    return _keyed(stored, keys, *own, *values, *places)


@F.udf(returnType=MapType(StringType(), StringType()), useArrow=False)
def _verdicts(events: Sequence[Row], held: Sequence[str | None] | None) -> dict[str, str]:
    # a fold with a list as state, over the few events of a contested key; Spark's own `aggregate` was tried first
    return key_swaps.verdicts([key_swaps.Event(*event) for event in events], held or ())
