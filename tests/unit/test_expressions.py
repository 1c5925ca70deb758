"""Expressions that are built once: the same ones are, and nothing else is taken for the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.jvm import expressions, gateway
from replicator.stages.table import snapshots
from replicator.stages.tick import transaction_cut
from tests.builders import made

pytestmark = pytest.mark.spark


def java(column: Column) -> Any:
    """What stands for the column in the JVM."""
    return column._jc


def test_an_expression_of_the_same_parts_is_built_once(spark: SparkSession) -> None:
    """Functions, operators, casts, sequences, and what is made of them."""

    def built() -> Column:
        name = F.coalesce(F.col("a").cast("string"), F.lit("x"))
        return F.when((name == "y") & F.col("b").isin(1, 2), expressions.struct({"name": name})).otherwise(F.lit(None))

    assert java(built()) is java(built())
    assert java(built()) is not java(F.col("a"))


def test_literals_of_other_types_or_scales_are_others(spark: SparkSession) -> None:
    """1, true, '1', 1.0 and 1.00 are equal to Python or look alike, and are five literals."""
    given = [1, True, "1", 1.0, Decimal("1.0"), Decimal("1.00"), -0.0, 0.0, date(2026, 1, 1), None]
    told = spark.range(1).select(*[F.lit(value).alias(f"c{at}") for at, value in enumerate(given * 2)])
    kinds = ["int", "boolean", "string", "double", "decimal(2,1)", "decimal(3,2)", "double", "double", "date", "void"]
    assert [kind for _, kind in told.dtypes] == kinds * 2
    row = [str(value) for value in told.collect()[0]]
    assert row == ["1", "True", "1", "1.0", "1.0", "1.00", "-0.0", "0.0", "2026-01-01", "None"] * 2


@pytest.mark.parametrize(
    "made",
    [
        lambda: F.col("a").alias("b"),
        lambda: F.struct(F.col("a").alias("b")),
        lambda: F.max("a"),
        lambda: F.expr("a AS b"),
        lambda: F.transform("a", lambda each: each + 1),
        F.rand,
    ],
    ids=["alias", "struct of an alias", "aggregate", "SQL", "lambda", "chance"],
)
def test_what_has_an_identity_of_its_own_is_built_each_time(spark: SparkSession, made: Callable[[], Column]) -> None:
    """Two columns of a plan with one id are one to Spark."""
    assert java(made()) is not java(made())


def test_a_column_that_is_made_of_itself_twice_is_computed_twice(spark: SparkSession) -> None:
    """The same words for two steps, and for both sides of a join."""

    def more(rows: DataFrame) -> DataFrame:
        return rows.select((F.col("id") + 1).alias("id"))

    twice = more(more(spark.range(3)))
    assert sorted(row["id"] for row in twice.collect()) == [2, 3, 4]
    left, right = more(spark.range(3)), more(spark.range(1, 3))
    both = left.alias("l").join(right.alias("r"), F.col("l.id") == F.col("r.id"))
    assert sorted(row[0] for row in both.collect()) == [2, 3]


def test_functions_of_options_are_told_apart_by_them(spark: SparkSession) -> None:
    """The options of ``from_json`` are a dict, which is the same by what it holds."""

    def parsed(**options: str) -> Column:
        return F.from_json(F.col("value"), "a INT", options)

    assert java(parsed(mode="FAILFAST")) is java(parsed(mode="FAILFAST"))
    assert java(parsed(mode="FAILFAST")) is not java(parsed(mode="PERMISSIVE"))


def test_a_struct_without_aliases_is_what_functions_make_with_them(spark: SparkSession) -> None:
    """Names, types, values, and whether there may be none."""
    rows = spark.createDataFrame([(1, None)], "a INT NOT NULL, `b.c` STRING")
    ours = expressions.struct({"x": F.col("a"), "b.c": F.col("`b.c`"), "it's": F.lit(2)})
    theirs = F.struct(F.col("a").alias("x"), F.col("`b.c`").alias("b.c"), F.lit(2).alias("it's"))
    assert rows.select(ours.alias("s")).schema == rows.select(theirs.alias("s")).schema
    assert rows.select(ours.alias("s")).collect() == rows.select(theirs.alias("s")).collect()


def test_no_more_are_kept_than_are_worth_it(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches have some that no other has: all are forgotten from time to time, and those in use still work."""
    monkeypatch.setattr(expressions, "_MOST", 3)
    kept = expressions.ExpressionCache()
    jvm = gateway.of(spark)
    first = kept.get_or_build(lambda: jvm.functions._java.col("id"), "functions", "col", "id")
    for at in range(10):
        kept.get_or_build(lambda at=at: jvm.functions._java.lit(at), "functions", "lit", at)
        assert len(kept._built) <= 3
    again = kept.get_or_build(lambda: jvm.functions._java.col("id"), "functions", "col", "id")
    assert again is not first
    assert first.toString() == again.toString() == "id"


