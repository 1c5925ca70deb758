"""What `verify` finds in damaged tables, and what it does not call a difference."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.cli import verify as cli_verify
from replicator.config import topicnames
from replicator.databases import postgresql
from replicator.errors import ConfigError, Unreachable
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import verify
from replicator.operate.rebuild import RebuildOptions
from replicator.operate.rebuild_all import rebuild_model
from replicator.operate.rebuilding.rebuild_result import EQUAL, WRITTEN
from replicator.operate.verify import equality, source
from replicator.operate.verify.equality import Pair
from replicator.operate.verify.marks import Marks
from replicator.operate.verify.ranges import Ranges
from replicator.operate.verify.verdict import Verdict, VerifyOptions
from replicator.spec import Login, Model, ModelColumn, Progress, SourceSpec
from replicator.spec.rules import WARN, Check, Expression, NotNull
from replicator.stages import gold
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from tests.builders import bronze, made, record
from tests.cli import ended, said

pytestmark = pytest.mark.spark

ROWS = 20_000
MODEL = Model(
    "lines",
    "SELECT o.id AS line, o.total * 2 AS twice, c.name FROM {orders} o LEFT JOIN {customers} c ON c.id = o.customer",
    {"orders": "s/shop.orders", "customers": "s/shop.customers"},
    ("line",),
    (
        ModelColumn("line", "integer", nullable=False),
        ModelColumn("twice", "numeric(12,2)"),
        ModelColumn("name", "text"),
    ),
)


class Busy(MemoryControl):
    """Something happens right before the control row of a refresh is read."""

    def __init__(self) -> None:
        super().__init__()
        self.before: list[Callable[[], None]] = []

    def get(self, path: str) -> Any:
        if self.before and "/inputs/" in path:
            self.before.pop()()
        return super().get(path)


@dataclass
class World:
    """Two tables of silver and a model over them, on a disk."""

    spark: SparkSession
    lake: Lake
    format: DeltaFormat = field(default_factory=DeltaFormat)
    control: Busy = field(default_factory=Busy)
    written: int = 0

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.format, self.format, self.control, self.lake)

    @property
    def marks(self) -> Marks:
        return Marks(self.lake, self.control, lambda: "2026-11-22T00:00:00+00:00")

    def silver(self, table: str, sql: str) -> None:
        """Rows of the source's columns, put into silver."""
        column_seq = "CAST(NULL AS MAP<STRING,STRING>) AS _column_seq"
        system = f"'0000' AS _seq, false AS _deleted, {column_seq}, 1L AS _source_ts_ms"
        rows = self.spark.sql(f"SELECT *, {system}, 'upsert' AS _op FROM ({sql})")
        self.written += 1
        self.format.put(rows, self.lake.silver("s", table, ("id",)), Progress("by hand", self.written))

    def build(self, model: Model = MODEL) -> None:
        assert [str(each.error) for each in gold.refresh(self.spark, [model], self.warehouse) if each.error] == []

    def damage(self, rows: Any, model: Model = MODEL) -> None:
        """Rows with ``_op`` put into gold behind everybody's back, and the progress as it was."""
        table = self.lake.gold(model.name, model.key)
        done = self.format.progress(self.spark, table, model.name)
        self.written += 1
        self.format.put(rows, table, Progress("a mistake", self.written))
        assert self.format.progress(self.spark, table, model.name) == done

    def verdict(self, model: Model = MODEL, **look: Any) -> Verdict:
        at = Refinement(SourceSpec("s", ".*"), self.format, self.format, self.control, self.lake)
        checks = verify.VerifyInputs([at], ("delta",), self.warehouse, [model])
        comparisons = verify.select_comparisons(self.spark, checks)
        (told,) = verify.verify(self.spark, comparisons, VerifyOptions(**look), self.marks.note)
        return told


ORDERS = "SELECT CAST(id AS INT) AS id, CAST(id % 97 AS INT) AS customer, CAST(id / 7 AS DECIMAL(10,2)) AS total"


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    fresh = World(spark.newSession(), Lake(str(tmp_path_factory.mktemp("lake"))))
    fresh.silver("shop.orders", f"{ORDERS} FROM range({ROWS})")
    fresh.silver("shop.customers", "SELECT CAST(id AS INT) AS id, concat('c', id) AS name FROM range(90)")
    fresh.build()
    return fresh


