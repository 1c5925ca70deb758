"""Detection of unquoted values where quotes are required: bytes, bits and decimals as base64 or hex (types.md Y2).

``from_json`` returns a bare number or word as text too, and such a text may well be base64: ``1234`` is three bytes.
Reading the field again as a type that a quoted text does not have (a probe) shows what it was. Only texts that look
like a number or a word are probed: hardly any in usual records, since base64 of a non-negative number begins with a
letter.
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
"""The probes: a bare number, a bare word, and a number with all its digits."""

UNQUOTED_ELEMENT = r"[\[,][-0-9tf]"
"""Matches an array's JSON with an unquoted element; base64 and hex texts contain no comma."""

# as from_json writes numbers: one with a point or an exponent gets a point
_NUMBER = r"^-?[0-9]+([.]|$)"


def is_required(logical: LogicalType) -> bool:
    """Whether values of this type must be quoted and hold encoded text."""
    return logical.name in ("bytes", "bits") or (
        logical.name == "decimal" and logical.encoding not in ("text", "number")
    )


def probe_types(logical: LogicalType) -> dict[str, str]:
    """The probes of a field, each with the type to read it with."""
    found = {NUMBER: "DOUBLE"} if logical.encoding == "hex" else {NUMBER: "DOUBLE", WORD: "BOOLEAN"}
    if logical.encoding == "connect" and decimal_bounds(logical) is not None:
        found[EXACT] = decimals.wire_type(as_number(logical))
    return found


def is_worth_probing(reading: str, text: Column) -> Column:
    """Whether a field's text is worth that probe."""
    return text.isin("true", "false") if reading == WORD else (text < ":") & text.rlike(_NUMBER)


def may_be_unquoted(logical: LogicalType, text: Column) -> Column:
    """Whether a field's text looks like an unquoted value, whatever it was; NULL means false."""
    looks = (is_worth_probing(reading, text) for reading in probe_types(logical) if reading != EXACT)
    return reduce(or_, looks)


def is_unquoted(found: Mapping[str, Column]) -> Column:
    """Whether the probes of a field found it unquoted; never NULL."""
    is_number = found[NUMBER].isNotNull()
    return is_number | found[WORD].isNotNull() if WORD in found else is_number


def as_number(logical: LogicalType) -> LogicalType:
    """The same decimal, written as a JSON number."""
    return replace(logical, encoding="number")
