"""The offsets of Kafka's topics by librdkafka, without a JVM. Importing this module requires
``confluent_kafka``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from replicator import brokers
from replicator.errors import ConfigError

_SECONDS = brokers.TIMEOUT_MS / 1000
_SAME = {"client.id"}
"""Settings with the same meaning for both clients."""


def end_offsets(bootstrap_servers: str, topics: str, options: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """Return the offset after the last record, per (topic, partition), of topics whose name matches ``topics``. Raises
    as :func:`first_offsets`.
    """
    return _offsets(bootstrap_servers, topics, options, "latest")


def first_offsets(bootstrap_servers: str, topics: str, options: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """Return the first offset that Kafka has, per (topic, partition), of topics whose name matches ``topics``.

    Raises Unreachable if Kafka does not answer, ConfigError for settings of the Java client: logins and certificates
    are configured differently in the two.
    """
    return _offsets(bootstrap_servers, topics, options, "earliest")


def _offsets(bootstrap_servers: str, topics: str, options: Mapping[str, str], which: str) -> dict[tuple[str, int], int]:
    others = {name: value for name, value in options.items() if (name, value) != ("security.protocol", "PLAINTEXT")}
    if others.keys() - _SAME:
        raise ConfigError(f"options supported only by Java's Kafka client: {', '.join(sorted(others.keys() - _SAME))}")
    brokers.check_reachable(bootstrap_servers)
    client = AdminClient({**others, "bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        return _list_offsets(client, re.compile(topics), which)
    except KafkaException as error:
        raise brokers.unreachable_error(bootstrap_servers) from error


def _list_offsets(client: Any, pattern: re.Pattern[str], which: str) -> dict[tuple[str, int], int]:
    known = client.list_topics(timeout=_SECONDS).topics
    places = [
        TopicPartition(name, number) for name in known if pattern.fullmatch(name) for number in known[name].partitions
    ]
    if not places:
        return {}
    spec: Any = getattr(OffsetSpec, which)()
    futures = client.list_offsets(dict.fromkeys(places, spec), request_timeout=_SECONDS)
    return {(place.topic, place.partition): future.result().offset for place, future in futures.items()}
