"""Records of one topic, one after the other, by the JVM's own Kafka client: no session, no job."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError

from replicator import brokers
from replicator.debezium.event_reader import KafkaRecord, StartingOffset

_POLL_MS = 500
_PINNED = {
    "enable.auto.commit": "false",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",  # to look at a topic must not make it
    "auto.offset.reset": "none",
    "default.api.timeout.ms": str(brokers.TIMEOUT_MS),
    "request.timeout.ms": str(brokers.TIMEOUT_MS),
}


@dataclass(frozen=True)
class Topic:
    """One topic of a cluster; ``options`` are client settings without the ``kafka.`` prefix."""

    name: str
    bootstrap_servers: str
    options: Mapping[str, str] = field(default_factory=dict)

    def records(self, jvm: Any, start: StartingOffset, *, follow: bool) -> Iterator[KafkaRecord]:
        """The records from ``start`` to the end that each partition has now, or for ever. Those of one partition come
        in their order.

        Raises Unreachable when Kafka does not answer or has no such topic, LoginRefused where it lets nobody in.
        """
        for batch in self.batches(jvm, start, follow=follow):
            yield from batch

    def batches(self, jvm: Any, start: StartingOffset, *, follow: bool) -> Generator[list[KafkaRecord], None, None]:
        """The same records as they are fetched; an empty batch where none came for half a second. Where to begin is
        settled before the first one.
        """
        brokers.check_reachable(self.bootstrap_servers)
        with self._consumer(jvm) as consumer:
            places = self._places(jvm, consumer)
            consumer.assign(places)
            beginnings, ends = consumer.beginningOffsets(places), consumer.endOffsets(places)
            for place in places:
                consumer.seek(place, start.within(beginnings[place], ends[place]))
            wait = jvm.java.time.Duration.ofMillis(_POLL_MS)
            upto = {int(place.partition()): int(ends[place]) for place in places}
            left = list(places)
            while follow or left:
                fetched = map(_record, _each(consumer.poll(wait)))
                yield [each for each in fetched if follow or each.offset < upto[each.partition]]
                left = [place for place in left if consumer.position(place) < upto[place.partition()]]

    def _places(self, jvm: Any, consumer: Any) -> Any:
        known = consumer.listTopics()  # a name that no topic can have, one with a blank say, must not be asked for
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
            raise brokers.client_error(error, self.bootstrap_servers) from error
        finally:
            consumer.close(jvm.java.time.Duration.ofSeconds(1))


def _each(records: Any) -> Iterator[Any]:
    """What Java can iterate over and py4j cannot."""
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
