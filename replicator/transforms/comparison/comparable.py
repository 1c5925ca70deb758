"""Equality of values of any type: Spark has none for maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.jvm import expressions


def comparable(value: Column, kind: T.DataType) -> Column:
    """The value with its maps, at any depth, as entries sorted by key; NULL stays NULL."""
    if isinstance(kind, T.StructType) and _has_map(kind):
        fields = [comparable(value[field.name], field.dataType).alias(field.name) for field in kind]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, T.MapType):
        entries = F.transform(
            F.map_entries(value), lambda e: F.struct(e["key"], comparable(e["value"], kind.valueType))
        )
        return F.array_sort(entries)
    if isinstance(kind, T.ArrayType) and _has_map(kind):
        return F.transform(value, lambda each: comparable(each, kind.elementType))
    return value


def is_equal(kind: T.DataType, one: Column, other: Column) -> Column:
    """Whether two values of a type are the same; never NULL. NaN equals NaN, NULL equals NULL."""
    return comparable(one, kind).eqNullSafe(comparable(other, kind))


def is_different(
    rows: DataFrame, columns: Iterable[str], one: Callable[[str], Column], other: Callable[[str], Column]
) -> Column:
    """Whether the two sides differ in some of these columns, whose types are those of ``rows``."""
    types = column_types(rows)
    return expressions.any_of(~is_equal(types[column], one(column), other(column)) for column in columns)


def column_types(rows: DataFrame) -> dict[str, T.DataType]:
    """The types of the columns."""
    return {field.name: field.dataType for field in rows.schema}


def _has_map(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_has_map(field.dataType) for field in kind)
    if isinstance(kind, T.ArrayType):
        return _has_map(kind.elementType)
    return isinstance(kind, T.MapType)