def test_gold_is_what_its_model_gives_over_the_silver_that_it_was_made_from(world: World) -> None:
    """Equal, and marked so; a row of silver that changed since makes it late, not different."""
    told = world.verdict()
    assert (told.is_equal, told.rows, told.behind, told.error) == (True, ROWS, 0, None)
    [mark] = world.marks.every()
    assert (mark.table, mark.rows, mark.checksum) == ("lines", ROWS, told.checksum)
    world.silver("shop.orders", f"{ORDERS} FROM range(5, 6)")
    late = world.verdict()
    assert (late.is_equal, late.behind, late.checksum) == (True, 1, told.checksum)
    world.build()


def test_a_gold_that_is_at_work_is_compared_as_it_is_then(world: World) -> None:
    """A refresh that ends between two looks takes the control row away that was to be read: its own holds."""
    world.silver("shop.orders", f"{ORDERS} FROM range(5, 6)")
    world.control.before.append(world.build)
    told = world.verdict()
    assert (told.is_equal, told.behind, world.control.before) == (True, 0, [])


def test_one_cell_and_one_row_of_many_are_found_and_named(world: World) -> None:
    """By key and column, in gold; the mark goes with the first difference, and a sample does not bring it back."""
    assert world.verdict().is_equal
    table = world.lake.gold(MODEL.name, MODEL.key)
    rows = world.format.read(world.spark, table)
    wrong = rows.where("line = 12345").withColumn("twice", F.col("twice") + F.lit("0.01").cast("decimal(11,2)"))
    lost, more = rows.where("line = 7"), rows.where("line = 8").withColumn("line", F.lit(-1))
    right = rows.where("line IN (7, 12345)").localCheckpoint().withColumn("_op", F.lit("upsert"))
    right = right.unionByName(more.withColumn("_op", F.lit("delete"))).localCheckpoint()
    world.damage(
        wrong.withColumn("_op", F.lit("upsert"))
        .unionByName(lost.withColumn("_op", F.lit("delete")))
        .unionByName(more.withColumn("_op", F.lit("upsert")))
        .select(*[F.col(name).cast(kind) for name, kind in rows.dtypes], "_op")
    )
    read: list[int] = []
    told = world.verdict(advance=read.append)
    assert (told.rows, told.missing, told.extra, told.differing) == (ROWS, 1, 1, 1)
    assert sorted(told.named) == ["line=-1: extra", "line=12345: twice", "line=7: missing"]
    assert told.ranges == ("line -1 to 7: 2 keys", "line 12345: 1 key")
    assert read == [ROWS, ROWS]
    assert world.marks.every() == []
    part = world.verdict(share=0.25)
    assert 0.2 * ROWS < part.rows < 0.3 * ROWS
    assert part.rows + part.missing + part.extra + part.differing < ROWS
    assert world.marks.every() == []
    world.damage(right.select(*[F.col(name).cast(kind) for name, kind in rows.dtypes], "_op"))
    assert world.verdict().is_equal


def test_rows_of_one_key_that_occurs_twice_are_told_apart(world: World) -> None:
    """A copy that has a row twice is no equal one, though every key and value is right."""
    rows = world.spark.sql("SELECT id AS k, 'x' AS v FROM range(50)")
    twice = rows.unionByName(rows.where("k = 3"))
    found = equality.find_differences(Pair(rows, twice, ("k",)), VerifyOptions())
    told = equality.to_verdict(Verdict("gold", "t", "silver"), Pair(rows, twice, ("k",)), found, VerifyOptions())
    assert (told.extra, told.missing, told.named) == (1, 0, ("k=3 (row 2 of this key): extra",))


def test_key_columns_may_have_any_name(world: World) -> None:
    """Also those of what is said about the keys: such a table could not be compared, nor rebuilt."""
    keys = ("verdict", "columns", "_gone", "_new")
    rows = world.spark.sql(f"SELECT {', '.join(f'id AS {key}' for key in keys)}, 'x' AS v FROM range(9)")
    pair = Pair(rows, rows.where("columns < 8"), keys)
    found = equality.find_differences(pair, VerifyOptions())
    told = equality.to_verdict(Verdict("gold", "t", "silver"), pair, found, VerifyOptions())
    assert told.named == ("verdict=8, columns=8, _gone=8, _new=8: missing",)


def test_a_key_is_the_same_moment_when_it_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the hour that a clock of the driver's zone shows twice."""
    kind, moments = T.TimestampType(), [1_729_989_000_000_000 + hours * 3_600_000_000 for hours in range(3)]
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        keys = {equality.key_of_row(Row(at=kind.fromInternal(moment)), ["at"]) for moment in moments}
        assert sorted(kind.toInternal(*equality.to_spark_key(key, [kind])) for key in keys) == moments
    finally:
        monkeypatch.undo()
        time.tzset()


