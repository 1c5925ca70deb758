"""Tables that a user has paused: silver leaves them as they are, while bronze continues.

There is one control row per source. A paused table's own progress tells where it resumes, so nothing is lost; it only
has more to read then.
"""

from __future__ import annotations

from collections.abc import Mapping

from replicator.lake import Lake
from replicator.protocols import Control, ControlReader


def load(control: ControlReader, lake: Lake, source: str) -> dict[str, str]:
    """Load the paused tables of a source, each with the time since when it is paused (ISO 8601, UTC)."""
    row = control.get(lake.pauses(source))
    return {} if row is None else dict(row["paused"])


def save(control: Control, lake: Lake, source: str, paused: Mapping[str, str]) -> None:
    """Write the row; remove it if no table is paused."""
    if paused:
        control.put(lake.pauses(source), {"paused": dict(sorted(paused.items()))})
    elif control.get(lake.pauses(source)) is not None:
        control.remove(lake.pauses(source))
