"""Two tables that must be equal: which of their keys are not, and in which columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.transforms import merge

SIDES = merge.Sides(stored="one", change="other")
MISSING, EXTRA, DIFFERING = "missing", "extra", "differing"


def differences(one: DataFrame, other: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row per key that is not the same on both sides: the key, ``verdict`` (``missing`` from the other, ``extra``
    in it, ``differing``) and ``columns ARRAY<STRING>``: where it differs, in the order of *one*'s columns.

    Only columns of one type on both sides are compared, see :func:`unlike`. Maps are equal when their entries are; NaN
    equals NaN. Keys are unique and not NULL on either side.
    """
    shared = [column for column in one.columns if column not in keys and column not in unlike(one, other)]
    left, right = _plain(one, [*keys, *shared]), _plain(other, [*keys, *shared])
    both = left.alias(SIDES.stored).join(right.alias(SIDES.change), merge.same_key(keys, SIDES), how="full")
    gone, new = SIDES.of_change("_here").isNull(), SIDES.of_stored("_here").isNull()
    named = [F.when(~_same(column), F.lit(names.decode(column))) for column in shared]
    told = F.when(~(gone | new), F.array_compact(F.array(*named, F.lit(None).cast("string"))))
    key = [F.coalesce(SIDES.of_stored(k), SIDES.of_change(k)).alias(k) for k in keys]
    found = both.select(*key, gone.alias("_gone"), new.alias("_new"), told.alias("columns"))
    verdict = F.when(F.col("_gone"), MISSING).when(F.col("_new"), EXTRA).when(F.size("columns") > 0, DIFFERING)
    marked = found.select(*map(names.spark, keys), verdict.alias("verdict"), "columns")
    return marked.where(F.col("verdict").isNotNull())


def unlike(one: DataFrame, other: DataFrame) -> Mapping[str, tuple[str | None, str | None]]:
    """Columns that are not of the same type on both sides, with their two types; None: there is no such column."""
    first, second = dict(one.dtypes), dict(other.dtypes)
    every = dict.fromkeys([*first, *second])
    return {each: (first.get(each), second.get(each)) for each in every if first.get(each) != second.get(each)}


def _plain(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The columns in types that can be compared."""
    kinds = dict(rows.dtypes)

    def comparable(column: str) -> Column:
        value = F.col(names.spark(column))
        is_map = kinds[column].startswith("map<")
        return (F.array_sort(F.map_entries(value)) if is_map else value).alias(column)

    return rows.select(*map(comparable, columns), F.lit(True).alias("_here"))


def _same(column: str) -> Column:
    return SIDES.of_stored(column).eqNullSafe(SIDES.of_change(column))
