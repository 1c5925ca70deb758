"""Tables without a key, recorded from real Debezium, declared append-only or with keys (debezium.md B4, C1, D4;
measured Z2.6).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import EQUAL
from replicator.spec import Column, Declaration, SourceSpec
from tests.golden.run import Run
from tests.golden.test_recordings import stream

pytestmark = pytest.mark.spark

COLUMNS = (Column("a", "int"), Column("b", "string"))


def run_of(spark: SparkSession, folder: Path, prefix: str, table: str, *, memory: bool = True, **declared: Any) -> Run:
    told = Declaration(table, COLUMNS, append_only=True, **declared)
    return Run(spark, folder, SourceSpec(prefix, f"{prefix}.*", tables=(told,)), memory=memory)


def shown(run: Run, table: str) -> list[tuple[Any, ...]]:
    return sorted((row["a"], row["b"]) for row in run.shown(table).values())


@pytest.mark.parametrize("name", ["dbserver1", "cmtx", "cmflat"])
def test_a_table_of_mariadb_has_every_row_that_was_inserted(
    exact: SparkSession, recorded: Path, tmp_path: Path, name: str
) -> None:
    """`INSERT ... VALUES (1,'x'),(1,'x'),(2,'y')` is three rows, by the row of the event; its update and its delete are
    told; the whole stream again is nothing new.
    """
    table = "classicmodels.keyless"
    records = stream(recorded, f"classicmodels.{name}", table)
    run = run_of(exact, tmp_path, name, table, deletes="rewrite" if name == "cmflat" else None)
    run.take(records)
    run.take([each | {"offset": each["offset"] + 1000} for each in records])
    assert shown(run, table) == [(1, "x"), (1, "x"), (2, "y")]
    [first, _] = run.accounts
    assert (first.applied, first.dead_lettered, first.ignored) == (3, 2, {"tombstone": 1})


def test_a_table_of_postgresql_in_delta_is_what_a_rebuild_makes(
    exact: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    """P2, P3: two equal rows of a snapshot and an insert, record by record, then the stream again; in bronze as a whole
    they are the same rows by the same keys.
    """
    table = "h.nopk_full"
    records = stream(recorded, "hostile_pg.pgdouble", table)
    run = run_of(exact, tmp_path, "pgdouble", table, memory=False)
    for start, end in ((0, 1), (1, 3), (3, 8)):
        run.take(records[start:end])
    run.take([each | {"offset": each["offset"] + 1000} for each in records])
    assert shown(run, table) == [(1, "a"), (1, "a"), (2, "b")]
    assert rebuild(exact, run.at, table, RebuildOptions()).verdict == EQUAL


@pytest.mark.parametrize(("file", "table", "live"), [
    ("hostile_pg.pgdouble", "h.nopk_full", [(2, "bb")]),
    ("classicmodels.dbserver1", "classicmodels.keyless", [(2, "z")]),
], ids=["postgresql", "mariadb"])  # fmt: skip
def test_of_declared_keys_an_update_leaves_nothing_under_the_old_one(
    exact: SparkSession, recorded: Path, tmp_path: Path, file: str, table: str, live: list[tuple[int, str]]
) -> None:
    """B4: what `before` says, in one batch and sent again; of two equal rows there is one, which a delete takes."""
    prefix = file.partition(".")[2]
    told = Declaration(table, COLUMNS, keys=("a", "b"))
    run = Run(exact, tmp_path, SourceSpec(prefix, f"{prefix}.*", tables=(told,)))
    records = stream(recorded, file, table)
    run.take(records)
    run.take([each | {"offset": each["offset"] + 1000} for each in records])
    assert shown(run, table) == live
