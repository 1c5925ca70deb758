"""Conversion of wire values into readable ones: decimals, dates and times (types.md section 2).

For display only: stored values are decoded by ``types.py``, which covers every type and reports what does not fit.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from replicator.debezium.jsontext import Number
from replicator.debezium.logical_types import LogicalType

_DAY_ZERO, _ZERO = date(1970, 1, 1), datetime(1970, 1, 1)  # noqa: DTZ001 - what the source says has no zone


def to_display(logical: LogicalType, value: Any) -> Any:
    """A value from ``jsontext.loads`` in readable form, by its type; one that cannot be converted stays as it is."""
    reader = _READERS.get(logical.name)
    if value is None or reader is None:
        return value
    try:
        return reader(logical, value)
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
        return value


def _bigint(logical: LogicalType, value: Number) -> Number:
    number = int(value.text)
    return Number(str(number + 2**64)) if logical.unsigned and number < 0 else value


def _boolean(_: LogicalType, value: Any) -> Any:
    """A TINYINT(1) of a snapshot is 0 or 1."""
    return {"0": False, "1": True}[value.text] if isinstance(value, Number) else value


def _decimal(logical: LogicalType, value: Any) -> Any:
    is_plain = logical.encoding not in ("base64", "connect") or isinstance(value, Number)
    return value if is_plain else _unscaled(value, logical.scale or 0)


def _variable_decimal(_: LogicalType, value: Any) -> Any:
    return _unscaled(value["value"], int(value["scale"].text)) if isinstance(value, Mapping) else value


def _unscaled(text: str, scale: int) -> Number:
    number = int.from_bytes(b64decode(text, validate=True), "big", signed=True)
    digits = Decimal(number).as_tuple()
    return Number(format(Decimal((digits.sign, digits.digits, -scale)), "f"))


def _date(_: LogicalType, value: Number) -> str:
    return (_DAY_ZERO + timedelta(days=int(value.text))).isoformat()


def _timestamp(per_second: int) -> Callable[[LogicalType, Number], str]:
    def read(_: LogicalType, value: Number) -> str:
        return (_ZERO + _elapsed(value, per_second)).isoformat(" ")

    return read


def _time(per_second: int) -> Callable[[LogicalType, Number], str]:
    def read(_: LogicalType, value: Number) -> str:
        elapsed = _elapsed(value, per_second)
        seconds, micros = divmod(abs(elapsed) // timedelta(microseconds=1), 1_000_000)
        text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (f".{micros:06}" if micros else "")
        return f"-{text}" if elapsed < timedelta() else text

    return read


def _elapsed(value: Number, per_second: int) -> timedelta:
    return timedelta(microseconds=int(value.text) * 1_000_000 // per_second)


_READERS: Mapping[str, Callable[[LogicalType, Any], Any]] = {
    "bigint": _bigint,
    "boolean": _boolean,
    "decimal": _decimal,
    "variable_decimal": _variable_decimal,
    "date": _date,
    "timestamp": _timestamp(1_000),
    "micro_timestamp": _timestamp(1_000_000),
    "nano_timestamp": _timestamp(1_000_000_000),
    "time": _time(1_000),
    "micro_time": _time(1_000_000),
    "nano_time": _time(1_000_000_000),
}
