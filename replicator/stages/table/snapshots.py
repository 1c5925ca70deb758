"""Snapshots of whole tables that were taken again so that rows which they do not mention go (debezium.md D7).

A control row per source, written once such a snapshot is over. Like an epoch it is about places in Kafka and lasts:
what is gone is the same whenever silver is built from bronze.
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

    ``begun`` has the first offset that came after it was asked for, of each partition of the table's topics; one that
    is not named there is all of that time. ``ended`` has the offset behind its last record.
    """

    number: int
    begun: Mapping[TopicPartition, int]
    ended: Mapping[TopicPartition, int]

    def since(self) -> Column:
        """Whether a record came after it was asked for, from ``topic``, ``partition`` and ``offset``."""
        return ~_before(self.begun)

    def until(self, of: str = "") -> Column:
        """Whether a record came before it was over; ``of`` is a struct with those columns, and a dot."""
        return _before(self.ended, of)

    def is_complete_in(self, records: DataFrame) -> bool:
        """Whether these records, all of the table's topics, have the last of it."""
        rows = records.groupBy("topic", "partition").agg(F.max("offset").alias("last")).collect()
        last: Mapping[TopicPartition, int] = {(row["topic"], row["partition"]): row["last"] for row in rows}
        told = {place: end for place, end in self.ended.items() if end > self.begun.get(place, 0)}
        return all(last.get(place, -1) >= end - 1 for place, end in told.items())

    def after(self, before: FullSnapshot | None) -> FullSnapshot:
        """This one where there was one before: no partition goes back, whichever of the two was over first."""
        if before is None:
            return self
        begun, ended = (_later(one, other) for one, other in ((before.begun, self.begun), (before.ended, self.ended)))
        return FullSnapshot(max(before.number + 1, self.number), begun, ended)

    def value(self) -> dict[str, Any]:
        """As part of a control row."""
        return {"number": self.number, "begun": by_topic(self.begun), "ended": by_topic(self.ended)}


def load(control: Control, path: str) -> dict[str, FullSnapshot]:
    """The last one of each table of a source that had one."""
    row = control.get(path) or {"tables": {}}
    return {
        table: FullSnapshot(told["number"], by_partition(told["begun"]), by_partition(told["ended"]))
        for table, told in row["tables"].items()
    }


def add(control: Control, path: str, taken: Mapping[str, FullSnapshot]) -> None:
    """Write the row with these, by table."""
    known = load(control, path)
    every = {**known, **{table: whole.after(known.get(table)) for table, whole in taken.items()}}
    control.put(path, {"tables": {table: whole.value() for table, whole in sorted(every.items())}})


def _before(ends: Mapping[TopicPartition, int], of: str = "") -> Column:
    """Whether a record of one of these partitions comes before its offset."""
    own = [
        (F.col(f"{of}topic") == topic) & (F.col(f"{of}partition") == partition) & (F.col(f"{of}offset") < offset)
        for (topic, partition), offset in sorted(ends.items())
    ]
    return expressions.any_of(own)


def _later(one: Mapping[TopicPartition, int], other: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in {*one, *other}}
