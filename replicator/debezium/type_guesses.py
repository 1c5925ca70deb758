"""Guesses of a column's type from its values alone, for a person to decide (types.md Y14)."""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from replicator.debezium import type_inference
from replicator.debezium.display_values import to_display
from replicator.debezium.jsontext import Number
from replicator.debezium.type_parser import parse_type

_DAY = 86_400
_SINCE, _UNTIL = 20 * 365 * _DAY, 130 * 365 * _DAY
"""Numbers are taken for dates and times only from 1990 to 2099; many numbers of that size are neither."""

UNITS_PER_SECOND = {"date": 1 / _DAY, "timestamp": 1e3, "micro_timestamp": 1e6, "nano_timestamp": 1e9}
"""Units of each type per second."""

_TEXTS = {
    "decimal_string": re.compile(r"-?\d+\.\d+"),
    "zoned_timestamp": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
    "iso_date": re.compile(r"\d{4}-\d\d-\d\dZ?"),
    "uuid": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE),
    "json": re.compile(r"\s*[{\[].*[}\]]\s*", re.DOTALL),
    "decimal": re.compile(r"(?=.{4,24}\Z)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
}
"""Patterns of texts by type; a decimal in Debezium's mode ``precise`` is at most 16 bytes in base64."""

_SHAPES = {
    **_TEXTS,
    "numeral": re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?|NaN|NAN|(POSITIVE_|NEGATIVE_)INFINITY"),
    "hex": re.compile(r"([0-9a-f]{2})*"),
    "base64": re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
    "base64url": re.compile(r"([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2}(==)?|[A-Za-z0-9_-]{3}=?)?"),
}
"""The same, and patterns that are not enough to guess a type."""

_LEAST_DIGITS, _MOST_DIGITS = 18, 38
LONG_NUMBER = "number of more than 15 digits"
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")


@dataclass
class ColumnProfile:
    """What the values of one column have in common: their JSON ``kinds``, the ``shapes`` that no value rules out, the
    most digits before the point (``whole``), after it (``scale``) and ``in_bytes``, whether some text is ``filled``
    (not empty), or ``padded`` like base64, ``one`` of the values, and the profile of list ``items``. For whole numbers
    how many are ``likely`` dates or times, by unit, and the ``largest``.
    """

    kinds: set[str] = field(default_factory=set)
    shapes: set[str] = field(default_factory=lambda: {*UNITS_PER_SECOND, *_SHAPES})
    whole: int = 0
    scale: int = 0
    in_bytes: int = 0
    filled: bool = False
    padded: bool = False
    one: object = None
    items: ColumnProfile | None = None
    likely: Counter[str] = field(default_factory=Counter)
    largest: int = 0

    def see(self, value: object) -> None:
        """Add a value from ``jsontext.loads``. NULL adds nothing."""
        if value is None:
            return
        self.kinds.add(_kind(value))
        self.shapes = {name for name in self.shapes if _may_be(name, value)}
        whole, scale = _digits(value)
        self.whole, self.scale = max(self.whole, whole), max(self.scale, scale)
        if isinstance(value, str) and "decimal" in self.shapes:
            self.in_bytes = max(self.in_bytes, len(str(abs(_unscaled(value)))))
        self.filled |= value != ""
        self.padded |= str(value).endswith("=")
        self.one = value if self.one is None else self.one
        if isinstance(value, Number) and type_inference.kind_of(value.text) == "bigint":
            self.likely.update(name for name in UNITS_PER_SECOND if _may_be(name, value))
            self.largest = max(self.largest, abs(int(value.text)))
        for item in value if isinstance(value, list) else ():
            self.items = self.items or ColumnProfile()
            self.items.see(item)


@dataclass(frozen=True)
class Guess:
    """The type that holds all values and claims least, in short form; None if only their exact text does, which is what
    an undeclared column gets. ``remark`` says in one line why, and names alternatives; it contains no text of a row,
    since the draft is meant for a repository.
    """

    type: str | None
    remark: str = ""


def guess_type(values: ColumnProfile) -> Guess:
    """Guess a type. Never a decimal, a date or a time: those are alternatives, for the source's table to confirm."""
    if not values.kinds:
        return Guess(None, "NULL in all records")
    found, also = _single_type(values), _alternatives(values)
    remark = f"or {', '.join(also)}" if also else ""
    if found is not None:
        return Guess(found, remark)
    why = f"{' and '.join(sorted(values.kinds))}: kept as exact text"
    return Guess(None, f"{why}; {remark}" if remark else why)


def _alternatives(values: ColumnProfile) -> list[str]:
    possible = values.shapes if values.padded else values.shapes - {"decimal"}
    found = [_describe(name, values) for name in (*UNITS_PER_SECOND, *_TEXTS) if name in possible]
    if values.kinds <= {"bigint", "double", LONG_NUMBER} and values.scale:
        found += [] if _single_type(values) else ["double"]
        found += _sized("decimal_number", values)
    return [each for each in found if each]


def _kind(value: object) -> str:
    match value:
        case Number():
            kind = type_inference.kind_of(value.text)
            return LONG_NUMBER if kind == "string" else kind
        case bool():
            return "boolean"
        case str():
            return "double" if value in _NO_NUMBERS else "string"
    return "list" if isinstance(value, list) else "object"


def _digits(value: object) -> tuple[int, int]:
    """Digits before and after the point of a number, or of a text that is one."""
    try:
        _, digits, exponent = Decimal(value.text if isinstance(value, Number) else str(value)).as_tuple()
    except InvalidOperation:
        return 0, 0
    return (max(0, len(digits) + exponent), max(0, -exponent)) if isinstance(exponent, int) else (0, 0)


def _unscaled(text: str) -> int:
    """The digits of a decimal in Debezium's ``precise``."""
    return int.from_bytes(b64decode(text), "big", signed=True)


def _single_type(values: ColumnProfile) -> str | None:
    if values.kinds == {"bigint", "double"}:
        return "double" if values.largest < type_inference.EXACT_DOUBLE_LIMIT else None
    [first, *others] = values.kinds
    return first if not others and first in ("bigint", "double", "boolean", "string") else None


def _may_be(name: str, value: object) -> bool:
    if isinstance(value, str):
        return name in _SHAPES and _SHAPES[name].fullmatch(value) is not None
    if not isinstance(value, Number) or name not in UNITS_PER_SECOND or type_inference.kind_of(value.text) != "bigint":
        return False
    return _SINCE <= int(value.text) / UNITS_PER_SECOND[name] <= _UNTIL


def _describe(name: str, values: ColumnProfile) -> str:
    """An alternative with an example of what it makes of a number; '' if there is no such type."""
    if name in UNITS_PER_SECOND:
        return f"{name} ({to_display(parse_type(name), values.one)})"
    if name == "decimal":
        digits = max(_LEAST_DIGITS, values.in_bytes)
        return (
            f"decimal({digits},?) of the digits {_unscaled(str(values.one))}, bytes" if digits <= _MOST_DIGITS else ""
        )
    return ", ".join(_sized(name, values)) if name == "decimal_string" else name


def _sized(name: str, values: ColumnProfile) -> list[str]:
    """The type with 18 digits, or as many as were seen; empty if no DECIMAL holds them."""
    digits = max(_LEAST_DIGITS, values.whole + values.scale)
    return [f"{name}({digits},{values.scale})"] if digits <= _MOST_DIGITS else []
