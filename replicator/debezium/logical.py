"""What a source column *means*: logical types and how users write them.

types.md sections 2, 6 and 8. Pure Python: configuration can be checked without Spark.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from replicator import names
from replicator.errors import ConfigError
from replicator.spec.connectors import BINARY, DECIMALS, TIMES

MAX_PRECISION = 38
"""Digits that Spark's DECIMAL can hold."""


@dataclass(frozen=True)
class Logical:
    """The type of one column, by meaning and by how its values are written on the wire.

    ``name`` is the short form without arguments. ``precision`` and ``scale`` belong to ``decimal`` and to a
    ``variable_decimal`` that is to be kept as DECIMAL; a negative scale is kept as the source says it.
    ``length`` is the number of bits of ``bits``. ``unsigned`` marks a MySQL BIGINT UNSIGNED (section 5).
    ``encoding`` says how values are written where a schema cannot: decimals ``base64`` (mode ``precise``),
    ``text`` (mode ``string``), ``number`` (converter's NUMERIC format) or ``connect`` (base64 or a number, value by
    value, which a schema block does not say); bytes ``base64``, ``base64url``, ``hex``; GUESSED_DOUBLE has one too.
    ``element`` belongs to ``array``, ``fields`` to ``struct``.
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    unsigned: bool = False
    encoding: str = ""
    element: Logical | None = None
    fields: tuple[Field, ...] = ()

    def __str__(self) -> str:
        """The short form; :func:`parse_logical` reads it back (structs excepted)."""
        if self.element is not None:
            return f"array<{self.element}>"
        if self.name == "struct":
            return "struct<" + ", ".join(f"{field.name}: {field.logical}" for field in self.fields) + ">"
        suffix = _SUFFIX_OF_ENCODING.get((self.name, self.encoding), "")
        numbers = [n for n in (self.length, self.precision, self.scale) if n is not None]
        arguments = f"({','.join(map(str, numbers))})" if numbers else ""
        return f"{self.name}{suffix}{arguments}{' unsigned' if self.unsigned else ''}"


GUESSED_DOUBLE = Logical("double", encoding="guessed")
"""A column that nobody describes, of numbers: one that a DOUBLE would round has no place in it (types.md Y2, Y14)."""


@dataclass(frozen=True)
class Field:
    """A column as a Connect schema describes it; ``default`` is the schema's, None if it has none (G1)."""

    name: str
    logical: Logical
    optional: bool = True
    default: object = None


@dataclass(frozen=True)
class Modes:
    """A connector's settings that change how declared types are written (types.md Y13).

    ``decimals`` is ``decimal.handling.mode``, ``binary`` is ``binary.handling.mode``, ``times`` is
    ``time.precision.mode``. Values that no connector knows raise ConfigError.
    """

    decimals: str = "precise"
    binary: str = "bytes"
    times: str = "adaptive"

    def __post_init__(self) -> None:
        for setting, value, known in (
            (DECIMALS, self.decimals, ("precise", "string", "double")),
            (BINARY, self.binary, tuple(_BINARY_MODES)),
            (TIMES, self.times, tuple(_TIME_MODES)),
        ):
            if value not in known:
                raise ConfigError(f"{setting} is {value!r}", mend=f"Known values: {', '.join(known)}.")

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Modes:
        """Those that a connector is known to have, by their key; Debezium's defaults for the others."""
        return cls(
            settings.get(DECIMALS, cls.decimals), settings.get(BINARY, cls.binary), settings.get(TIMES, cls.times)
        )

    @property
    def decimal_encoding(self) -> str:
        """``base64`` or ``text``."""
        return "text" if self.decimals == "string" else "base64"

    @property
    def binary_encoding(self) -> str:
        """``base64``, ``base64url`` or ``hex``."""
        return _BINARY_MODES[self.binary]


