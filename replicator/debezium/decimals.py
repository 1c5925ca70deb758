"""Decimals: base64 of big-endian two's complement, decimal text, JSON numbers (types.md section 3, Y7 to Y10).

Exact throughout: no double, no rounding, no Python worker. A DECIMAL is reached through digits and a scale; where a
value does not fit, the digits say why.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.decoding import (
    DECIMAL_OVERFLOW,
    DECIMAL_SCALE,
    INVALID_BASE64,
    TYPE_MISMATCH,
    Decoded,
    Policies,
    complain,
    is_true,
    let,
)
from replicator.debezium.logical import MAX_PRECISION, Logical, decimal_bounds
from replicator.errors import ConfigError

_WIDE = "decimal(38,0)"
_TWO_64 = Decimal(2**64)
_HEX, _INVERTED = "0123456789ABCDEF", "FEDCBA9876543210"
# as many decimal digits as every BIGINT has
_LONG_DIGITS = 18
# debezium-measured Z1.6: PostgreSQL's negative scales arrive as 2,046 digits. 1,024 bytes hold 2,466 digits.
_MAX_BYTES = 1024
_MAX_DIGITS = 16383
_LIMB = 10**9
_LIMB_DIGITS = 9
_CHUNK_HEX = 6

_NUMBER = r"^([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,4}))?$"
# a value that is not quoted, in the JSON of a VariableScaleDecimal
_BARE_VALUE = r'"value":[-0-9tf]'
_SPECIALS = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}


def wire_type(logical: Logical) -> str:
    """What ``from_json`` must read; JSON numbers with all digits that 38 leave behind the point (Y10)."""
    if logical.encoding == "number":
        return _ddl(_room(_number_bounds(logical))).upper()
    if logical.name == "variable_decimal" and logical.encoding != "text":
        return "STRUCT<scale: INT, value: STRING>"
    return "STRING"


def decode(logical: Logical, wire: Column, text: Column, policies: Policies) -> Decoded:
    """A ``decimal`` or ``variable_decimal`` of any encoding."""
    bounds = decimal_bounds(logical)
    if logical.encoding == "number":
        return _number(wire, text, _number_bounds(logical))
    if logical.encoding == "text":
        return _from_text(wire, text, bounds, policies)
    if logical.name == "variable_decimal":
        return _variable(wire, text, bounds)
    return _fixed(wire, text, logical.scale or 0, bounds)


def _number_bounds(logical: Logical) -> tuple[int, int]:
    bounds = decimal_bounds(logical)
    if bounds is None:
        raise ConfigError(
            f"{logical} is written as a JSON number, which is not readable beyond 38 digits",
            mend="Set decimal.format=BASE64 on the converter, or decimal.handling.mode=string on the connector.",
        )
    return bounds


def _room(bounds: tuple[int, int]) -> tuple[int, int]:
    """As many digits before the point, and all that are left behind it."""
    return MAX_PRECISION, MAX_PRECISION - (bounds[0] - bounds[1])


def unscaled(data: Column) -> Column:
    """The integer in 1 to 16 bytes as DECIMAL(38,0); NULL for more bytes, none, or more than 38 digits (Y7, Y9)."""

    def whole(digits: Column) -> Column:
        filled = _sign_extended(digits, 32)
        high = F.conv(F.substring(filled, 1, 16), 16, -10).cast(_WIDE)
        low = F.conv(F.substring(filled, 17, 16), 16, 10).cast(_WIDE)
        # a negative upper half is rounded towards zero: it then stays within 38 digits wherever the number does
        lent = F.when(_is_negative(digits), 1).otherwise(0).cast(_WIDE)
        upper = F.try_multiply(F.try_add(high, lent), F.lit(_TWO_64).cast(_WIDE))
        lower = F.try_subtract(low, F.try_multiply(lent, F.lit(_TWO_64).cast(_WIDE)))
        return F.when(F.length(digits).between(2, 32), F.try_add(upper, lower))

    return let(F.hex(data), whole)


def unscaled_text(data: Column) -> Column:
    """The integer in 1 to 1,024 bytes as text, exactly; NULL for more bytes or none."""

    def text(held: Column) -> Column:
        # 15 bytes stay below 38 digits
        is_short = F.length(held).between(1, 15)
        is_long = F.length(held).between(16, _MAX_BYTES)
        return F.when(is_short, unscaled(held).cast("string")).when(is_long, let(F.hex(held), _long_integer))

    return let(data, text)


def _is_negative(digits: Column) -> Column:
    """Whether hex digits, two to a byte, begin with a sign bit."""
    return digits >= "8"


def _sign_extended(digits: Column, length: int) -> Column:
    filler = F.when(_is_negative(digits), "F").otherwise("0")
    return F.call_function("lpad", digits, F.lit(length), filler)


def _long_integer(digits: Column) -> Column:
    """Schoolbook: hex in chunks of 24 bits into limbs of nine decimal digits, least significant first."""
    negative = _is_negative(digits)
    magnitude = F.when(negative, F.translate(digits, _HEX, _INVERTED)).otherwise(digits)
    padded = F.concat(_zeros(F.pmod(-F.length(digits), F.lit(_CHUNK_HEX))), magnitude)

    def chunks(filled: Column) -> Column:
        starts = F.sequence(F.lit(1), F.length(filled), F.lit(_CHUNK_HEX))
        return F.transform(starts, lambda at: F.conv(filled.substr(at, F.lit(_CHUNK_HEX)), 16, 10).cast("bigint"))

    none = F.array().cast("array<bigint>")
    limbs = F.aggregate(let(padded, chunks), none, lambda acc, chunk: _times_plus(acc, 16**_CHUNK_HEX, chunk))
    # two's complement: n = -1 - complement
    limbs = _times_plus(limbs, 1, F.when(negative, 1).otherwise(0))
    padded_limbs = F.transform(F.reverse(limbs), lambda limb: F.lpad(limb.cast("string"), _LIMB_DIGITS, "0"))
    return F.concat(_minus_if(negative), F.regexp_replace(F.array_join(padded_limbs, ""), "^0+(?=.)", ""))


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


def _fixed(wire: Column, text: Column, scale: int, bounds: tuple[int, int] | None) -> Decoded:
    """Base64 at the schema's own scale."""
    data = F.try_to_binary(wire, F.lit("base64"))
    if bounds is None:
        value = let(unscaled_text(data), lambda integer: place_point(integer, F.lit(scale)))
    else:
        # digits that the integer itself may have: a negative scale appends zeros
        most = 10 ** (bounds[0] + min(scale, 0)) - 1
        value = _short(data, most, scale, bounds) if bounds[0] <= _LONG_DIGITS else _long(data, most, scale, bounds)
    return Decoded(value, complain(value, text, _bytes_reason(data)))


