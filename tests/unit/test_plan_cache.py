"""Ways from rows to rows that Spark analyses once (decision 0080)."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from replicator.jvm import plan_cache
from tests.builders import made

pytestmark = pytest.mark.spark

COLUMNS = "Id INT, id INT, `a.b` STRING, at TIMESTAMP"


class Way:
    """Numbers rows, and says how often it was built."""

    def __init__(self) -> None:
        self.built = 0

    def of(self, rows: DataFrame, step: int) -> DataFrame:
        self.built += 1
        ranked = rows.withColumn("rank", F.row_number().over(Window.partitionBy("Id").orderBy("id")))
        return ranked.where(F.col("rank") <= 2).select(
            "*", (F.col("id") + step).alias("next"), F.to_json(F.struct("at"))
        )


def some(session: SparkSession, *ids: int) -> DataFrame:
    return made(session, [(each % 3, each, f"t{each}", None) for each in ids], COLUMNS)


def same(one: DataFrame, other: DataFrame) -> bool:
    return one.schema == other.schema and sorted(map(str, one.collect())) == sorted(map(str, other.collect()))


def test_any_rows_become_what_the_way_makes_of_them(exact: SparkSession) -> None:
    """Also behind filters and from elsewhere than the first; names differ by case, and have dots."""
    way = Way()
    for rows in (some(exact, 1, 2, 3, 4, 7), some(exact, 9).where("id > 9"), some(exact, *range(40)).where("Id = 1")):
        assert same(plan_cache.apply(rows, way.of, 5), Way().of(rows, 5))
    assert way.built == 1


def test_other_columns_values_or_settings_are_another_way(exact: SparkSession) -> None:
    way, rows = Way(), some(exact, 1, 2)
    plan_cache.apply(rows, way.of, 1)
    plan_cache.apply(rows, way.of, 2)
    assert way.built == 2
    wider = rows.withColumn("more", F.lit(1))
    assert plan_cache.apply(wider, way.of, 1).columns == Way().of(wider, 1).columns
    assert plan_cache.apply(rows.withColumn("more", F.lit(None).cast("int")), way.of, 1).schema["more"].nullable
    assert way.built == 4
    zone = exact.conf.get("spark.sql.session.timeZone")
    try:
        exact.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        assert same(plan_cache.apply(rows, way.of, 1), Way().of(rows, 1))
        assert way.built == 5
    finally:
        exact.conf.set("spark.sql.session.timeZone", zone)  # type: ignore[arg-type] # it has one


def test_what_was_made_of_two_can_be_joined_and_put_together(exact: SparkSession) -> None:
    """Both have their columns by the same ids, as a table that is joined with itself has."""
    way = Way()
    one, other = plan_cache.apply(some(exact, 1, 2), way.of, 1), plan_cache.apply(some(exact, 2, 3), way.of, 1)
    assert [row["id"] for row in one.join(other, ["Id", "id"]).collect()] == [2]
    assert sorted(row["id"] for row in one.unionByName(other).collect()) == [1, 2, 2, 3]
    left, right = one.alias("l").localCheckpoint(), other.alias("r").localCheckpoint()
    pairs = left.alias("l").join(right.alias("r"), F.col("l.id") < F.col("r.id")).select("l.id", "r.next").collect()
    assert sorted(map(tuple, pairs)) == [(1, 3), (1, 4), (2, 4)]
    with pytest.raises(AnalysisException, match="ambiguous"):
        one.join(other, one["id"] == other["next"])


def test_what_was_made_leaves_nothing_behind(exact: SparkSession) -> None:
    """Spark notes at a plan which datasets it is of: of each batch there is one, and a process may live for months."""
    way = Way()
    tag = exact.sparkContext._jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag("dataset_id")
    every = [plan_cache.apply(some(exact, each), way.of, 1) for each in range(3)]
    noted = [rows._jdf.queryExecution().analyzed().getTagValue(tag).get().size() for rows in every]
    assert noted == [1, 1, 1]


def test_a_way_that_joins_is_refused(exact: SparkSession) -> None:
    def joined(rows: DataFrame) -> DataFrame:
        return rows.unionByName(rows)

    with pytest.raises(ValueError, match="several inputs"):
        plan_cache.apply(some(exact, 1), joined)
