"""Whether :func:`replicator.debezium.types.decode` may complain of a value, for a fraction of what its reason costs.

A reason takes a dozen expressions for each column; that there may be one, two: of most types a value is in doubt where
something was sent (a ``sign``) and nothing came of it (types.md Y2), of a text where it holds U+0000. What has parts,
or is not named here, is asked for its reason all the same.
"""

from __future__ import annotations

from pyspark.sql import Column

from replicator.debezium.logical_types import LogicalType
from replicator.debezium.scalars import NUL
from replicator.debezium.types import TEXT_TYPES

_TEXTS = frozenset({*TEXT_TYPES, "enum"})
_NULL_IF_UNDECODED = frozenset(
    {
        *("smallint", "int", "bigint", "year", "micro_duration", "nano_duration", "float", "double", "boolean"),
        *("bytes", "bits", "decimal", "variable_decimal", "date", "time", "micro_time", "nano_time", "timestamp"),
        *("micro_timestamp", "nano_timestamp", "zoned_timestamp", "iso_date", "iso_time", "iso_timestamp"),
    }
)


def marker(logical: LogicalType, was_sent: Column, problem: Column) -> Column | None:
    """What must be known of a field beside its value, BOOLEAN; None where the value tells. ``problem`` is what
    ``decode`` says of it.
    """
    if logical.name in _TEXTS:
        return None
    return was_sent if logical.name in _NULL_IF_UNDECODED else problem.isNotNull()


def may_have_problem(logical: LogicalType, value: Column, sign: Column) -> Column:
    """BOOLEAN, TRUE at least of all values that have a problem, NULL counting as false."""
    if logical.name in _TEXTS:
        return value.contains(NUL)
    return value.isNull() & sign if logical.name in _NULL_IF_UNDECODED else sign
