"""Lossless casts of a ``transform``: a value that would change in the new type becomes NULL (types.md Y2, Y10).

Spark's ``try_cast`` refuses what is too large but rounds or truncates the rest. Here a number or string casts to an
integer or a DECIMAL only if it is exactly the same number. Other types are cast as by Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import decimals

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def normalize_types(rows: DataFrame, types: Mapping[str, str]) -> dict[str, str]:
    """Types as ``DataFrame.dtypes`` spells them, by the same names. Raises PySparkException for an invalid one."""
    found = rows.select(*[F.expr(f"CAST(NULL AS {kind})") for kind in types.values()]).dtypes
    return {name: kind for name, (_, kind) in zip(types, found, strict=True)}


def exact_cast(path: str, held: str, kind: str) -> Column:
    """The value at an SQL path, of type ``held``, cast to ``kind``; NULL if the cast would change it."""
    value = f"try_cast({path} AS {kind})"
    bounds = _DECIMAL.fullmatch(kind)
    if bounds is not None and held == "string":
        return decimals.parse(F.trim(F.expr(path)), (int(bounds.group(1)), int(bounds.group(2))))
    if _is_number(kind) and (_is_number(held) or held in ("float", "double")):
        return F.expr(f"CASE WHEN try_cast({value} AS {held}) = {path} THEN {value} END")
    return F.expr(value)


def _is_number(kind: str) -> bool:
    return kind in _INTEGERS or _DECIMAL.fullmatch(kind) is not None
