"""Topics of a broker, as other programs see them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import TimeoutError  # noqa: A004 - another one in Python 3.10
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_NOT_YET = (KafkaError._TIMED_OUT, KafkaError.TOPIC_ALREADY_EXISTS)


def create(servers: str, *topics: str, partitions: int = 1) -> None:
    """New topics, which are there when this is over.

    A broker that was suspended for longer than its session names no controller for a moment. A client that asks then
    asks again minutes later; another one does so here.
    """
    latest = time.monotonic() + 60
    while not _is_created(AdminClient({"bootstrap.servers": servers}), topics, partitions):
        assert time.monotonic() < latest, topics
        time.sleep(0.05)


def _is_created(admin: AdminClient, topics: Sequence[str], partitions: int) -> bool:
    """Whether the topics are there; they are created unless they are."""
    try:
        missing = set(topics) - admin.list_topics(timeout=5).topics.keys()  # the controller knows before a broker
        made = admin.create_topics([NewTopic(topic, partitions) for topic in missing]) if missing else {}
        for each in made.values():
            each.result(timeout=5)
    except TimeoutError:
        return False
    except KafkaException as error:
        if error.args[0].code() not in _NOT_YET:
            raise
        return False
    return not missing


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
