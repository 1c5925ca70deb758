"""What a lake has to be told to a catalog: read from its tables, one that cannot be told leaving the others alone."""

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
    """The ``tables`` that were asked for, the ``plan`` for the catalog, and outcomes of those that were
    ``refused_outcome``.
    """

    tables: tuple[LakeTable, ...]
    plan: Plan
    refused: tuple[Outcome, ...]


@dataclass(frozen=True)
class TableSelection:
    """Which tables are asked for: those of a source, those that are named, all without either."""

    source: str | None = None
    tables: tuple[str, ...] = ()

    def concerns(self, title: str, asked: Iterable[str]) -> bool:
        """Whether a table that the lake may have no more is in question: a named one only while it is there."""
        is_whole = self.source is None and not self.tables
        of_source = not self.tables and title.startswith(f"{catalog_tables.SILVER}/{self.source}/")
        return is_whole or of_source or title in asked


def build(
    spark: SparkSession,
    tables_of: TableFormat,
    root: str,
    every: Sequence[CatalogTable],
    question: TableSelection,
    database: str,
    models: Iterable[Model],
) -> Inventory:
    """Of all places of the lake at *root* those that are asked for. Raises ConfigError for a name that nothing has."""
    asked = catalog_tables.select_tables(every, question.source, question.tables)
    known, twins = {model.name: model for model in models}, catalog_tables.collisions(every)
    told = [_describe_table(spark, tables_of, place, known, twins.get(place.title)) for place in asked]
    tables = [each for each in told if isinstance(each, LakeTable)]
    registered = [(table, _entries(table, database)) for table in tables]
    titles = {place.title for place in asked}
    plan = Plan(
        url(root),
        tuple(entry for _, made in registered if not isinstance(made, Outcome) for entry in made),
        frozenset(place.title for place in every),
        lambda title: question.concerns(title, titles),
    )
    unread = [each for each in told if isinstance(each, Outcome)]
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
