"""The tables of a lake as temporary views: live silver rows with the source's columns, histories, and gold models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from replicator import names
from replicator.formats import control
from replicator.lake import HISTORY
from replicator.transforms.live import live

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from replicator.lake import Lake
    from replicator.protocols import TableFormat
    from replicator.spec import Table


def register(spark: SparkSession, tables_of: TableFormat, lake: Lake, query: str) -> list[str]:
    """Make a view of every table whose name stands in *query*; return all names that there are.

    A gold model goes by its name, a silver table by ``<source>__<database or schema>__<table>`` and, where no other
    table has it, by its last name too; its history has ``__history`` behind either. Tables that the query does not
    mention are not even opened.
    """
    tables = dict(views(silver_tables(spark, tables_of, lake), gold_tables(spark, tables_of, lake)))
    for name, table in tables.items():
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE):
            live(tables_of.read(spark, table)).createOrReplaceTempView(names.spark(name))
    return sorted(tables)


def views(silver: list[tuple[str, str, Table]], gold: list[tuple[str, Table]]) -> Iterator[tuple[str, Table]]:
    """The name of each view with its table, as :func:`register` describes; *silver* is (source, table name, table)."""
    shorts = [name.rpartition(".")[2].casefold() for _, name, _ in silver]
    taken = {name.casefold() for name, _ in gold}
    yield from gold
    for (source, name, table), short in zip(silver, shorts, strict=True):
        yield "__".join(names.encode(part) for part in (source, *name.split(".", 1))), table
        if shorts.count(short) == 1 and short not in taken:
            yield name.rpartition(".")[2], table


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
