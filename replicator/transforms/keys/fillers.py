"""Filler: what PostgreSQL's connector sends for the values of a former row that it does not know (debezium.md E9):
NULL, or the zero of the column's type if it cannot be NULL. A column's default, which comes in place of the zero, is
not recognised: a row may well have it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column

from replicator.jvm import expressions

_ZERO = r"0(?:\.0+|E-?[0-9]+)?|false|AA==|P0Y0M0DT0H0M0S|\[\]|\{\}"
_EPOCH = r"1970-01-01(?:[T ]00:00:00)?Z?|00:00:00Z?"
_FILLER = f"^(?:{_ZERO}|{_EPOCH})?$"


def has_other(values: Iterable[Column]) -> Column:
    """Whether one of the values is certainly no filler, so that the former row is the row's own. Values are as records
    write them, or decoded, and of types that have no parts.
    """
    return expressions.any_of(~(value.isNull() | value.cast("string").rlike(_FILLER)) for value in values)
