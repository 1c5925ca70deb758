"""Offsets of partitions: by topic and partition in memory, by topic in JSON, whose keys are texts."""

from __future__ import annotations

from collections.abc import Mapping

TopicPartition = tuple[str, int]
"""A topic and its partition."""


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return topic -> partition, as a text -> offset, sorted by topic and partition."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def by_partition(offsets: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The inverse of :func:`by_topic`."""
    return {(topic, int(partition)): offset for topic, found in offsets.items() for partition, offset in found.items()}
