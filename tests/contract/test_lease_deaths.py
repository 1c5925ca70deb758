"""The short sweep over leases: a driver dies behind every effect on the store, and the next one has them (P3)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replicator.failpoints import POINTS
from replicator.formats.control import MemoryControl
from replicator.formats.fencing import FencedControl
from replicator.lake import Lake
from replicator.operate.lock import exclusive
from tests.contract.lease_death import STAGES
from tests.contract.lease_place import Place

ROOT = Path(__file__).resolve().parents[2]
OF_LEASES = [name for name in POINTS if name.startswith("lease.")]


@pytest.mark.timeout(120)
def test_whoever_dies_at_a_lease_leaves_it_to_the_next(place: Place) -> None:
    """F-W1, F-W2: each is killed while it takes over from the one before; every token is greater than those before it,
    and the last driver, which lives, writes.
    """
    endpoint = str(place.terms.s3.endpoint) if place.terms.s3 else ""
    killed: list[str] = []
    tokens: list[int] = []
    for name in OF_LEASES:
        command = [sys.executable, "-m", "tests.contract.lease_death", name, endpoint, place.root]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, start_new_session=True, check=False)
        killed += [name] if done.returncode == -signal.SIGKILL else [done.stderr]
        tokens += map(int, done.stdout.split())
    assert killed == OF_LEASES
    control = MemoryControl()
    with exclusive(Lake(place.root), STAGES, place.terms) as fence:
        FencedControl(control, fence).put("a", {"v": 1})
        tokens.append(fence.token.number)
    assert tokens == sorted(set(tokens))
    assert tokens[-1] > len(OF_LEASES) - 2  # who died before drew none, or nobody was told of it
    assert control.get("a") == {"v": 1}
