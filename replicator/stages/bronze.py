"""Kafka records -> bronze rows, unparsed; and the ingestion of bounded sources such as files (promise A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.jvm import java_udfs
from replicator.lake import Lake
from replicator.protocols import Source, TableFormat
from replicator.spec import SourceSpec, Table
from replicator.stages.ingest import masking

PLACE = ["topic", "partition", "offset"]
_BAD = {"key": "_bad_key", "value": "_bad_value"}
"""Flag columns: whether key and value are invalid UTF-8."""


@dataclass(frozen=True)
class Ingestion:
    """Everything that ingesting one source needs. ``trigger_seconds`` is for continuous runs; ``spec`` says which
    columns bronze must not store; ``batch_records`` limits what the reader returns at a time (None: no limit).
    """

    source: str
    reader: Source
    format: TableFormat
    lake: Lake
    trigger_seconds: float = 1.0
    spec: SourceSpec | None = field(default=None, compare=False)
    batch_records: int | None = None

    @property
    def table(self) -> Table:
        """The bronze table."""
        return self.lake.bronze(self.source)

    def masked(self, records: DataFrame) -> DataFrame:
        """The records with columns masked that bronze must not store."""
        return records if self.spec is None else masking.mask_records(records, self.spec)


def rows(records: DataFrame, topic_ids: Mapping[str, str]) -> DataFrame:
    """Kafka records -> bronze rows (architecture section 4): text where the bytes are UTF-8, else ``undecodable``."""
    is_text = java_udfs.create(records.sparkSession, "replicator.stages.Utf8", "boolean")
    # each flag is used three times per record; as columns of their own they are computed once
    flagged = records.withColumns(
        {name: ~F.coalesce(is_text(F.col(column)), F.lit(True)) for column, name in _BAD.items()}
    )
    key, value, bad_key, bad_value = F.col("key"), F.col("value"), F.col(_BAD["key"]), F.col(_BAD["value"])
    ids = F.create_map(*[F.lit(part) for pair in topic_ids.items() for part in pair]) if topic_ids else None
    raw = F.struct(F.when(bad_key, key).alias("key"), F.when(bad_value, value).alias("value"))
    return flagged.select(
        "topic",
        (F.lit(None).cast("string") if ids is None else ids[F.col("topic")]).alias("topic_id"),
        "partition",
        "offset",
        "timestamp",
        F.when(~bad_key, key.cast("string")).alias("key"),
        F.when(~bad_value, value.cast("string")).alias("value"),
        "headers",
        F.when(bad_key | bad_value, raw).alias("undecodable"),
        F.current_timestamp().alias("ingested_at"),
    )


def sources_of(records: DataFrame) -> dict[str, str]:
    """The source of each topic: ``source.name`` if some record has it, else the first part of the topic's name."""
    named = F.regexp_replace("topic", "^__debezium-heartbeat[.]", "")
    stated = F.coalesce(
        F.get_json_object("value", "$.payload.source.name"), F.get_json_object("value", "$.source.name")
    )
    by_topic = rows(records, {}).groupBy("topic").agg(F.first(stated, ignorenulls=True).alias("source"))
    found = by_topic.select("topic", F.coalesce("source", F.split(named, r"\.")[0]).alias("source"))
    return {row["topic"]: row["source"] for row in found.collect()}


def ingest_files(spark: SparkSession, ingestion: Ingestion, topics: Sequence[str]) -> int:
    """Ingest some topics of a bounded reader, skipping records that bronze already has (architecture 9.6).

    Returns the rows added.
    """
    read = ingestion.reader.read(spark).where(F.col("topic").isin(*topics))
    records = rows(ingestion.masked(read), {}).dropDuplicates(PLACE)
    if ingestion.format.version(spark, ingestion.table) is not None:
        present = ingestion.format.read(spark, ingestion.table).select(*PLACE)
        records = records.join(present, PLACE, how="left_anti")
    fresh = records.repartition("topic").sortWithinPartitions(*PLACE)
    if fresh.isEmpty():
        return 0
    return ingestion.format.append(fresh, ingestion.table, None).inserted


def lost_commit(spark: SparkSession, ingestion: Ingestion) -> tuple[str, ...]:
    """A warning if bronze's last commit file is empty, as after a power cut on a local disk: for recorded files nothing
    else shows which ones were ingested. Streams detect it by their checkpoint (``stages/ingest/bronze_state.py``).
    """
    version = ingestion.format.version(spark, ingestion.table)
    if version is None or ingestion.format.commit_id(spark, ingestion.table, version) is not None:
        return ()
    message = f"commit {version:020d}.json of bronze is empty, possibly after a power failure: its records are lost."
    return (f"{message} Load the last files again: records already in bronze are skipped",)
