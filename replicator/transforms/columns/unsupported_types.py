"""Types that no table can have: the NULL type, with which a Delta table becomes unreadable, and intervals, which cannot
be written to files.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import types as T

_INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType)


def has_null_type(kind: T.DataType) -> bool:
    """Whether the type is, or contains, the NULL type."""
    return any(isinstance(each, T.NullType) for each in nested_types(kind))


def has_interval_type(kind: T.DataType) -> bool:
    """Whether the type is, or contains, an interval."""
    return any(isinstance(each, _INTERVALS) for each in nested_types(kind))


def nested_types(kind: T.DataType) -> Iterator[T.DataType]:
    """The type and all types nested in it."""
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
