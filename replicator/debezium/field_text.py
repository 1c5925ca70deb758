"""The text of a field, which shows whether it was sent if its wire type yields no value (types.md Y2).

It is read besides the row only in that case: writing every number as text again would cost more than reading it.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.logical_types import LogicalType
from replicator.debezium.scalars import INFINITE
from replicator.debezium.types import wire_type

_WHOLE, _FLOATING = ("SMALLINT", "INT", "BIGINT", "BOOLEAN"), ("FLOAT", "DOUBLE")


def is_read_as_text(logical: LogicalType) -> bool:
    """Whether the value read with the wire type already is the field's text."""
    return wire_type(logical) == "STRING"


def needs_text(logical: LogicalType, wire: Column) -> Column:
    """Whether a field's text must be read besides its ``wire`` value: for a number only if that is NULL, or infinite,
    which may come from a word or from a literal that is too large; always for nested types, and for JSON numbers with
    more digits than their type shows.
    """
    kind = wire_type(logical)
    if kind in _WHOLE:
        return wire.isNull()
    return wire.isNull() | wire.isin(*INFINITE) if kind in _FLOATING else F.lit(True)


def text_of(logical: LogicalType, wire: Column, read: Column) -> Column:
    """A field's text for ``types.decode``. ``read`` is the field read as STRING; it is NULL where :func:`needs_text` is
    false, and not used if :func:`is_read_as_text`.
    """
    if is_read_as_text(logical):
        return wire
    return F.coalesce(read, wire.cast("string")) if _is_number_or_boolean(logical) else read


def was_sent(logical: LogicalType, wire: Column, read: Column) -> Column:
    """Whether :func:`text_of` is not NULL, without writing the text out."""
    if is_read_as_text(logical):
        return wire.isNotNull()
    return wire.isNotNull() | read.isNotNull() if _is_number_or_boolean(logical) else read.isNotNull()


def _is_number_or_boolean(logical: LogicalType) -> bool:
    return wire_type(logical) in (*_WHOLE, *_FLOATING)
