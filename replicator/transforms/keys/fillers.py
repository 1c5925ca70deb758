"""Filler: what PostgreSQL's connector sends for the values of a former row that it does not know (debezium.md E9):
NULL, or the zero of the column's type if it cannot be NULL. A column's default, which comes in place of the zero, is
not recognised: a row may well have it.
"""

from __future__ import annotations

from pyspark.sql import Column

_ZERO = r"0(?:\.0+|E-?[0-9]+)?|false|AA==|P0Y0M0DT0H0M0S|\[\]|\{\}"
_EPOCH = r"1970-01-01(?:[T ]00:00:00)?Z?|00:00:00Z?"
_FILLER = f"^(?:{_ZERO}|{_EPOCH})?$"


def may_be_filler(value: Column) -> Column:
    """Whether a value may be filler, either as records write it or as decoded."""
    return value.isNull() | value.cast("string").rlike(_FILLER)
