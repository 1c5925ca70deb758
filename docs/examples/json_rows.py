"""A topic of JSON texts, asked with SQL and with functions of one's own.

    spark-submit docs/examples/json_rows.py FOLDER

reads JSON lines ``{"id": 1, "data": "{...}"}`` that appear in FOLDER, and prints how many there are of each country.
Every
function takes a stream or a table; ``spark.readStream.format("kafka")`` in place of ``rows`` reads a topic.
"""

from __future__ import annotations

import sys

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

ROWS = "id INT, data STRING"
DATA = "name STRING, tel BIGINT, country STRING, addr STRUCT<country: STRING, city: STRING>"


def rows(spark: SparkSession, folder: str) -> DataFrame:
    """What comes into a folder: ROWS."""
    return spark.readStream.schema(ROWS).json(folder)


def parsed(texts: DataFrame) -> DataFrame:
    """The fields of the JSON text as columns: ``id, name, tel, country, city``."""
    data = F.from_json("data", DATA)
    return texts.select("id", data.alias("d")).select(
        "id", "d.name", "d.tel", F.coalesce("d.addr.country", "d.country").alias("country"), "d.addr.city"
    )


def contacts(texts: DataFrame) -> DataFrame:
    """Extracted, dropped, renamed, replaced: ``id`` as ``id_name``, ``telephone``, and no JSON any more."""
    found = parsed(texts).withColumn("id", F.concat_ws("_", "id", "name"))
    return found.withColumnRenamed("tel", "telephone").drop("city")


def but(texts: DataFrame, left_out: int) -> DataFrame:
    """All rows but one."""
    return texts.where(F.col("id") != left_out)


def countries(texts: DataFrame) -> DataFrame:
    """Each country once. The stream remembers those that it has seen."""
    return parsed(texts).select("country").distinct()


def by_country(texts: DataFrame) -> DataFrame:
    """How many rows, and the greatest telephone number."""
    return parsed(texts).groupBy("country").agg(F.count("*").alias("people"), F.max("tel").alias("greatest"))


def with_ages(texts: DataFrame, ages: DataFrame) -> DataFrame:
    """Joined with a table of ``id, age``."""
    return parsed(texts).join(ages, "id")


@F.udf("array<string>")
def pieces(name: str) -> list[str]:
    """A function of one's own that makes several rows of one."""
    return name.split("i")


def split_names(texts: DataFrame) -> DataFrame:
    """A row per piece of the name."""
    return parsed(texts).select("id", F.explode(pieces("name")).alias("piece"))


def folded(values: Column) -> Column:
    """An aggregate of one's own: how many values, and their sum."""
    nothing = F.struct(F.lit(0).alias("count"), F.lit(0).cast("bigint").alias("sum"))
    add = lambda so_far, value: F.struct(  # noqa: E731 - Spark takes a function of columns
        (so_far["count"] + 1).alias("count"), (so_far["sum"] + value).alias("sum")
    )
    return F.aggregate(F.collect_list(values), nothing, add)


def own_aggregate(texts: DataFrame) -> DataFrame:
    """Per country what :func:`folded` makes of the telephone numbers."""
    return (
        parsed(texts).groupBy("country").agg(folded(F.col("tel")).alias("of")).select("country", "of.count", "of.sum")
    )


def greatest_two(texts: DataFrame) -> DataFrame:
    """The two greatest telephone numbers per country, greatest first."""
    every = F.sort_array(F.collect_list("tel"), asc=False)
    return parsed(texts).groupBy("country").agg(F.slice(every, 1, 2).alias("greatest"))


def main(folder: str) -> None:
    """Print how many there are of each country, for what is in the folder now."""
    spark = SparkSession.builder.getOrCreate()
    counted = by_country(rows(spark, folder)).writeStream.format("console").outputMode("complete")
    counted.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
