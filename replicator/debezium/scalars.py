"""Decoders of scalar values: numbers, booleans, texts and bytes (types.md sections 2 to 5 and 7).

Each takes the arguments of :func:`replicator.debezium.types.decode`, and compares the value that Spark read with the
text.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.decoding import (
    INTEGER_OVERFLOW,
    INVALID_BASE64,
    NUL_CHARACTER,
    TYPE_MISMATCH,
    Decoded,
    Policies,
    integer_reason,
    reason_if_undecoded,
)
from replicator.debezium.logical_types import GUESSED_DOUBLE, LogicalType, spark_type

INTEGER_BITS = {
    "smallint": 16,
    "int": 32,
    "bigint": 64,
    "year": 32,
    "micro_duration": 64,
    "nano_duration": 64,
}
"""Bits of each logical type of whole numbers."""

INFINITE = (float("inf"), float("-inf"))
"""What Spark reads for a number that is too large for its type, and for a word that means infinity."""

NUL, REPLACEMENT = "\u0000", "\ufffd"
"""The character that no text may contain, and its replacement under the policy ``nul: replace``."""

_TWO_64 = Decimal(2**64)
_BITS_BYTES = 8
_DOUBLE_DIGITS = 15
"""Decimal digits that a DOUBLE always preserves."""


def integer(logical: LogicalType, wire: Column, text: Column, _: Policies) -> Decoded:
    """Decode a whole number of the type's bits; unsigned 64-bit ones become decimals."""
    problem = reason_if_undecoded(wire, text, integer_reason(text, INTEGER_BITS[logical.name]))
    if logical.name != "bigint":
        return Decoded(wire, problem)
    if logical.unsigned:
        # the connector's mode ``long`` wraps values from 2^63 on (section 5)
        number = wire.cast("decimal(20,0)")
        wrapped = (number + F.lit(_TWO_64)).cast("decimal(20,0)")
        return Decoded(F.when(wire < 0, wrapped).otherwise(number), problem)
    return Decoded(wire, problem)


def floating(logical: LogicalType, wire: Column, text: Column, _: Policies) -> Decoded:
    """Decode a floating-point number. NaN and infinities come quoted; a literal too large for the type is no infinity.
    For a GUESSED_DOUBLE, ``text`` is as it stands in the record.
    """
    is_infinite = wire.isin(*INFINITE)
    is_word = text.rlike("^[+-]?(Infinity|INF)$")
    value = F.when(~is_infinite | is_word, wire)
    if logical == GUESSED_DOUBLE:
        digits = _significant_digits(text)
        is_rounded = (F.length(digits) > _DOUBLE_DIGITS) & (digits != _significant_digits(wire.cast("string")))
        value = F.when(~is_rounded, value)
    return Decoded(value, reason_if_undecoded(value, text, TYPE_MISMATCH))


def boolean(_: LogicalType, wire: Column, text: Column, __: Policies) -> Decoded:
    """Decode ``true`` and ``false``, and the 0 and 1 of a TINYINT(1) in a snapshot."""
    value = (
        F.when(wire.isNotNull(), wire)
        .when(text == "1", F.lit(1).cast("boolean"))
        .when(text == "0", F.lit(0).cast("boolean"))
    )
    return Decoded(value, reason_if_undecoded(value, text, TYPE_MISMATCH))


def string(_: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode a text without U+0000, which PostgreSQL cannot store; the policy may replace it."""
    mismatch = reason_if_undecoded(wire, text, TYPE_MISMATCH)
    if policies.nul == "replace":
        return Decoded(F.translate(wire, NUL, REPLACEMENT), mismatch)
    return Decoded(wire, F.when(wire.contains(NUL), NUL_CHARACTER).otherwise(mismatch))


def binary(logical: LogicalType, wire: Column, text: Column, _: Policies) -> Decoded:
    """Decode bytes from base64, URL-safe base64, or hex."""
    if logical.encoding == "hex":
        is_hex = wire.rlike("^([0-9a-fA-F]{2})*$")
        value = F.when(is_hex, F.try_to_binary(wire, F.lit("hex")))
        return Decoded(value, reason_if_undecoded(value, text, TYPE_MISMATCH))
    plain = F.translate(wire, "-_", "+/") if logical.encoding == "base64url" else wire
    value = F.try_to_binary(plain, F.lit("base64"))
    return Decoded(value, reason_if_undecoded(value, text, INVALID_BASE64))


def bits(logical: LogicalType, wire: Column, text: Column, _: Policies) -> Decoded:
    """Decode little-endian bytes; empty bytes are zero (debezium-measured Z1.11)."""
    data = F.try_to_binary(wire, F.lit("base64"))
    if spark_type(logical) == "BINARY":
        return Decoded(data, reason_if_undecoded(data, text, INVALID_BASE64))
    digits = F.hex(data)
    big_endian = F.concat(*(F.substring(digits, 2 * at + 1, 2) for at in reversed(range(_BITS_BYTES))))
    number = F.conv(big_endian, 16, 10).cast("decimal(20,0)")
    fits = (F.length(data).between(1, _BITS_BYTES)) & (number < F.lit(Decimal(2 ** (logical.length or 0))))
    value = F.when(F.length(data) == 0, F.lit(0)).when(fits, number).cast("bigint")
    reason = F.when(data.isNull(), INVALID_BASE64).otherwise(INTEGER_OVERFLOW)
    return Decoded(value, reason_if_undecoded(value, text, reason))


def enum(logical: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode an enum. MariaDB's stream escapes commas with a backslash, its snapshot does not (measured Z1.11)."""
    as_text = string(logical, wire, text, policies)
    return Decoded(F.replace(as_text.value, F.lit("\\,"), F.lit(",")), as_text.problem)


def enum_set(logical: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode a set into an array of its members; an empty text has none."""
    as_text = string(logical, wire, text, policies)
    members = F.when(as_text.value == "", F.array().cast("array<string>")).otherwise(F.split(as_text.value, ","))
    return Decoded(F.when(as_text.value.isNotNull(), members), as_text.problem)


def _significant_digits(number: Column) -> Column:
    """The digits of a number from the first to the last non-zero one."""
    return F.btrim(F.regexp_replace(number, "[eE].*|[-.]", ""), F.lit("0"))
