"""Records of one topic, read with the JVM's own Kafka client: without a session and a Spark job."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError

from replicator import brokers
from replicator.debezium.event_reader import KafkaRecord, StartingOffset
from replicator.errors import ReplicatorError

_POLL_MS = 500
_PINNED = {
    "enable.auto.commit": "false",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",  # reading a topic must not create it
    "auto.offset.reset": "none",
    "default.api.timeout.ms": str(brokers.TIMEOUT_MS),
    "request.timeout.ms": str(brokers.TIMEOUT_MS),
    "fetch.min.bytes": "1",  # a broker that waits for more, for longer than a request may take, never answers
}
_DELETED = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException"


@dataclass(frozen=True)
class Topic:
    """One topic of a cluster; ``options`` are client settings without the ``kafka.`` prefix."""

    name: str
    bootstrap_servers: str
    options: Mapping[str, str] = field(default_factory=dict)

    def records(self, jvm: Any, start: StartingOffset, *, follow: bool) -> Iterator[KafkaRecord]:
        """Yield the records from ``start`` to the current end of each partition, or without end (``follow``). Records
        of one partition are in their order.

        Raises Unreachable if Kafka does not answer or has no such topic, LoginRefused if it refuses the login, and
        ReplicatorError if retention deletes records before they are read.
        """
        for batch in self.batches(jvm, start, follow=follow):
            yield from batch

    def batches(self, jvm: Any, start: StartingOffset, *, follow: bool) -> Generator[list[KafkaRecord], None, None]:
        """Yield the same records in the batches in which they are fetched; an empty batch after half a second without
        any. The starting offsets are determined before the first batch.
        """
        brokers.check_reachable(self.bootstrap_servers)
        with self._consumer(jvm) as consumer:
            partitions = self._places(jvm, consumer)
            consumer.assign(partitions)
            beginnings, ends = consumer.beginningOffsets(partitions), consumer.endOffsets(partitions)
            for partition in partitions:
                consumer.seek(partition, start.within(beginnings[partition], ends[partition]))
            wait = jvm.java.time.Duration.ofMillis(_POLL_MS)
            end_offsets = {int(partition.partition()): int(ends[partition]) for partition in partitions}
            unfinished, empty_polls = list(partitions), 0
            while follow or unfinished:
                fetched = [*map(_record, _each(consumer.poll(wait)))]
                empty_polls = 0 if fetched else empty_polls + 1
                if not follow and empty_polls * _POLL_MS >= brokers.TIMEOUT_MS:
                    consumer.endOffsets(partitions)  # raises if no broker answers; a poll would wait for ever
                    empty_polls = 0
                yield [each for each in fetched if follow or each.offset < end_offsets[each.partition]]
                unfinished = [
                    partition
                    for partition in unfinished
                    if consumer.position(partition) < end_offsets[partition.partition()]
                ]

    def _places(self, jvm: Any, consumer: Any) -> Any:
        known = consumer.listTopics()  # an invalid topic name, such as one with a blank, must not be queried
        described = known.get(self.name)
        if not described:
            raise brokers.missing_topic(self.name, known, self.bootstrap_servers)
        places = jvm.java.util.ArrayList()
        for number in sorted(each.partition() for each in described):
            places.add(jvm.org.apache.kafka.common.TopicPartition(self.name, number))
        return places

    @contextmanager
    def _consumer(self, jvm: Any) -> Iterator[Any]:
        settings = jvm.java.util.Properties()
        for name, value in {**self.options, **_PINNED, "bootstrap.servers": self.bootstrap_servers}.items():
            settings.put(name, value)
        as_bytes = jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        try:
            consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings, as_bytes(), as_bytes())
        except Py4JJavaError as error:
            raise brokers.startup_error(error, self.bootstrap_servers) from error
        try:
            yield consumer
        except Py4JJavaError as error:
            raise self._error(error) from error
        finally:
            consumer.close(jvm.java.time.Duration.ofSeconds(1))

    def _error(self, error: Py4JJavaError) -> ReplicatorError:
        if str(error.java_exception.getClass().getName()) != _DELETED:
            return brokers.client_error(error, self.bootstrap_servers)
        what = f"Kafka deleted records of topic {self.name} before they were read"
        return ReplicatorError(what, where=self.bootstrap_servers, fix="Run again: it begins with those that are left.")


def _each(records: Any) -> Iterator[Any]:
    """Iterate over a Java Iterable, which py4j cannot."""
    left = records.iterator()
    while left.hasNext():
        yield left.next()


def _record(found: Any) -> KafkaRecord:
    key, value = found.key(), found.value()
    return KafkaRecord(
        str(found.topic()),
        int(found.partition()),
        int(found.offset()),
        int(found.timestamp()),
        None if key is None else bytes(key),
        None if value is None else bytes(value),
    )
