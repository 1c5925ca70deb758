"""The tables of a lake as temporary views: live silver rows with the source's columns, what lies beside them, gold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import names
from replicator.catalog.tables import is_named, views
from replicator.formats import control
from replicator.transforms.live import live

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    """Every silver table of the lake, every history and twin: source, ``<database or schema>.<table>``, where it lies.

    Those beside silver come first: a table of the source's own that has such a name is the one that is meant.
    """
    found = [
        (source, f"{table}{ending}", of(source, table))
        for ending, root, of in lake.companions()
        for source, table in _of(spark, tables_of, root)
    ]
    return found + [(*plain, lake.silver(*plain)) for plain in _of(spark, tables_of, lake.silver_root())]


def _of(spark: SparkSession, tables_of: TableFormat, root: str) -> Iterator[tuple[str, str]]:
    """Source and table name of what lies below a folder with one folder per source."""
    for source in control.folders(spark, root):
        for table in tables_of.tables(spark, f"{root}/{source}"):
            yield names.decode(source), names.decode_table(table)


def gold_tables(spark: SparkSession, tables_of: TableFormat, lake: Lake) -> list[tuple[str, Table]]:
    """Every gold model of the lake: its name, where it lies."""
    return [
        (names.decode(model), lake.gold(names.decode(model))) for model in tables_of.tables(spark, lake.gold_root())
    ]
