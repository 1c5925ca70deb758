"""Spark's types in Hive's words and in Trino's; what Athena cannot read is refused by name."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import types as T

from replicator.catalog.columns import columns, hive_type, trino_type
from replicator.debezium import type_names
from replicator.errors import CatalogRefused
from tests.catalogued import KINDS

TYPES = [
    (T.BooleanType(), "boolean", "boolean"),
    (T.ByteType(), "tinyint", "tinyint"),
    (T.ShortType(), "smallint", "smallint"),
    (T.IntegerType(), "int", "integer"),
    (T.LongType(), "bigint", "bigint"),
    (T.FloatType(), "float", "real"),
    (T.DoubleType(), "double", "double"),
    (T.DecimalType(38, 9), "decimal(38,9)", "decimal(38,9)"),
    (T.StringType(), "string", "varchar"),
    (T.BinaryType(), "binary", "varbinary"),
    (T.DateType(), "date", "date"),
    (T.TimestampType(), "timestamp", "timestamp(3)"),
    (T.TimestampNTZType(), "timestamp", "timestamp(3)"),
    (T.ArrayType(T.StringType()), "array<string>", "array(varchar)"),
    (T.MapType(T.StringType(), T.LongType()), "map<string,bigint>", "map(varchar, bigint)"),
    (
        T.StructType([T.StructField("X", T.DoubleType()), T.StructField("at", T.ArrayType(T.TimestampType()))]),
        "struct<x:double,at:array<timestamp>>",
        'row("x" double, "at" array(timestamp(3)))',
    ),
]


@pytest.mark.parametrize(("kind", "hive", "trino"), TYPES, ids=[hive for _, hive, _ in TYPES])
def test_every_type_has_a_word_in_hive_and_in_trino(kind: T.DataType, hive: str, trino: str) -> None:
    """Glue holds Hive's, Athena's views Trino's."""
    assert (hive_type(kind), trino_type(kind)) == (hive, trino)


def test_every_type_of_silver_has_a_word_in_both() -> None:
    """Whatever Debezium's logical types become can be registered."""
    plain = {kind for kind in type_names.SIMPLE_TYPES.values() if "<" not in kind}
    assert {"STRING", "TIMESTAMP_NTZ", "BINARY"} < plain <= set(KINDS)
    assert set(map(type, KINDS.values())) <= {type(kind) for kind, _, _ in TYPES}


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (T.DayTimeIntervalType(), "Athena has no type for interval day to second, which column c has"),
        (T.NullType(), "Athena has no type for void"),
        (T.ArrayType(T.YearMonthIntervalType()), "Athena has no type for interval year to month"),
        (T.StructType([T.StructField("a b", T.LongType())]), "Athena cannot read a field named 'a b'"),
    ],
)
def test_what_athena_cannot_read_is_refused_by_name(kind: T.DataType, why: str) -> None:
    """Better than a table that answers every question with an error."""
    with pytest.raises(CatalogRefused, match=re.escape(why)):
        columns([T.StructField("c", kind)], {}, "gold/m")


def test_columns_that_only_case_tells_apart_are_refused() -> None:
    """Athena knows lower case only; a column that parts a table is one of its columns."""
    fields = [T.StructField("Id", T.LongType()), T.StructField("id", T.LongType())]
    with pytest.raises(CatalogRefused, match="'Id' and 'id'"):
        columns(fields, {}, "gold/m")


def test_a_column_is_explained_by_its_model_or_by_its_name_at_the_source() -> None:
    """A comment says what the name in lower case has lost; Glue keeps 255 characters of one line."""
    fields = [
        T.StructField("orderNumber", T.LongType(), metadata={"name": "orderNumber"}),
        T.StructField("a_x20_b", T.LongType(), metadata={"name": "a b"}),
        T.StructField("plain", T.LongType(), metadata={"name": "plain"}),
        T.StructField("told", T.LongType()),
    ]
    found = columns(fields, {"told": "two\n lines " + "x" * 300, "plain": ""}, "silver/t")
    assert [each.name for each in found] == ["ordernumber", "a_x20_b", "plain", "told"]
    assert [each.comment for each in found[:3]] == ["orderNumber at the source", "a b at the source", None]
    assert found[3].comment.startswith("two lines xxx")
    assert len(found[3].comment or "") == 255
