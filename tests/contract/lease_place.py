"""Where leases are kept in tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicator.leases.register import Register
from replicator.operate.lock import LeaseOptions


@dataclass(frozen=True)
class Place:
    """A lake on one kind of store."""

    root: str
    terms: LeaseOptions
    register: Callable[[str], Register]

    def at(self, name: str = "silver") -> Register:
        return self.register(f"{self.root}/_replicator/leases/{name}.json")
