"""Who may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from replicator.spec import Token


class Fence(Protocol):
    """Whether this process may still write: it holds the leases of the stages that it works on (decision 0026)."""

    @property
    def token(self) -> Token | None:
        """What its commits carry, so that a later writer's target can tell them from its own; None without leases."""

    def check(self) -> None:
        """Raises LeaseLost unless every lease is held; asked before work that ends in a commit, and again right before
        the commit.
        """

    def refuse_if_lost(self) -> None:
        """Raises LeaseLost where that is known already, without asking; for those who wait."""


@dataclass(frozen=True)
class Unfenced:
    """``Fence`` of a process that holds no lease: it reads only, or nobody else writes the lake."""

    token: Token | None = None

    def check(self) -> None:
        """Nothing can be lost."""

    def refuse_if_lost(self) -> None:
        """Nothing is."""


UNFENCED = Unfenced()
