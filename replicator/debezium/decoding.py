"""The result of decoding a value, the policies for values that a column cannot hold, and shared expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.errors import ConfigError

TYPE_MISMATCH = "type_mismatch"
INVALID_BASE64 = "invalid_base64"
INTEGER_OVERFLOW = "integer_overflow"
DECIMAL_OVERFLOW = "decimal_overflow"
DECIMAL_SCALE = "decimal_scale"
TEMPORAL_RANGE = "temporal_range"
NUL_CHARACTER = "nul_character"

FROM_JSON_OPTIONS = {"columnNameOfCorruptRecord": ""}
"""Options for ``from_json``, which reserves a field of this name for the texts of broken records. The default,
`_corrupt_record`, may be the name of a source's column; no column has an empty name.
"""


@dataclass(frozen=True)
class Decoded:
    """A decoded column. ``problem`` is NULL or a reason of debezium.md R4, in which case ``value`` is meaningless."""

    value: Column
    problem: Column


@dataclass(frozen=True)
class Policies:
    """How to treat values that the column's type cannot hold (types.md section 4).

    ``infinity`` of dates and timestamps: ``sentinel`` (the last or first moment of years 1 to 9999), ``null``,
    ``dead_letter``. ``numeric_special`` (NaN, infinities in a DECIMAL): ``dead_letter``, ``null``. ``nul`` (U+0000 in
    text): ``dead_letter``, ``replace`` by U+FFFD. Anything else raises ConfigError.
    """

    infinity: str = "sentinel"
    numeric_special: str = "dead_letter"
    nul: str = "dead_letter"

    def __post_init__(self) -> None:
        for policy, value, known in (
            ("infinity", self.infinity, ("sentinel", "null", "dead_letter")),
            ("numeric_special", self.numeric_special, ("dead_letter", "null")),
            ("nul", self.nul, ("dead_letter", "replace")),
        ):
            if value not in known:
                raise ConfigError(f"policy {policy} is {value!r}", fix=f"Known values: {', '.join(known)}.")


def from_struct(result: Column) -> Decoded:
    """The Decoded of a STRUCT<value, problem>, the inverse of :func:`to_struct`."""
    return Decoded(result["value"], result["problem"])


def to_struct(decoded: Decoded) -> Column:
    """The Decoded as one STRUCT<value, problem>, for use in :func:`let`."""
    return F.struct(decoded.value.alias("value"), decoded.problem.alias("problem"))


def no_problem() -> Column:
    """NULL, the problem of a value that has none."""
    return F.lit(None).cast("string")


def let(value: Column, body: Callable[[Column], Column]) -> Column:
    """Bind ``value`` to the argument of ``body``, which mentions it more than once.

    A Column cannot name a part of itself: written out, each mention doubles the expression, and Spark takes minutes to
    analyse a wide table. The lambda of a higher-order function provides the name.
    """
    return F.get(F.transform(F.array(value), body), F.lit(0))


def is_true(condition: Column) -> Column:
    """The condition, NULL counting as false."""
    return F.coalesce(condition, F.lit(0).cast("boolean"))


def reason_if_undecoded(value: Column, text: Column, reason: Column | str) -> Column:
    """The reason where the field was sent (``text``) but could not be decoded (``value``), else NULL (Y2)."""
    return F.when(value.isNull() & text.isNotNull(), F.lit(reason) if isinstance(reason, str) else reason)


def integer_reason(text: Column, bits: int) -> Column:
    """Why a text is no integer of that many bits: ``integer_overflow`` if it is a larger integer (section 5), else
    ``type_mismatch``.
    """
    number = F.when(text.rlike("^-?[0-9]{1,38}$"), text).cast("decimal(38,0)")
    limit = F.lit(Decimal(2 ** (bits - 1))).cast("decimal(38,0)")
    is_outside = (number >= limit) | (number < F.lit(Decimal(-(2 ** (bits - 1)))).cast("decimal(38,0)"))
    return F.when(is_outside, INTEGER_OVERFLOW).otherwise(TYPE_MISMATCH)
