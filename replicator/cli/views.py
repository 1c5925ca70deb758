"""Temporary views of a lake's tables: live silver rows with the source's columns, histories and twins, and gold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from replicator import names
from replicator.catalog.as_of import AsOf
from replicator.catalog.tables import is_named, list_views, refuse_case_conflict, views_for, without_hidden
from replicator.errors import ConfigError
from replicator.formats import control
from replicator.spelling import did_you_mean_table
from replicator.transforms.live import select_live

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from replicator.lake import Lake
    from replicator.protocols import TableFormat
    from replicator.spec import Table

__all__ = ["find_table", "gold_tables", "list_views", "register", "register_views", "silver_tables"]


def register(spark: SparkSession, tables_of: TableFormat, lake: Lake, query: str) -> list[str]:
    """Create a view of every table whose name occurs in *query*; return all known names.

    The names are those of ``catalog.tables.list_views``. Tables that the query does not name are not opened.
    """
    tables = views_for(query, silver_tables(spark, tables_of, lake), gold_tables(spark, tables_of, lake))
    return register_views(spark, tables_of, tables, query, AsOf(None, partial(tables_of.version_at, spark)))


def register_views(
    spark: SparkSession, tables_of: TableFormat, tables: Mapping[str, Table], query: str, past: AsOf
) -> list[str]:
    """Create a view of each of the tables, at the version of ``past``, whose name occurs in *query*; return all names.
    Raises ConfigError for names that differ only in case: Spark would show the rows of the last one.
    """
    refuse_case_conflict(tables, query)

    def view(name: str, table: Table, version: int | None) -> None:
        select_live(tables_of.read(spark, table, version)).createOrReplaceTempView(names.quote_spark(name))

    for name, table in tables.items():
        if is_named(name, query):
            past.resolve(name, table, partial(view, name))
    return sorted(tables)


def find_table(spark: SparkSession, tables_of: TableFormat, lake: Lake, name: str) -> Table:
    """Return the table that ``sql`` knows by a name, or by ``[<source>/]<database or schema>.<table>``. Raises
    ConfigError.
    """
    silver = without_hidden(silver_tables(spark, tables_of, lake))
    known = list(list_views(silver, gold_tables(spark, tables_of, lake)))
    same = [table for view, table in known if name.casefold() == view.casefold()]
    long = {f"{source}/{full}": table for source, full, table in silver if name in (full, f"{source}/{full}")}
    if len(places := {table.location: table for table in same or long.values()}) == 1:
        return next(iter(places.values()))
    what = (
        f"{name!r} matches several tables"
        if places
        else f"table {name!r} does not exist{did_you_mean_table(name, dict(known))}"
    )
    listed = ", ".join(sorted(long or dict(known))) or "no tables in this lake yet"
    raise ConfigError(what, fix=f"Available: {listed}.")


def silver_tables(spark: SparkSession, tables_of: TableFormat, lake: Lake) -> list[tuple[str, str, Table]]:
    """Return every silver table, history and twin of the lake: source, ``<database or schema>.<table>``, table.

    Histories and twins come first: where a table of the source has the name of one, the name refers to the source's
    table.
    """
    found = [
        (source, f"{table}{ending}", locate(source, table))
        for ending, root, locate in lake.companions()
        for source, table in _list_tables(spark, tables_of, root)
    ]
    return found + [(*plain, lake.silver(*plain)) for plain in _list_tables(spark, tables_of, lake.silver_root())]


def _list_tables(spark: SparkSession, tables_of: TableFormat, root: str) -> Iterator[tuple[str, str]]:
    """Yield the source and name of each table below a folder that has one folder per source."""
    for source in filter(names.is_encoded, control.list_folders(spark, root)):
        for table in tables_of.tables(spark, f"{root}/{source}"):
            yield names.decode(source), names.decode_table(table)


def gold_tables(spark: SparkSession, tables_of: TableFormat, lake: Lake) -> list[tuple[str, Table]]:
    """Return every gold model of the lake: name and table."""
    return [
        (names.decode(model), lake.gold(names.decode(model))) for model in tables_of.tables(spark, lake.gold_root())
    ]
