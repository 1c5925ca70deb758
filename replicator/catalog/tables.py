"""The tables of a lake by the names that queries have for them, and where they lie, found without Spark."""

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
"""What lies in the folder of a table of a format; the copy where Hudi's writer died while it wrote the first anew."""


Silver = tuple[str, str, Table]
"""A silver table, a history or a twin: its source, ``<database or schema>.<table>``, where it lies."""


def view_name(source: str, name: str) -> str:
    """The name of a silver table that no other has: ``<source>__<database or schema>__<table>``."""
    return "__".join(names.encode(part) for part in (source, *name.split(".", 1)))


def list_views(silver: Sequence[Silver], gold: Sequence[tuple[str, Table]]) -> Iterator[tuple[str, Table]]:
    """The name of each view with its table.

    A gold model goes by its name, a silver table by its long name and, where no other table has it, by its last name
    too; its history has ``__history`` behind either, its copy in another format ``__delta`` or ``__hudi``.
    """
    shorts = [name.rpartition(".")[2].casefold() for _, name, _ in silver]
    taken = {name.casefold() for name, _ in gold}
    yield from gold
    for (source, name, table), short in zip(silver, shorts, strict=True):
        yield view_name(source, name), table
        if shorts.count(short) == 1 and short not in taken:
            yield name.rpartition(".")[2], table


def databases(silver: Iterable[Silver]) -> dict[tuple[str, str], tuple[str, ...]]:
    """``<database or schema>.<table>`` in two parts, in small letters -> the views that it may mean."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for source, name, _ in silver:
        database, _, table = name.lower().partition(".")
        found[database, table] = (*found.get((database, table), ()), view_name(source, name))
    return found


def is_named(name: str, query: str) -> bool:
    """Whether the name of a view stands in a query. Tables that do not are not even opened."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE) is not None


def refuse_case_conflict(known: Iterable[str], query: str) -> None:
    """Raise ConfigError where a query names one of two tables that only case tells apart: to an engine both are one,
    and the rows would be those of either.
    """
    twins = names.find_case_conflict(name for name in known if is_named(name, query))
    if twins is not None:
        mend = "Keep one of them in another lake, or rename it at the source."
        raise ConfigError(f"{twins[0]} and {twins[1]} are two tables, which no query tells apart", mend=mend)


class LakeListing:
    """The tables of one lake, as its folders tell. Raises Unreachable, ConfigError."""

    def __init__(self, store: Store, files: FileSystem, lake: Lake) -> None:
        self._store = store
        self._files = files
        self._lake = lake

    def kind(self, location: str) -> str | None:
        """``delta`` or ``hudi``; None where no table is."""
        kinds = (kind for mark, kind in _MARKER_FILES.items() if self._store.has(self._files, f"{location}/{mark}"))
        return next(kinds, None)

    def silver(self) -> list[Silver]:
        """Every history, twin and silver table. Those beside silver come first: a table of the source's own that has
        such a name is the one that is meant.
        """
        lake = self._lake
        beside = [
            (source, f"{table}{ending}", of(source, table))
            for ending, root, of in lake.companions()
            for source, table in self._of(root)
        ]
        tables = [(source, table, lake.silver(source, table)) for source, table in self._of(lake.silver_root())]
        return beside + tables

    def gold(self) -> list[tuple[str, Table]]:
        """Every gold model."""
        models = map(names.decode, self._tables(self._lake.gold_root()))
        return [(model, self._lake.gold(model)) for model in models]

    def _of(self, root: str) -> Iterator[tuple[str, str]]:
        for source in filter(names.is_encoded, self._store.folders(self._files, root)):
            for table in self._tables(f"{root}/{source}"):
                yield names.decode(source), names.decode_table(table)

    def _tables(self, folder: str) -> list[str]:
        """Of names that we give: somebody's copy beside a table is none of ours."""
        children = filter(names.is_encoded, self._store.folders(self._files, folder))
        return [child for child in children if self.kind(f"{folder}/{child}")]
