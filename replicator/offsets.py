"""Offsets of partitions: by their places here, by topic in what is written as JSON, whose keys are texts."""

from __future__ import annotations

from collections.abc import Mapping

TopicPartition = tuple[str, int]
"""A topic and its partition."""


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Topic -> partition, as a text -> offset, in the order of the places."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def by_partition(told: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """What :func:`by_topic` was made of."""
    return {(topic, int(partition)): offset for topic, found in told.items() for partition, offset in found.items()}
