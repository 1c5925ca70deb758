"""Types that no table can have: those that say nothing, as of a NULL alone, which make a table in Delta that nobody can
read again, and intervals, which are not written into files.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import types as T

_INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType)


def has_null_type(kind: T.DataType) -> bool:
    """Whether it says nothing, or has within what does not."""
    return any(isinstance(each, T.NullType) for each in nested_types(kind))


def has_interval_type(kind: T.DataType) -> bool:
    """Whether it is a length of time, or has one within."""
    return any(isinstance(each, _INTERVALS) for each in nested_types(kind))


def nested_types(kind: T.DataType) -> Iterator[T.DataType]:
    """The type and all that it is made of, however deep."""
    yield kind
    parts: list[T.DataType] = []
    if isinstance(kind, T.ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, T.MapType):
        parts = [kind.keyType, kind.valueType]
    elif isinstance(kind, T.StructType):
        parts = [field.dataType for field in kind]
    for part in parts:
        yield from nested_types(part)
