"""Arrow's values as texts and JSON in Spark's format, so that the answers of the engines can be compared."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TextWriter = Callable[[Any], str]


class ArrowAnswer:
    """``Answer`` from Arrow batches."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._rows = rows

    @property
    def columns(self) -> Sequence[str]:
        """The column names of the batches."""
        return list(self._rows.schema.names)

    def texts(self) -> Iterator[Sequence[str | None]]:
        """Yield the rows as texts, batch by batch."""
        for batch in self._rows:
            yield from zip(*map(column_texts, batch.columns), strict=True)

    def objects(self) -> Iterator[str]:
        """Yield the rows as JSON objects, batch by batch."""
        names = [json.dumps(name, ensure_ascii=False) for name in self.columns]
        for batch in self._rows:
            cells = [map(_nullable_json_writer(column.type), _values(column)) for column in batch.columns]
            for row in zip(*cells, strict=True):
                yield "{" + ",".join(f"{name}:{cell}" for name, cell in zip(names, row, strict=True)) + "}"

    def batches(self) -> pa.RecordBatchReader:
        """Return the batches unchanged."""
        return self._rows


def column_texts(column: pa.Array) -> list[str | None]:
    """The values of a column as Spark casts them to STRING; bytes in Base64, nested values as JSON."""
    written = json_writer(column.type) if pa.types.is_nested(column.type) else text_writer(column.type)
    return [None if value is None else written(value) for value in _values(column)]


def text_writer(kind: pa.DataType) -> TextWriter:
    """Return the function that formats values of a type that is not nested."""
    if pa.types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if pa.types.is_float32(kind):
        return lambda value: format_double(_shortest_float32(value))
    if pa.types.is_float64(kind):
        return format_double
    if pa.types.is_decimal(kind):
        return lambda value: format(value, "f")
    if pa.types.is_timestamp(kind):
        return _format_timestamp
    return _base64 if _is_binary(kind) else _format_interval if pa.types.is_interval(kind) else str


def json_writer(kind: pa.DataType) -> TextWriter:
    """Return the function that formats values of a type as JSON. Times are in ISO 8601, those with a zone in UTC."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = _nullable_json_writer(kind.value_type)
        return lambda value: "[" + ",".join(map(item, value)) + "]"
    if pa.types.is_map(kind):
        of_key = json_writer if pa.types.is_nested(kind.key_type) else text_writer
        key, item_writer = of_key(kind.key_type), _nullable_json_writer(kind.item_type)
        return lambda value: "{" + ",".join(f"{_quote(key(k))}:{item_writer(v)}" for k, v in value) + "}"
    if pa.types.is_struct(kind):
        fields = [(_quote(field.name), field.name, _nullable_json_writer(field.type)) for field in kind]
        return lambda value: "{" + ",".join(f"{quoted}:{write(value[name])}" for quoted, name, write in fields) + "}"
    return _scalar_json_writer(kind)


def _scalar_json_writer(kind: pa.DataType) -> TextWriter:
    written = text_writer(kind)
    if pa.types.is_timestamp(kind):
        return lambda value: _quote(_format_iso_timestamp(written(value), zoned=kind.tz is not None))
    if pa.types.is_floating(kind):
        return lambda value: written(value) if math.isfinite(value) else _quote(written(value))
    if pa.types.is_decimal(kind):
        return str  # as Java does: with an exponent below a millionth
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return written
    return lambda value: _quote(written(value))


def _nullable_json_writer(kind: pa.DataType) -> Callable[[Any], str]:
    written = json_writer(kind)
    return lambda value: "null" if value is None else written(value)


def format_double(value: float) -> str:
    """Format as Java formats a double: plain between a thousandth and ten millions, else with an exponent."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = Decimal(repr(value))
    sign, (first, *rest), _ = shortest.as_tuple()
    fraction = "".join(map(str, rest)).rstrip("0") or "0"
    return f"{'-' if sign else ''}{first}.{fraction}E{shortest.adjusted()}"


def _shortest_float32(value: float) -> float:
    """The shortest number with the same 32-bit value: 0.1, whose 64-bit form is 0.10000000149011612."""
    if not math.isfinite(value):
        return value
    tries = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((each for each in tries if struct.pack("f", each) == struct.pack("f", value)), value)


def _format_timestamp(value: Any) -> str:
    """In UTC, without trailing zeros in the fraction."""
    text = value if isinstance(value, str) else value.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0").rstrip(".") if "." in text else str(text)


def _format_interval(value: pa.MonthDayNano) -> str:
    """As Spark formats its two kinds of intervals, and with words one that is of both."""
    micros = value.days * 86_400_000_000 + value.nanoseconds // 1_000
    if value.months == 0:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        days, clock = divmod(seconds, 86_400)
        text = f"{days} {clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
        exact = f"{text}.{fraction:06}".rstrip("0") if fraction else text
        return f"INTERVAL '{'-' if micros < 0 else ''}{exact}' DAY TO SECOND"
    years, months = divmod(abs(value.months), 12)
    if micros == 0:
        return f"INTERVAL '{'-' if value.months < 0 else ''}{years}-{months}' YEAR TO MONTH"
    rest = (Decimal(value.nanoseconds) / 10**9).normalize()
    return f"{value.months} months {value.days} days {rest:f} seconds"


def _format_iso_timestamp(text: str, *, zoned: bool) -> str:
    seconds, _, fraction = text.replace(" ", "T").partition(".")
    return f"{seconds}.{fraction:<06}{'Z' if zoned else ''}"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _is_binary(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary))


def _values(column: pa.Array) -> list[Any]:
    """The values as Python objects; times as texts, since Python's end with the year 9999."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        column = pc.cast(pc.cast(column, pa.timestamp(column.type.unit)), pa.string())
    elif pa.types.is_date(column.type):
        column = pc.cast(column, pa.string())
    return list(column.to_pylist())
