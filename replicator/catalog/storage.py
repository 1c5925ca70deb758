"""How Hive's metastore, and so Glue, describes the reading of a table's files."""

from __future__ import annotations

import json
from dataclasses import dataclass

from replicator.catalog.entries import Entry, Kind

_PARQUET_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_PARQUET_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_HUDI_INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_HUDI_REALTIME_INPUT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
_SCHEMA_LENGTH = 4000
"""The length of the parts into which Spark splits a schema: Hive's own metastores hold no longer property."""


@dataclass(frozen=True)
class Storage:
    """Hive's classes for a table's files; ``serde_parameters`` and ``parameters`` are the settings that
    engines read.
    """

    input_format: str
    output_format: str
    serde: str
    serde_parameters: dict[str, str]
    parameters: dict[str, str]


def storage(entry: Entry) -> Storage:
    """Return the storage of a table. Athena recognizes a table in Delta by ``table_type`` and reads the rest from its
    log; one in Hudi by its input format. Spark uses ``spark.sql.sources.*``.
    """
    if entry.kind is Kind.delta:
        return Storage(
            "org.apache.hadoop.mapred.SequenceFileInputFormat",
            "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
            "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
            {"serialization.format": "1", "path": entry.location},
            {"EXTERNAL": "TRUE", "table_type": "DELTA", "spark.sql.sources.provider": "delta"},
        )
    is_compacted = entry.kind is Kind.hudi_compacted
    return Storage(
        _HUDI_REALTIME_INPUT if entry.kind is Kind.hudi_snapshot else _HUDI_INPUT,
        _PARQUET_OUTPUT,
        _PARQUET_SERDE,
        {
            "serialization.format": "1",
            "path": entry.location,
            "hoodie.query.as.ro.table": str(is_compacted).lower(),
        },
        {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "hudi", **_spark_schema(entry)},
    )


def _spark_schema(entry: Entry) -> dict[str, str]:
    starts = range(0, len(entry.schema), _SCHEMA_LENGTH)
    parts = [entry.schema[at : at + _SCHEMA_LENGTH] for at in starts]
    properties = {"spark.sql.sources.schema.numParts": str(len(parts))}
    properties |= {f"spark.sql.sources.schema.part.{number}": part for number, part in enumerate(parts)}
    if entry.partition_keys:
        properties["spark.sql.sources.schema.numPartCols"] = str(len(entry.partition_keys))
    fields = json.loads(entry.schema)["fields"][-len(entry.partition_keys) :] if entry.partition_keys else []
    return properties | {f"spark.sql.sources.schema.partCol.{n}": each["name"] for n, each in enumerate(fields)}
