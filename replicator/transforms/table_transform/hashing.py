"""Keyed hashes of values: HMAC-SHA-256 in lower-case hexadecimal, the same for equal values in any column.

The input is the value's text: for a number its digits without exponent and trailing decimal zeros, so that columns of
different types give the same hash; bytes as they are; nested values as JSON. NULL stays NULL.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from replicator.jvm import gateway

PADS = ("_inner", "_outer")
"""Columns that :func:`with_hmac_pads` adds: the two halves of the key."""

_BLOCK = 64
_DIGITS = "0." + "#" * 340
"""As many decimals as the smallest DOUBLE has."""

_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
_FRACTIONS = ("decimal", "double", "float")
_NESTED = ("struct<", "array<", "map<")


def with_hmac_pads(rows: DataFrame, key: str) -> DataFrame:
    """Add PADS to rows, from a table of one row: as a literal the key would be visible in every plan, and so in Spark's
    UI and event log.
    """
    secret = key.encode()
    block = (hashlib.sha256(secret).digest() if len(secret) > _BLOCK else secret).ljust(_BLOCK, b"\0")
    halves = [bytes(byte ^ pad for byte in block) for pad in (0x36, 0x5C)]
    spark = rows.sparkSession
    context: Any = spark.sparkContext
    jvm = gateway.of(spark)
    cells = context._gateway.new_array(jvm.java.lang.Object, len(halves))  # noqa: SLF001 - a relation of the plan itself
    cells[0], cells[1] = halves
    schema = StructType([StructField(name, BinaryType(), nullable=False) for name in PADS])
    java: Any = spark._jsparkSession  # noqa: SLF001
    listed = jvm.java.util.Collections.singletonList(jvm.org.apache.spark.sql.RowFactory.create(cells))
    return rows.crossJoin(
        F.broadcast(DataFrame(java.createDataFrame(listed, java.parseDataType(schema.json())), spark))
    )


def hash_value(value: Column, kind: str) -> Column:
    """The hash of a value of a Spark type, in rows with PADS."""
    inner = F.sha2(F.concat(F.col(PADS[0]), hash_input(value, kind).cast("binary")), 256)
    return F.sha2(F.concat(F.col(PADS[1]), F.unhex(inner)), 256)


def hash_input(value: Column, kind: str) -> Column:
    """The text or bytes of a value to hash."""
    if kind.startswith(_NESTED):
        return F.to_json(value)
    if kind.startswith(_FRACTIONS):
        # a wider binary type has other digits
        return _digits(value.cast("string").cast("double") if kind == "float" else value)
    return value if kind in ("string", "binary") else value.cast("string")


def digest(key: str, text: str) -> str:
    """The hash of one text, as :func:`hash_value` makes it."""
    return hmac.new(key.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _digits(number: Column) -> Column:
    """The digits of a number; Spark's own text of a DOUBLE or DECIMAL may have an exponent."""
    text = number.cast("string")
    plain = F.call_function("format_number", number, F.lit(_DIGITS))
    return F.when(number == 0, "0").when(text.isin(*_NO_NUMBERS), text).otherwise(plain)
