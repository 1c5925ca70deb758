"""Topics of a broker, as other programs see them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def create(servers: str, *topics: str, partitions: int = 1) -> None:
    """New topics, which are there when this is over."""
    admin = AdminClient({"bootstrap.servers": servers})
    for each in admin.create_topics([NewTopic(topic, partitions) for topic in topics]).values():
        each.result(timeout=30)
    latest = time.monotonic() + 30
    while missing := set(topics) - admin.list_topics(timeout=30).topics.keys():  # the controller knows before a broker
        assert time.monotonic() < latest, missing
        time.sleep(0.05)


def produce(
    servers: str, topic: str, records: Iterable[tuple[str | None, str | None]], headers: dict[str, str] | None = None
) -> None:
    """Keys and values, in this order, each with these headers."""
    producer = Producer({"bootstrap.servers": servers})
    told: list[tuple[str, str | bytes | None]] | None = None if headers is None else [*headers.items()]
    for key, value in records:
        producer.produce(topic, key=key, value=value, headers=told)
    assert producer.flush(30) == 0


def consumed(servers: str, topic: str) -> list[tuple[str | None, str | None, list[tuple[str, bytes]]]]:
    """Every record that is there, partition by partition: key, value, headers."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "tests", "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        places = [TopicPartition(topic, number, 0) for number in sorted(partitions)]
        left = {place.partition: consumer.get_watermark_offsets(place, timeout=30)[1] for place in places}
        consumer.assign(places)
        found: list[Any] = []
        while len(found) < sum(left.values()):
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            found.append(message)
        return [(_text(each.key()), _text(each.value()), each.headers() or []) for each in found]
    finally:
        consumer.close()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
