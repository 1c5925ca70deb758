"""Type inference for columns that nothing describes: a last resort, which is reported (types.md Y14, Y15).

Never infers a decimal, date or time from a bare number or text: numbers are BIGINT or DOUBLE, booleans BOOLEAN,
all else STRING with the exact text of the JSON. A fractional number of more than 15 significant digits makes its column
STRING; a whole one does if other values are fractional.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.logical_types import GUESSED_DOUBLE, LogicalType

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[\s]*")
_PART = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_INTEGER = re.compile(r"-?[0-9]{1,19}\Z")
_BIGINT = 1 << 63
EXACT_DOUBLE_LIMIT = 10**15
"""Whole numbers below it are exact as a DOUBLE."""

_LONG = "long"
"""The kind of whole numbers from EXACT_DOUBLE_LIMIT on."""

_NOT_FINITE = "not finite"
"""The kind of the texts that Debezium writes for floats without a number in JSON."""

_NOT_FINITE_TEXTS = frozenset({'"NaN"', '"Infinity"', '"-Infinity"'})


def raw_fields(text: str, path: tuple[str, ...]) -> dict[str, str]:
    """Each field of the JSON object at ``path`` with the exact text of its value; empty if there is no object."""
    for step in path:
        text = _fields(text).get(step, "null")
    return _fields(text)


def _fields(text: str) -> dict[str, str]:
    out: dict[str, str] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return out
    at = _skip(text, at + 1)
    while text[at : at + 1] == '"':
        name, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        end = _end(text, start)
        out[name] = text[start:end]
        at = _skip(text, _skip(text, end) + 1)
    return out


def _end(text: str, start: int) -> int:
    """Where a value ends. A nested one is scanned by its brackets: Python's parser allows less depth than Spark's."""
    if text[start : start + 1] not in ("[", "{"):
        return _DECODER.raw_decode(text, start)[1]
    depth = 0
    for part in _PART.finditer(text, start):
        depth += (part.group() in ("[", "{")) - (part.group() in ("]", "}"))
        if depth == 0:
            return part.end()
    raise ValueError("unterminated value")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def raw_texts(value: Column, path: tuple[str, ...]) -> Column:
    """MAP<STRING,STRING> of a row's fields: a JSON string as its text, anything else as it stands in the record.

    A Python function, after ``from_json(… STRING)`` was tried: it rewrites numbers (types.md section 7).
    """

    def read(text: str | None) -> dict[str, str | None] | None:
        if text is None:
            return None
        return {name: _unquoted(raw) for name, raw in raw_fields(text, path).items()}

    return F.udf(read, "map<string,string>", useArrow=False)(value)


def _unquoted(raw: str) -> str | None:
    if raw == "null":
        return None
    return str(json.loads(raw)) if raw.startswith('"') else raw


def field_kinds(rows: Iterable[str], path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Distinct (field, kind) pairs of some records, for :func:`resolve_types`."""
    seen: set[tuple[str, str]] = set()
    for text in rows:
        for name, raw in raw_fields(text, path).items():
            if raw != "null":
                seen.add((name, _kind_in_column(raw)))
    yield from seen


def _kind_in_column(raw: str) -> str:
    if raw in _NOT_FINITE_TEXTS:
        return _NOT_FINITE
    kind = kind_of(raw)
    return _LONG if kind == "bigint" and abs(int(raw)) >= EXACT_DOUBLE_LIMIT else kind


def resolve_types(found: Iterable[tuple[str, str]]) -> Mapping[str, LogicalType]:
    """One logical type per field: the only kind seen, double over bigint and over NaN and infinities, else string."""
    by_name: dict[str, set[str]] = {}
    for name, kind in found:
        by_name.setdefault(name, set()).add(kind)
    return {name: _resolve(seen) for name, seen in by_name.items()}


def _resolve(seen: set[str]) -> LogicalType:
    if seen <= {"bigint", _LONG}:
        return LogicalType("bigint")
    if "double" in seen and seen <= {"bigint", "double", _NOT_FINITE}:
        return GUESSED_DOUBLE
    return LogicalType("boolean" if seen == {"boolean"} else "string")


def kind_of(raw: str) -> str:
    """The kind of a JSON value, by its text: ``bigint``, ``double``, ``boolean`` or ``string``."""
    if raw in ("true", "false"):
        return "boolean"
    if _INTEGER.match(raw):
        return "bigint" if -_BIGINT <= int(raw) < _BIGINT else "string"
    digits = re.sub(r"[eE].*", "", raw).replace(".", "").lstrip("-0")
    is_number = re.match(r"-?[0-9]", raw) is not None
    return "double" if is_number and len(digits) <= 15 else "string"
