"""Which tables of a lake are registered in a catalog, and under which names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator import names
from replicator.catalog.entries import ALL, LakeTable
from replicator.errors import CatalogRefused, ConfigError
from replicator.spec import Model, Table
from replicator.spelling import did_you_mean_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.protocols import TableFormat

SILVER, GOLD = "silver", "gold"

_WORD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True)
class CatalogTable:
    """A table of the lake: its layer, its source ('' in gold), its name there, its location, and its name
    in catalogs.
    """

    layer: str
    source: str
    name: str
    table: Table
    catalog_name: str

    @property
    def title(self) -> str:
        """``silver/shop/sales.orders``, ``gold/dim_customers``."""
        return "/".join(part for part in (self.layer, self.source, self.name) if part)

    def is_called(self, name: str) -> bool:
        """Whether *name* denotes it: ``sales.orders``, ``shop/sales.orders``, its last part, a model."""
        return name in (self.name, f"{self.source}/{self.name}", self.name.rpartition(".")[2], self.catalog_name)

    def entry_names(self) -> tuple[str, ...]:
        """The names that its entries may have."""
        every = f"{self.catalog_name}{ALL}"
        return (self.catalog_name, *((every, f"{every}_rt", f"{every}_ro") if self.layer == SILVER else ()))


def list_tables(
    silver: Iterable[tuple[str, str, Table]],
    gold: Iterable[tuple[str, Table]],
    views: Iterable[tuple[str, Table]],
) -> list[CatalogTable]:
    """Return all tables. *views* are the names that queries know, the shortest of a table last: catalogs use that one,
    in lower case and encoded as columns are, since Athena supports no others.
    """
    known = {table.location: _plain(name).lower() for name, table in views}
    found = [CatalogTable(SILVER, source, name, table, known[table.location]) for source, name, table in silver]
    return [*found, *(CatalogTable(GOLD, "", model, table, known[table.location]) for model, table in gold)]


def _plain(name: str) -> str:
    return name if _WORD.fullmatch(name) else names.encode(name)


def select_tables(every: Sequence[CatalogTable], source: str | None, tables: Sequence[str]) -> list[CatalogTable]:
    """Return the tables of a source, or the named ones; all without either. Raises ConfigError for an unknown name."""
    known = {place.source for place in every if place.source}
    if source is not None and source not in known:
        listed = ", ".join(sorted(known)) or "none in this lake yet"
        raise ConfigError(f"source {source!r} does not exist", fix=f"Available: {listed}.")
    for name in tables:
        if not any(place.is_called(name) for place in every):
            full_names = sorted(f"{place.source}/{place.name}".lstrip("/") for place in every)
            listed = ", ".join(full_names) or "none in this lake yet"
            raise ConfigError(
                f"table {name!r} does not exist{did_you_mean_table(name, full_names)}", fix=f"Available: {listed}."
            )
    return [
        place for place in every if source in (None, place.source) and (not tables or any(map(place.is_called, tables)))
    ]


def collisions(every: Iterable[CatalogTable]) -> dict[str, CatalogRefused]:
    """Return, by title, the errors of tables that need a name which another one needs, too; none of them gets it."""
    owners: dict[str, list[str]] = {}
    for place in every:
        for name in place.entry_names():
            owners.setdefault(name, []).append(place.title)
    return {
        title: CatalogRefused(
            f"{' and '.join(titles)} would both be named {name} in lower case",
            where=title,
            fix="Keep one of them in another lake, or rename it at the source.",
        )
        for name, titles in reversed(owners.items())  # of several names the first is reported
        if len(titles) > 1
        for title in titles
    }


def describe_table(
    spark: SparkSession, tables_of: TableFormat, place: CatalogTable, models: Mapping[str, Model]
) -> LakeTable:
    """Return a table's current state, with the descriptions of its model. Raises TableMissing."""
    schema, detail = tables_of.read(spark, place.table).schema, tables_of.detail(spark, place.table)
    model = models.get(place.name) if place.layer == GOLD else None
    if model is None:
        return LakeTable(place.catalog_name, place.title, place.table.location, schema, detail)
    comments = {column.name: column.description for column in model.columns}
    return LakeTable(place.catalog_name, place.title, place.table.location, schema, detail, model.description, comments)
