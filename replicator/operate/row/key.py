"""The key of one row as a user types it, and how to find it in the text of bronze records.

A key is typed as ``1``, as ``a,b`` in the order of the key columns, or as ``name=value,...``.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.errors import ConfigError
from replicator.jvm import gateway

_ABSENT = object()
_HEADERS = ("__debezium.oldkey", "__debezium.newkey")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_PLAIN_TYPES = ("string", *_INTEGERS)
_SIMPLE = re.compile(r"tinyint|smallint|int|bigint|decimal.*|boolean|date|timestamp.*|float|double")
_DATED = re.compile(r"\s*\d{4}-\d")
_TYPE_WORDS = {
    **dict.fromkeys(_INTEGERS, "whole numbers"),
    "boolean": "true and false",
    "date": "dates like 2026-01-31",
    "timestamp": "times like 2026-01-31 10:00:00",
}
"""The values of a column in words, by the beginning of its type."""

_UNESCAPED = re.compile(r"[\w .:-]*", re.ASCII)


def parse(text: str, names: Sequence[str]) -> Mapping[str, str]:
    """Return the value of each key column of ``names``, as text. A value that contains a comma or a line break is put
    in double quotes.

    Raises ConfigError where the parts do not match the key columns.
    """
    try:
        parts = next(csv.reader([text]), [])
    except csv.Error as error:
        raise ConfigError(
            f"the key cannot be read: {error}",
            fix='Put a part that contains a comma or a line break in double quotes: "a,b",c or "name=a,b",other=c.',
        ) from error
    pairs = [part.partition("=") for part in parts]
    if pairs and all(equals and name.strip() in names for name, equals, _ in pairs):
        found = {name.strip(): value for name, _, value in pairs}
    else:
        found = dict(zip(names, parts, strict=False))
    if len(parts) != len(names) or set(found) != set(names):
        raise ConfigError(
            f"the key has {_counted(len(names))}: {', '.join(names)}",
            fix=f"Write {','.join(f'<{name}>' for name in names)} or {','.join(f'{name}=...' for name in names)}.",
        )
    return found


def cast_values(spark: SparkSession, wanted: Mapping[str, str], kinds: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same values as Spark writes them: ``007`` is 7 in an integer column, ``1.5`` is 1.50 in one with two
    decimal places, and ``2026-01-01T00:00:00Z`` is written like any other time.

    ``kinds`` are the Spark types of the key columns. Raises ConfigError for a text that is not a value of its column.
    """
    others = {name: value for name, value in wanted.items() if _SIMPLE.fullmatch(kinds[name])}
    if not others:
        return wanted
    texts = [f"CAST(try_cast(v{index} AS {kinds[name]}) AS STRING)" for index, name in enumerate(others)]
    # as columns of a DataFrame: with Delta's extension, Spark 4.1 does not support query parameters
    schema = T.StructType([T.StructField(f"v{index}", T.StringType()) for index in range(len(others))])
    row = gateway.create_frame(spark, [tuple(others.values())], schema).selectExpr(*texts).collect()[0]
    return {
        **wanted,
        **{name: _exact_value(name, others[name], kinds[name], row[index]) for index, name in enumerate(others)},
    }


def may_match(wanted: Mapping[str, str], kinds: Mapping[str, str], *, in_row: bool = False) -> Column:
    """Return the condition that a bronze record may be about this key, or may truncate its table, as far as the
    undecoded text shows.

    ``kinds`` are the Spark types of the key columns. Only strings and integers are looked for: values of other types
    can be spelled in too many ways. ``in_row``: the key is declared, so the record key may lack it and only the row has
    it.
    """
    plain = {name: value for name, value in wanted.items() if kinds[name] in _PLAIN_TYPES}
    headers = F.coalesce(F.col("headers"), F.array().cast("array<struct<key:string,value:binary>>"))
    in_header = F.exists(headers, lambda h: h["key"].isin(*_HEADERS) & _has_values(h["value"].cast("string"), plain))
    keyless = (F.col("key").isNull() | F.lit(in_row)) & (_mentions(plain) | F.col("value").rlike(r'"op"\s*:\s*"t"'))
    return F.coalesce(_has_values(F.col("key"), plain) | in_header | keyless, F.lit(False))


def matches(record: Row, wanted: Mapping[str, str], spelled: Collection[tuple[str, ...]]) -> bool:
    """Whether the record's key, or the other key in its headers, is one of the spellings of this key."""
    headers = [h["value"].decode("utf-8", "replace") for h in record["headers"] or () if _is_key(h)]
    return any(parse_json(each, wanted) in spelled for each in (record["key"], *headers))


def parse_json(spelling: str | None, wanted: Mapping[str, str]) -> tuple[str, ...]:
    """Return the parts of a JSON key as texts, in the order of ``wanted``; empty where the text is not such a key."""
    try:
        body: Any = json.loads(spelling or "")
    except (ValueError, RecursionError):
        return ()
    parts = _lookup(body, wanted)
    if parts is None and isinstance(body, dict):
        parts = _lookup(body.get("payload"), wanted)
    return tuple(part if isinstance(part, str) else json.dumps(part) for part in parts or ())


def _lookup(body: Any, wanted: Collection[str]) -> list[Any] | None:
    """Return the values of these names, whose case may differ from the source's; None where one is missing."""
    values_by_name = {name.casefold(): part for name, part in body.items()} if isinstance(body, dict) else {}
    found = [values_by_name.get(name.casefold(), _ABSENT) for name in wanted]
    return None if _ABSENT in found else found


def _has_values(json_text: Column, plain: Mapping[str, str]) -> Column:
    """Return the condition that a JSON text has these values, or has their names in another case only, as the source
    may spell them.
    """
    found = F.lit(True)
    for name, value in plain.items():
        json_value = F.coalesce(
            *[F.get_json_object(json_text, f"${inside}['{name}']") for inside in ("", "['payload']")]
        )
        is_respelled = json_value.isNull() & F.lower(json_text).contains(json.dumps(name.lower(), ensure_ascii=False))
        found = found & (F.coalesce(json_value == value, F.lit(False)) | F.coalesce(is_respelled, F.lit(False)))
    return found


def _mentions(plain: Mapping[str, str]) -> Column:
    """Return the condition that the record's value contains these values, of those that JSON does not escape."""
    found = F.col("value").isNotNull()
    for value in plain.values():
        if _UNESCAPED.fullmatch(value):
            found = found & F.col("value").contains(value)
    return found


def _is_key(header: Row) -> bool:
    return header["key"] in _HEADERS and header["value"] is not None


def _exact_value(name: str, value: str, kind: str, found: str | None) -> str:
    """Return the value as Spark writes it. Raises ConfigError where the cast failed or changed the value."""
    is_another = kind.startswith("decimal") and found is not None and Decimal(found) != Decimal(value)
    is_number = kind.startswith(("date", "timestamp")) and not _DATED.match(value)
    if found is None or is_another or is_number:
        type_words = next(
            (words for start, words in _TYPE_WORDS.items() if kind.startswith(start)), f"values of {kind}"
        )
        raise ConfigError(f"the key column {name} holds {type_words}, which {value!r} is not")
    return found


def _counted(number: int) -> str:
    return "one column" if number == 1 else f"{number} columns"