_BINARY_MODES = {"bytes": "base64", "base64": "base64", "base64-url-safe": "base64url", "hex": "hex"}
_TIME_MODES: Mapping[str, str | None] = {
    **dict.fromkeys(("adaptive", "adaptive_time_microseconds")),
    "connect": "",
    "isostring": "iso_",
    "microseconds": "micro_",
    "nanoseconds": "nano_",
    "structured": "structured_",
}
"""The short form's beginning that all dates and times have in a mode, where the column's digits do not decide it."""

_PLAIN_TIMES = ("date", "time", "timestamp", "datetime")
DEFAULT_MODES = Modes()

# Logical types without arguments, each with its silver type (types.md section 2).
_PLAIN = {
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "STRING",
    "bytes": "BINARY",
    "date": "DATE",
    "time": "BIGINT",
    "micro_time": "BIGINT",
    "nano_time": "BIGINT",
    "timestamp": "TIMESTAMP_NTZ",
    "micro_timestamp": "TIMESTAMP_NTZ",
    "nano_timestamp": "TIMESTAMP_NTZ",
    "zoned_timestamp": "TIMESTAMP",
    "zoned_time": "STRING",
    "iso_date": "DATE",
    "iso_time": "STRING",
    "iso_timestamp": "TIMESTAMP_NTZ",
    "structured_date": "DATE",
    "structured_time": "BIGINT",
    "structured_timestamp": "TIMESTAMP_NTZ",
    "structured_zoned_timestamp": "TIMESTAMP",
    "year": "INT",
    "interval": "STRING",
    "micro_duration": "BIGINT",
    "nano_duration": "BIGINT",
    "json": "STRING",
    "uuid": "STRING",
    "xml": "STRING",
    "ltree": "STRING",
    "tsvector": "STRING",
    "enum": "STRING",
    "enum_set": "ARRAY<STRING>",
    "map": "MAP<STRING, STRING>",
    "point": "STRUCT<x: DOUBLE, y: DOUBLE, wkb: BINARY, srid: INT>",
    "geometry": "STRUCT<wkb: BINARY, srid: INT>",
    "sparse_vector": "STRUCT<dimensions: INT, entries: ARRAY<STRUCT<i: INT, v: DOUBLE>>>",
}

# What people write for them. SQL names mean what Debezium sends for such a column by default.
_ALIASES = {
    "tinyint": "smallint", "int8": "smallint", "int16": "smallint", "int2": "smallint", "short": "smallint",
    "smallserial": "smallint",
    "integer": "int", "int32": "int", "int4": "int", "mediumint": "int", "serial": "int",
    "long": "bigint", "int64": "bigint", "bigserial": "bigint",
    "float32": "float", "float4": "float", "real": "float",
    "float64": "double", "float8": "double", "double precision": "double",
    "bool": "boolean",
    "text": "string", "varchar": "string", "char": "string", "character": "string", "character varying": "string",
    "bpchar": "string", "nchar": "string", "nvarchar": "string", "varchar2": "string", "nvarchar2": "string",
    "tinytext": "string", "mediumtext": "string", "longtext": "string", "clob": "string", "citext": "string",
    "inet": "string", "cidr": "string", "macaddr": "string",
    "binary": "bytes", "varbinary": "bytes", "blob": "bytes", "tinyblob": "bytes", "mediumblob": "bytes",
    "longblob": "bytes", "bytea": "bytes", "raw": "bytes",
    "numeric": "decimal", "dec": "decimal",
    "datetime": "timestamp",
    "timestamptz": "zoned_timestamp", "timestamp with time zone": "zoned_timestamp",
    "datetimeoffset": "zoned_timestamp",
    "timetz": "zoned_time", "time with time zone": "zoned_time",
    "jsonb": "json", "hstore": "map", "set": "enum_set", "geography": "geometry",
    "duration": "micro_duration",
    "bit": "bits", "varbit": "bits", "bit varying": "bits",
}  # fmt: skip

