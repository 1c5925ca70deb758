"""Values as JSON, for people and programs. Spark alone would write map keys in their internal form: days and
microseconds since 1970, and for bytes the name of a Java object, different each time.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.transforms.columns.unsupported_types import nested_types
from replicator.transforms.user_view import JSON_OPTIONS

_AS_TEXT = (T.DateType, T.TimestampType, T.TimestampNTZType, T.DecimalType)
_NESTED = (T.StructType, T.ArrayType)


def to_json(value: Column, kind: T.DataType) -> Column:
    """The JSON of a nested value, by ``user_view.JSON_OPTIONS``; map keys are strings: times as in SQL, bytes in
    Base64, nested values as JSON.
    """
    return F.to_json(stringify_map_keys(value, kind), JSON_OPTIONS)


def base64(value: Column) -> Column:
    """Bytes in Base64, without the line breaks that Spark adds after every 76 characters."""
    return F.translate(F.base64(value), "\r\n", "")


def stringify_map_keys(value: Column, kind: T.DataType) -> Column:
    """The value with the keys of its maps, at any depth, as strings; a value without such maps is returned as it is."""
    if not any(isinstance(each, T.MapType) and _needs_text(each.keyType) for each in nested_types(kind)):
        return value
    if isinstance(kind, T.StructType):
        fields = [stringify_map_keys(value[field.name], field.dataType).alias(field.name) for field in kind]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, T.ArrayType):
        return F.transform(value, lambda each: stringify_map_keys(each, kind.elementType))
    if isinstance(kind, T.MapType):
        maps = F.transform_values(value, lambda _, held: stringify_map_keys(held, kind.valueType))
        return F.transform_keys(maps, lambda key, _: _text(key, kind.keyType)) if _needs_text(kind.keyType) else maps
    return value


def _needs_text(kind: T.DataType) -> bool:
    return isinstance(kind, (*_AS_TEXT, T.BinaryType, *_NESTED))


def _text(key: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.BinaryType):
        return base64(key)
    return to_json(key, kind) if isinstance(kind, _NESTED) else key.cast("string")
