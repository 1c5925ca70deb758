"""The moment at which a query sees its tables: each at its own version of then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import time_travel
from replicator.catalog.tables import is_named
from replicator.errors import VersionMissing

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from replicator.spec import CommittedVersion, Table


class AsOf:
    """What is read of each table: the version of ``when``, a version or a time; without one whatever is newest.

    ``find`` says which one that is. A table that was not there then is no error before it turns out that the query
    means it: its name may be a column's.
    """

    def __init__(self, when: int | datetime | None, find: Callable[[Table, int | datetime], CommittedVersion]) -> None:
        self.when = when
        self._find = find
        self._seen: dict[str, CommittedVersion] = {}
        self._missing: dict[str, VersionMissing] = {}

    def opens(self, name: str, table: Table, read: Callable[[Table, int | None], None]) -> bool:
        """Have the table that a query may know by this name read; whether it was there."""
        try:
            version = None if self.when is None else self._version(table, self.when)
            read(table, version)
        except VersionMissing as error:
            self._missing[name] = error
            return False
        return True

    def explain(self, unknown: str) -> None:
        """Raise why a table is not there that an engine does not know, by what it says about it."""
        for name, error in self._missing.items():
            if is_named(name, unknown):
                raise error

    def told(self) -> str | None:
        """Which versions were read, for people."""
        return "\n".join(f"{name}: {time_travel.describe(moment)}" for name, moment in self._seen.items()) or None

    def _version(self, table: Table, when: int | datetime) -> int:
        self._seen[table.name] = self._find(table, when)
        return self._seen[table.name].version
