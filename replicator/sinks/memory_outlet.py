"""Topics in memory: an ``Outlet`` for tests and experiments, under the same contract as Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

from replicator.brokers import missing_topic


class SentEvent(NamedTuple):
    """An event as consumers receive it."""

    key: str | None
    value: str | None
    headers: dict[str, bytes]


class MemoryOutlet:
    """``Outlet`` in a dict: ``topics`` holds the events of each existing topic, in the order of arrival."""

    def __init__(self, *topics: str) -> None:
        self.topics: dict[str, list[SentEvent]] = {topic: [] for topic in topics}

    def identity(self, topic: str) -> str:
        """The identity of the list that holds the topic's events."""
        if topic not in self.topics:
            raise missing_topic(topic, self.topics, "memory of this process")
        return str(id(self.topics[topic]))

    def send(self, events: DataFrame, topic: str) -> None:
        """Append all events to the topic."""
        if topic not in self.topics:
            raise missing_topic(topic, self.topics, "memory of this process")
        rows = events.orderBy("place").select("key", "value", "headers").collect()
        self.topics[topic] += [
            SentEvent(key, value, {name: bytes(header) for name, header in headers or ()})
            for key, value, headers in rows
        ]
