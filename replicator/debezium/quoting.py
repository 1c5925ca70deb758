"""Values that must come quoted: bytes, bits and decimals, written as base64 or hex (types.md Y2).

``from_json`` gives a bare number or word as text too, and such a text may well be base64: ``1234`` is three bytes.
What a value was is seen by reading it once more as something that a quoted text is not. Only texts that look like a
number or a word are read so: hardly any of usual records, since base64 of a number from zero up begins with a letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import or_

from pyspark.sql import Column

from replicator.debezium import decimals
from replicator.debezium.logical_types import LogicalType, decimal_bounds

NUMBER, WORD, EXACT = "number", "word", "exact"
"""What else a value may be, and a number with all its digits."""

UNQUOTED_ELEMENT = r"[\[,][-0-9tf]"
"""What an array's JSON has where an element is bare; texts that are base64 or hex have no comma."""

# as from_json writes them: what has a point or an exponent comes with a point
_NUMBER = r"^-?[0-9]+([.]|$)"


def is_required(logical: LogicalType) -> bool:
    """Whether values of this type are quoted, and their texts no plain texts."""
    return logical.name in ("bytes", "bits") or (
        logical.name == "decimal" and logical.encoding not in ("text", "number")
    )


def probe_types(logical: LogicalType) -> dict[str, str]:
    """How to read the field of such a value once more: what as which type."""
    found = {NUMBER: "DOUBLE"} if logical.encoding == "hex" else {NUMBER: "DOUBLE", WORD: "BOOLEAN"}
    if logical.encoding == "connect" and decimal_bounds(logical) is not None:
        found[EXACT] = decimals.wire_type(as_number(logical))
    return found


def is_worth_probing(reading: str, text: Column) -> Column:
    """Whether a field's text is worth that reading."""
    return text.isin("true", "false") if reading == WORD else (text < ":") & text.rlike(_NUMBER)


def may_be_unquoted(logical: LogicalType, text: Column) -> Column:
    """Whether a field's text looks like what is not quoted, whatever it was; NULL counting as false."""
    looks = (is_worth_probing(reading, text) for reading in probe_types(logical) if reading != EXACT)
    return reduce(or_, looks)


def is_unquoted(found: Mapping[str, Column]) -> Column:
    """Whether the readings of a field found it without quotes; never NULL."""
    is_number = found[NUMBER].isNotNull()
    return is_number | found[WORD].isNotNull() if WORD in found else is_number


def as_number(logical: LogicalType) -> LogicalType:
    """The decimal as a JSON number."""
    return replace(logical, encoding="number")
