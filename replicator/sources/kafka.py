"""Records from Kafka, and the facts about topics that ``status`` and the start-up checks need.

The settings that promise A rests on are fixed here and cannot be switched off (reliability.md section 9).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import brokers
from replicator import checkpoint as checkpoints
from replicator.checkpoint import EndOffsets
from replicator.errors import OffsetsLost, TopicDeleted, TopicRecreated
from replicator.jvm import gateway
from replicator.offsets import by_topic
from replicator.protocols import StreamState

_PINNED = {
    "startingOffsets": "earliest",
    "failOnDataLoss": "true",
    "includeHeaders": "true",
    "kafka.isolation.level": "read_committed",
}
_DEFAULTS = {"fetch.max.wait.ms": "1"}
"""Defaults that a source's options may override. A batch reads existing records. To each answer that Spark gets, its
client adds a request for more, for which a broker waits half a second by default; a request for the end of the log
queues after it (decision 0075).
"""


@dataclass(frozen=True)
class KafkaSource:
    """All topics whose name matches ``topics`` (a Java regex) on one cluster.

    ``options`` are client settings without the ``kafka.`` prefix (security and the like); ``max_offsets`` limits the
    records of a batch, None does not.
    """

    bootstrap_servers: str
    topics: str
    options: Mapping[str, str] = field(default_factory=dict)
    max_offsets: int | None = None

    def read(self, spark: SparkSession) -> DataFrame:
        """Return a stream with the columns of ``Source.read``."""
        limit = {} if self.max_offsets is None else {"maxOffsetsPerTrigger": str(self.max_offsets)}
        reader = spark.readStream.format("kafka").options(**self._client(), **limit, **_PINNED)
        full_match = f"^(?:{self.topics})$"  # Spark searches for the expression anywhere in a name
        return _records(reader.option("subscribePattern", full_match).load())

    def bounded(self, spark: SparkSession) -> DataFrame:
        """Return the same columns as a bounded frame: the currently existing records, without those of open
        transactions; repeated reads return the same. Raises Unreachable if Kafka does not answer or has no such topic.
        """
        ends = by_topic(self._offsets(spark, "latest", "READ_COMMITTED"))
        if not ends:
            with self._admin(spark) as admin:
                known = admin.listTopics().names().get()
            raise brokers.missing_topic(re.sub(r"\\(.)", r"\1", self.topics), known, self.bootstrap_servers)
        reader = spark.read.format("kafka").options(**self._client(), **_PINNED)
        reader = reader.option("subscribe", ",".join(ends)).option("endingOffsets", json.dumps(ends))
        return _records(reader.load())

    def topic_ids(self, spark: SparkSession) -> Mapping[str, str | None]:
        """Return Kafka's id of each matching topic."""
        with self._admin(spark) as admin:
            return {name: brokers.topic_id(described) for name, described in self._describe(spark, admin).items()}

    def end_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """Return the offset after the last record, per (topic, partition)."""
        return self._offsets(spark, "latest")

    def first_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """Return the first offset that Kafka has, per (topic, partition)."""
        return self._offsets(spark, "earliest")

    def resume(self, spark: SparkSession, checkpoint: str, stream_state: StreamState) -> None:
        """Insert a batch without records if topics were added or have left. A planned batch that bronze does not have
        is planned again, also one over other topics than the batch before it: a run may have died while it inserted it.
        """
        batch = checkpoints.read_newest_batch(spark, checkpoint)
        if batch is None:
            checkpoints.discard_starting_offsets(spark, checkpoint)
            return
        topics = self.topic_ids(spark)
        removed = batch.ends.keys() - topics.keys()
        added = self._starts_of_new_topics(spark, sorted(topics.keys() - batch.ends.keys()), stream_state)
        self._refuse_deleted(topic for topic in removed if any(batch.ends[topic].values()))
        if not removed and not added and (batch.is_done or not checkpoints.changes_topics(spark, checkpoint, batch)):
            return
        if batch.is_done:
            remaining = {topic: ends for topic, ends in batch.ends.items() if topic not in removed}
            checkpoints.append_empty_batch(spark, checkpoint, batch, {**remaining, **added})
            return
        settle = checkpoints.mark_committed if stream_state.has(batch.number) else checkpoints.discard_plan
        settle(spark, checkpoint, batch)
        self.resume(spark, checkpoint, stream_state)

    def available_offsets(
        self, spark: SparkSession, stream_state: StreamState
    ) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Determined by Kafka's topic ids and its offsets."""
        topics = self.topic_ids(spark)
        self._refuse_deleted({topic for topic, _ in stream_state.ends()} - topics.keys())
        self._refuse_recreated(topics, stream_state)
        first, last = self._offsets(spark, "earliest"), self._offsets(spark, "latest")
        return {place: (first[place], last[place]) for place in sorted(first.keys() & last.keys())}

    def refuse_lost(self, spark: SparkSession, checkpoint: str, stream_state: StreamState) -> None:
        """Determined by the end offsets of the newest batch that is done. Deleted and recreated topics are reported
        first, since their offsets mean nothing.
        """
        ends, topics = checkpoints.read_committed_offsets(spark, checkpoint), self.topic_ids(spark)
        self._refuse_deleted(topic for topic, read in ends.items() if topic not in topics and any(read.values()))
        self._refuse_recreated({topic: topics[topic] for topic in ends.keys() & topics.keys()}, stream_state)
        first, last = self._offsets(spark, "earliest"), self._offsets(spark, "latest")
        for topic, partition in sorted(first.keys() & last.keys()):
            wanted = ends.get(topic, {}).get(str(partition))
            has = first[topic, partition], last[topic, partition]
            if wanted is not None and not has[0] <= wanted <= has[1]:
                raise OffsetsLost.next(topic, partition, wanted, has, self.bootstrap_servers)

    def _starts_of_new_topics(
        self, spark: SparkSession, topics: Sequence[str], stream_state: StreamState
    ) -> EndOffsets:
        """The starting offsets of topics that were not read before, or are read again; only of topics with a starting
        offset other than 0, where Spark begins by itself.
        """
        if not topics:
            return {}
        ends, found = stream_state.ends(topics), dict[tuple[str, int], int]()
        for (topic, partition), first in sorted(self._offsets(spark, "earliest").items()):
            if topic not in topics:
                continue
            read = ends.get((topic, partition), first)
            if first > read:
                raise OffsetsLost(
                    f"topic {topic} was not read for some time, and Kafka dropped its records {read} to {first - 1}",
                    where=self.bootstrap_servers,
                    fix=OffsetsLost.FIX,
                )
            found[topic, partition] = read
        return {topic: starts for topic, starts in by_topic(found).items() if any(starts.values())}

    def _refuse_recreated(self, topics: Mapping[str, str | None], stream_state: StreamState) -> None:
        known = stream_state.ids()
        for topic, identity in sorted(topics.items()):
            if identity is not None and known.get(topic, identity) != identity:
                raise TopicRecreated.of(topic, self.bootstrap_servers)

    def _refuse_deleted(self, left: Iterable[str]) -> None:
        """Raise TopicDeleted for a topic that matches, was read, and is no longer listed; one without records is not
        missed.
        """
        pattern = re.compile(self.topics)
        for topic in sorted(filter(pattern.fullmatch, left)):
            raise TopicDeleted(
                f"topic {topic} was deleted, or is hidden from this login: whether all of it was read is unknown",
                where=self.bootstrap_servers,
                fix="If it exists, let the login DESCRIBE it. To continue without it, `exclude` its table or narrow "
                "`topics`; its rows in silver are kept.",
            )

    def _offsets(
        self, spark: SparkSession, which: str, isolation: str = "READ_UNCOMMITTED"
    ) -> dict[tuple[str, int], int]:
        """The ``earliest`` or the ``latest`` offset of each partition; with READ_COMMITTED the latest is that before
        the first open transaction.
        """
        jvm = gateway.of(spark)  # it has the only Kafka client in use
        with self._admin(spark) as admin:
            wanted = jvm.java.util.HashMap()
            spec = getattr(jvm.org.apache.kafka.clients.admin.OffsetSpec, which)()
            for name, described in self._describe(spark, admin).items():
                for partition in described.partitions():
                    wanted.put(jvm.org.apache.kafka.common.TopicPartition(name, partition.partition()), spec)
            level = getattr(jvm.org.apache.kafka.common.IsolationLevel, isolation)
            request_options = jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
            found = admin.listOffsets(wanted, request_options).all().get()
            return {(place.topic(), place.partition()): found[place].offset() for place in found}

    def _client(self) -> dict[str, str]:
        """The client's settings as options of Spark."""
        return {f"kafka.{name}": value for name, value in {**_DEFAULTS, **self.options}.items()} | {
            "kafka.bootstrap.servers": self.bootstrap_servers
        }

    def _describe(self, spark: SparkSession, admin: Any) -> dict[str, Any]:
        jvm = gateway.of(spark)
        pattern = re.compile(self.topics)
        matching = jvm.java.util.ArrayList()
        for name in admin.listTopics().names().get():
            if pattern.fullmatch(name):
                matching.add(name)
        described = admin.describeTopics(matching).allTopicNames().get()
        return {name: described[name] for name in described}

    def _admin(self, spark: SparkSession) -> AbstractContextManager[Any]:
        return brokers.admin(gateway.of(spark), self.bootstrap_servers, self.options)


def _records(kafka: DataFrame) -> DataFrame:
    headers = F.coalesce("headers", F.array().cast("array<struct<key:string,value:binary>>")).alias("headers")
    return kafka.select("topic", "partition", "offset", "timestamp", "key", "value", headers)
