"""Read tables one by one and continue where one of them is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from replicator.errors import NO_LAKE, ReplicatorError
from replicator.jvm import causes
from replicator.jvm.failures import ALL_FAILURES
from replicator.stages import engine_errors

Found = TypeVar("Found")


@dataclass(frozen=True)
class UnreadableTable:
    """A table that could not be read, and why in one line."""

    table: str
    reason: str


@dataclass(frozen=True)
class Attempts:
    """Runs functions and collects their errors."""

    failures: dict[str, UnreadableTable] = field(default_factory=dict)

    def try_(self, table: str, look: Callable[[], Found]) -> Found | None:
        """Return the result of *look*, None if the table is broken. Raises NO_LAKE, since then no other table can be
        read either.
        """
        try:
            return look()
        except NO_LAKE:
            raise
        except ReplicatorError as error:
            self.failures.setdefault(table, UnreadableTable(table, str(error)))
        except ALL_FAILURES as error:
            lake_error = engine_errors.to_lake_error(error, table)
            if lake_error is not None:
                raise lake_error from error
            self.failures.setdefault(table, UnreadableTable(table, causes.summarize(error)))
        return None
