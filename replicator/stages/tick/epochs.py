"""Epochs: where a source's order starts anew (debezium.md Q2).

A control row says from which offset of each (topic, partition) an epoch counts, so that ``_seq`` depends on a record's
place in Kafka alone and is the same whenever silver is built from bronze.
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
    """From which offset each partition of each topic is of this epoch; topics and partitions not named here are
    from their first.

    ``since`` is when it was declared (ISO 8601, UTC), ``reason`` the operator's words.
    """

    number: int
    starts: Mapping[str, Mapping[int, int]]
    reason: str = ""
    since: str = ""

    def value(self) -> dict[str, Any]:
        """As part of a control row."""
        starts = {topic: {str(p): offset for p, offset in found.items()} for topic, found in self.starts.items()}
        return {"epoch": self.number, "from": starts, "reason": self.reason, "since": self.since}


@dataclass(frozen=True)
class Epochs:
    """All epochs of one source behind the first, in their order."""

    bumps: Sequence[Epoch] = field(default=())

    @property
    def newest(self) -> str:
        """The last of them, four hex digits."""
        return f"{len(self.bumps):04x}"

    def column(self, topics: Collection[str]) -> Column:
        """The epoch of a record of these topics, four hex digits, from ``topic``, ``partition`` and ``offset``."""
        return reduce(lambda older, bump: _from(bump, topics, older), self.bumps, F.lit(position.FIRST_EPOCH))

    def next(self, starts: Mapping[str, Mapping[int, int]], reason: str) -> Epochs:
        """These and one more that starts now. Raises ConfigError when there are no more."""
        number = len(self.bumps) + 1
        if number > _LAST:
            raise ConfigError(f"a source has at most {_LAST} epochs", mend="Start a new topic prefix.")
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return Epochs((*self.bumps, Epoch(number, starts, reason, since)))

    def value(self) -> dict[str, Any]:
        """As a control row."""
        return {"epochs": [bump.value() for bump in self.bumps]}


def load(control: ControlReader, path: str) -> Epochs:
    """The epochs of a source; none if it never started anew."""
    row = control.get(path)
    return Epochs(() if row is None else tuple(_epoch(told) for told in row["epochs"]))


def _epoch(told: Mapping[str, Any]) -> Epoch:
    starts = {topic: {int(p): offset for p, offset in found.items()} for topic, found in told["from"].items()}
    return Epoch(told["epoch"], starts, told["reason"], told["since"])


def _from(bump: Epoch, topics: Collection[str], older: Column) -> Column:
    """``bump`` where it has begun, else the epochs before it."""
    starts = {topic: found for topic, found in bump.value()["from"].items() if topic in topics}
    number = F.lit(f"{bump.number:04x}")
    if not starts:
        return number
    table = F.from_json(F.lit(json.dumps(starts)), _STARTS)
    start = F.try_element_at(F.try_element_at(table, F.col("topic")), F.col("partition").cast("string"))
    return F.when(F.col("offset") >= F.coalesce(start, F.lit(0)), number).otherwise(older)
