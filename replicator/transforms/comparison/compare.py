"""Comparison of two tables that must be equal, or of two versions of one: which keys differ, and in which columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from replicator import names
from replicator.jvm import expressions
from replicator.transforms import merge
from replicator.transforms.comparison.comparable import column_types, comparable, is_equal
from replicator.transforms.json_values import stringify_map_keys
from replicator.transforms.user_view import JSON_OPTIONS

_HERE, _GONE, _NEW = "_ here", "_ gone", "_ new"
SIDES = merge.Sides(stored="one", change="other")
VERDICT, COLUMNS = "_ verdict", "_ columns"
"""The columns of :func:`differences` beside the key. No column of a table has a blank in its name."""

MISSING, EXTRA, DIFFERING = "missing", "extra", "differing"
KINDS = ADDED, REMOVED, CHANGED = "added", "removed", "changed"


def differences(one: DataFrame, other: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row per key that differs between the two sides: the key, :data:`VERDICT` (``missing`` from the other,
    ``extra`` in it, ``differing``) and :data:`COLUMNS`, ``ARRAY<STRING>``: where it differs, in the order of *one*'s
    columns.

    Only columns of one type on both sides are compared, see :func:`type_mismatches`. Maps are equal when their entries
    are; NaN equals NaN. Keys are unique and not NULL on either side.
    """
    shared = [column for column in one.columns if column not in keys and column not in type_mismatches(one, other)]
    left, right = _comparable_columns(one, [*keys, *shared]), _comparable_columns(other, [*keys, *shared])
    both = left.alias(SIDES.stored).join(right.alias(SIDES.change), merge.same_key(keys, SIDES), how="full")
    gone, new = SIDES.of_change(_HERE).isNull(), SIDES.of_stored(_HERE).isNull()
    named = [F.when(~_same(column), F.lit(names.decode(column))) for column in shared]
    where = F.when(~(gone | new), F.array_compact(F.array(*named, F.lit(None).cast("string"))))
    key = [F.coalesce(SIDES.of_stored(k), SIDES.of_change(k)).alias(k) for k in keys]
    found = both.select(*key, gone.alias(_GONE), new.alias(_NEW), where.alias(COLUMNS))
    verdict = F.when(F.col(_GONE), MISSING).when(F.col(_NEW), EXTRA).when(F.size(COLUMNS) > 0, DIFFERING)
    marked = found.select(*map(names.quote_spark, keys), verdict.alias(VERDICT), COLUMNS)
    return marked.where(F.col(VERDICT).isNotNull())


def changes(before: DataFrame, after: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row per key that differs between two versions of a table: ``at STRUCT`` of the key columns, ``change``
    (``added``, ``removed``, ``changed``), and ``key``, ``before``, ``after MAP<STRING,STRING>``: values as JSON by
    column, for a changed row only those that differ; NULL if the row does not exist.

    A column that only one version has is NULL in the other; one whose type changed is compared by its values' JSON.
    Keys are unique and not NULL in either version.
    """
    types = column_types(before), column_types(after)
    columns = [column for column in dict.fromkeys([*before.columns, *after.columns]) if column not in keys]
    left, right = before.withColumn(_HERE, F.lit(True)), after.withColumn(_HERE, F.lit(True))
    both = left.alias(SIDES.stored).join(right.alias(SIDES.change), merge.same_key(keys, SIDES), how="full")
    was, is_ = SIDES.of_stored(_HERE).isNotNull(), SIDES.of_change(_HERE).isNotNull()
    differs = {column: ~_is_equal(column, *types) for column in columns}
    one = expressions.any_of(differs.values())
    change = F.when(~was, ADDED).when(~is_, REMOVED).when(one, CHANGED)
    key = [F.coalesce(SIDES.of_stored(k), SIDES.of_change(k)).alias(k) for k in keys]

    def values(of: Callable[[str], Column], kind: Mapping[str, DataType], is_there: Column) -> Column:
        cells = [F.when(~(was & is_) | differs[c], _cell(c, of(c), kind[c])) for c in columns if c in kind]
        nothing = F.lit(None).cast("struct<column:string,value:string>")
        return F.when(is_there, F.map_from_entries(F.array_compact(F.array(*cells, nothing))))

    return both.where(change.isNotNull()).select(
        F.struct(*key).alias("at"),
        change.alias("change"),
        F.map_from_entries(F.array(*[_cell(k, of, types[1][k]) for k, of in zip(keys, key, strict=True)])).alias("key"),
        values(SIDES.of_stored, types[0], was).alias("before"),
        values(SIDES.of_change, types[1], is_).alias("after"),
    )


def type_mismatches(one: DataFrame, other: DataFrame) -> Mapping[str, tuple[str | None, str | None]]:
    """Columns whose types differ, with their two types; None if a side does not have the column."""
    first, second = dict(one.dtypes), dict(other.dtypes)
    every = dict.fromkeys([*first, *second])
    return {each: (first.get(each), second.get(each)) for each in every if first.get(each) != second.get(each)}


def _comparable_columns(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The columns in comparable form."""
    types = column_types(rows)
    values = [comparable(F.col(names.quote_spark(column)), types[column]).alias(column) for column in columns]
    return rows.select(*values, F.lit(True).alias(_HERE))


def _is_equal(column: str, was: Mapping[str, DataType], is_: Mapping[str, DataType]) -> Column:
    """Whether both versions are equal in a column that at least one of them has."""
    if column not in is_:
        return SIDES.of_stored(column).isNull()
    if column not in was:
        return SIDES.of_change(column).isNull()
    sides = SIDES.of_stored(column), SIDES.of_change(column)
    if was[column].simpleString() == is_[column].simpleString():
        return is_equal(was[column], *sides)
    one, other = map(_json, sides, (was[column], is_[column]))
    return one.eqNullSafe(other)


def _cell(column: str, value: Column, kind: DataType) -> Column:
    return F.struct(F.lit(column).alias("column"), _json(value, kind).alias("value"))


def _json(value: Column, kind: DataType) -> Column:
    """A value as JSON, cut out of a struct's: Spark writes no JSON for a value alone."""
    text = F.to_json(F.struct(stringify_map_keys(value, kind).alias("v")), JSON_OPTIONS)
    return text.substr(F.lit(len('{"v":') + 1), F.length(text) - len('{"v":}'))


def _same(column: str) -> Column:
    return SIDES.of_stored(column).eqNullSafe(SIDES.of_change(column))
