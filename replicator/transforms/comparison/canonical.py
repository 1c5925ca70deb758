"""Canonical text of values and rows: texts are equal exactly if the values are equal, in any engine (reliability.md
P9).

Timestamps are microseconds since 1970 UTC, decimals lose trailing zeros, bytes are hex, NaN is one text and -0.0 is 0,
maps and JSON have sorted keys, arrays keep their order. In a row every text is prefixed by its length, so that columns
cannot run together, and NULL is distinct from every text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.transforms.comparison.comparable import column_types

JSON, NUMBER = "json", "number"
"""How to interpret a string column: as a JSON value, or as a number of any length."""

_NOTHING = "-"
_NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"


def text(value: Column, kind: T.DataType, meaning: str = "") -> Column:
    """The canonical text of a value of that type; NULL stays NULL. ``meaning``: JSON or NUMBER for a text."""
    if isinstance(kind, T.DecimalType):
        return _decimal(value, kind.scale)
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.when(value == 0, F.lit("0.0")).otherwise(value.cast("string"))
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
        return _nested(value, kind)
    if isinstance(kind, T.StringType):
        return _text_by_meaning(value, meaning)
    plain = F.hex(value) if isinstance(kind, T.BinaryType) else value
    return (F.unix_micros(value) if isinstance(kind, T.TimestampType) else plain).cast("string")


def length_prefixed(parts: Iterable[Column]) -> Column:
    """Concatenate texts, each prefixed by its length; NULL is ``-``."""
    prefixed = [
        F.coalesce(F.concat(F.length(part).cast("string"), F.lit(":"), part), F.lit(_NOTHING)) for part in parts
    ]
    return F.concat(F.lit(""), *prefixed)


def texts(
    rows: DataFrame, keys: Sequence[str], columns: Sequence[str], meanings: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows, one to one, with their ``keys`` unchanged and ``columns`` as canonical texts."""
    kept = [F.col(names.quote_spark(key)) for key in keys]
    return rows.select(*kept, *[each.alias(name) for name, each in column_texts(rows, columns, meanings).items()])


def column_texts(
    rows: DataFrame, columns: Sequence[str], meanings: Mapping[str, str] | None = None
) -> dict[str, Column]:
    """The canonical texts of columns of some rows, by name. Raises KeyError for a column that they do not have."""
    types = column_types(rows)
    return {name: text(F.col(names.quote_spark(name)), types[name], (meanings or {}).get(name, "")) for name in columns}


def json_text(written: str | None) -> str | None:
    """A JSON value with sorted keys, no blanks and trimmed numbers; a text that is not JSON, or is nested too deep for
    Python, is returned unchanged.
    """
    if written is None:
        return None
    try:
        return _json_text(json.loads(written, parse_float=Decimal, parse_int=Decimal, parse_constant=str))
    except (ValueError, ArithmeticError, RecursionError):
        return written


def _json_text(value: Any) -> str:
    if isinstance(value, dict):
        inside = (f"{json.dumps(key)}:{_json_text(each)}" for key, each in sorted(value.items()))
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_text, value)) + "]"
    if isinstance(value, Decimal):
        exact = Context(prec=len(value.as_tuple().digits), Emin=MIN_EMIN, Emax=MAX_EMAX)
        return str(exact.normalize(value) or Decimal(0))
    return json.dumps(value)


def _decimal(value: Column, scale: int) -> Column:
    """Plain notation, built from the digits of the unscaled number, which are in every notation that Java uses."""
    written = value.cast("string")
    digits = F.regexp_replace(F.regexp_replace(F.regexp_replace(written, "E.*$", ""), "[-.]", ""), "^0+", "")
    padded = F.concat(F.expr(f"repeat('0', {scale + 1})"), digits)
    whole = F.regexp_replace(padded.substr(F.lit(1), F.length(padded) - scale), "^0+(?=.)", "")
    behind = F.regexp_replace(F.substring(F.reverse(padded), 1, scale), "^0+", "")
    sign = F.when(value < 0, "-").otherwise("")
    return F.concat(sign, whole, F.when(F.length(behind) > 0, F.concat(F.lit("."), F.reverse(behind))).otherwise(""))


def _text_by_meaning(value: Column, meaning: str) -> Column:
    if meaning == JSON:
        return F.udf(json_text, "string", useArrow=False)(value)
    return _trimmed(value) if meaning == NUMBER else value


def _trimmed(value: Column) -> Column:
    """A number that is written as text: ``1.50`` is ``1.5``, ``-0.0`` is ``0``; other texts as they are."""
    without = F.regexp_replace(F.regexp_replace(value, r"(\.[0-9]*?)0+$", "$1"), r"\.$", "")
    without = F.regexp_replace(without, "^(-?)0+(?=[0-9])", "$1")
    return F.when(value.rlike(_NUMBER), F.when(without == "-0", "0").otherwise(without)).otherwise(value)


def _nested(value: Column, kind: T.ArrayType | T.MapType | T.StructType) -> Column:
    if isinstance(kind, T.StructType):
        joined = length_prefixed(text(value[field.name], field.dataType) for field in kind)
    elif isinstance(kind, T.ArrayType):
        joined = _array_text(value, lambda each: length_prefixed([text(each, kind.elementType)]))
    else:

        def entry(each: Column) -> Column:
            return length_prefixed([text(each["key"], kind.keyType), text(each["value"], kind.valueType)])

        joined = F.array_join(F.array_sort(F.transform(F.map_entries(value), entry)), "")
    return F.when(value.isNotNull(), joined)


def _array_text(value: Column, to_text: Any) -> Column:
    return F.array_join(F.transform(value, to_text), "")
