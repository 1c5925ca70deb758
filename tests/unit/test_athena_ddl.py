"""The statements that register a table from inside Athena, read back by a parser of its dialect."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import sqlglot
from pyspark.sql import types as T

from replicator.catalog import athena_ddl
from replicator.catalog.entries import entries
from tests.catalogued import HUDI, silver


def parsed(statement: str) -> Any:
    [one] = sqlglot.parse(statement, dialect="athena", error_level=sqlglot.ErrorLevel.RAISE)
    assert one is not None
    return one


def test_a_table_in_delta_is_one_statement_of_place_and_type() -> None:
    """Athena allows nothing else and reads the columns from the log."""
    table, view = entries(silver(id="INT"), "lakehouse")
    [statement] = athena_ddl.statements(table, "lakehouse")
    assert statement == (
        "CREATE EXTERNAL TABLE IF NOT EXISTS `lakehouse`.`orders__all`\n"
        "LOCATION 's3://bucket/lake/silver/shop/sales.orders'\nTBLPROPERTIES ('table_type' = 'DELTA')"
    )
    assert parsed(statement).find(sqlglot.exp.Table).name == "orders__all"
    [statement] = athena_ddl.statements(view, "lakehouse")
    tree = parsed(statement)
    assert (tree.kind, tree.expression.named_selects) == ("VIEW", ["id"])


def test_a_table_in_hudi_is_told_whole_with_its_partitions_in_portions() -> None:
    """830 partitions are nine statements; a parser for Athena reads every column back as it was meant."""
    folders = tuple(f"customer_id=C{at % 89}/order_id={at}" for at in range(830))
    kept = replace(HUDI, partition_by=("customer_id", "order_id"), folders=folders)
    told = silver(kept, order_id="INT", customer_id="STRING", placed="TIMESTAMP")
    told = replace(told, comments={"placed": "it's \\ here"})
    table = entries(told, "lakehouse")[0]
    first, *added = athena_ddl.statements(table, "lakehouse")
    tree = parsed(first)
    read = {column.name: column.kind.sql(dialect="hive").lower() for column in tree.this.expressions}
    assert read == {each.name: each.hive.replace(",", ", ") for each in table.columns}
    assert "it\\'s \\\\ here" in first
    assert "HoodieParquetInputFormat" in first
    assert "'EXTERNAL'" not in first
    assert [len(re.findall("^PARTITION", each, re.MULTILINE)) for each in added] == [100] * 8 + [30]
    assert "PARTITION (`customer_id` = 'C1', `order_id` = 1) LOCATION" in added[0]
    assert isinstance(parsed("\n".join(added[0].splitlines()[:2])), (sqlglot.exp.Alter, sqlglot.exp.Command))


def test_a_partition_without_a_value_is_told_as_hive_names_it() -> None:
    """Also of a column of numbers."""
    kept = replace(HUDI, partition_by=("order_id",), folders=("order_id=__HIVE_DEFAULT_PARTITION__",))
    table = entries(silver(kept, order_id="INT", id="INT"), "lakehouse")[0]
    assert "(`order_id` = '__HIVE_DEFAULT_PARTITION__')" in athena_ddl.statements(table, "lakehouse")[1]


def test_a_partition_below_zero_is_told_as_a_text() -> None:
    """Hive's grammar knows no sign in a partition's value, and takes the text of a number for it."""
    kept = replace(HUDI, partition_by=("order_id",), folders=("order_id=-5", "order_id=5"))
    table = entries(silver(kept, order_id="INT", id="INT"), "lakehouse")[0]
    statement = athena_ddl.statements(table, "lakehouse")[1]
    assert re.findall(r"\(`order_id` = (\S+)\)", statement) == ["'-5'", "5"]


def test_fields_are_quoted_as_columns_are() -> None:
    """Hive's grammar, which reads the statement, refuses words of its own and a leading `_` else."""
    inner = T.StructType([T.StructField("date", T.DateType()), T.StructField("_id", T.DecimalType(10, 2))])
    outer = T.StructType([T.StructField("Order", T.ArrayType(inner))])
    told = silver(HUDI, id="INT")
    told = replace(told, schema=T.StructType([T.StructField("s", outer), *told.schema]))
    table = entries(told, "lakehouse")[0]
    assert "`s` struct<`order`:array<struct<`date`:date,`_id`:decimal(10,2)>>>" in athena_ddl.statements(table, "l")[0]
    assert table.columns[5].hive == "struct<order:array<struct<date:date,_id:decimal(10,2)>>>", "Glue has no quotes"
