"""Direct reads of a Delta table's data files, without Delta's planning.

Delta runs a Spark job for every table that a query reads, to find the files that it needs. For small tables that costs
more than the query (docs/decisions/0009), and the log tells which files there are.
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
"""With more files than this, Delta's data skipping pays off, and Spark would list the files in a job."""

_PLAIN_FEATURES = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Reader features under which a file without a deletion vector still holds the rows as they are, under the columns'
names.
"""

_PATTERN = re.compile(r"[{}\[\]*?\\]")


def read(spark: SparkSession, location: str, files: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of files by their literal paths: glob characters are escaped."""
    paths = [_PATTERN.sub(r"\\\g<0>", file) for file in files]
    return spark.read.schema(schema).option("basePath", location).parquet(*paths)


def read_table(spark: SparkSession, location: str, snapshot: Any, files: Sequence[str], *, parted: bool) -> DataFrame:
    """The rows of all files of a table. Spark puts partition columns last and drops their metadata, such as their
    position in the key; both are restored.
    """
    columns = schema(snapshot)
    rows = read(spark, location, files, columns)
    if not parted:
        return rows
    return rows.select(
        *[F.col(names.quote_spark(each.name)).alias(each.name, metadata=each.metadata) for each in columns]
    )


def schema(snapshot: Any) -> StructType:
    """The columns with their metadata, from Delta's snapshot object."""
    return _parsed(snapshot.schema().json())


def is_plain_parquet(snapshot: Any) -> bool:
    """Whether the table's protocol lets files without deletion vectors be read as plain Parquet."""
    protocol = snapshot.protocol()
    if int(protocol.minReaderVersion()) == 1:
        return True
    return protocol.readerFeatures().isDefined() and features(snapshot) <= _PLAIN_FEATURES


def features(snapshot: Any) -> set[str]:
    """The reader features that the table's protocol lists; those implied by a protocol version are not listed."""
    listed = snapshot.protocol().readerFeatures()
    return {str(name) for name in gateway.iterate(listed.get())} if listed.isDefined() else set()


@cache
def _parsed(text: str) -> StructType:
    return StructType.fromJson(json.loads(text))
