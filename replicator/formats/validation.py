"""Validation before a write: columns and keys that a format would store as another value, or could not read back
(docs/limits.md), are refused. Checking columns is free; checking rows takes one small job, only for tables whose key
has strings that the format writes into a path or concatenates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from replicator import names
from replicator.errors import SchemaRefused, TableStopped

NULL_PARTITION_VALUES = ("", names.HIVE_NULL)
"""Strings that a partition's folder name cannot tell from NULL."""

_PLACEHOLDERS = ("__empty__", "__null__")
"""Hudi's placeholders in a key of several columns for an empty string and for NULL."""

_IN_DELTA = "Declare `format: delta` for the table, or exclude the column (`transform`)."
_UNPARTED = "Remove it from `partition_by`; if the table exists, delete its folder: the next run rebuilds it."


def has_timestamp_ntz(kind: DataType) -> bool:
    """Whether the type (of a column, or of all columns) has a TIMESTAMP_NTZ nested in it."""
    return any(isinstance(each, TimestampNTZType) or has_timestamp_ntz(each) for each in _child_types(kind))


def refuse_partition_types(
    rows: StructType, partition_by: Sequence[str], unfit: tuple[type[DataType], ...], where: str
) -> None:
    """Raise SchemaRefused for a partition column of a type whose values cannot be written in a path."""
    found = [each for each in rows if each.name in partition_by and isinstance(each.dataType, unfit)]
    if found:
        raise SchemaRefused(
            f"a {found[0].dataType.simpleString()} cannot partition a table of this format: "
            f"{names.decode(found[0].name)}",
            where=where,
            fix=_UNPARTED,
        )


def refuse_delta_columns(rows: StructType, partition_by: Sequence[str], where: str) -> None:
    """Validate the columns of a new Delta table. Raises SchemaRefused."""
    refuse_partition_types(rows, partition_by, (BinaryType,), where)


def refuse_hudi_columns(rows: StructType, partition_by: Sequence[str], where: str) -> None:
    """Validate the columns of a Hudi table. Raises SchemaRefused."""
    refuse_partition_types(rows, partition_by, (BinaryType, TimestampType, TimestampNTZType), where)
    for each in rows:
        if re.match(r"\d", each.name):
            problem = "a column name of a table in Hudi cannot begin with a digit"
        elif has_timestamp_ntz(each.dataType):
            problem = "Hudi cannot rewrite files that have timestamps without time zone within another type"
        else:
            continue
        raise SchemaRefused(f"{problem}: {names.decode(each.name)}", where=where, fix=_IN_DELTA)


def refuse_partition_keys(rows: DataFrame, keys: Sequence[str], partition_by: Sequence[str], where: str) -> None:
    """Raise TableStopped for a row whose key would be read back as NULL, because its column is a partition column."""
    texts = [key for key in _texts(rows.schema, keys) if key in partition_by]
    if texts and _some(rows, reduce(or_, (_of(key).isin(*NULL_PARTITION_VALUES) for key in texts))):
        raise TableStopped(
            f"an empty string (or {NULL_PARTITION_VALUES[1]}) cannot be stored in a column that is both of the key "
            "and a partition column: " + ", ".join(map(names.decode, texts)),
            where=where,
            fix=_UNPARTED,
        )


def refuse_hudi_keys(rows: DataFrame, keys: Sequence[str], where: str) -> None:
    """Raise TableStopped for a row whose key has no record key in Hudi, or that of another key."""
    texts, written = _texts(rows.schema, keys), _of_types(rows.schema, keys, (StringType, BinaryType))
    if written and _some(rows, _is_unsupported_key(keys, texts, written)):
        raise TableStopped(
            "a table in Hudi cannot store a key that is an empty string or empty bytes, or one of several columns "
            "whose strings look like Hudi's own encoding of such keys: " + ", ".join(map(names.decode, keys)),
            where=where,
            fix="Declare `format: delta`; if the table exists, delete its folder: the next run rebuilds it.",
        )


def _is_unsupported_key(keys: Sequence[str], texts: Sequence[str], written: Sequence[str]) -> Column:
    """Hudi writes a key of one column as its value, one of several as ``a:1,b:2``: only the last value may contain such
    a separator. ``written`` are the string and binary columns, whose values may be empty.
    """
    are_empty = reduce(and_, (F.length(_of(key)) == 0 for key in written))
    if len(keys) == 1:
        return are_empty
    found = [_of(key).isin(*_PLACEHOLDERS) for key in texts]
    found += [_of(key).contains(f",{other}:") for key, other in pairwise(keys) if key in texts]
    if len(written) == len(keys):
        found.append(are_empty)
    return reduce(or_, found, F.lit(False))


def _texts(rows: StructType, keys: Sequence[str]) -> list[str]:
    return _of_types(rows, keys, (StringType,))


def _of_types(rows: StructType, keys: Sequence[str], kinds: tuple[type[DataType], ...]) -> list[str]:
    return [key for key in keys if isinstance(rows[key].dataType, kinds)]


def _of(column: str) -> Column:
    return F.col(names.quote_spark(column))


def _some(rows: DataFrame, condition: Column) -> bool:
    return not rows.where(condition).isEmpty()


def _child_types(kind: DataType) -> list[DataType]:
    if isinstance(kind, ArrayType):
        return [kind.elementType]
    if isinstance(kind, MapType):
        return [kind.keyType, kind.valueType]
    return [each.dataType for each in kind] if isinstance(kind, StructType) else []
