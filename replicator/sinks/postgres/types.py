"""The known types of serving columns, as people write them and as Postgres prints them (types.md section 2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from replicator.errors import ConfigError

# as people write it -> as Postgres prints it, {} where the arguments go, and how many there may be
_TYPES: dict[str, tuple[str, int]] = {
    "smallint": ("smallint", 0),
    "int2": ("smallint", 0),
    "integer": ("integer", 0),
    "int": ("integer", 0),
    "int4": ("integer", 0),
    "bigint": ("bigint", 0),
    "int8": ("bigint", 0),
    "numeric": ("numeric{}", 2),
    "decimal": ("numeric{}", 2),
    "real": ("real", 0),
    "float4": ("real", 0),
    "double precision": ("double precision", 0),
    "float8": ("double precision", 0),
    "boolean": ("boolean", 0),
    "bool": ("boolean", 0),
    "text": ("text", 0),
    "varchar": ("character varying{}", 1),
    "character varying": ("character varying{}", 1),
    "char": ("character{}", 1),
    "character": ("character{}", 1),
    "bytea": ("bytea", 0),
    "date": ("date", 0),
    "time": ("time{} without time zone", 1),
    "time without time zone": ("time{} without time zone", 1),
    "timetz": ("time{} with time zone", 1),
    "time with time zone": ("time{} with time zone", 1),
    "timestamp": ("timestamp{} without time zone", 1),
    "timestamp without time zone": ("timestamp{} without time zone", 1),
    "timestamptz": ("timestamp{} with time zone", 1),
    "timestamp with time zone": ("timestamp{} with time zone", 1),
    "interval": ("interval", 0),
    "uuid": ("uuid", 0),
    "json": ("json", 0),
    "jsonb": ("jsonb", 0),
    "inet": ("inet", 0),
    "cidr": ("cidr", 0),
    "macaddr": ("macaddr", 0),
    "macaddr8": ("macaddr8", 0),
}
_TYPE_TEXT = re.compile(
    r"([a-z][a-z0-9 ]*?) ?(?:\( ?(\d{1,8}) ?(?:, ?(\d{1,4}) ?)?\))?((?: with| without) time zone)? ?(\[ ?\])?"
)
_WHOLE_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_TIMES = ("time{} without", "time{} with", "timestamp{} without", "timestamp{} with")
_MICROSECONDS = 6


def max_timestamp(digits: int) -> datetime:
    """The last timestamp that all clients can read, with so many fractional digits of a second: the end of the year
    9999.
    """
    unit = 10 ** (_MICROSECONDS - digits)
    return datetime(9999, 12, 31, 23, 59, 59, 999_999 // unit * unit)  # noqa: DTZ001 - a wall time


@dataclass(frozen=True)
class PostgresType:
    """An allowed type: ``name`` as Postgres prints it without arguments, the arguments, and whether it is an array of
    such values.
    """

    name: str
    arguments: tuple[int, ...] = ()
    is_array: bool = False

    def __str__(self) -> str:
        """As Postgres' ``format_type`` prints it, so that texts can be compared."""
        inside = ",".join(str(each) for each in self.arguments)
        return self.name.format(f"({inside})" if inside else "") + ("[]" if self.is_array else "")

    @property
    def element(self) -> PostgresType:
        """The element type of an array; the type itself otherwise."""
        return replace(self, is_array=False)

    @property
    def is_text(self) -> bool:
        """Whether any text is valid, apart from its length."""
        return not self.is_array and self.name in ("text", "character varying{}", "character{}")

    @property
    def alters_values(self) -> bool:
        """Whether a written value may read back differently: rounded times and floats, texts padded with blanks."""
        return self.is_coarse or self.name in ("real", "character{}")

    @property
    def is_coarse(self) -> bool:
        """Whether it is a time type that rounds some of gold's values."""
        return self.name.startswith(_TIMES) and bool(self.arguments) and self.arguments[0] < _MICROSECONDS

    def can_hold(self, other: PostgresType) -> bool:
        """Whether each value of *other* is valid for this type, too, so that a column can be altered in place (types.md
        section 8): more digits, more room, longer text, finer times. A type holds itself.
        """
        if self.is_array or other.is_array:
            return self.is_array and other.is_array and self.element.can_hold(other.element)
        if self.is_text and other.is_text:
            fits = self._length is None or (other._length is not None and other._length <= self._length)
            return fits and (self.name != "character{}" or other.name == self.name)  # character pads with blanks
        if self.name.startswith(_TIMES) and self.name == other.name:
            return (*other.arguments, _MICROSECONDS)[0] <= (*self.arguments, _MICROSECONDS)[0]
        if self.name == "double precision":
            return other.name in ("real", "double precision")
        return self == other or self._holds_exactly(other)

    def _holds_exactly(self, other: PostgresType) -> bool:
        digits, scale = other._digits, other.scale
        if self.name == "numeric{}" and not self.arguments:
            return other.name == "numeric{}" or digits is not None
        if self._digits is None or self.scale is None or digits is None or scale is None:
            return False
        return (
            self._digits >= digits and self.scale >= scale and (self.name == "numeric{}" or other.name != "numeric{}")
        )

    @property
    def _length(self) -> int | None:
        return self.arguments[0] if self.arguments else None

    @property
    def _digits(self) -> int | None:
        """Digits before the decimal point of a bounded exact number; None for any other type."""
        if self.name == "numeric{}" and self.arguments:
            return self.arguments[0] - self.arguments[1]
        return _WHOLE_DIGITS.get(self.name)

    @property
    def scale(self) -> int | None:
        """Digits after the decimal point; None if unlimited, or if it is not an exact number."""
        if self.name in ("smallint", "integer", "bigint"):
            return 0
        return self.arguments[1] if self.name == "numeric{}" and self.arguments else None


def parse_type(written: str) -> PostgresType:
    """Parse a type as a model's YAML writes it: ``varchar(50)``, ``numeric(10,2)``, ``timestamp(3)``, ``text[]`` ...

    Raises ConfigError for anything that is not on the list.
    """
    match = _TYPE_TEXT.fullmatch(" ".join(written.lower().split()))
    known = _TYPES.get(match.group(1) + (match.group(4) or "")) if match else None
    if match is None or known is None:
        raise ConfigError(f"{written!r} is not a known Postgres type", fix=f"Use one of {', '.join(_TYPES)}.")
    arguments = tuple(int(each) for each in match.group(2, 3) if each is not None)
    if len(arguments) > known[1]:
        raise ConfigError(f"{written!r} has too many arguments")
    if known[0] == "character{}" and not arguments:
        arguments = (1,)
    if known[0] == "numeric{}" and len(arguments) == 1:
        arguments = (*arguments, 0)
    return PostgresType(known[0], arguments, is_array=match.group(5) is not None)
