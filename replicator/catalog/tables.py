"""The tables of a lake by the names that queries use, and their locations, found without Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from replicator import names
from replicator.errors import ConfigError
from replicator.spec import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyarrow.fs import FileSystem

    from replicator.catalog.store import Store
    from replicator.lake import Lake

_HUDI_PROPERTIES = ".hoodie/hoodie.properties"
_MARKER_FILES = {"_delta_log": "delta", _HUDI_PROPERTIES: "hudi", f"{_HUDI_PROPERTIES}.backup": "hudi"}
"""Files in the folder of a table by which its format is recognized; the copy exists alone if Hudi's writer crashed
while rewriting the original.
"""


Silver = tuple[str, str, Table]
"""A silver table, a history or a twin: its source, ``<database or schema>.<table>``, its location."""


def view_name(source: str, name: str) -> str:
    """The unique name of a silver table: ``<source>__<database or schema>__<table>``."""
    return "__".join(names.encode(part) for part in (source, *name.split(".", 1)))


def list_views(silver: Sequence[Silver], gold: Sequence[tuple[str, Table]]) -> Iterator[tuple[str, Table]]:
    """Yield the name of each view with its table.

    A gold model has its own name; a silver table its long name and, if no other table has it as either, also its last
    part; its history has the suffix ``__history`` after either, its copy in another format ``__delta`` or ``__hudi``.
    """
    shorts = [name.rpartition(".")[2].casefold() for _, name, _ in silver]
    taken = {name.casefold() for name, _ in gold} | {view_name(source, name).casefold() for source, name, _ in silver}
    yield from gold
    for (source, name, table), short in zip(silver, shorts, strict=True):
        yield view_name(source, name), table
        if shorts.count(short) == 1 and short not in taken:
            yield name.rpartition(".")[2], table


def views_for(query: str, silver: Sequence[Silver], gold: Sequence[tuple[str, Table]]) -> dict[str, Table]:
    """Return the table of each view. Raises ConfigError if the query contains a name that several tables have: a model
    may have a long name, and those of ``a__b.c`` and ``a.b__c`` are the same.
    """
    views = list(list_views(without_hidden(silver), gold))
    known = dict(views)
    for name, table in views:
        if known[name] != table and is_named(name, query):
            fix = "Use another of its names, or rename one of them."
            raise ConfigError(f"{name} may be {table.name} or {known[name].name}", fix=fix)
    return known


def without_hidden(silver: Iterable[Silver]) -> list[Silver]:
    """The tables without histories and twins whose name a table of the source has, which comes after them."""
    return list({(source, name): (source, name, table) for source, name, table in silver}.values())


def databases(silver: Iterable[Silver]) -> dict[tuple[str, str], tuple[str, ...]]:
    """``<database or schema>.<table>`` in two parts, in lower case -> the views that it may denote."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for source, name, _ in without_hidden(silver):
        database, _, table = name.lower().partition(".")
        found[database, table] = (*found.get((database, table), ()), view_name(source, name))
    return found


def is_named(name: str, query: str) -> bool:
    """Whether the name of a view occurs in a query, quoted or not. Tables that do not are not opened."""
    spelled = {name, name.replace('"', '""'), name.replace("`", "``")}
    return re.search(rf"(?<!\w)({'|'.join(map(re.escape, spelled))})(?!\w)", query, re.IGNORECASE) is not None


def refuse_case_conflict(known: Iterable[str], query: str) -> None:
    """Raise ConfigError if a query names one of two tables that differ by case only: engines do not distinguish them,
    and the rows could be those of either.
    """
    twins = names.find_case_conflict(name for name in known if is_named(name, query))
    if twins is not None:
        fix = "Keep one of them in another lake, or rename it at the source."
        raise ConfigError(f"{twins[0]} and {twins[1]} are two tables that no query can distinguish", fix=fix)


class LakeListing:
    """The tables of one lake, as listed in its folders. Raises Unreachable, ConfigError."""

    def __init__(self, store: Store, files: FileSystem, lake: Lake) -> None:
        self._store = store
        self._files = files
        self._lake = lake

    def kind(self, location: str) -> str | None:
        """``delta`` or ``hudi``; None if there is no table."""
        kinds = (kind for mark, kind in _MARKER_FILES.items() if self._store.has(self._files, f"{location}/{mark}"))
        return next(kinds, None)

    def silver(self) -> list[Silver]:
        """Return every history, twin and silver table. Silver tables come last: a table of the source that has the name
        of a history or a twin takes precedence.
        """
        lake = self._lake
        companions = [
            (source, f"{table}{ending}", make_table(source, table))
            for ending, root, make_table in lake.companions()
            for source, table in self._of(root)
        ]
        tables = [(source, table, lake.silver(source, table)) for source, table in self._of(lake.silver_root())]
        return companions + tables

    def gold(self) -> list[tuple[str, Table]]:
        """Return every gold model."""
        models = map(names.decode, self._tables(self._lake.gold_root()))
        return [(model, self._lake.gold(model)) for model in models]

    def _of(self, root: str) -> Iterator[tuple[str, str]]:
        for source in filter(names.is_encoded, self._store.folders(self._files, root)):
            for table in self._tables(f"{root}/{source}"):
                yield names.decode(source), names.decode_table(table)

    def _tables(self, folder: str) -> list[str]:
        """Only folders with encoded names: somebody's copy beside a table is not part of the lake."""
        children = filter(names.is_encoded, self._store.folders(self._files, folder))
        return [child for child in children if self.kind(f"{folder}/{child}")]
