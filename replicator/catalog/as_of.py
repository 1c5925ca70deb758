"""The moment as of which a query sees its tables: each at the version that it had then."""

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
    """The version of each table that is read: that of ``when``, a version or a time; the newest if ``when`` is None.

    ``find`` resolves the version. A table that did not exist then is an error only once the query turns out to need it:
    its name may be that of a column.
    """

    def __init__(self, when: int | datetime | None, find: Callable[[Table, int | datetime], CommittedVersion]) -> None:
        self.when = when
        self._find = find
        self._seen: dict[str, CommittedVersion] = {}
        self._missing: dict[str, VersionMissing] = {}

    def resolve(self, name: str, table: Table, read: Callable[[Table, int | None], None]) -> bool:
        """Read the table that a query may know by this name; return whether it existed then."""
        try:
            version = None if self.when is None else self._version(table, self.when)
            read(table, version)
        except VersionMissing as error:
            self._missing[name] = error
            return False
        return True

    def explain(self, unknown: str) -> None:
        """Raise the reason why a table is missing, if ``unknown``, the engine's message about an unknown table, names
        it.
        """
        for name, error in self._missing.items():
            if is_named(name, unknown):
                raise error

    def summary(self) -> str | None:
        """Return which versions were read, for display; None if only newest ones."""
        return "\n".join(f"{name}: {time_travel.describe(moment)}" for name, moment in self._seen.items()) or None

    def _version(self, table: Table, when: int | datetime) -> int:
        self._seen[table.name] = self._find(table, when)
        return self._seen[table.name].version