def _short(data: Column, most: int, scale: int, bounds: tuple[int, int]) -> Column:
    """Through BIGINT. More than 8 bytes are an overflow: Java writes no byte more than needed."""
    digits = F.hex(data)
    integer = F.conv(_sign_extended(digits, 16), 16, -10).cast("bigint")
    fits = F.length(data).between(1, 8) & integer.between(-most, most)
    factor = Decimal(1).scaleb(-scale) if scale >= 0 else Decimal(10**-scale)
    return F.when(fits, (integer.cast("decimal(19,0)") * F.lit(factor)).cast(_ddl(bounds)))


def _long(data: Column, most: int, scale: int, bounds: tuple[int, int]) -> Column:
    def shifted(integer: Column) -> Column:
        fits = integer.between(F.lit(Decimal(-most)).cast(_WIDE), F.lit(Decimal(most)).cast(_WIDE))
        return F.when(fits, F.concat(integer.cast("string"), F.lit(f"E{-scale}")).cast(_ddl(bounds)))

    return let(unscaled(data), shifted)


def _variable(wire: Column, text: Column, bounds: tuple[int, int] | None) -> Decoded:
    """``VariableScaleDecimal``: the scale travels with each value."""
    is_bare = is_true(text.rlike(_BARE_VALUE))
    data = F.when(~is_bare, F.try_to_binary(wire["value"], F.lit("base64")))
    is_sane = wire["scale"].between(-_MAX_DIGITS, _MAX_DIGITS)
    is_whole = wire["scale"].isNotNull() & wire["value"].isNotNull() & ~is_bare
    reason = F.when(is_true(is_whole), _bytes_reason(data)).otherwise(TYPE_MISMATCH)
    integer = F.when(is_sane, unscaled_text(data))
    if bounds is None:
        value = let(integer, lambda held: place_point(held, wire["scale"]))
        return Decoded(value, complain(value, text, reason))
    fitted = let(
        integer,
        lambda held: _fit(_minus_if(held.startswith("-")), F.regexp_replace(held, "^-?0*", ""), wire["scale"], bounds),
    )
    return Decoded(fitted["value"], complain(fitted["value"], text, F.coalesce(fitted["misfit"], reason)))


def _number(wire: Column, text: Column, bounds: tuple[int, int]) -> Decoded:
    """A JSON number, read as DECIMAL with room behind the point; digits beyond that room are not seen."""
    precision, scale = bounds
    most = f"{'9' * precision}E-{scale}"  # as text: Decimal's own arithmetic has 28 digits
    near = wire.cast(_ddl((MAX_PRECISION, scale)))
    fits = near.between(F.lit(Decimal(f"-{most}")), F.lit(Decimal(most)))
    rounded = F.when(fits, near.cast(_ddl(bounds)))
    value = F.when(rounded.cast(_ddl(_room(bounds))) == wire, rounded)
    reason = F.when(wire.isNotNull(), DECIMAL_SCALE).when(text.rlike(_NUMBER), DECIMAL_OVERFLOW)
    return Decoded(value, complain(value, text, reason.otherwise(TYPE_MISMATCH)))


