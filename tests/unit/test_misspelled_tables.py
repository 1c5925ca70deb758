"""A table that a source's file misspells is told of with the first of its records: what is said of it is not done."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from replicator.stages.tick import misspelled_tables
from replicator.stages.tick.routing import Routes
from tests.builders import bronze, envelope, record

TABLES = {"s.shop.orders": ("shop.orders",), "s.shop.order_lines": ("shop.order_lines",)}


def source(*tables: str) -> SourceSpec:
    return SourceSpec("s", ".*", tables=tuple(Declaration(table, (Column("id", "int"),)) for table in tables))


@pytest.mark.parametrize(
    ("declared", "is_told"),
    [
        (("shop.ordrs",), True),
        (("Shop.orders",), True),
        (("shop.orders",), False),
        (("shop.ordrs", "shop.orders"), False),
        (("shop.order_lines",), False),
        (("shop.customers",), False),
        ((), False),
    ],
)
def test_a_name_that_is_nearly_a_new_tables_is_told(declared: tuple[str, ...], is_told: bool) -> None:
    """Where nothing is said of the table itself, and no topic has carried the other: neighbours are no mistakes."""
    words = misspelled_tables.find_warnings("shop.orders", Routes("", TABLES), source(*declared))
    assert [declared[0] in each for each in words] == ([True] if is_told else [])


@pytest.mark.spark
def test_a_run_tells_it_once(spark: SparkSession, tmp_path: Path) -> None:
    """With the table's first batch, and not with each that follows."""
    tables = MemoryFormat()
    at = Refinement(source("shop.ordrs"), tables, tables, MemoryControl(), Lake(str(tmp_path)), 1.0)
    told = []
    for offset in (1, 2):
        change = envelope("c", {"id": offset}, pos=10 * offset)
        at.bronze.append(
            bronze(spark, [record("s.shop.orders", offset, {"id": offset}, change)]), at.lake.bronze("s"), None
        )
        [account] = silver.refine(spark, at)
        assert account.error is None
        told.append([each for each in account.warnings if "shop.ordrs" in each])
    assert [len(each) for each in told] == [1, 0]
