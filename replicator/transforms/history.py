"""History tables (SCD 2): changes as validity intervals, one for every state that a row has had.

A history table has one row per key and *place*, the part of ``_seq`` that a redelivery repeats. A row holds what all
changes up to its place make of the key by the rule of ``merge.py``. Merging more changes, in any order and any batches,
ends in the same rows: each step is a join of states, and each interval a function of the steps. In addition to the
columns of silver (SYSTEM_COLUMNS included) it has COLUMNS:

``__START_AT STRING``  the ``_seq`` of the change that began the interval; of several deliveries the first
``__END_AT STRING``    that of the change that ended it; NULL: it is still valid
``__START_TIME``, ``__END_TIME TIMESTAMP``  the same two by the source's clock (``source.ts_ms``), NULL if unknown; for
                       people: nothing is ordered by them

A place that begins no interval (a delete, a change that changed nothing) keeps its row, since a late change may turn it
into one: its ``__END_AT`` equals its ``__START_AT``, an empty interval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.transforms import merge, user_view
from replicator.transforms.comparison.comparable import column_types, comparable
from replicator.transforms.merge import SYSTEM_COLUMNS

COLUMNS = ("__START_AT", "__END_AT", "__START_TIME", "__END_TIME")
"""The columns of a history table between the source's columns and SYSTEM_COLUMNS. The first two are Spark AUTO CDC's.
"""

KEY = user_view.START_AT
"""The column that distinguishes the rows of one source key."""

Truncates = Mapping[str, int | None]
"""Every TRUNCATE of the table: its ``_seq``, and its ``source.ts_ms``."""

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_MOMENT = "STRUCT<at: STRING, ms: BIGINT>"
_STORED_TYPE = (
    "STRUCT<start: STRING, end: STRING, end_time: TIMESTAMP, seq: STRING, places: ARRAY<STRUCT<c: STRING, p: STRING>>>"
)


def states(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Decoded changes as silver-shaped rows, one per change: the state of its key by that change alone (debezium.md
    M4).
    """
    columns = [c for c in changes.columns if c not in (*SYSTEM_COLUMNS, "_unavailable")]
    unsent = F.array_distinct("_unavailable")
    nothing = F.array_repeat(F.lit(""), F.size(unsent))
    is_partial = ~F.col("_deleted") & (F.size(unsent) > 0)

    def value(column: str) -> Column:
        own = F.col(names.quote_spark(column))
        return (own if column in keys else F.when(~F.col("_deleted"), own)).alias(column)

    return changes.select(
        *map(value, columns),
        "_seq",
        "_deleted",
        F.when(is_partial, F.map_from_arrays(unsent, nothing)).alias("_column_seq"),
        "_source_ts_ms",
    )


def difference(
    stored: DataFrame | None,
    changed: DataFrame,
    keys: Sequence[str],
    truncates: Truncates,
    *,
    partial: bool,
    by_record: bool = False,
) -> DataFrame:
    """The difference to apply to a history table for new changes: its columns and ``_op`` (``upsert``, ``delete``), one
    row per key and ``__START_AT``.

    ``stored`` are all its rows of the keys of ``changed`` (:func:`states`), and of every other key that a truncate not
    yet applied to the table may reach. ``partial``: some row or change has a ``_column_seq``. ``by_record``: two
    records of one place are two changes, as where time orders them and ties (Q9).
    """
    rows = _union_stored(stored, changed)
    placed = rows.withColumn("_place", F.col("_seq") if by_record else _place())
    steps = (_steps_of_registers if partial else _steps_of_whole_rows)(placed, keys, truncates)
    return _changed_rows(_intervals(steps, keys, truncates))


def is_interval() -> Column:
    """Whether a row of a history table is a non-empty interval."""
    return F.col("__END_AT").isNull() | (F.col("__END_AT") > F.col("__START_AT"))


def _union_stored(stored: DataFrame | None, changed: DataFrame) -> DataFrame:
    """Stored rows and changes as steps to be merged: ``_was`` is the stored interval, NULL for a change."""
    fresh = changed.select("*", F.col("_seq").alias("__START_AT"), F.lit(None).cast(_STORED_TYPE).alias("_was"))
    if stored is None:
        return fresh
    was = F.struct("__START_AT", "__END_AT", "__END_TIME", "_seq", F.map_entries("_column_seq")).cast(_STORED_TYPE)
    present = [c for c in stored.columns if c not in COLUMNS]
    known = stored.select(*map(names.quote_spark, present), "__START_AT", was.alias("_was"))
    return known.unionByName(fresh, allowMissingColumns=True)


