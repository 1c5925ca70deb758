"""Gaps: offsets that are not in bronze, and were passed over by the operator's word (reliability.md F-K2, F-K9).

A control row per source, written before the checkpoint that passes them over. A gap is open until each table of its
topic was read again as a whole behind it, so that silver lacks no row for it; its record stays.
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
    """Offsets ``first`` to ``last`` of a partition, passed over at ``since`` (ISO 8601, UTC) ``by`` a process. Not each
    of them need have been a record: ends of transactions take offsets, too.
    """

    topic: str
    partition: int
    first: int
    last: int
    since: str = ""
    by: str = ""

    @property
    def place(self) -> TopicPartition:
        """Where it is."""
        return self.topic, self.partition

    def covers(self, other: Gap) -> bool:
        """Whether all of another one is in it."""
        return self.place == other.place and self.first <= other.first and other.last <= self.last

    def with_(self, others: Iterable[Gap]) -> Gap:
        """This one and those that it meets, as one."""
        met = [
            each
            for each in others
            if each.place == self.place and each.first <= self.last + 1 and each.last >= self.first - 1
        ]
        first, last = min(each.first for each in (self, *met)), max(each.last for each in (self, *met))
        return Gap(*self.place, first, last, self.since, self.by)

    def value(self) -> dict[str, Any]:
        """As part of a control row."""
        place = {"topic": self.topic, "partition": self.partition, "from": self.first, "to": self.last}
        return {**place, "since": self.since, "by": self.by}


def load(facts: ControlReader, path: str) -> tuple[Gap, ...]:
    """Every gap of a source, in the order of the row."""
    row = facts.get(path) or {"gaps": []}
    return tuple(
        Gap(told["topic"], told["partition"], told["from"], told["to"], told["since"], told["by"])
        for told in row["gaps"]
    )


def to_row(gaps: Sequence[Gap]) -> dict[str, Any]:
    """As a control row."""
    return {"gaps": [gap.value() for gap in gaps]}


def update(known: Sequence[Gap], starts: Mapping[TopicPartition, int], new: Sequence[Gap]) -> tuple[Gap, ...]:
    """The gaps of a source that goes on from ``starts``: what is read after all is none, and gaps that meet are one."""
    ends = [min(gap.last, starts.get(gap.place, gap.last + 1) - 1) for gap in known]
    left = [replace(gap, last=last) for gap, last in zip(known, ends, strict=True) if gap.first <= last]
    made = [gap.with_(left) for gap in new]
    return tuple(sorted([*(gap for gap in left if not any(each.covers(gap) for each in made)), *made], key=_order))


def list_open(facts: ControlReader, lake: Lake, source: str) -> list[Gap]:
    """The gaps of a source for which rows may be missing in silver."""
    found = load(facts, lake.gaps(source))
    if not found:
        return []
    carried = (facts.get(lake.routes(source)) or {"tables": {}})["tables"]
    wholes = (facts.get(lake.snapshots(source)) or {"tables": {}})["tables"]
    return [gap for gap in found if not _is_closed(gap, [wholes.get(table) for table in carried.get(gap.topic, ())])]


def _is_closed(gap: Gap, wholes: Sequence[Mapping[str, Any] | None]) -> bool:
    """Whether each table of the topic was read as a whole behind it, by what is noted of these snapshots."""
    partition = str(gap.partition)
    begun = [0 if whole is None else whole["begun"].get(gap.topic, {}).get(partition, 0) for whole in wholes]
    return bool(begun) and min(begun) > gap.last


def _order(gap: Gap) -> tuple[str, int, int]:
    return gap.topic, gap.partition, gap.first
