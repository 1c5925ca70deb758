"""The status of a submitted stage on EMR."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Run:
    """A job run or a step. ``ended`` is None while it has not; ``reason`` is EMR's, '' if it gives none."""

    id: str
    name: str
    state: str
    started: datetime
    ended: datetime | None
    reason: str
    failed: bool
