"""Functions as users write them for ``transform``, good ones and bad ones."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def tidy(rows: DataFrame) -> DataFrame:
    """Names without blanks around them, and their initial."""
    return rows.withColumn("name", F.trim("name")).withColumn("initial", F.substring(F.trim("name"), 1, 1))


def fewer(rows: DataFrame) -> DataFrame:
    """Leaves rows out."""
    return rows.where("id > 1")


def ranked(rows: DataFrame) -> DataFrame:
    """Looks at other rows."""
    return rows.withColumn("rank", F.row_number().over(Window.orderBy("id")))


def moody(rows: DataFrame) -> DataFrame:
    """Is another one each time."""
    return rows.withColumn("luck", F.rand())


def dated(rows: DataFrame) -> DataFrame:
    """Depends on when it runs."""
    return rows.withColumn("seen", F.current_timestamp())


def other_key(rows: DataFrame) -> DataFrame:
    """Changes the key."""
    return rows.withColumn("id", F.col("id") + 1)


def forgetful(rows: DataFrame) -> DataFrame:
    """Loses the order."""
    return rows.select("id", "name")


def broken(rows: DataFrame) -> DataFrame:
    """Does not work at all."""
    raise LookupError(f"{len(rows.columns)} columns are too many")
