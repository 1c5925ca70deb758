"""Casts of a ``transform`` that lose nothing: what would be another value in the new type is none (types.md Y2, Y10).

Spark's ``try_cast`` refuses what is too large and rounds or cuts the rest. Here a number or a text is an integer or a
DECIMAL only where it is the same number. Other types are as Spark casts them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import decimals

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def normalize_types(rows: DataFrame, told: Mapping[str, str]) -> dict[str, str]:
    """Types as ``DataFrame.dtypes`` spells them, by the same names. Raises PySparkException for one that is none."""
    found = rows.select(*[F.expr(f"CAST(NULL AS {kind})") for kind in told.values()]).dtypes
    return {name: kind for name, (_, kind) in zip(told, found, strict=True)}


def exact_cast(path: str, held: str, kind: str) -> Column:
    """The value at a path of SQL, which is ``held`` as one type, in another; NULL where it is not the same there."""
    value = f"try_cast({path} AS {kind})"
    bounds = _DECIMAL.fullmatch(kind)
    if bounds is not None and held == "string":
        return decimals.parse(F.trim(F.expr(path)), (int(bounds.group(1)), int(bounds.group(2))))
    if _is_number(kind) and (_is_number(held) or held in ("float", "double")):
        return F.expr(f"CASE WHEN try_cast({value} AS {held}) = {path} THEN {value} END")
    return F.expr(value)


def _is_number(kind: str) -> bool:
    return kind in _INTEGERS or _DECIMAL.fullmatch(kind) is not None