# Short forms that name the encoding: what a value looks like when the source's modes do not say.
_SUFFIXED = {
    "decimal_string": ("decimal", "text"),
    "decimal_number": ("decimal", "number"),
    "decimal_base64": ("decimal", "base64"),
    "decimal_connect": ("decimal", "connect"),
    "variable_decimal_string": ("variable_decimal", "text"),
    "bytes_base64": ("bytes", "base64"),
    "bytes_base64url": ("bytes", "base64url"),
    "bytes_hex": ("bytes", "hex"),
}
_SUFFIX_OF_ENCODING = {
    ("decimal", "text"): "_string",
    ("decimal", "number"): "_number",
    ("decimal", "connect"): "_connect",
    ("variable_decimal", "text"): "_string",
    ("bytes", "base64url"): "_base64url",
    ("bytes", "hex"): "_hex",
}
_WITH_ARGUMENTS = ("decimal", "variable_decimal", "bits")
_SHORT_FORM = re.compile(r"([a-z][a-z0-9_ ]*?)\s*(?:\(\s*(-?\d+(?:\s*,\s*-?\d+)?)\s*\))?(\s+unsigned)?(?:\s+zerofill)?")
_ARRAY = re.compile(r"array\s*<(.*)>|(.*)\[\]", re.DOTALL)
# An unsigned integer arrives in the next wider Connect type; BIGINT UNSIGNED has none (section 5).
_UNSIGNED = {"mediumint": "int", "smallint": "int", "int": "bigint", "integer": "bigint", "int32": "bigint"}


def parse_logical(text: str, modes: Modes = DEFAULT_MODES, *, unsigned: bool = False) -> Logical:
    """A declared type (types.md Y13): ``bigint``, ``decimal(10,2)``, ``bits(8)``, ``array<int>``, ``bigint unsigned``.

    Common SQL names are understood as what Debezium sends for them by default: ``varchar(50)``, ``datetime``,
    ``datetime(6)`` (microseconds), ``numeric(12,4)``, ``text[]``. ``modes`` decide how decimals, bytes, dates and
    times are written; ``decimal_string(p,s)``, ``decimal_number(p,s)``, ``decimal_base64(p,s)``, ``bytes_hex``,
    ``bytes_base64``, ``bytes_base64url``, ``micro_timestamp`` and its like say it for one column. Raises ConfigError
    naming the text and the nearest spelling.
    """
    written = " ".join(text.lower().split())
    array = _ARRAY.fullmatch(written)
    if array:
        return Logical("array", element=parse_logical(array.group(1) or array.group(2) or "", modes))
    match = _SHORT_FORM.fullmatch(written)
    if not match:
        raise _unknown(text)
    numbers = tuple(int(n) for n in match.group(2).split(",")) if match.group(2) else ()
    return _named(text, match.group(1), numbers, modes, unsigned=unsigned or bool(match.group(3)))


def resolved(text: str, modes: Modes) -> str:
    """A declared type by itself: what ``modes`` make of it is written out, so that it says the same without them."""
    told = parse_logical(text, modes)
    return text if told == parse_logical(text) else str(told)


def _named(text: str, word: str, numbers: tuple[int, ...], modes: Modes, *, unsigned: bool) -> Logical:
    name, encoding = _SUFFIXED.get(word, (_ALIASES.get(word, word), ""))
    if unsigned and name in ("smallint", "int", "bigint"):
        wider = "smallint" if word in ("tinyint", "int8") else _UNSIGNED.get(word, name)
        return Logical(wider, unsigned=name == "bigint")
    if name in ("decimal", "variable_decimal"):
        return _decimal(text, name, numbers, encoding, modes)
    if name == "bits":
        return _bits(text, numbers)
    if name == "bytes":
        return Logical("bytes", encoding=encoding or modes.binary_encoding)
    if name not in _PLAIN:
        raise _unknown(text)
    sized = _by_fraction_digits(word, name, numbers)
    return Logical(_by_mode(sized, modes.times) if word in _PLAIN_TIMES else sized)


