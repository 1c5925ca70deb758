"""Gaps: offsets that are missing in bronze because the operator had them skipped (reliability.md F-K2, F-K9).

There is one control row per source, written before the checkpoint that skips them. A gap is open until a full snapshot
of each table of its topic was taken after it, so that silver lacks no row because of it; its record stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replicator.lake import Lake
from replicator.offsets import TopicPartition
from replicator.protocols import ControlReader


@dataclass(frozen=True)
class Gap:
    """Offsets ``first`` to ``last`` of a partition, skipped at ``since`` (ISO 8601, UTC) ``by`` a process. Not all of
    them need have been records: transaction markers take offsets, too.
    """

    topic: str
    partition: int
    first: int
    last: int
    since: str = ""
    by: str = ""

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return self.topic, self.partition

    def covers(self, other: Gap) -> bool:
        """Return whether it contains all of another gap."""
        return self.place == other.place and self.first <= other.first and other.last <= self.last

    def merge(self, others: Iterable[Gap]) -> Gap:
        """Return the union of this gap and those that overlap or adjoin it."""
        adjoining = [
            each
            for each in others
            if each.place == self.place and each.first <= self.last + 1 and each.last >= self.first - 1
        ]
        first, last = min(each.first for each in (self, *adjoining)), max(each.last for each in (self, *adjoining))
        return Gap(*self.place, first, last, self.since, self.by)

    def value(self) -> dict[str, Any]:
        """Return the gap as part of a control row."""
        place = {"topic": self.topic, "partition": self.partition, "from": self.first, "to": self.last}
        return {**place, "since": self.since, "by": self.by}


def load(facts: ControlReader, path: str) -> tuple[Gap, ...]:
    """Load every gap of a source, in the order of the row."""
    row = facts.get(path) or {"gaps": []}
    return tuple(
        Gap(each["topic"], each["partition"], each["from"], each["to"], each["since"], each["by"])
        for each in row["gaps"]
    )


def to_row(gaps: Sequence[Gap]) -> dict[str, Any]:
    """Return the control row."""
    return {"gaps": [gap.value() for gap in gaps]}


def update(known: Sequence[Gap], starts: Mapping[TopicPartition, int], new: Sequence[Gap]) -> tuple[Gap, ...]:
    """Return the gaps of a source that continues from ``starts``: offsets that are read after all are no gap, and gaps
    that overlap or adjoin are merged.
    """
    ends = [min(gap.last, starts.get(gap.place, gap.last + 1) - 1) for gap in known]
    remaining = [replace(gap, last=last) for gap, last in zip(known, ends, strict=True) if gap.first <= last]
    merged = [gap.merge(remaining) for gap in new]
    return tuple(
        sorted([*(gap for gap in remaining if not any(each.covers(gap) for each in merged)), *merged], key=_order)
    )


def list_open(facts: ControlReader, lake: Lake, source: str) -> list[Gap]:
    """Return the gaps of a source because of which rows may be missing in silver."""
    found = load(facts, lake.gaps(source))
    if not found:
        return []
    carried = (facts.get(lake.routes(source)) or {"tables": {}})["tables"]
    snapshots = (facts.get(lake.snapshots(source)) or {"tables": {}})["tables"]
    return [gap for gap in found if not _is_closed(gap, [snapshots.get(table) for table in carried.get(gap.topic, ())])]


def _is_closed(gap: Gap, snapshots: Sequence[Mapping[str, Any] | None]) -> bool:
    """Return whether a full snapshot of each table of the topic began after the gap, according to these control
    rows.
    """
    partition = str(gap.partition)
    begun = [0 if row is None else row["begun"].get(gap.topic, {}).get(partition, 0) for row in snapshots]
    return bool(begun) and min(begun) > gap.last


def _order(gap: Gap) -> tuple[str, int, int]:
    return gap.topic, gap.partition, gap.first