def _place() -> Column:
    """The place of a change. Records of one place are redeliveries of one change; without positions each record is a
    change of its own (Q8).
    """
    seq = F.col("_seq")
    return F.when(position.is_by_offset(seq), seq).otherwise(position.without_offset(seq))


def _registers(rows: DataFrame, keys: Sequence[str]) -> list[str]:
    ours = (*SYSTEM_COLUMNS, *COLUMNS, *keys, "_was", "_place")
    return [column for column in rows.columns if column not in ours]


def _of_place(keys: Sequence[str]) -> WindowSpec:
    return Window.partitionBy(*map(names.quote_spark, keys), "_place")


def _of_key(keys: Sequence[str], order: Column) -> WindowSpec:
    return Window.partitionBy(*map(names.quote_spark, keys)).orderBy(order)


def _one_per_place(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The newest record of each place, with the ``__START_AT`` of the oldest and the stored interval."""
    alike = _of_place(keys)
    newest_first = alike.orderBy(F.col("_seq").desc(), F.col("_was").isNull())
    ranked = rows.select(
        *[F.col(names.quote_spark(c)) for c in rows.columns if c not in ("__START_AT", "_was")],
        F.min("__START_AT").over(alike).alias("__START_AT"),
        F.first("_was", ignorenulls=True).over(alike).alias("_was"),
        F.row_number().over(newest_first).alias("_rank"),
    )
    return ranked.where(F.col("_rank") == 1).drop("_rank")


def _steps_of_whole_rows(rows: DataFrame, keys: Sequence[str], truncates: Truncates) -> DataFrame:  # noqa: ARG001 - as _steps_of_registers
    """If every change is complete, the state at a place is its newest record (M6)."""
    return _one_per_place(rows, keys)


def _steps_of_registers(rows: DataFrame, keys: Sequence[str], truncates: Truncates) -> DataFrame:
    """Each register takes the value at its greatest position up to the place; a truncate in between clears it (T2)."""
    at = {column: f"@{index}" for index, column in enumerate(_registers(rows, keys))}  # no column can have such a name
    steps = _one_per_place(_running_state(rows, keys, at), keys)
    steps = steps.withColumn("_cut", _last_before(F.col("_newest"), truncates))
    positions = {column: F.greatest(F.col(place), F.col("_cut")) for column, place in at.items()}
    return steps.select(
        *map(names.quote_spark, keys),
        *[F.when(F.col(at[c]) == positions[c], F.col(names.quote_spark(c))).alias(c) for c in at],
        F.col("_newest").alias("_seq"),
        "_deleted",
        merge.column_positions(positions, F.col("_newest"), F.col("_deleted")).alias("_column_seq"),
        "_source_ts_ms",
        "__START_AT",
        "_was",
        "_place",
    )


def _running_state(rows: DataFrame, keys: Sequence[str], at: Mapping[str, str]) -> DataFrame:
    """Each row with the merged state of its key up to its place: of each register the value at its greatest position,
    and that position in the column named by ``at``.
    """
    default = merge.default_position(F.col("_seq"), F.col("_deleted"))
    placed = rows.select(
        "*", *[F.coalesce(F.col("_column_seq")[F.lit(c)], default).alias(place) for c, place in at.items()]
    )
    # a range frame includes peers: whichever row of a place is kept has the whole state
    so_far = _of_key(keys, F.col("_place")).rangeBetween(Window.unboundedPreceding, Window.currentRow)
    is_stored = F.col("_was").isNotNull()

    def value(column: str) -> Column:
        return F.max_by(names.quote_spark(column), F.struct(at[column], is_stored)).over(so_far).alias(column)

    return placed.select(
        *map(names.quote_spark, keys),
        *map(value, at),
        *[F.max(place).over(so_far).alias(place) for place in at.values()],
        "_seq",
        F.max("_seq").over(so_far).alias("_newest"),
        F.max_by("_deleted", "_seq").over(so_far).alias("_deleted"),
        F.max_by("_source_ts_ms", "_seq").over(so_far).alias("_source_ts_ms"),
        "__START_AT",
        "_was",
        "_place",
    )


def _truncate_array(truncates: Truncates) -> Column:
    moments = [{"at": at, "ms": ms} for at, ms in sorted(truncates.items())]
    return F.from_json(F.lit(json.dumps(moments)), f"ARRAY<{_MOMENT}>")


def _last_before(seq: Column, truncates: Truncates) -> Column:
    """The position that the last truncate before a change gave every column; NULL if there is none."""
    if not truncates:
        return F.lit(None).cast("string")
    below = F.filter(_truncate_array(truncates), lambda each: each["at"] < seq)
    return F.concat(F.array_max(below)["at"], F.lit("-"))


def _first_after(seq: Column, truncates: Truncates) -> Column:
    if not truncates:
        return F.lit(None).cast(_MOMENT)
    return F.array_min(F.filter(_truncate_array(truncates), lambda each: each["at"] > seq))


def _intervals(steps: DataFrame, keys: Sequence[str], truncates: Truncates) -> DataFrame:
    """Each step with the end of its interval: the next step with a different row or a delete, or a truncate."""
    kinds, registers = column_types(steps), _registers(steps, keys)
    compared = [comparable(F.col(names.quote_spark(c)), kinds[c]).alias(f"_{i}") for i, c in enumerate(registers)]
    image = F.struct(*compared, _unknown().alias("_unknown"))
    cut = steps.withColumn("_cut", _first_after(F.col("_seq"), truncates)).withColumn("_image", image)
    before = F.lag(F.struct("_deleted", "_cut", "_image")).over(_of_key(keys, F.col("_place")))
    marked = cut.withColumn("_before", before).withColumn("_goes_on", _repeats_previous()).drop("_before", "_image")
    later_first = _of_key(keys, F.col("_place").desc()).rowsBetween(Window.unboundedPreceding, -1)
    moment = F.struct(F.col("__START_AT").alias("at"), F.col("_source_ts_ms").alias("ms")).cast(_MOMENT)
    following = F.last(F.when(~F.col("_goes_on"), moment), ignorenulls=True).over(later_first)
    holds = ~F.col("_deleted") & ~F.col("_goes_on")
    ended = marked.withColumn("_end", F.when(holds, F.least(following, F.col("_cut"))).otherwise(moment))
    return ended.select(
        *[F.col(names.quote_spark(c)) for c in marked.columns if c not in ("_cut", "_goes_on", "_place")],
        F.col("_end.at").alias("__END_AT"),
        to_timestamp(F.col("_source_ts_ms")).alias("__START_TIME"),
        to_timestamp(F.col("_end.ms")).alias("__END_TIME"),
    )


def _repeats_previous() -> Column:
    """Whether a step only repeats the previous row: the same values, and no delete or truncate in between."""
    was, cut = F.col("_before._deleted"), F.col("_before._cut.at")
    undisturbed = cut.isNull() | (cut > F.col("_seq"))
    same = F.col("_before._image").eqNullSafe(F.col("_image"))
    return ~F.col("_deleted") & F.coalesce(~was, F.lit(False)) & undisturbed & same


def _unknown() -> Column:
    """Names of the columns whose value is unknown, which is not the same as a known NULL (E5)."""
    entries = F.filter(F.map_entries("_column_seq"), lambda each: merge.is_unknown(each["value"]))
    return F.coalesce(F.transform(entries, lambda each: each["key"]), F.array().cast("array<string>"))


def to_timestamp(ms: Column) -> Column:
    """A timestamp from epoch milliseconds by the source's clock; NULL if out of range: an event may have any number."""
    return F.when(ms.between(_FIRST_MS, _LAST_MS), F.timestamp_millis(ms))


def _changed_rows(rows: DataFrame) -> DataFrame:
    """Upserts for rows that are new or differ from the stored ones; deletes for those whose ``__START_AT`` moved."""
    is_ = F.struct("__START_AT", "__END_AT", "__END_TIME", "_seq", F.map_entries("_column_seq")).cast(_STORED_TYPE)
    upsert = F.when(~F.col("_was").eqNullSafe(is_), F.struct(F.lit("upsert").alias("op"), F.col(KEY).alias("at")))
    moved = F.col("_was.start") != F.col(KEY)
    delete = F.when(moved, F.struct(F.lit("delete").alias("op"), F.col("_was.start").alias("at")))
    others = [F.col(names.quote_spark(c)) for c in rows.columns if c not in (KEY, "_was")]
    each = rows.select(*others, F.explode(F.array_compact(F.array(upsert, delete))).alias("_each"))
    return each.select(*others, F.col("_each.at").alias(KEY), F.col("_each.op").alias("_op"))
