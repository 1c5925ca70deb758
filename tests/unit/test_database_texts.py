"""Which values of a database can be compared with which of Spark's, and which are listed instead of guessed."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from replicator.database_snapshots import DatabaseColumn
from replicator.databases import mysql, postgresql
from replicator.spec import Login
from replicator.transforms.comparison import canonical

TEXT, LONG = T.StringType(), T.LongType()
MONEY = T.DecimalType(19, 2)
POSTGRES = [
    ("numeric(10,2)", T.DecimalType(10, 2), "{}::text"),
    ("money", MONEY, "{}::numeric::text"),
    ("timestamp(3) without time zone", T.TimestampNTZType(), "{}::text"),
    ("timestamp with time zone", T.TimestampType(), "({} AT TIME ZONE 'UTC')::text"),
    ("public.citext", TEXT, "CASE WHEN {} IS NOT NULL THEN format('%s', {}) END"),
    ("ext.hstore", T.MapType(TEXT, TEXT), "{}::json::text"),
    ("integer[]", T.ArrayType(T.IntegerType()), "to_json({})::text"),
    ("numeric(10,2)[]", T.ArrayType(T.DecimalType(10, 2)), "to_json({})::text"),
    ("bit(1)", T.BooleanType(), "{}::text"),
    ("double precision", T.FloatType(), None),
    ("interval", TEXT, None),
    ("interval", LONG, None),
    ("time with time zone", TEXT, None),
    ("time without time zone", TEXT, None),
    ("numeric[]", T.ArrayType(TEXT), None),
    ("bytea[]", T.ArrayType(T.BinaryType()), None),
    ("bit(8)", T.BooleanType(), None),
    ("bit(8)", LONG, "{}::text"),
    ("bit varying(8)", LONG, "{}::text"),
    ("bit(64)", T.BinaryType(), None),
    ("public.geometry(Point,4326)", T.StructType(), None),
    ("date", TEXT, None),
]
MYSQL = [
    ("decimal(10,2)", T.DecimalType(10, 2), "CAST({} AS CHAR)"),
    ("tinyint(1)", T.BooleanType(), "CAST({} AS CHAR)"),
    ("bigint(20) unsigned", LONG, "CAST({} AS CHAR)"),
    ("float", T.FloatType(), "CAST({} + 0e0 AS CHAR)"),
    ("varchar(40)", TEXT, "CONVERT({} USING utf8mb4)"),
    ("enum('a','b c')", TEXT, "CONVERT({} USING utf8mb4)"),
    ("varbinary(16)", T.BinaryType(), "HEX({})"),
    ("bit(5)", LONG, "CAST(CAST({} AS UNSIGNED) AS CHAR)"),
    ("set('x','y')", T.ArrayType(TEXT), "CONVERT({} USING utf8mb4)"),
    ("time(6)", LONG, "CAST({} AS CHAR)"),
    ("float", T.DoubleType(), None),
    ("enum('a,b','c')", TEXT, None),
    ("datetime(6)", T.TimestampType(), None),
    ("point", T.StructType(), None),
    ("date", TEXT, None),
    ("date", T.DateType(), "IF(LEFT(CAST({} AS CHAR), 10) = '0000-00-00', NULL, CAST({} AS CHAR))"),
]


@pytest.mark.parametrize(("type_", "kind", "sql"), POSTGRES)
def test_postgres_is_asked_for_what_silver_holds(type_: str, kind: T.DataType, sql: str | None) -> None:
    """types.md Y6: what has several texts is nobody's to compare."""
    told = postgresql.codec_for(type_, kind)
    assert (None if told is None else told.sql) == sql


@pytest.mark.parametrize(("type_", "kind", "sql"), MYSQL)
def test_mysql_is_asked_for_what_silver_holds(type_: str, kind: T.DataType, sql: str | None) -> None:
    """The same for MariaDB and MySQL."""
    told = mysql.codec_for(DatabaseColumn("c", type_), kind)
    assert (None if told is None else told.sql) == sql


def test_texts_of_numbers_and_of_json_are_compared_by_their_value() -> None:
    """A decimal of any length and JSON are texts in silver."""
    exact, document = postgresql.codec_for("numeric", TEXT), postgresql.codec_for("jsonb", TEXT)
    assert exact is not None
    assert document is not None
    assert (exact.meaning, document.meaning) == (canonical.NUMBER, canonical.JSON)
    assert postgresql.codec_for("text", TEXT).meaning == ""


def test_no_password_is_in_the_text_of_a_database() -> None:
    """What is printed or logged by mistake."""
    login = Login("mariadb", "h", 1, "u", "canary", sslmode="disable")
    assert "canary" not in repr(login) + repr(mysql.source(login))
