"""Epochs: points from which a source's order starts over (debezium.md Q2).

A control row says from which offset of each (topic, partition) an epoch applies. So ``_seq`` depends on a record's
place in Kafka alone, and is the same whenever silver is built from bronze.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium import position
from replicator.errors import ConfigError
from replicator.protocols import ControlReader

_LAST = 0xFFFF
_STARTS = "MAP<STRING, MAP<STRING, BIGINT>>"


@dataclass(frozen=True)
class Epoch:
    """The first offset of this epoch for each partition of each topic; topics and partitions that are not listed belong
    to it from their first offset.

    ``since`` is when it was declared (ISO 8601, UTC), ``reason`` the text the operator gave.
    """

    number: int
    starts: Mapping[str, Mapping[int, int]]
    reason: str = ""
    since: str = ""

    def value(self) -> dict[str, Any]:
        """Return the epoch as part of a control row."""
        starts = {topic: {str(p): offset for p, offset in found.items()} for topic, found in self.starts.items()}
        return {"epoch": self.number, "from": starts, "reason": self.reason, "since": self.since}


@dataclass(frozen=True)
class Epochs:
    """All epochs of one source after the first, in order."""

    bumps: Sequence[Epoch] = field(default=())

    @property
    def newest(self) -> str:
        """The newest epoch, four hex digits."""
        return f"{len(self.bumps):04x}"

    def column(self, topics: Collection[str]) -> Column:
        """Return the column with the epoch of a record of these topics, four hex digits, computed from ``topic``,
        ``partition`` and ``offset``.
        """
        return reduce(lambda older, bump: _from(bump, topics, older), self.bumps, F.lit(position.FIRST_EPOCH))

    def next(self, starts: Mapping[str, Mapping[int, int]], reason: str) -> Epochs:
        """Return these epochs and one more that starts now. Raises ConfigError if the maximum number is reached."""
        number = len(self.bumps) + 1
        if number > _LAST:
            raise ConfigError(f"a source has at most {_LAST} epochs", fix="Start a new topic prefix.")
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return Epochs((*self.bumps, Epoch(number, starts, reason, since)))

    def value(self) -> dict[str, Any]:
        """Return the control row."""
        return {"epochs": [bump.value() for bump in self.bumps]}


def load(control: ControlReader, path: str) -> Epochs:
    """Load the epochs of a source; none if its order never started over."""
    row = control.get(path)
    return Epochs(() if row is None else tuple(_epoch(each) for each in row["epochs"]))


def _epoch(row: Mapping[str, Any]) -> Epoch:
    starts = {topic: {int(p): offset for p, offset in found.items()} for topic, found in row["from"].items()}
    return Epoch(row["epoch"], starts, row["reason"], row["since"])


def _from(bump: Epoch, topics: Collection[str], older: Column) -> Column:
    """Return the epoch column: ``bump`` where it has begun, else ``older``, the column of the epochs before it."""
    starts = {topic: found for topic, found in bump.value()["from"].items() if topic in topics}
    number = F.lit(f"{bump.number:04x}")
    if not starts:
        return number
    table = F.from_json(F.lit(json.dumps(starts)), _STARTS)
    start = F.try_element_at(F.try_element_at(table, F.col("topic")), F.col("partition").cast("string"))
    return F.when(F.col("offset") >= F.coalesce(start, F.lit(0)), number).otherwise(older)
