"""A table kept in two formats from one definition, and the comparison of the two."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.errors import ReplicatorError
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.hudi import HudiFormat
from replicator.formats.mixed import MixedFormat
from replicator.lake import Lake
from replicator.operate import purge, verify
from replicator.operate.verify import Verdict
from replicator.spec import Column, Declaration, Progress, SourceSpec, Table
from replicator.stages import silver, twins
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.twins import TwinResult
from replicator.transforms.comparison import compare
from tests.builders import Record, bronze, envelope, made, record
from tests.cli import said

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

ORDERS, TURNED = "shop.orders", "shop.turned"
COLUMNS = (Column("id", "int"), Column("customer", "string"), Column("total", "int"))
BOTH = Declaration(ORDERS, COLUMNS, format="delta", twins=("hudi",), partition_by=("customer",), purge_after=60)
OTHER_WAY = replace(BOTH, table=TURNED, format="hudi", twins=("delta",))


@dataclass
class World:
    """A source with tables in two formats."""

    spark: SparkSession
    folder: Path
    declared: tuple[Declaration, ...] = (BOTH,)
    format: MixedFormat = field(default_factory=lambda: MixedFormat({"delta": DeltaFormat(), "hudi": HudiFormat()}))
    control: MemoryControl = field(default_factory=MemoryControl)

    @property
    def at(self) -> Refinement:
        spec = SourceSpec("s", ".*", tables=self.declared)
        return Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    def take(self, *records: Record) -> None:
        """One batch into the tables alone."""
        self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        assert [str(account.error) for account in silver.refine(self.spark, self.at) if account.error] == []

    def follow(self) -> list[TwinResult]:
        found = list(twins.follow(self.spark, self.at))
        assert [str(each.error) for each in found if each.error] == []
        return found

    def verdicts(self) -> list[Verdict]:
        warehouse = Warehouse(self.format, self.format, self.control, self.at.lake)
        checks = verify.VerifyInputs([self.at], ("delta", "hudi"), warehouse)
        return list(verify.verify(self.spark, verify.select_comparisons(self.spark, checks)))

    def places(self) -> list[tuple[Table, Table]]:
        """Each table, and its twin."""
        lake = self.at.lake
        return [(lake.silver("s", each.table), lake.twin("s", each.table, each.twins[0])) for each in self.declared]

    def are_equal(self) -> bool:
        """Whether each table has the rows of its twin."""
        held = [[sorted(map(str, self.format.read(self.spark, place).collect())) for place in places]
                for places in self.places()]  # fmt: skip
        assert all(of_table for of_table, _ in held)
        return all(of_table == of_twin for of_table, of_twin in held)


def change(op: str, offset: int, key: int, customer: str | None, total: Any, **more: Any) -> Record:
    table = more.pop("table", ORDERS)
    row = {"id": key, "customer": customer, "total": total, **more}
    told = envelope(op, None if op == "d" else row, row if op == "d" else None, pos=100 + offset, table=table)
    return record(f"s.{table}", offset, {"id": key}, told)


def test_a_twin_holds_what_its_table_holds_behind_every_change(exact: SparkSession, tmp_path: Path) -> None:
    """Rows that move between partitions, deletes, new columns, a column that changes its type, several commits at
    once, a purge: every row and system column, of a table in Delta with a twin in Hudi and the other way round; and
    where nothing happened nothing is written.
    """
    world = World(exact, tmp_path, (BOTH, OTHER_WAY))

    def take(*told: tuple[Any, ...], **more: Any) -> None:
        world.take(*[change(*each, **more, table=table) for table in (ORDERS, TURNED) for each in told])

    take(("c", 0, 1, "ALFKI", 1), ("c", 1, 2, "VINET", 2), ("c", 2, 3, None, 3))
    assert [each.rows for each in world.follow()] == [3, 3]
    assert world.follow() == []
    take(("u", 3, 1, "VINET", 1), ("d", 4, 2, "VINET", 2))
    take(("c", 5, 4, "a/b=c", 4), ("u", 6, 3, "ALFKI", 3))
    assert [each.rows for each in world.follow()] == [4, 4]
    assert world.are_equal()
    retyped = tuple(replace(c, type="string") if c.name == "total" else c for c in COLUMNS)
    world.declared = tuple(replace(each, columns=(*retyped, Column("note", "string"))) for each in world.declared)
    take(("u", 7, 4, "a/b=c", "four"), note="new")
    world.follow()
    assert world.are_equal()
    for place in (place for places in world.places() for place in places):
        assert world.format.detail(exact, place).partition_by == ("customer",)
    for table in (ORDERS, TURNED):
        assert purge.purge(exact, world.at, table, 1_800_000_000_000).purged == 1
    assert [each.written for each in world.follow()] == [1, 1]
    assert world.are_equal()
    assert [(told.is_equal, told.rows, told.behind) for told in world.verdicts()] == [(True, 3, 0)] * 2


def test_a_difference_is_found_and_named(exact: SparkSession, tmp_path: Path) -> None:
    """A cell, a row too few and one too many: by key and column; and a table that went on meanwhile is compared as of
    what its twin has taken over.
    """
    world = World(exact, tmp_path)
    world.take(*[change("c", n, n, "ALFKI", n) for n in range(6)])
    world.follow()
    twin = replace(world.at.lake.twin("s", ORDERS, "hudi"), keys=("id",), partition_by=("customer",))
    rows = world.format.read(exact, twin)
    wrong = rows.where("id = 3").withColumn("total", F.lit(33)).withColumn("_op", F.lit("upsert"))
    lost = rows.where("id = 4").withColumn("_op", F.lit("delete"))
    more = rows.where("id = 5").withColumn("id", F.lit(50)).withColumn("_op", F.lit("upsert"))
    world.format.put(wrong.unionByName(lost).unionByName(more), twin, Progress("a mistake", 1))
    world.take(change("u", 6, 0, "ALFKI", 7))
    [told] = world.verdicts()
    assert (told.rows, told.missing, told.extra, told.differing, told.behind) == (6, 1, 1, 1, 1)
    assert sorted(told.named) == ["id=3: total", "id=4: missing", "id=50: extra"]
    for engine in ("spark", "duckdb"):
        query = "SELECT count(*) AS n FROM orders o JOIN orders__hudi h USING (id) WHERE o.total = h.total"
        asked = said("sql", query, "--lake", str(tmp_path), "--engine", engine, "--format", "csv")
        assert asked.splitlines() == ["n", "3"]
    answer = said("verify", "--lake", str(tmp_path), "--json", code=1)
    assert '"differing": 1' in answer
    kept = json.loads(said("maintain", "orders", "--lake", str(tmp_path), "--keep", "1 day", "--json"))
    assert [(each["layer"], each["error"]) for each in kept] == [("silver", None), ("twin", None)]


def test_a_twin_that_is_not_there_is_no_equal_one(exact: SparkSession, tmp_path: Path) -> None:
    """Declared and never made, or of a table that was removed since: said, with what fixes it."""
    world = World(exact, tmp_path)
    world.take(change("c", 0, 1, "ALFKI", 1))
    [error] = [told.error for told in world.verdicts()]
    assert isinstance(error, ReplicatorError)
    assert "does not exist yet" in str(error)


def test_rows_are_compared_by_value(exact: SparkSession) -> None:
    """Maps by their entries, NaN with NaN, NULL with NULL; a column of another type is told apart."""
    ddl = "k INT, m MAP<STRING,STRING>, d DOUBLE, s STRING"
    one = made(exact, [(1, {"a": "1", "b": "2"}, float("nan"), None), (2, None, 0.0, "x")], ddl)
    other = made(exact, [(1, {"b": "2", "a": "1"}, float("nan"), None), (2, {}, 0.0, "y")], ddl)
    found = [tuple(row) for row in compare.differences(one, other, ["k"]).collect()]
    assert found == [(2, "differing", ["m", "s"])]
    retyped = other.withColumn("s", F.lit(1))
    assert compare.type_mismatches(one, retyped) == {"s": ("string", "int")}
    assert compare.differences(one.where("k = 1"), retyped.where("k = 1"), ["k"]).isEmpty()