def test_a_type_is_told_by_its_name_where_that_says_all(spark: SparkSession) -> None:
    """Types of parts keep what a name does not say, such as a field's quotes."""
    schema = spark.createDataFrame([], "a DECIMAL(9,2), b STRUCT<`x y`: INT>, c STRING, d TIMESTAMP_NTZ").schema
    told = [gateway.cast_type(field.dataType) for field in schema]
    assert told == ["decimal(9,2)", schema["b"].dataType, "string", "timestamp_ntz"]
    cast = spark.range(1).select(*[F.lit(None).cast(kind).alias(f.name) for f, kind in zip(schema, told, strict=True)])
    assert [f.dataType for f in cast.schema] == [f.dataType for f in schema]


def test_a_class_that_is_asked_for_with_every_read_is_looked_up_once(spark: SparkSession) -> None:
    """The JVM searches all JARs for such a name; pyspark makes objects of it and asks for its members as before."""
    jvm = gateway.of(spark)
    assert jvm.SparkSession is jvm.SparkSession
    assert jvm.SparkSession.getActiveSession is jvm.SparkSession.getActiveSession
    made = jvm.SparkSession(spark.sparkContext._jsc.sc(), jvm.java.util.HashMap())
    assert str(made.getClass().getSimpleName()) == "SparkSession"


def test_a_very_long_text_is_not_kept(spark: SparkSession) -> None:
    """Nor what is made of it: twenty thousand of them would be the driver's memory."""
    long, short = "x" * (16 << 10), "y" * 100
    assert java(F.coalesce(F.lit(short), F.col("a"))) is java(F.coalesce(F.lit(short), F.col("a")))
    assert java(F.coalesce(F.lit(long), F.col("a"))) is java(F.coalesce(F.lit(long), F.col("a")))
    assert java(F.lit(long + "x")) is not java(F.lit(long + "x"))
    assert java(F.coalesce(F.lit(long + "x"), F.col("a"))) is not java(F.coalesce(F.lit(long + "x"), F.col("a")))


def test_a_condition_over_thousands_of_columns_is_planned(spark: SparkSession) -> None:
    """One around the other they overran the stack of Spark's analysis, and its table stopped with it."""
    every = [F.col("id") == at for at in range(3_000)]
    told = spark.range(2).select(
        expressions.any_of(every).alias("some"),
        expressions.any_of(every[1:2_998]).alias("later"),
        expressions.any_of([]).alias("none"),
    )
    assert [tuple(row) for row in told.collect()] == [(True, False, False), (True, True, False)]


def test_places_of_a_source_with_thousands_of_partitions_are_planned(spark: SparkSession) -> None:
    """A cut between transactions, and a snapshot's ends, are conditions over all of them."""
    ends = {(f"s.d.t{at % 1_000}", at // 1_000): 5 for at in range(3_000)}
    rows = made(
        spark, [("s.d.t0", 0, 7), ("s.d.t999", 2, 4), ("s.d.other", 0, 9)], "topic STRING, partition INT, offset BIGINT"
    )
    assert [row.offset for row in rows.where(transaction_cut.at_or_after(ends)).collect()] == [7]
    whole = snapshots.FullSnapshot(0, {}, ends)
    assert [row.offset for row in rows.where(whole.is_before_end()).collect()] == [4]
