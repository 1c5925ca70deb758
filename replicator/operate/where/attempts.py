"""Tables that are looked at one by one, for those who go on where one of them is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from replicator.errors import ReplicatorError, Unreachable
from replicator.jvm import causes
from replicator.jvm.failures import ALL_FAILURES
from replicator.stages import engine

Found = TypeVar("Found")


@dataclass(frozen=True)
class Trouble:
    """A table that could not be read, and why in one line."""

    table: str
    why: str


@dataclass(frozen=True)
class Attempts:
    """Tries things, and keeps what went wrong."""

    troubles: dict[str, Trouble] = field(default_factory=dict)

    def try_(self, table: str, look: Callable[[], Found]) -> Found | None:
        """What *look* gives, None if the table is broken. Raises Unreachable: then no other answers either."""
        try:
            return look()
        except Unreachable:
            raise
        except ReplicatorError as error:
            self.troubles.setdefault(table, Trouble(table, str(error)))
        except ALL_FAILURES as error:
            silent = engine.out_of_reach(error, table)
            if silent is not None:
                raise silent from error
            self.troubles.setdefault(table, Trouble(table, causes.shortened(error)))
        return None
