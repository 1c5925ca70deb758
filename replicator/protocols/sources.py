"""Where records come from: Kafka's topics, and objects that a sink wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from replicator.landing_objects import LandingObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StreamState(Protocol):
    """What bronze has of a stream."""

    def has(self, batch: int) -> bool:
        """Whether the stream's batch of that number is there."""

    def ends(self, topics: Sequence[str] | None = None) -> Mapping[tuple[str, int], int]:
        """The offset after the last record of each partition of these topics, or of all, that it has any of."""

    def ids(self) -> Mapping[str, str]:
        """Kafka's id of the incarnation of each topic that its last record came from."""


class Source(Protocol):
    """Where records come from."""

    def read(self, spark: SparkSession) -> DataFrame:
        """One row per Kafka record: ``topic, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY,
        value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>``; streaming or bounded.

        Reading twice gives the same records for the same offsets. Raises Unreachable when the service does
        not answer, BadRecording when a file holds something else.
        """

    def topic_ids(self, spark: SparkSession) -> Mapping[str, str | None]:
        """Kafka's id of each topic's present incarnation (J5), None from a broker that has none; empty for files."""

    def end_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """The offset after the last record, per (topic, partition): what there is to read. Raises Unreachable."""

    def resume(self, spark: SparkSession, checkpoint: str, held: StreamState) -> None:
        """Make a stream's checkpoint go on with the topics that there are now, before the stream starts: those that are
        read no more are left out, those that came begin where ``held`` ends. Repeating it changes nothing.

        Raises TopicDeleted, OffsetsLost where what was to be read is gone, Unreachable.
        """

    def refuse_lost(self, spark: SparkSession, checkpoint: str, held: StreamState) -> None:
        """Say what is gone, once a stream has stopped because something is that it was to read next.

        Raises TopicDeleted, TopicRecreated, OffsetsLost with topic, partition and offsets, Unreachable; nothing where
        it cannot be told.
        """


class Broker(Protocol):
    """What keeps a source's topics, each partition from some offset on."""

    def offered(self, spark: SparkSession, held: StreamState) -> Mapping[tuple[str, int], tuple[int, int]]:
        """The first offset that is there, and the one after the last, of each partition of topics that are to be read.

        Raises TopicDeleted and TopicRecreated where ``held`` has another topic than there is, Unreachable.
        """


class Listing(Protocol):
    """What lay where records land, at one moment."""

    @property
    def objects(self) -> Sequence[LandingObject]:
        """Objects of the source's topics, in no order."""

    @property
    def strange(self) -> Sequence[str]:
        """Paths of what has no name that a sink gives, sorted."""

    def read(self, objects: Sequence[LandingObject]) -> DataFrame:
        """One row per object: the fields of ``LandingObject``, and ``content BINARY``; none for one that has gone since
        or cannot be read.
        """


class Landing(Protocol):
    """Where records land as objects: files that a sink connector names (``replicator/landing_objects.py``) and never
    changes.

    Objects are added at any time and in any order; old ones may go.
    """

    def listed(self, spark: SparkSession) -> Listing:
        """What is there now, seen once: reading it later lists nothing again. Raises Unreachable."""
