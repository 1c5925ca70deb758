"""How records reach bronze: files that stand for Kafka where no broker is needed, a broker, and objects."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.protocols import StreamState
from tests.torture.origin import Sent

_RECORD = "topic STRING, offset BIGINT, key STRING, value STRING"


@dataclass(frozen=True)
class FileStream:
    """``Source`` over a folder of JSON lines that Spark streams file by file: its checkpoint is Kafka's, offsets and
    commits alike.
    """

    folder: Path
    topics: Sequence[str]

    def read(self, spark: SparkSession) -> DataFrame:
        """Kafka's columns, a file per batch."""
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(self.folder))
        record = lines.select(F.from_json("value", _RECORD).alias("r"))
        return record.select(
            "r.topic",
            F.lit(0).alias("partition"),
            "r.offset",
            F.lit(None).cast("timestamp").alias("timestamp"),
            F.col("r.key").cast("binary").alias("key"),
            F.col("r.value").cast("binary").alias("value"),
            F.array().cast("array<struct<key:string,value:binary>>").alias("headers"),
        )

    def topic_ids(self, _: SparkSession) -> Mapping[str, str]:
        """An id per topic, always the same."""
        return {topic: f"id of {topic}" for topic in self.topics}

    def resume(self, spark: SparkSession, checkpoint: str, held: StreamState) -> None:
        """All topics there are, always."""

    def refuse_lost(self, spark: SparkSession, checkpoint: str, held: StreamState) -> None:
        """Files stay."""

    def end_offsets(self, _: SparkSession) -> Mapping[tuple[str, int], int]:
        """Nobody asks."""
        return {}

    def first_offsets(self, _: SparkSession) -> Mapping[tuple[str, int], int]:
        """Nobody asks."""
        return {}

    def put(self, records: Sequence[Sent]) -> None:
        """Two files, so that two batches come of them."""
        half = len(records) // 2
        for part in (records[:half], records[half:]):
            name = f"{len(list(self.folder.glob('*.jsonl'))):06}.jsonl"
            _appear(self.folder / name, [json.dumps(asdict(each)) for each in part])


def to_kafka(servers: str, records: Sequence[Sent]) -> None:
    """Records into their topics, one partition each."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for each in records:
        producer.produce(each.topic, each.value.encode(), None if each.key is None else each.key.encode())
    if producer.flush(60):
        raise TimeoutError("Kafka did not take all records")


def to_objects(folder: Path, records: Sequence[Sent]) -> None:
    """One object as a sink names it, per topic."""
    for topic in sorted({each.topic for each in records}):
        mine = [each for each in records if each.topic == topic]
        _appear(folder / f"{topic}(0_{mine[-1].offset}).json", [each.value for each in mine])


def _appear(file: Path, lines: Sequence[str]) -> None:
    """At once: a reader sees all of a file or nothing."""
    hidden = file.with_name(f"_{file.name}")
    hidden.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.replace(hidden, file)
