"""The tables of a lake as temporary views: live silver rows with the source's columns, histories, and gold models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import names
from replicator.catalog.tables import is_named, views
from replicator.formats import control
from replicator.lake import HISTORY
from replicator.transforms.live import live

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from replicator.lake import Lake
    from replicator.protocols import TableFormat
    from replicator.spec import Table

__all__ = ["gold_tables", "named", "register", "silver_tables", "views"]


def register(spark: SparkSession, tables_of: TableFormat, lake: Lake, query: str) -> list[str]:
    """Make a view of every table whose name stands in *query*; return all names that there are.

    The names are those of ``catalog.tables.views``. Tables that the query does not mention are not even opened.
    """
    tables = views(silver_tables(spark, tables_of, lake), gold_tables(spark, tables_of, lake))
    return named(spark, tables_of, dict(tables), query)


def named(spark: SparkSession, tables_of: TableFormat, tables: Mapping[str, Table], query: str) -> list[str]:
    """The same, of tables that are known already."""
    for name, table in tables.items():
        if is_named(name, query):
            live(tables_of.read(spark, table)).createOrReplaceTempView(names.spark(name))
    return sorted(tables)


def silver_tables(spark: SparkSession, tables_of: TableFormat, lake: Lake) -> list[tuple[str, str, Table]]:
    """Every silver table of the lake and every history: source, ``<database or schema>.<table>``, where it lies.

    Histories come first: a table of the source's own that has such a name is the one that is meant.
    """
    found = _histories(spark, tables_of, lake)
    for source in control.folders(spark, lake.silver_root()):
        for table in tables_of.tables(spark, f"{lake.silver_root()}/{source}"):
            plain = names.decode(source), names.decode_table(table)
            found.append((*plain, lake.silver(*plain)))
    return found


def _histories(spark: SparkSession, tables_of: TableFormat, lake: Lake) -> list[tuple[str, str, Table]]:
    found: list[tuple[str, str, Table]] = []
    for source in map(names.decode, control.folders(spark, lake.history_root())):
        tables = map(names.decode_table, tables_of.tables(spark, lake.history_root(source)))
        found.extend((source, f"{table}{HISTORY}", lake.history(source, table)) for table in tables)
    return found


def gold_tables(spark: SparkSession, tables_of: TableFormat, lake: Lake) -> list[tuple[str, Table]]:
    """Every gold model of the lake: its name, where it lies."""
    return [
        (names.decode(model), lake.gold(names.decode(model))) for model in tables_of.tables(spark, lake.gold_root())
    ]
