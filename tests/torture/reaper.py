"""Who dies when, how often each point was hit and killed, and the table that says so.

Death in the process of the tests is an exception that nobody catches. Blocks that hold something end, which they would
not do in a real death, but none of them writes to a lake or a target: they unpersist rows, give a lock back, unset a
setting of a session, close a connection (as the server does for a client that is gone). Another table of silver or
model of gold that is at work at the time comes to its next point and no further. The JVM lives on; ``World.driver``
kills it too.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from replicator.failpoints import POINTS, Killed

ELSEWHERE = ("hudi.", "twins.", "cut.", "lease.", "canonical.", "checkpoint.")
"""Points of short sweeps of their own: ``test_sweep_hudi.py``, ``test_sweep_cut.py``, for leases
``tests/contract/test_lease_deaths.py``, for feeds ``tests/unit/test_canonical_stage.py`` and for checkpoints
``tests/stack/test_checkpoint_anew.py``; all others are of ``test_sweep.py``.
"""


@dataclass
class Toll:
    """Hits and kills per point; ``recovered`` counts the kills of a run that came after a killed one. ``sigkills`` are
    those of a process group.
    """

    hits: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    recovered: Counter[str] = field(default_factory=Counter)
    sigkills: Counter[str] = field(default_factory=Counter)

    def never_hit(self, *, but: Iterable[str] = ()) -> list[str]:
        """Registered points that no run came to; ``but`` are prefixes of those that another sweep has."""
        return [name for name in POINTS if not self.hits[name] and not name.startswith(tuple(but))]

    def table(self) -> str:
        """A line per point that was hit, and one for all."""
        lines = [f"{'point':26} {'hits':>6} {'kills':>6} {'in recovery':>12} {'SIGKILL':>8}"]
        for name in (*(point for point in POINTS if self.hits[point]), "all"):
            counts = [self._of(counter, name) for counter in (self.hits, self.kills, self.recovered, self.sigkills)]
            lines.append("{:26} {:6} {:6} {:12} {:8}".format(name, *counts))
        return "\n".join(lines)

    def _of(self, counter: Counter[str], name: str) -> int:
        return counter.total() if name == "all" else counter[name]


class Reaper:
    """What one run is watched by: ``due`` says, given a point, whether the run dies there."""

    def __init__(self, toll: Toll, due: Callable[[str], bool], *, recovering: bool) -> None:
        self._toll, self._due, self._recovering = toll, due, recovering
        self._turn = threading.Lock()
        self.died_at: str | None = None

    def __call__(self, name: str) -> None:
        with self._turn:
            if self.died_at is None:
                self._toll.hits[name] += 1
                if self._due(name):
                    self.died_at = name
                    self._toll.kills[name] += 1
                    self._toll.recovered[name] += self._recovering
            if self.died_at is not None:  # a dead process does nothing more, in no thread
                raise Killed(f"killed at {self.died_at}")


def once_each(spared: Iterable[str] = ()) -> Callable[[str], bool]:
    """Die once at every point that is not ``spared``, whichever comes."""
    done = set(spared)

    def due(name: str) -> bool:
        if name in done:
            return False
        done.add(name)
        return True

    return due


def at_hit(number: int) -> Callable[[str], bool]:
    """Die at the n-th hit, of whatever point."""
    left = number

    def due(_: str) -> bool:
        nonlocal left
        left -= 1
        return left == 0

    return due
