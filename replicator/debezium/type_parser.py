"""Parser of declared column types (types.md Y13)."""

from __future__ import annotations

import re

from replicator.debezium.handling_modes import DEFAULT_MODES, HandlingModes
from replicator.debezium.logical_types import LogicalType
from replicator.debezium.type_names import ALIASES, ENCODED_TYPES, SIMPLE_TYPES, unknown_type
from replicator.errors import ConfigError

_PLAIN_TIMES = ("date", "time", "timestamp", "datetime")

_SHORT_FORM = re.compile(r"([a-z][a-z0-9_ ]*?)\s*(?:\(\s*(-?\d+(?:\s*,\s*-?\d+)?)\s*\))?(\s+unsigned)?(?:\s+zerofill)?")
_ARRAY = re.compile(r"array\s*<(.*)>|(.*)\[\]", re.DOTALL)
_UNLIMITED = {"varbit": (2**31 - 1,), "bit varying": (2**31 - 1,)}
"""The length that Debezium sends for PostgreSQL's bit strings without one."""
# An unsigned integer arrives in the next wider Connect type; BIGINT UNSIGNED has none (section 5).
_UNSIGNED = {"mediumint": "int", "smallint": "int", "int": "bigint", "integer": "bigint", "int32": "bigint"}


def parse_type(text: str, modes: HandlingModes = DEFAULT_MODES, *, unsigned: bool = False) -> LogicalType:
    """Parse a declared type: ``bigint``, ``decimal(10,2)``, ``bits(8)``, ``array<int>``, ``bigint unsigned``.

    Common SQL names mean what Debezium sends for them by default: ``varchar(50)``, ``datetime``, ``datetime(6)``
    (microseconds), ``numeric(12,4)``, ``text[]``. ``modes`` decide how decimals, bytes, dates and times are written;
    ``decimal_string(p,s)``, ``decimal_number(p,s)``, ``decimal_base64(p,s)``, ``bytes_hex``, ``bytes_base64``,
    ``bytes_base64url``, ``micro_timestamp`` and the like decide it for one column. Raises ConfigError naming the text
    and the nearest spelling.
    """
    written = " ".join(text.lower().split())
    array = _ARRAY.fullmatch(written)
    if array:
        return LogicalType("array", element=parse_type(array.group(1) or array.group(2) or "", modes))
    match = _SHORT_FORM.fullmatch(written)
    if not match:
        raise unknown_type(text)
    numbers = tuple(int(n) for n in match.group(2).split(",")) if match.group(2) else ()
    return _build(text, match.group(1), numbers, modes, unsigned=unsigned or bool(match.group(3)))


def resolve_modes(text: str, modes: HandlingModes) -> str:
    """A declared type made independent of ``modes``: rewritten so that it means the same without them."""
    resolved = parse_type(text, modes)
    return text if resolved == parse_type(text) else str(resolved)


def _build(text: str, word: str, numbers: tuple[int, ...], modes: HandlingModes, *, unsigned: bool) -> LogicalType:
    name, encoding = ENCODED_TYPES.get(word, (ALIASES.get(word, word), ""))
    if unsigned and name in ("smallint", "int", "bigint"):
        wider = "smallint" if word in ("tinyint", "int8") else _UNSIGNED.get(word, name)
        return LogicalType(wider, unsigned=name == "bigint")
    if name in ("decimal", "variable_decimal"):
        return _decimal(text, name, numbers, encoding, modes)
    if name == "bits":
        return _bits(text, numbers or _UNLIMITED.get(word, ()))
    if name == "bytes":
        return LogicalType("bytes", encoding=encoding or modes.binary_encoding)
    if name not in SIMPLE_TYPES:
        raise unknown_type(text)
    sized = _by_fraction_digits(word, name, numbers)
    return LogicalType(name_in_mode(sized, modes) if word in _PLAIN_TIMES else sized)


def _decimal(text: str, name: str, numbers: tuple[int, ...], encoding: str, modes: HandlingModes) -> LogicalType:
    if modes.decimals == "double" and not encoding:
        return LogicalType("double")
    if name == "decimal" and not numbers:
        raise ConfigError(
            f"type {text!r} needs a precision and a scale",
            fix="Write decimal(10,2), or variable_decimal if the source's column has none.",
        )
    precision = numbers[0] if numbers else None
    scale = None if precision is None else (numbers[1] if len(numbers) > 1 else 0)
    if precision is not None and precision < 1:
        raise ConfigError(f"type {text!r}: the precision must be at least 1")
    return LogicalType(name, precision, scale, encoding=encoding or modes.decimal_encoding)


def _bits(text: str, numbers: tuple[int, ...]) -> LogicalType:
    if len(numbers) > 1 or (numbers and numbers[0] < 1):
        raise ConfigError(f"type {text!r}: bits needs one positive length", fix="Write bits(8).")
    length = numbers[0] if numbers else 1
    return LogicalType("boolean") if length == 1 else LogicalType("bits", length=length)


def _by_fraction_digits(word: str, name: str, numbers: tuple[int, ...]) -> str:
    """``datetime(6)`` is sent in microseconds, ``datetime(3)`` in milliseconds (section 2)."""
    if word in ("datetime", "timestamp", "time") and numbers:
        unit = "" if numbers[0] <= 3 else ("micro_" if numbers[0] <= 6 else "nano_")
        return unit + name
    if word == "float" and numbers and numbers[0] > 24:
        return "double"
    return name


def name_in_mode(name: str, modes: HandlingModes) -> str:
    """The type of a date or time in a ``time.precision.mode``; dates sent as numbers are always days (section 2)."""
    plain = name.removeprefix("micro_").removeprefix("nano_")
    if modes.times == "adaptive_time_microseconds" and plain == "time":
        return "micro_time"
    prefix = modes.time_prefix
    if prefix is None or (plain == "date" and prefix in ("micro_", "nano_")):
        return name
    return prefix + plain
