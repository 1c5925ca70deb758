"""Tables that somebody has paused: silver leaves them as they are, bronze goes on.

A control row per source. A paused table's own progress says where it goes on from, so nothing is lost: it only has more
to read then.
"""

from __future__ import annotations

from collections.abc import Mapping

from replicator.lake import Lake
from replicator.protocols import Control, ControlReader


def load(control: ControlReader, lake: Lake, source: str) -> dict[str, str]:
    """Since when each paused table of a source is (ISO 8601, UTC)."""
    row = control.get(lake.pauses(source))
    return {} if row is None else dict(row["paused"])


def save(control: Control, lake: Lake, source: str, paused: Mapping[str, str]) -> None:
    """Write the row; none where no table is paused."""
    if paused:
        control.put(lake.pauses(source), {"paused": dict(sorted(paused.items()))})
    elif control.get(lake.pauses(source)) is not None:
        control.remove(lake.pauses(source))
