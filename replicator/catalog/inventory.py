"""The tables of a lake to be registered in a catalog: a table that cannot be read does not affect the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator.catalog import catalog_tables
from replicator.catalog.catalog_tables import CatalogTable
from replicator.catalog.entries import Entry, LakeTable, entries, url
from replicator.catalog.sync import Outcome, Plan, refused_outcome
from replicator.errors import TableMissing, TableStopped
from replicator.jvm import causes
from replicator.jvm.failures import FAILURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.protocols import TableFormat
    from replicator.spec import Model


@dataclass(frozen=True)
class Inventory:
    """The selected ``tables``, the ``plan`` for the catalog, and the outcomes of those that were ``refused``."""

    tables: tuple[LakeTable, ...]
    plan: Plan
    refused: tuple[Outcome, ...]


@dataclass(frozen=True)
class TableSelection:
    """The selected tables: those of a source, or the named ones; all without either."""

    source: str | None = None
    tables: tuple[str, ...] = ()

    def includes(self, title: str, titles: Iterable[str]) -> bool:
        """Whether a table that may no longer exist in the lake is selected: a named one only while it exists."""
        selects_all = self.source is None and not self.tables
        in_source = not self.tables and title.startswith(f"{catalog_tables.SILVER}/{self.source}/")
        return selects_all or in_source or title in titles


def build(
    spark: SparkSession,
    tables_of: TableFormat,
    root: str,
    every: Sequence[CatalogTable],
    question: TableSelection,
    database: str,
    models: Iterable[Model],
) -> Inventory:
    """Return the inventory of the selected ones among all tables of the lake at *root*. Raises ConfigError for an
    unknown name.
    """
    selected = catalog_tables.select_tables(every, question.source, question.tables)
    known, twins = {model.name: model for model in models}, catalog_tables.collisions(every)
    described = [_describe_table(spark, tables_of, place, known, twins.get(place.title)) for place in selected]
    tables = [each for each in described if isinstance(each, LakeTable)]
    registered = [(table, _entries(table, database)) for table in tables]
    titles = {place.title for place in selected}
    plan = Plan(
        url(root),
        tuple(entry for _, made in registered if not isinstance(made, Outcome) for entry in made),
        frozenset(place.title for place in every),
        lambda title: question.includes(title, titles),
    )
    unread = [each for each in described if isinstance(each, Outcome)]
    return Inventory(
        tuple(table for table, made in registered if not isinstance(made, Outcome)),
        plan,
        (*unread, *(made for _, made in registered if isinstance(made, Outcome))),
    )


def _describe_table(
    spark: SparkSession,
    tables_of: TableFormat,
    place: CatalogTable,
    models: Mapping[str, Model],
    twin: TableStopped | None,
) -> LakeTable | Outcome:
    if twin is not None:
        return refused_outcome(place.catalog_name, place.title, twin)
    try:
        return catalog_tables.describe_table(spark, tables_of, place, models)
    except (TableMissing, TableStopped) as error:
        return refused_outcome(place.catalog_name, place.title, error)
    except FAILURES as error:
        if causes.is_infrastructure(error):
            raise
        why = f"the table cannot be read: {causes.summarize(error)}"
        return refused_outcome(place.catalog_name, place.title, TableStopped(why, where=place.title))


def _entries(table: LakeTable, database: str) -> list[Entry] | Outcome:
    try:
        return entries(table, database)
    except TableStopped as error:
        return refused_outcome(table.name, table.title, error)
