"""Decoding of big-endian two's complement integers of any length, to numbers and to text (types.md Y7, Y9).

Exact, without a Python worker: Spark has no type of more than 38 digits, so longer integers are computed as text.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.decoding import let

WIDE = "decimal(38,0)"
"""The type of integers that fit a numeric type."""

_TWO_64 = Decimal(2**64)
_HEX, _INVERTED = "0123456789ABCDEF", "FEDCBA9876543210"
# debezium-measured Z1.6: PostgreSQL's negative scales arrive as 2,046 digits. 1,024 bytes hold 2,466 digits.
_MAX_BYTES = 1024
_LIMB = 10**9
_LIMB_DIGITS = 9
_CHUNK_HEX = 6


def unscaled(data: Column) -> Column:
    """The integer in 1 to 16 bytes as DECIMAL(38,0); NULL for more bytes, none, or more than 38 digits (Y7, Y9)."""

    def whole(digits: Column) -> Column:
        filled = sign_extended(digits, 32)
        high = F.conv(F.substring(filled, 1, 16), 16, -10).cast(WIDE)
        low = F.conv(F.substring(filled, 17, 16), 16, 10).cast(WIDE)
        # a negative upper half is rounded towards zero: it then stays within 38 digits wherever the number does
        borrow = F.when(_is_negative(digits), 1).otherwise(0).cast(WIDE)
        upper = F.try_multiply(F.try_add(high, borrow), F.lit(_TWO_64).cast(WIDE))
        lower = F.try_subtract(low, F.try_multiply(borrow, F.lit(_TWO_64).cast(WIDE)))
        return F.when(F.length(digits).between(2, 32), F.try_add(upper, lower))

    return let(F.hex(data), whole)


def unscaled_text(data: Column) -> Column:
    """The integer in 1 to 1,024 bytes as text, exactly; NULL for more bytes or none."""

    def text(held: Column) -> Column:
        # 15 bytes hold fewer than 38 digits
        is_short = F.length(held).between(1, 15)
        is_long = F.length(held).between(16, _MAX_BYTES)
        return F.when(is_short, unscaled(held).cast("string")).when(is_long, let(F.hex(held), _long_integer))

    return let(data, text)


def _is_negative(digits: Column) -> Column:
    """Whether hex digits, two per byte, begin with a set sign bit."""
    return digits >= "8"


def sign_extended(digits: Column, length: int) -> Column:
    """Hex digits, two per byte, of the same integer in ``length`` digits; longer ones are cut off."""
    filler = F.when(_is_negative(digits), "F").otherwise("0")
    return F.call_function("lpad", digits, F.lit(length), filler)


def _long_integer(digits: Column) -> Column:
    """Long integer conversion: hex in chunks of 24 bits into limbs of nine decimal digits, least significant first."""
    negative = _is_negative(digits)
    magnitude = F.when(negative, F.translate(digits, _HEX, _INVERTED)).otherwise(digits)
    padded = F.concat(zeros(F.pmod(-F.length(digits), F.lit(_CHUNK_HEX))), magnitude)

    def chunks(filled: Column) -> Column:
        starts = F.sequence(F.lit(1), F.length(filled), F.lit(_CHUNK_HEX))
        return F.transform(starts, lambda at: F.conv(filled.substr(at, F.lit(_CHUNK_HEX)), 16, 10).cast("bigint"))

    none = F.array().cast("array<bigint>")
    limbs = F.aggregate(let(padded, chunks), none, lambda acc, chunk: _times_plus(acc, 16**_CHUNK_HEX, chunk))
    # two's complement: n = -1 - complement
    limbs = _times_plus(limbs, 1, F.when(negative, 1).otherwise(0))
    padded_limbs = F.transform(F.reverse(limbs), lambda limb: F.lpad(limb.cast("string"), _LIMB_DIGITS, "0"))
    return F.concat(minus_if(negative), F.regexp_replace(F.array_join(padded_limbs, ""), "^0+(?=.)", ""))


def _times_plus(limbs: Column, factor: int, addend: Column) -> Column:
    """``limbs * factor + addend``; a limb times 2^24 stays far below 2^63."""
    start = F.struct(addend.cast("bigint").alias("carry"), F.array().cast("array<bigint>").alias("out"))
    base = F.lit(_LIMB).cast("bigint")

    def step(state: Column, limb: Column) -> Column:
        total = limb * F.lit(factor).cast("bigint") + state["carry"]
        return F.struct(
            F.call_function("div", total, base).alias("carry"),
            F.concat(state["out"], F.array(F.pmod(total, base))).alias("out"),
        )

    def finish(state: Column) -> Column:
        return F.when(state["carry"] > 0, F.concat(state["out"], F.array(state["carry"]))).otherwise(state["out"])

    return F.aggregate(limbs, start, step, finish)


def minus_if(negative: Column) -> Column:
    """The sign of a number's text: ``-`` or nothing."""
    return F.when(negative, "-").otherwise("")


def zeros(count: Column) -> Column:
    """A text of ``count`` zeros."""
    return F.call_function("repeat", F.lit("0"), count)
