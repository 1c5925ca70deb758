"""Decoding of decimals: base64 two's complement, decimal text, JSON numbers (types.md section 3, Y7 to Y10).

Exact throughout: no double, no rounding, no Python worker. A DECIMAL is built from digits and a scale; if a value does
not fit, the digits show why.
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
    is_true,
    let,
    reason_if_undecoded,
)
from replicator.debezium.integers import WIDE, minus_if, sign_extended, unscaled, unscaled_text, zeros
from replicator.debezium.logical_types import MAX_PRECISION, LogicalType, decimal_bounds
from replicator.errors import ConfigError

# the most decimal digits that always fit a BIGINT
_LONG_DIGITS = 18
_MAX_DIGITS = 16383

_NUMBER = r"^([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,4}))?$"
# an unquoted value in the JSON of a VariableScaleDecimal
_BARE_VALUE = r'"value":[-0-9tf]'
_SPECIALS = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}


def wire_type(logical: LogicalType) -> str:
    """The DDL with which ``from_json`` must read a decimal; JSON numbers get all remaining digits as scale (Y10)."""
    if logical.encoding == "number":
        return _ddl(_with_spare_scale(_number_bounds(logical))).upper()
    if logical.name == "variable_decimal" and logical.encoding != "text":
        return "STRUCT<scale: INT, value: STRING>"
    return "STRING"


def decode(logical: LogicalType, wire: Column, text: Column, policies: Policies) -> Decoded:
    """Decode a ``decimal`` or ``variable_decimal`` of any encoding."""
    bounds = decimal_bounds(logical)
    if logical.encoding == "number":
        return _number(wire, text, _number_bounds(logical))
    if logical.encoding == "text":
        return _from_text(wire, text, bounds, policies)
    if logical.name == "variable_decimal":
        return _variable(wire, text, bounds)
    return _fixed(wire, text, logical.scale or 0, bounds)


def _number_bounds(logical: LogicalType) -> tuple[int, int]:
    bounds = decimal_bounds(logical)
    if bounds is None:
        raise ConfigError(
            f"{logical} is written as a JSON number, which cannot be read beyond 38 digits",
            fix="Set decimal.format=BASE64 on the converter, or decimal.handling.mode=string on the connector.",
        )
    return bounds


def _with_spare_scale(bounds: tuple[int, int]) -> tuple[int, int]:
    """The same digits before the point, and all remaining ones after it."""
    return MAX_PRECISION, MAX_PRECISION - (bounds[0] - bounds[1])


def _fixed(wire: Column, text: Column, scale: int, bounds: tuple[int, int] | None) -> Decoded:
    """Decode base64 with the schema's scale."""
    data = F.try_to_binary(wire, F.lit("base64"))
    if bounds is None:
        value = let(unscaled_text(data), lambda integer: place_point(integer, F.lit(scale)))
    else:
        # the largest unscaled integer: a negative scale appends zeros
        most = 10 ** (bounds[0] + min(scale, 0)) - 1
        value = (
            _via_bigint(data, most, scale, bounds)
            if bounds[0] <= _LONG_DIGITS
            else _via_wide_decimal(data, most, scale, bounds)
        )
    return Decoded(value, reason_if_undecoded(value, text, _bytes_reason(data)))


def _via_bigint(data: Column, limit: int, scale: int, bounds: tuple[int, int]) -> Column:
    """The decimal computed through BIGINT. More than 8 bytes are an overflow: Java writes no more bytes than needed."""
    digits = F.hex(data)
    integer = F.conv(sign_extended(digits, 16), 16, -10).cast("bigint")
    fits = F.length(data).between(1, 8) & integer.between(-limit, limit)
    factor = Decimal(1).scaleb(-scale) if scale >= 0 else Decimal(10**-scale)
    return F.when(fits, (integer.cast("decimal(19,0)") * F.lit(factor)).cast(_ddl(bounds)))


def _via_wide_decimal(data: Column, limit: int, scale: int, bounds: tuple[int, int]) -> Column:
    def shifted(integer: Column) -> Column:
        fits = integer.between(F.lit(Decimal(-limit)).cast(WIDE), F.lit(Decimal(limit)).cast(WIDE))
        return F.when(fits, F.concat(integer.cast("string"), F.lit(f"E{-scale}")).cast(_ddl(bounds)))

    return let(unscaled(data), shifted)


