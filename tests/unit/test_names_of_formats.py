"""Source columns that are called as what a table format, or a step on the way there, needs for itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.transforms.live import live
from tests.builders import Record, bronze, envelope, record

pytestmark = pytest.mark.spark


def lake(folder: Path, format_: DeltaFormat | MemoryFormat, *columns: str) -> Refinement:
    declared = Declaration("shop.orders", tuple(Column(name, "int") for name in columns))
    source = SourceSpec("s", ".*", tables=(declared,))
    return Refinement(source, format_, format_, MemoryControl(), Lake(str(folder)), 1.0)


def change(offset: int, key: dict[str, int], row: dict[str, int], *, pos: int, partition: int = 0) -> Record:
    return record("s.shop.orders", offset, key, envelope("u", row, pos=pos), partition=partition)


def taken(spark: SparkSession, at: Refinement, records: Sequence[Record]) -> Account:
    at.bronze.append(bronze(spark, records), at.lake.bronze("s"), None)
    [account] = silver.refine(spark, at)
    return account


def test_columns_called_as_those_of_a_change_feed_are_kept(exact: SparkSession, tmp_path: Path) -> None:
    """N-3: Delta makes no table with `_change_type`, and reads none again that has `_Commit_Version` by its side."""
    columns = {"_change_type": 1, "_Commit_Version": 2, "_commit_timestamp": 3}
    at = lake(tmp_path, DeltaFormat(), "id", *columns)
    for number in range(2):
        row = {"id": 7, **{name: value + number for name, value in columns.items()}}
        account = taken(exact, at, [change(number, {"id": 7}, row, pos=10 + number)])
        assert (account.error, account.applied) == (None, 1)
    [shown] = live(at.silver.read(exact, at.lake.silver("s", "shop.orders"))).collect()
    assert shown.asDict() == {"id": 7, **{name: value + 1 for name, value in columns.items()}}


@pytest.mark.parametrize("key", ["_part", "_said"])
def test_a_key_may_have_any_name_where_partitions_disagree(exact: SparkSession, tmp_path: Path, key: str) -> None:
    """Q11: what is asked of keys in several partitions is asked under names that no key has."""
    at = lake(tmp_path, MemoryFormat(), key, "v")
    records = [change(0, {key: 1}, {key: 1, "v": each}, pos=10, partition=each) for each in range(2)]
    account = taken(exact, at, records)
    assert account.error is None
    assert "cross_partition_tie" in account.warnings[0]