def _from_text(wire: Column, text: Column, bounds: tuple[int, int] | None, policies: Policies) -> Decoded:
    """Mode ``string``: plain decimal text, or the words for NaN and the infinities."""
    special = F.create_map(*(F.lit(part) for pair in _SPECIALS.items() for part in pair))[wire]
    if bounds is None:
        is_number = wire.rlike(_NUMBER) & (F.length(wire) <= 2 * _MAX_DIGITS)
        value = F.when(is_number, wire).otherwise(special)
        return Decoded(value, complain(value, text, TYPE_MISMATCH))
    value, misfit = _from_digits(wire, bounds)
    problem = complain(value, text, F.coalesce(misfit, F.lit(TYPE_MISMATCH)))
    return Decoded(value, F.when(special.isNull(), problem) if policies.numeric_special == "null" else problem)


def of_text(number: Column, bounds: tuple[int, int]) -> Column:
    """Decimal text as DECIMAL(p,s); NULL for what is none, or another number there."""
    return _from_digits(number, bounds)[0]


def _from_digits(number: Column, bounds: tuple[int, int]) -> tuple[Column, Column]:
    """Decimal text as DECIMAL(p,s), and ``decimal_overflow`` or ``decimal_scale`` if it does not fit.

    Both are NULL for anything else. Text that obviously fits is cast at once.
    """
    precision, scale = bounds
    before = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0?"
    fits_at_once = number.rlike(rf"^-?{before}(\.[0-9]{{0,{scale}}}0*)?$")
    is_number = number.rlike(_NUMBER) & (F.length(number) <= 2 * _MAX_DIGITS)

    def slowly(held: Column) -> Column:
        fraction = F.regexp_extract(held, _NUMBER, 3)
        digits = F.regexp_replace(F.concat(F.regexp_extract(held, _NUMBER, 2), fraction), "^0+", "")
        exponent = F.regexp_extract(held, _NUMBER, 4)
        shift = F.when(exponent == "", F.lit("0")).otherwise(exponent).cast("int")
        return _fit(_minus_if(held.startswith("-")), digits, F.length(fraction) - shift, bounds)

    slow = let(F.when(~fits_at_once & is_number, number), slowly)
    return F.when(fits_at_once, number.cast(_ddl(bounds))).otherwise(slow["value"]), slow["misfit"]


def _fit(sign: Column, digits: Column, scale: Column, bounds: tuple[int, int]) -> Column:
    """STRUCT<value, misfit>: the number without rounding, or why not (Y10). NULL digits give two NULLs."""
    precision, kept = bounds

    def fitted(parts: Column) -> Column:
        digits, point = parts["digits"], parts["point"]
        is_zero = digits == ""
        too_long = ~is_zero & (F.length(digits) - point > precision - kept)
        too_fine = ~is_zero & (point > kept)
        exact = F.concat(sign, digits, F.lit("E"), (-point).cast("string"))
        value = F.when(is_zero, F.lit(0).cast(_ddl(bounds))).when(~too_long & ~too_fine, exact.cast(_ddl(bounds)))
        misfit = F.when(too_long, DECIMAL_OVERFLOW).when(too_fine, DECIMAL_SCALE)
        return F.struct(value.alias("value"), misfit.alias("misfit"))

    significant = F.regexp_replace(digits, "0+$", "")
    point = scale - F.length(digits) + F.length(significant)
    return let(F.struct(significant.alias("digits"), point.alias("point")), fitted)


def place_point(integer: Column, scale: Column) -> Column:
    """An integer's text with the point ``scale`` digits from its end; zeros are added where digits are missing.

    Both are mentioned often: pass simple columns.
    """
    digits = F.regexp_replace(integer, "^-", "")
    padded = F.concat(_zeros(F.greatest(scale + 1 - F.length(digits), F.lit(0))), digits)

    def split(held: Column) -> Column:
        whole = held.substr(F.lit(1), F.length(held) - scale)
        return F.concat(whole, F.lit("."), held.substr(F.length(held) - scale + 1, scale))

    appended = F.when(digits == "0", digits).otherwise(F.concat(digits, _zeros(F.greatest(-scale, F.lit(0)))))
    plain = F.when(scale > 0, let(padded, split)).otherwise(appended)
    return F.concat(_minus_if(integer.startswith("-")), plain)


def _minus_if(negative: Column) -> Column:
    return F.when(negative, "-").otherwise("")


def _zeros(count: Column) -> Column:
    return F.call_function("repeat", F.lit("0"), count)


def _ddl(bounds: tuple[int, int]) -> str:
    return f"decimal({bounds[0]},{bounds[1]})"


def _bytes_reason(data: Column) -> Column:
    """Y8: no bytes is no decimal; bytes that gave no value are too many."""
    return F.when(is_true(F.length(data) > 0), DECIMAL_OVERFLOW).otherwise(INVALID_BASE64)
