"""Types that say nothing, as of a NULL alone: Delta makes a table with such a column, and nobody can read it again."""

from __future__ import annotations

from pyspark.sql import types as T


def is_untyped(kind: T.DataType) -> bool:
    """Whether it is one, or has one within."""
    if isinstance(kind, T.ArrayType):
        return is_untyped(kind.elementType)
    if isinstance(kind, T.MapType):
        return is_untyped(kind.keyType) or is_untyped(kind.valueType)
    if isinstance(kind, T.StructType):
        return any(is_untyped(field.dataType) for field in kind)
    return isinstance(kind, T.NullType)