def _variable(wire: Column, text: Column, bounds: tuple[int, int] | None) -> Decoded:
    """Decode a ``VariableScaleDecimal``, where each value comes with its scale."""
    is_bare = is_true(text.rlike(_BARE_VALUE))
    data = F.when(~is_bare, F.try_to_binary(wire["value"], F.lit("base64")))
    is_sane = wire["scale"].between(-_MAX_DIGITS, _MAX_DIGITS)
    is_whole = wire["scale"].isNotNull() & wire["value"].isNotNull() & ~is_bare
    reason = F.when(is_true(is_whole), _bytes_reason(data)).otherwise(TYPE_MISMATCH)
    integer = F.when(is_sane, unscaled_text(data))
    if bounds is None:
        value = let(integer, lambda held: place_point(held, wire["scale"]))
        return Decoded(value, reason_if_undecoded(value, text, reason))
    fitted = let(
        integer,
        lambda held: _fit(minus_if(held.startswith("-")), F.regexp_replace(held, "^-?0*", ""), wire["scale"], bounds),
    )
    return Decoded(fitted["value"], reason_if_undecoded(fitted["value"], text, F.coalesce(fitted["misfit"], reason)))


def _number(wire: Column, text: Column, bounds: tuple[int, int]) -> Decoded:
    """Decode a JSON number that was read as DECIMAL with spare scale; digits beyond that are not seen."""
    precision, scale = bounds
    most = f"{'9' * precision}E-{scale}"  # as text: Decimal's own arithmetic has 28 digits
    near = wire.cast(_ddl((MAX_PRECISION, scale)))
    fits = near.between(F.lit(Decimal(f"-{most}")), F.lit(Decimal(most)))
    rounded = F.when(fits, near.cast(_ddl(bounds)))
    value = F.when(rounded.cast(_ddl(_with_spare_scale(bounds))) == wire, rounded)
    reason = F.when(wire.isNotNull(), DECIMAL_SCALE).when(text.rlike(_NUMBER), DECIMAL_OVERFLOW)
    return Decoded(value, reason_if_undecoded(value, text, reason.otherwise(TYPE_MISMATCH)))


def _from_text(wire: Column, text: Column, bounds: tuple[int, int] | None, policies: Policies) -> Decoded:
    """Decode mode ``string``: plain decimal text, or the words for NaN and the infinities."""
    special = F.create_map(*(F.lit(part) for pair in _SPECIALS.items() for part in pair))[wire]
    if bounds is None:
        is_number = wire.rlike(_NUMBER) & (F.length(wire) <= 2 * _MAX_DIGITS)
        value = F.when(is_number, wire).otherwise(special)
        return Decoded(value, reason_if_undecoded(value, text, TYPE_MISMATCH))
    value, misfit = _from_digits(wire, bounds)
    problem = reason_if_undecoded(value, text, F.coalesce(misfit, F.lit(TYPE_MISMATCH)))
    return Decoded(value, F.when(special.isNull(), problem) if policies.numeric_special == "null" else problem)


def parse(number: Column, bounds: tuple[int, int]) -> Column:
    """Decimal text as DECIMAL(p,s); NULL if it is not a number, or does not fit exactly."""
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
        return _fit(minus_if(held.startswith("-")), digits, F.length(fraction) - shift, bounds)

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
    """Put the decimal point ``scale`` digits from the end of an integer's text, padding with zeros.

    Both arguments are mentioned several times: pass simple columns.
    """
    digits = F.regexp_replace(integer, "^-", "")
    padded = F.concat(zeros(F.greatest(scale + 1 - F.length(digits), F.lit(0))), digits)

    def split(held: Column) -> Column:
        whole = held.substr(F.lit(1), F.length(held) - scale)
        return F.concat(whole, F.lit("."), held.substr(F.length(held) - scale + 1, scale))

    appended = F.when(digits == "0", digits).otherwise(F.concat(digits, zeros(F.greatest(-scale, F.lit(0)))))
    plain = F.when(scale > 0, let(padded, split)).otherwise(appended)
    return F.concat(minus_if(integer.startswith("-")), plain)


def _ddl(bounds: tuple[int, int]) -> str:
    return f"decimal({bounds[0]},{bounds[1]})"


def _bytes_reason(data: Column) -> Column:
    """Why bytes gave no decimal: empty or invalid ones are no decimal (Y8), any others are too large."""
    return F.when(is_true(F.length(data) > 0), DECIMAL_OVERFLOW).otherwise(INVALID_BASE64)
