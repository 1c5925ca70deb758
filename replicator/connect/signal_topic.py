"""Sending a signal as a record of the connector's signal topic, by the JVM's own Kafka client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from replicator import brokers

if TYPE_CHECKING:
    from replicator.connect.signals import Signal

_PINNED = {
    "acks": "all",
    "max.block.ms": str(brokers.TIMEOUT_MS),
    "request.timeout.ms": str(brokers.TIMEOUT_MS),
    "delivery.timeout.ms": str(2 * brokers.TIMEOUT_MS),
}


def send(jvm: Any, bootstrap_servers: str, options: Mapping[str, str], topic: str, prefix: str, signal: Signal) -> None:
    """Send a signal to the connector with this ``topic.prefix``; a missing topic is created, with the single partition
    that Debezium reads. Raises Unreachable, LoginRefused.
    """
    brokers.check_reachable(bootstrap_servers)
    _ensure_topic(jvm, bootstrap_servers, options, topic)
    settings = jvm.java.util.Properties()
    for name, value in {**options, **_PINNED, "bootstrap.servers": bootstrap_servers}.items():
        settings.put(name, value)
    as_text = jvm.org.apache.kafka.common.serialization.StringSerializer
    producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(settings, as_text(), as_text())
    try:
        record = jvm.org.apache.kafka.clients.producer.ProducerRecord(topic, 0, prefix, signal.message())
        producer.send(record).get()
    except Py4JJavaError as error:
        raise brokers.client_error(error, bootstrap_servers) from error
    finally:
        producer.close(jvm.java.time.Duration.ofSeconds(1))


def _ensure_topic(jvm: Any, bootstrap_servers: str, options: Mapping[str, str], topic: str) -> None:
    with brokers.admin(jvm, bootstrap_servers, options) as admin:
        if admin.listTopics().names().get().contains(topic):
            return
        new_topics = jvm.java.util.ArrayList()
        by_default = jvm.java.util.Optional.empty()  # the broker's default number of replicas
        new_topics.add(jvm.org.apache.kafka.clients.admin.NewTopic(topic, jvm.java.util.Optional.of(1), by_default))
        admin.createTopics(new_topics).all().get()
