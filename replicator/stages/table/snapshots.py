"""Repeated full snapshots after which rows that they did not contain are removed (debezium.md D7).

There is one control row per source, written once such a snapshot is over. Like an epoch it refers to places in Kafka
and is permanent: the same rows are missing whenever silver is built from bronze.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.jvm import expressions
from replicator.offsets import TopicPartition, by_partition, by_topic
from replicator.protocols import Control


@dataclass(frozen=True)
class FullSnapshot:
    """The last such snapshot of a table; ``number`` rises with each.

    ``start_offsets`` has the first offset after the snapshot was requested, of each partition of the table's topics;
    partitions that are not listed belong completely to that time. ``ended`` has the offset after its last record.
    """

    number: int
    start_offsets: Mapping[TopicPartition, int]
    ended: Mapping[TopicPartition, int]

    def is_after_start(self) -> Column:
        """Return the condition that a record came after the request, from ``topic``, ``partition`` and ``offset``."""
        return ~_before(self.start_offsets)

    def is_before_end(self, of: str = "") -> Column:
        """Return the condition that a record came before the end; ``of`` is the prefix of those columns, a struct's
        name and a dot.
        """
        return _before(self.ended, of)

    def is_complete_in(self, records: DataFrame) -> bool:
        """Return whether these records, which are all of the table's topics, contain its last ones."""
        rows = records.groupBy("topic", "partition").agg(F.max("offset").alias("last")).collect()
        last: Mapping[TopicPartition, int] = {(row["topic"], row["partition"]): row["last"] for row in rows}
        expected = {place: end for place, end in self.ended.items() if end > self.start_offsets.get(place, 0)}
        return all(last.get(place, -1) >= end - 1 for place, end in expected.items())

    def after(self, before: FullSnapshot | None) -> FullSnapshot:
        """Return this snapshot as the successor of an earlier one: no partition goes back, whichever of the two ended
        first.
        """
        if before is None:
            return self
        begun, ended = (
            _later(one, other)
            for one, other in ((before.start_offsets, self.start_offsets), (before.ended, self.ended))
        )
        return FullSnapshot(max(before.number + 1, self.number), begun, ended)

    def value(self) -> dict[str, Any]:
        """Return the snapshot as part of a control row."""
        return {"number": self.number, "begun": by_topic(self.start_offsets), "ended": by_topic(self.ended)}


def load(control: Control, path: str) -> dict[str, FullSnapshot]:
    """Load the last snapshot of each table of a source that had one."""
    row = control.get(path) or {"tables": {}}
    return {
        table: FullSnapshot(each["number"], by_partition(each["begun"]), by_partition(each["ended"]))
        for table, each in row["tables"].items()
    }


def add(control: Control, path: str, taken: Mapping[str, FullSnapshot]) -> None:
    """Add these snapshots, by table, to the row."""
    known = load(control, path)
    every = {**known, **{table: snapshot.after(known.get(table)) for table, snapshot in taken.items()}}
    control.put(path, {"tables": {table: snapshot.value() for table, snapshot in sorted(every.items())}})


def _before(ends: Mapping[TopicPartition, int], prefix: str = "") -> Column:
    """Return the condition that a record of one of these partitions is before its offset."""
    own = [
        (F.col(f"{prefix}topic") == topic)
        & (F.col(f"{prefix}partition") == partition)
        & (F.col(f"{prefix}offset") < offset)
        for (topic, partition), offset in sorted(ends.items())
    ]
    return expressions.any_of(own)


def _later(one: Mapping[TopicPartition, int], other: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in {*one, *other}}