def _decimal(text: str, name: str, numbers: tuple[int, ...], encoding: str, modes: Modes) -> Logical:
    if modes.decimals == "double" and not encoding:
        return Logical("double")
    if name == "decimal" and not numbers:
        raise ConfigError(
            f"type {text!r} lacks its precision and scale",
            mend="Write decimal(10,2), or variable_decimal where the source's column has none.",
        )
    precision = numbers[0] if numbers else None
    scale = None if precision is None else (numbers[1] if len(numbers) > 1 else 0)
    if precision is not None and precision < 1:
        raise ConfigError(f"type {text!r}: a precision is at least 1")
    return Logical(name, precision, scale, encoding=encoding or modes.decimal_encoding)


def _bits(text: str, numbers: tuple[int, ...]) -> Logical:
    if len(numbers) > 1 or (numbers and numbers[0] < 1):
        raise ConfigError(f"type {text!r}: bits take one positive length", mend="Write bits(8).")
    length = numbers[0] if numbers else 1
    return Logical("boolean") if length == 1 else Logical("bits", length=length)


def _by_fraction_digits(word: str, name: str, numbers: tuple[int, ...]) -> str:
    """``datetime(6)`` is sent in microseconds, ``datetime(3)`` in milliseconds (section 2)."""
    if word in ("datetime", "timestamp", "time") and numbers:
        unit = "" if numbers[0] <= 3 else ("micro_" if numbers[0] <= 6 else "nano_")
        return unit + name
    if word == "float" and numbers and numbers[0] > 24:
        return "double"
    return name


def _by_mode(name: str, mode: str) -> str:
    """What a date or a time of so many digits is in a ``time.precision.mode``; dates are days wherever they are numbers
    (section 2).
    """
    plain = name.removeprefix("micro_").removeprefix("nano_")
    if mode == "adaptive_time_microseconds" and plain == "time":
        return "micro_time"
    begins = _TIME_MODES[mode]
    if begins is None or (plain == "date" and begins in ("micro_", "nano_")):
        return name
    return begins + plain


def _unknown(text: str) -> ConfigError:
    known = [*_PLAIN, *_WITH_ARGUMENTS, *_SUFFIXED, *_ALIASES, "array"]
    near = difflib.get_close_matches(re.split(r"[(<\[]", text.strip().lower())[0], known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "types.md section 2 lists the short forms."
    return ConfigError(f"unknown type {text!r}", mend=hint)


def decimal_bounds(logical: Logical) -> tuple[int, int] | None:
    """``(precision, scale)`` of the DECIMAL that keeps a decimal's values exactly; None where only STRING can.

    A negative scale adds digits before the point, a scale above the precision adds leading zeros behind it.
    """
    if logical.precision is None:
        return None
    scale = max(logical.scale or 0, 0)
    precision = max(logical.precision - min(logical.scale or 0, 0), scale)
    return (precision, scale) if precision <= MAX_PRECISION else None


def spark_type(logical: Logical) -> str:
    """The silver type as Spark DDL text (types.md section 2). Raises ConfigError for a name that is not known."""
    if logical.name in ("decimal", "variable_decimal"):
        bounds = decimal_bounds(logical)
        return f"DECIMAL({bounds[0]},{bounds[1]})" if bounds else "STRING"
    if logical.unsigned and logical.name == "bigint":
        return "DECIMAL(20,0)"
    if logical.name == "bits":
        return "BIGINT" if (logical.length or 0) <= 63 else "BINARY"
    if logical.name == "array" and logical.element:
        # nested arrays are kept as their JSON text
        return "STRING" if logical.element.name == "array" else f"ARRAY<{spark_type(logical.element)}>"
    if logical.name == "struct":
        inner = (f"{names.spark(field.name)}: {spark_type(field.logical)}" for field in logical.fields)
        return f"STRUCT<{', '.join(inner)}>"
    if logical.name not in _PLAIN:
        raise _unknown(logical.name)
    return _PLAIN[logical.name]
