"""Comparison of a rebuilt table with the present one: what to write, what would be lost, and patches of single columns.

Rows are silver's or its history's: the source's columns, and the system columns of ``transforms/merge.py``. Both sides
have one row per key.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.transforms import merge
from replicator.transforms.columns.layout import version_of
from replicator.transforms.columns.reshape import TRAILING_COLUMNS
from replicator.transforms.comparison import compare

SIDES = merge.Sides()


def difference(present: DataFrame, wanted: DataFrame, found: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The difference from the present to the wanted rows, for ``TableFormat.put``: *wanted*'s columns and ``_op``.

    ``found`` is the result of ``compare.differences`` for the two, which have the same columns.
    """
    gone = found.where(F.col(compare.VERDICT) == compare.MISSING)
    kept = found.where(F.col(compare.VERDICT) != compare.MISSING)
    columns = [names.quote_spark(column) for column in wanted.columns]
    upserts = wanted.join(kept, list(keys), how="left_semi").select(*columns, F.lit("upsert").alias("_op"))
    deletes = present.join(gone, list(keys), how="left_semi").select(*columns, F.lit("delete").alias("_op"))
    return upserts.unionByName(deletes)


def keys_losing_data(present: DataFrame, wanted: DataFrame, found: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keys of rows for which *wanted* is behind *present*: the row is missing, or it or one of its columns is at a
    lower position (debezium.md M2). Promise C (reliability.md section 1) holds for all others.
    """
    at_stake = found.where(F.col(compare.VERDICT) != compare.EXTRA).select(*map(names.quote_spark, keys))
    old = present.join(at_stake, list(keys), how="left_semi").alias(SIDES.stored)
    both = old.join(wanted.alias(SIDES.change), merge.same_key(keys, SIDES), how="left")
    was, now = SIDES.of_stored("_seq"), SIDES.of_change("_seq")
    is_less = now.isNull() | (now < was) | F.exists(_entries(SIDES.of_change("_column_seq")), _is_behind)
    return both.where(is_less).select(*[SIDES.of_stored(key).alias(key) for key in keys])


def without_deleted(rows: DataFrame, upto: str) -> DataFrame:
    """Drop deleted rows up to a ``_seq``: a purge horizon, since they stay purged (debezium.md M9), or a TRUNCATE,
    which leaves a deleted row only where there was a row before (T1).
    """
    return rows.where(~F.col("_deleted") | (F.col("_seq") > upto))


def patch_columns(present: DataFrame, made: DataFrame, keys: Sequence[str], columns: Collection[str]) -> DataFrame:
    """The present rows with some columns' values and positions (``_column_seq``) taken from *made*'s row, if that has
    the same ``_seq`` and ``_deleted``. Otherwise they keep their value, in *made*'s type, or are unknown if *present*
    has no such column.

    New columns come after the source's own, as *made* has them.
    """
    kinds, marks = dict(made.dtypes), {field.name: field.metadata for field in made.schema}
    ours = [column for column in present.columns if column in TRAILING_COLUMNS]
    behind = [column for column in made.columns if column in columns and column not in present.columns]
    theirs = [c for c in present.columns if c not in ours and (c not in columns or c in kinds)]
    both = present.alias(SIDES.stored).join(made.alias(SIDES.change), merge.same_key(keys, SIDES), how="left")
    is_same = F.coalesce(is_same_state(), F.lit(False))

    def value(column: str) -> Column:
        if column not in columns:
            return SIDES.of_stored(column).alias(column)
        before = SIDES.of_stored(column) if column in present.columns else F.lit(None)
        taken = F.when(is_same, SIDES.of_change(column)).otherwise(before.cast(kinds[column]))
        return taken.alias(column, metadata=marks[column])

    places = F.when(is_same, _merged_positions(columns)).otherwise(_unknown(behind)).alias("_column_seq")
    return both.select(*map(value, [*theirs, *behind]), *[places if c == "_column_seq" else value(c) for c in ours])


def changed_intervals(present: DataFrame, made: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keys of a history's intervals that end elsewhere in *made*: an interval ends where any of its columns changes."""
    both = present.alias(SIDES.stored).join(made.alias(SIDES.change), merge.same_key(keys, SIDES))
    ends = [side("__END_AT") for side in (SIDES.of_stored, SIDES.of_change)]
    is_other = is_same_state() & ~ends[0].eqNullSafe(ends[1])
    return both.where(is_other).select(*[SIDES.of_stored(key).alias(key) for key in keys])


def unmatched(present: DataFrame, made: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keys of present rows that :func:`patch_columns` leaves alone."""
    both = present.alias(SIDES.stored).join(made.alias(SIDES.change), merge.same_key(keys, SIDES), how="left")
    left = both.where(~F.coalesce(is_same_state(), F.lit(False)))
    return left.select(*[SIDES.of_stored(key).alias(key) for key in keys])


def column_versions(columns: Sequence[str], column: str) -> list[str]:
    """Those of the stored columns that are versions of one column, by its first version's name."""
    return [each for each in columns if version_of(each)[0] == column]


def is_same_state() -> Column:
    """Whether both sides' rows have the same ``_seq``, and both are alive or both deleted."""
    same_place = SIDES.of_stored("_seq") == SIDES.of_change("_seq")
    return same_place & (SIDES.of_stored("_deleted") == SIDES.of_change("_deleted"))


def _entries(places: Column) -> Column:
    return F.coalesce(F.map_entries(places), F.array())


def _is_behind(entry: Column) -> Column:
    default = merge.default_position(SIDES.of_stored("_seq"), SIDES.of_stored("_deleted"))
    was = F.coalesce(SIDES.of_stored("_column_seq")[entry["key"]], default)
    return (entry["value"] < was) & ~(merge.is_unknown(entry["value"]) & merge.is_unknown(was))


def _merged_positions(columns: Collection[str]) -> Column:
    """``_column_seq`` of the present row, with these columns' entries taken from the other."""
    own = F.filter(_entries(SIDES.of_stored("_column_seq")), lambda entry: ~entry["key"].isin(*columns))
    other = F.filter(_entries(SIDES.of_change("_column_seq")), lambda entry: entry["key"].isin(*columns))
    return _map(F.concat(own, other))


def _unknown(new: Sequence[str]) -> Column:
    """``_column_seq`` of an unchanged row, with the new columns as unknown."""
    places = SIDES.of_stored("_column_seq")
    if not new:
        return places
    flags = F.array(*[F.struct(F.lit(column).alias("key"), F.lit("").alias("value")) for column in new])
    return F.when(~SIDES.of_stored("_deleted"), _map(F.concat(_entries(places), flags))).otherwise(places)


def _map(entries: Column) -> Column:
    return F.when(F.size(entries) > 0, F.map_from_entries(entries))