def test_keys_that_are_in_no_range_are_looked_at_again(world: World) -> None:
    """NULL, which a declared key may be at the source, also where too many keys differ to be remembered."""
    rows = world.spark.sql("SELECT IF(id < 1500, NULL, id) AS k, 'x' AS v FROM range(3000)")
    pair = Pair(rows, rows.where("k > 1500"), ("k",), ranges=Ranges("k", tuple(range(3000))))
    found = equality.find_differences(pair, VerifyOptions())
    assert (found.key_count, [span.keys for span in found.spans]) == (1501, [1])
    assert found.where(pair.ranges) == pair.ranges
    lost = rows.where("k >= 1500")
    found = equality.find_differences(replace(pair, one=lost, other=lost.where("k > 2999")), VerifyOptions())
    assert len(found.where(pair.ranges).intervals or ()) == 33


def test_a_number_of_a_database_is_a_whole_number_of_silvers_or_none(world: World) -> None:
    """Up to the ends of 64 bits, however many zeros are behind its point."""
    wanted: dict[str, int | None] = {"9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63), "1.00": 1}
    wanted |= dict.fromkeys(["9223372036854775808", "-9223372036854775809", "1.5", "NaN"])
    told = postgresql.codec_for("numeric", T.LongType())
    assert told is not None
    rows = made(world.spark, [(text,) for text in wanted], "text STRING")
    assert dict(rows.select("text", told.value(F.col("text"))).collect()) == wanted


def test_a_model_that_gold_was_not_made_by_is_said(world: World) -> None:
    """Another SQL, an unknown name, nothing to compare with: errors with what fixes them."""
    at = world.warehouse
    other = Model("lines", "SELECT 1 AS line FROM {orders}", {"orders": "s/shop.orders"}, ("line",), MODEL.columns[:1])
    checks = verify.VerifyInputs([], ("delta",), at, [other])
    (told,) = verify.verify(world.spark, verify.select_comparisons(world.spark, checks))
    assert "has changed since" in str(told.error)
    with pytest.raises(ConfigError, match="table 'nothing' does not exist"):
        verify.select_comparisons(world.spark, checks, ["nothing"])
    with pytest.raises(ConfigError, match="Available: silver"):
        verify.select_comparisons(world.spark, checks, against="hudi")


def test_a_table_is_behind_by_commits_with_records_of_its_own(exact: Any, tmp_path: Path) -> None:
    """A table without news is not, however many others got."""
    tables = MemoryFormat()
    at = Refinement(SourceSpec("s", ".*"), tables, tables, MemoryControl(), Lake(str(tmp_path)))

    def come(*names: str) -> None:
        tables.append(
            bronze(exact, [record(f"s.{name}", 0, {"id": 1}, None) for name in names]), at.lake.bronze("s"), None
        )

    come("d.busy", "d.idle")
    identity = tables.identity(exact, at.lake.bronze("s"))
    assert identity is not None
    routes = {"bronze": identity, "tables": {f"s.{name}": [name] for name in ("d.busy", "d.idle")}}
    at.control.put(at.lake.routes("s"), {**routes, "modes": {}, "alone": {}, "partial": []})
    for name in ("d.busy", "d.idle"):
        tables.append(exact.range(1), at.lake.silver("s", name), Progress(identity, 0))
    come("d.busy")
    come("d.busy", "d.new")
    come("d.new")
    assert [source._lag(exact, at, name) for name in ("d.busy", "d.idle")] == [2, 0]


def test_a_lake_that_is_not_there_is_equal_to_nothing(world: World, tmp_path: Path) -> None:
    """As of every verb that works on what is there, by whatever name a lake was mistyped: exit code 2, not 0."""
    assert world.spark is not None
    with pytest.raises(ConfigError, match="there is no lake yet"):
        said("verify", "--lake", str(tmp_path / "absent"), code=2)


def test_several_tables_and_models_are_chosen_by_name(world: World) -> None:
    """Each once, in the order of the layers, whatever the order of the names; one that nothing has refuses all."""
    at = Refinement(SourceSpec("s", ".*"), world.format, world.format, world.control, world.lake)
    models, nowhere = [replace(MODEL, name=name) for name in ("a", "b", "c")], Login("postgresql", "nowhere", 1, "u")
    checks = verify.VerifyInputs([at], ("delta",), world.warehouse, models, databases={"s": postgresql.source(nowhere)})

    def chosen(*wanted: str) -> list[tuple[str, str]]:
        return [(each.layer, each.table) for each in verify.select_comparisons(world.spark, checks, wanted)]

    both = [("source", "s/shop.customers"), ("gold", "a"), ("gold", "b")]
    assert chosen("b", "customers", "a", "s/shop.customers") == both
    assert chosen("orders", "customers") == [("source", "s/shop.customers"), ("source", "s/shop.orders")]
    assert chosen("c") == [("gold", "c")]
    with pytest.raises(ConfigError, match="table 'order' does not exist"):
        chosen("orders", "order")


def test_a_table_that_the_sources_file_leaves_out_is_compared_by_name_only(world: World) -> None:
    """Its rows in silver are of when it was read last, and it may be gone at the source: nobody can fix that."""
    but_orders = SourceSpec("s", topicnames.topic_pattern("s", exclude=("shop.orders",)))
    at = Refinement(but_orders, world.format, world.format, world.control, world.lake)
    nowhere = postgresql.source(Login("postgresql", "nowhere", 1, "u"))
    checks = verify.VerifyInputs([at], ("delta",), world.warehouse, databases={"s": nowhere})
    of_source = [verify.select_comparisons(world.spark, checks, wanted, ["source"]) for wanted in (None, ["orders"])]
    assert [[each.table for each in found] for found in of_source] == [["s/shop.customers"], ["s/shop.orders"]]


def test_a_source_that_cannot_be_asked_is_told_with_what_to_write_where(exact: Any, tmp_path: Path) -> None:
    """A file where it has none, a block of it where it has one."""
    DeltaFormat().append(
        bronze(exact, [record("s.d.t", 0, None, None)]), Lake(str(tmp_path / "lake")).bronze("s"), None
    )
    (tmp_path / "base.yaml").write_text(f"lake: {{root: '{tmp_path / 'lake'}'}}", encoding="utf-8")
    (tmp_path / "local.yaml").write_text("{}", encoding="utf-8")
    (tmp_path / "sources").mkdir()
    told = []
    for name in ("other", "s"):
        (tmp_path / "sources" / f"{name}.yaml").write_text(f"name: {name}", encoding="utf-8")
        told.append(ended("verify", "--conf", str(tmp_path)))
    without_file, without_block = (" ".join(each.stderr.split()) for each in told)
    assert "other: its file has no `database`, so" in without_file
    assert (
        "s: it has no file, so silver is not compared with it: write conf/sources/s.yaml with `name: s` and"
        in without_file
    )
    assert "s: its file has no `database`, so silver is not compared with it: add the login (docs/da" in without_block
    assert [each.returncode for each in told] == [0, 0]


def test_a_lake_that_takes_no_mark_keeps_no_verdict_back(capsys: pytest.CaptureFixture[str]) -> None:
    """One that is read only: what was compared is told all the same, and decides the exit code."""

    def note(_: Verdict) -> None:
        raise Unreachable("Read-only file system", where="lake/_replicator/verified/gold/m.json")

    cli_verify._best_effort(note)(Verdict("gold", "m", "silver", rows=1))
    assert "m (silver): `verify --show` will not show this: Unreachable: Read-only" in capsys.readouterr().err


def test_a_model_with_an_unknown_member_and_checks_is_verified_and_rebuilt(spark: SparkSession, tmp_path: Path) -> None:
    """The member is a row like any other: wrong, it is named, and a rebuild makes it right and tells of the checks."""
    world = World(spark.newSession(), Lake(str(tmp_path)))
    world.silver("shop.customers", "SELECT CAST(id AS INT) AS id, concat('c', id) AS name FROM range(90)")
    customers = Model(
        "customers",
        "SELECT id, name FROM {customers}",
        {"customers": "s/shop.customers"},
        ("id",),
        (ModelColumn("id", "integer", nullable=False), ModelColumn("name", "text")),
        unknown_member={"id": -1, "name": "nobody"},
        checks=(Check("known", Expression("id >= 0"), WARN), Check("named", NotNull("name"))),
    )
    world.build(customers)
    told = world.verdict(customers)
    assert (told.is_equal, told.rows, told.error) == (True, 91, None)
    schema = "id INT, name STRING, _op STRING"
    world.damage(made(world.spark, [(-1, "somebody", "upsert"), (3, None, "delete")], schema), customers)
    told = world.verdict(customers)
    assert sorted(told.named) == ["id=-1: name", "id=3: missing"]
    done = rebuild_model(world.spark, customers, world.warehouse, RebuildOptions(), {"customers": ("id",)})
    assert (done.verdict, done.rows, done.added, done.changed) == (WRITTEN, 91, 1, 1)
    assert done.warnings == ("known: 1 row fails (id=-1)",)
    assert world.verdict(customers).is_equal
    again = rebuild_model(world.spark, customers, world.warehouse, RebuildOptions(), {"customers": ("id",)})
    assert (again.verdict, again.warnings) == (EQUAL, done.warnings)
