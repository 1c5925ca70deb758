"""Data files of a Delta table read as what they are: rows.

Delta plans a Spark job for every table that a query reads, to find the files that it needs. For small tables that costs
more than the query (docs/decisions/0009); which files there are is known from the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.jvm import gateway

MAX_DIRECT_FILES = 32
"""Beyond so many files Delta knows better which of them a query needs, and Spark lists them by a job."""

_PLAIN_FEATURES = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Reader features that leave a file without deletion vector what it is: the rows, under the columns' names."""

_PATTERN = re.compile(r"[{}\[\]*?\\]")


def read(spark: SparkSession, location: str, files: Sequence[str], schema: StructType) -> DataFrame:
    """Rows of files by their paths as they are: no character of a path is a pattern."""
    paths = [_PATTERN.sub(r"\\\g<0>", file) for file in files]
    return spark.read.schema(schema).option("basePath", location).parquet(*paths)


def read_table(spark: SparkSession, location: str, snapshot: Any, files: Sequence[str], *, parted: bool) -> DataFrame:
    """The rows of files that alone are the table. Spark puts the columns of partitions behind all others, without what
    is noted about them, such as their place in the key.
    """
    columns = schema(snapshot)
    rows = read(spark, location, files, columns)
    if not parted:
        return rows
    return rows.select(
        *[F.col(names.quote_spark(each.name)).alias(each.name, metadata=each.metadata) for each in columns]
    )


def schema(snapshot: Any) -> StructType:
    """The columns with what is noted about them, from Delta's snapshot object."""
    return _parsed(snapshot.schema().json())


def is_plain_parquet(snapshot: Any) -> bool:
    """Whether the table's protocol leaves files without deletion vectors what they look like."""
    protocol = snapshot.protocol()
    if int(protocol.minReaderVersion()) == 1:
        return True
    return protocol.readerFeatures().isDefined() and features(snapshot) <= _PLAIN_FEATURES


def features(snapshot: Any) -> set[str]:
    """The reader features that the table's protocol names; those that came with a version are not named."""
    told = snapshot.protocol().readerFeatures()
    return {str(name) for name in gateway.iterate(told.get())} if told.isDefined() else set()


@cache
def _parsed(told: str) -> StructType:
    return StructType.fromJson(json.loads(told))
