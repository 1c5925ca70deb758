"""A table kept in two formats from one definition, and the comparison of the two."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from replicator.errors import ReplicatorError
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.hudi import HudiFormat
from replicator.formats.mixed import MixedFormat
from replicator.lake import Lake
from replicator.operate import purge, verify
from replicator.operate.verify import Verdict
from replicator.spec import Column, Declaration, Progress, SourceSpec
from replicator.stages import silver, twins
from replicator.stages.refinement import Refinement
from replicator.stages.twins import Followed
from replicator.stages.warehouse import Warehouse
from replicator.transforms import compare
from tests.builders import Record, bronze, envelope, made, record
from tests.cli import said

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

ORDERS = "shop.orders"
COLUMNS = (Column("id", "int"), Column("customer", "string"), Column("total", "int"))
BOTH = Declaration(ORDERS, COLUMNS, format="delta", twins=("hudi",), partition_by=("customer",), purge_after=60)
TURNED = replace(BOTH, format="hudi", twins=("delta",))


@dataclass
class World:
    """A source with one table in two formats."""

    spark: Any
    folder: Path
    declared: Declaration
    format: MixedFormat = field(default_factory=lambda: MixedFormat({"delta": DeltaFormat(), "hudi": HudiFormat()}))
    control: MemoryControl = field(default_factory=MemoryControl)

    @property
    def at(self) -> Refinement:
        spec = SourceSpec("s", ".*", tables=(self.declared,))
        return Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    def take(self, *records: Record) -> None:
        """One batch into the table alone."""
        self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        assert [str(account.error) for account in silver.refine(self.spark, self.at) if account.error] == []

    def follow(self) -> list[Followed]:
        found = list(twins.follow(self.spark, self.at))
        assert [str(each.error) for each in found if each.error] == []
        return found

    def verdict(self) -> Verdict:
        warehouse = Warehouse(self.format, self.format, self.control, self.at.lake)
        checks = verify.Checks([self.at], ("delta", "hudi"), warehouse)
        (told,) = verify.verify(self.spark, verify.chosen(self.spark, checks))
        return told

    def both(self) -> tuple[list[str], list[str]]:
        """All rows of the table, and of its twin."""
        places = self.at.lake.silver("s", ORDERS), self.at.lake.twin("s", ORDERS, self.declared.twins[0])
        one, other = (sorted(map(str, self.format.read(self.spark, place).collect())) for place in places)
        return one, other


def change(op: str, offset: int, key: int, customer: str | None, total: Any, **more: Any) -> Record:
    row = {"id": key, "customer": customer, "total": total, **more}
    told = envelope(op, None if op == "d" else row, row if op == "d" else None, pos=100 + offset)
    return record(f"s.{ORDERS}", offset, {"id": key}, told)


@pytest.mark.parametrize("declared", [BOTH, TURNED], ids=["delta, hudi", "hudi, delta"])
def test_a_twin_holds_what_its_table_holds_behind_every_change(exact, tmp_path: Path, declared: Declaration) -> None:
    """Rows that move between partitions, deletes, new columns, a column that changes its type, several commits at
    once, a purge: every row and system column; and where nothing happened nothing is written.
    """
    world = World(exact, tmp_path, declared)
    world.take(change("c", 0, 1, "ALFKI", 1), change("c", 1, 2, "VINET", 2), change("c", 2, 3, None, 3))
    assert [each.rows for each in world.follow()] == [3]
    assert world.both()[0] == world.both()[1]
    assert world.follow() == []
    world.take(change("u", 3, 1, "VINET", 1), change("d", 4, 2, "VINET", 2))
    world.take(change("c", 5, 4, "a/b=c", 4), change("u", 6, 3, "ALFKI", 3))
    assert [each.rows for each in world.follow()] == [4]
    assert world.both()[0] == world.both()[1]
    retyped = tuple(replace(c, type="string") if c.name == "total" else c for c in COLUMNS)
    world.declared = replace(declared, columns=(*retyped, Column("note", "string")))
    world.take(change("u", 7, 4, "a/b=c", "four", note="new"))
    world.follow()
    assert world.both()[0] == world.both()[1]
    for place in (world.at.lake.silver("s", ORDERS), world.at.lake.twin("s", ORDERS, declared.twins[0])):
        assert world.format.kept(exact, place).partition_by == ("customer",)
    assert purge.purge(exact, world.at, ORDERS, 1_800_000_000_000).purged == 1
    assert [each.written for each in world.follow()] == [1]
    assert world.both()[0] == world.both()[1]
    told = world.verdict()
    assert (told.is_equal, told.rows, told.behind) == (True, 3, 0)


def test_a_difference_is_found_and_named(exact, tmp_path: Path) -> None:
    """A cell, a row too few and one too many: by key and column; and a table that went on meanwhile is compared as of
    what its twin has taken over.
    """
    world = World(exact, tmp_path, BOTH)
    world.take(*[change("c", n, n, "ALFKI", n) for n in range(6)])
    world.follow()
    assert world.verdict().is_equal
    twin = replace(world.at.lake.twin("s", ORDERS, "hudi"), keys=("id",), partition_by=("customer",))
    rows = world.format.read(exact, twin)
    wrong = rows.where("id = 3").withColumn("total", F.lit(33)).withColumn("_op", F.lit("upsert"))
    lost = rows.where("id = 4").withColumn("_op", F.lit("delete"))
    more = rows.where("id = 5").withColumn("id", F.lit(50)).withColumn("_op", F.lit("upsert"))
    world.format.put(wrong.unionByName(lost).unionByName(more), twin, Progress("a mistake", 1))
    world.take(change("u", 6, 0, "ALFKI", 7))
    told = world.verdict()
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
    assert world.verdict().rows == 6


def test_a_twin_that_is_not_there_is_no_equal_one(exact, tmp_path: Path) -> None:
    """Declared and never made, or of a table that was removed since: said, with what mends it."""
    world = World(exact, tmp_path, BOTH)
    world.take(change("c", 0, 1, "ALFKI", 1))
    error = world.verdict().error
    assert isinstance(error, ReplicatorError)
    assert "does not exist yet" in str(error)


def test_rows_are_compared_by_value(exact) -> None:
    """Maps by their entries, NaN with NaN, NULL with NULL; a column of another type is told apart."""
    ddl = "k INT, m MAP<STRING,STRING>, d DOUBLE, s STRING"
    one = made(exact, [(1, {"a": "1", "b": "2"}, float("nan"), None), (2, None, 0.0, "x")], ddl)
    other = made(exact, [(1, {"b": "2", "a": "1"}, float("nan"), None), (2, {}, 0.0, "y")], ddl)
    found = [tuple(row) for row in compare.differences(one, other, ["k"]).collect()]
    assert found == [(2, "differing", ["m", "s"])]
    retyped = other.withColumn("s", F.lit(1))
    assert compare.unlike(one, retyped) == {"s": ("string", "int")}
    assert compare.differences(one.where("k = 1"), retyped.where("k = 1"), ["k"]).isEmpty()
