"""The text of a field, which tells whether something was there where its wire type shows no value (types.md Y2).

It is read beside the row only where that is so: to write every number as a text once more costs more than to read it.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.logical_types import LogicalType
from replicator.debezium.scalars import INFINITE
from replicator.debezium.types import wire_type

_WHOLE, _FLOATING = ("SMALLINT", "INT", "BIGINT", "BOOLEAN"), ("FLOAT", "DOUBLE")


def is_read_as_text(logical: LogicalType) -> bool:
    """Whether what is read with the wire type is the field's text already."""
    return wire_type(logical) == "STRING"


def needs_text(logical: LogicalType, wire: Column) -> Column:
    """Whether a field's text must be read beside its ``wire`` value: of a number only where there is none, or an
    infinite one, which may be a word or too large a literal; always of what has parts, and of a JSON number with more
    digits than its type shows.
    """
    kind = wire_type(logical)
    if kind in _WHOLE:
        return wire.isNull()
    return wire.isNull() | wire.isin(*INFINITE) if kind in _FLOATING else F.lit(True)


def text_of(logical: LogicalType, wire: Column, read: Column) -> Column:
    """A field's text as ``types.decode`` wants it. ``read`` is what was read for STRING: nothing where the field shows
    itself, NULL where the ``wire`` value lacks none.
    """
    if is_read_as_text(logical):
        return wire
    return F.coalesce(read, wire.cast("string")) if _is_number_or_boolean(logical) else read


def was_sent(logical: LogicalType, wire: Column, read: Column) -> Column:
    """Whether that text is one, without writing it out."""
    if is_read_as_text(logical):
        return wire.isNotNull()
    return wire.isNotNull() | read.isNotNull() if _is_number_or_boolean(logical) else read.isNotNull()


def _is_number_or_boolean(logical: LogicalType) -> bool:
    return wire_type(logical) in (*_WHOLE, *_FLOATING)
