"""The contracts of sources: Kafka topics, recorded files, and objects that a sink connector wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from replicator.landing_objects import LandingObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StreamState(Protocol):
    """What bronze holds of a stream."""

    def has(self, batch: int) -> bool:
        """Whether bronze has the stream's batch of that number."""

    def ends(self, topics: Sequence[str] | None = None) -> Mapping[tuple[str, int], int]:
        """The offset after the last record of each partition of these topics (or all) that bronze has records of."""

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

    def first_offsets(self, spark: SparkSession) -> Mapping[tuple[str, int], int]:
        """The offset of the first record that there still is, per (topic, partition). Raises Unreachable."""

    def resume(self, spark: SparkSession, checkpoint: str, stream_state: StreamState) -> None:
        """Adapt a stream's checkpoint to the present topics before the stream starts: topics that are no longer read
        are removed, new ones begin where ``stream_state`` ends. Repeating it changes nothing.

        Raises TopicDeleted, OffsetsLost if records to be read are gone, Unreachable.
        """

    def refuse_lost(self, spark: SparkSession, checkpoint: str, stream_state: StreamState) -> None:
        """Raise the error that names what is gone, after a stream has stopped because the next records are missing.

        Raises TopicDeleted, TopicRecreated, OffsetsLost with topic, partition and offsets, Unreachable; returns if the
        cause is unknown.
        """


class Broker(Protocol):
    """The cluster that stores a source's topics, each partition from some offset on."""

    def available_offsets(
        self, spark: SparkSession, stream_state: StreamState
    ) -> Mapping[tuple[str, int], tuple[int, int]]:
        """The first available offset and the one after the last, per partition of the topics to be read.

        Raises TopicDeleted and TopicRecreated if ``stream_state`` is of another incarnation of a topic, Unreachable.
        """


class Listing(Protocol):
    """The objects at a landing location, as of one moment."""

    @property
    def objects(self) -> Sequence[LandingObject]:
        """Objects of the source's topics, in no order."""

    @property
    def unrecognized(self) -> Sequence[str]:
        """Paths whose names no sink connector gives, sorted."""

    def read(self, objects: Sequence[LandingObject]) -> DataFrame:
        """One row per object: the fields of ``LandingObject``, and ``content BINARY``; no row for an object that is
        gone by now or cannot be read.
        """


class Landing(Protocol):
    """Where records land as objects: files that a sink connector names (``replicator/landing_objects.py``) and never
    changes.

    Objects are added at any time and in any order; old ones may go.
    """

    def list_objects(self, spark: SparkSession) -> Listing:
        """List the objects there are now; reading the result does not list again. Raises Unreachable."""
