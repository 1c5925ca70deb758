"""Tables of a lake as a catalog meets them, without a session."""

from __future__ import annotations

from pyspark.sql import types as T

from replicator.catalog.entries import LakeTable
from replicator.spec import TableDetail

DELTA, HUDI = TableDetail("delta", 3), TableDetail("hudi", 9)

KINDS: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "DECIMAL": T.DecimalType(10, 2),
    "STRING": T.StringType(),
    "BINARY": T.BinaryType(),
    "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampType(),
    "TIMESTAMP_NTZ": T.TimestampNTZType(),
}
"""The types of Spark's DDL that silver's columns are made of."""

_SYSTEM = (
    ("_seq", T.StringType()),
    ("_deleted", T.BooleanType()),
    ("_column_seq", T.MapType(T.StringType(), T.StringType())),
    ("_source_ts_ms", T.LongType()),
)


def schema(**columns: str) -> T.StructType:
    """Columns by name and type: ``id="INT"``."""
    return T.StructType([T.StructField(name, KINDS[kind]) for name, kind in columns.items()])


def silver(kept: TableDetail = DELTA, name: str = "orders", **columns: str) -> LakeTable:
    """A table of silver with these columns and the system's."""
    title = "silver/shop/sales.orders"
    ours = [T.StructField(each, kind) for each, kind in _SYSTEM]
    every = T.StructType([*schema(**columns), *ours])
    return LakeTable(name, title, f"s3a://bucket/lake/{title}", every, kept)
