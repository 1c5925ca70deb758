"""Records from Kafka, and the facts about topics that ``status`` and the start-up checks need.

The settings that promise A rests on are fixed here and cannot be switched off (reliability.md section 9).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import gateway
from replicator.errors import Unreachable

_PINNED = {
    "startingOffsets": "earliest",
    "failOnDataLoss": "true",
    "includeHeaders": "true",
    "kafka.isolation.level": "read_committed",
}
_PATIENCE = {"default.api.timeout.ms": "15000", "request.timeout.ms": "15000"}


@dataclass(frozen=True)
class KafkaSource:
    """All topics whose name matches ``topics`` (a Java regex) on one cluster.

    ``options`` are client settings without the ``kafka.`` prefix (security and the like); ``max_offsets`` bounds a
    batch, None does not.
    """

    bootstrap_servers: str
    topics: str
    options: Mapping[str, str] = field(default_factory=dict)
    max_offsets: int | None = None

    def read(self, spark: SparkSession) -> DataFrame:
        """A stream with the columns of ``Source.read``."""
        client = {f"kafka.{name}": value for name, value in self.options.items()}
        limit = {} if self.max_offsets is None else {"maxOffsetsPerTrigger": str(self.max_offsets)}
        reader = spark.readStream.format("kafka").options(**client, **limit, **_PINNED)
        stream = reader.option("kafka.bootstrap.servers", self.bootstrap_servers).option(
            "subscribePattern", self.topics
        )
        return stream.load().select(
            "topic",
            "partition",
            "offset",
            "timestamp",
            "key",
            "value",
            F.coalesce("headers", F.array().cast("array<struct<key:string,value:binary>>")).alias("headers"),
        )

    def topic_ids(self, spark: SparkSession) -> Mapping[str, str]:
        """Kafka's id of each matching topic."""
        with self._admin(spark) as admin:
            return {name: str(described.topicId()) for name, described in self._describe(spark, admin).items()}

    def end_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """The offset after the last record, per (topic, partition)."""
        jvm = gateway.of(spark)  # its Kafka client is the one we have
        with self._admin(spark) as admin:
            wanted = jvm.java.util.HashMap()
            latest = jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
            for name, described in self._describe(spark, admin).items():
                for partition in described.partitions():
                    wanted.put(jvm.org.apache.kafka.common.TopicPartition(name, partition.partition()), latest)
            ends = admin.listOffsets(wanted).all().get()
            return {(place.topic(), place.partition()): ends[place].offset() for place in ends}

    def _describe(self, spark: SparkSession, admin: Any) -> dict[str, Any]:
        jvm = gateway.of(spark)
        pattern = re.compile(self.topics)
        matching = jvm.java.util.ArrayList()
        for name in admin.listTopics().names().get():
            if pattern.fullmatch(name):
                matching.add(name)
        described = admin.describeTopics(matching).allTopicNames().get()
        return {name: described[name] for name in described}

    @contextmanager
    def _admin(self, spark: SparkSession) -> Iterator[Any]:
        jvm = gateway.of(spark)
        settings = jvm.java.util.Properties()
        for name, value in {**_PATIENCE, **self.options, "bootstrap.servers": self.bootstrap_servers}.items():
            settings.put(name, value)
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            yield admin
        except Py4JJavaError as error:
            raise Unreachable(
                "Kafka does not answer",
                where=self.bootstrap_servers,
                mend="Check that the broker runs and `bootstrap_servers` is right, then run again.",
            ) from error
        finally:
            admin.close(jvm.java.time.Duration.ofSeconds(1))
