"""Silver in Hudi beside silver in Delta: one application, chosen per table, partitions included."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator import session, settings
from replicator.catalog.local import DuckdbEngine
from replicator.catalog.store import Store
from replicator.errors import ReplicatorError, SchemaRefused, TableStopped, VersionMissing
from replicator.formats import hudi_options
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.hudi import HudiFormat
from replicator.formats.mixed import MixedFormat
from replicator.jvm import gateway
from replicator.lake import Lake
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.spec import Column, Declaration, Evolution, Progress, SourceSpec, Table
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.transforms import merge
from tests.builders import UNSENT, Record, bronze, envelope, made, record
from tests.cli import said

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

ORDERS, TWIN, ON_READ = "shop.orders", "shop.twin", "shop.on_read"
COLUMNS = (Column("id", "int"), Column("customer", "string"), Column("total", "decimal(10,2)"))


@dataclass
class World:
    """A source's silver in both formats."""

    spark: SparkSession
    folder: Path
    tables: tuple[Declaration, ...]
    format: MixedFormat = field(default_factory=lambda: MixedFormat({"delta": DeltaFormat(), "hudi": HudiFormat()}))
    control: MemoryControl = field(default_factory=MemoryControl)

    @property
    def at(self) -> Refinement:
        """A process that knows nothing of the one before."""
        spec = SourceSpec("s", ".*", tables=self.tables)
        return Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)))

    def take(self, *records: Record) -> dict[str, Account]:
        """One batch."""
        at = self.at
        self.format.append(bronze(self.spark, records), at.lake.bronze("s"), None)
        return {account.table: account for account in silver.refine(self.spark, at)}

    def rows(self, table: str, condition: str = "true") -> list[tuple[Any, ...]]:
        """Everything that silver holds of a table, or the rows for which the condition is true."""
        read = self.format.read(self.spark, Lake(str(self.folder)).silver("s", table))
        return sorted((tuple(row) for row in read.where(condition).collect()), key=str)

    def parts(self, table: str) -> dict[str, int]:
        """Rows by the folder that they lie in."""
        place = Lake(str(self.folder)).silver("s", table).location
        found = self.spark.read.format("hudi").load(place).groupBy("_hoodie_partition_path").count().collect()
        return {row[0]: row[1] for row in found}


def change(op: str, offset: int, key: int, customer: str | None, total: str, table: str = ORDERS) -> Record:
    row = {"id": key, "customer": customer, "total": total}
    told = envelope(op, None if op == "d" else row, row if op == "d" else None, pos=100 + offset, table=table)
    return record(f"s.{table}", offset, {"id": key}, told)


def flat(op: str, offset: int, key: int, customer: str) -> Record:
    """A row as the unwrapping transform sends it; without a total."""
    told: dict[str, Any] = {
        "__op": op,
        "__deleted": str(op == "d").lower(),
        "__lsn": 100 + offset,
        "__source_ts_ms": 1700000000000,
    }
    told |= {"__db": "d", "__schema": "shop", "__table": "orders"}
    return record(f"s.{ORDERS}", offset, {"id": key}, {"id": key, "customer": customer, "total": None, **told})


def each_of(op: str, offset: int, key: int, customer: str | None, total: str) -> list[Record]:
    """The same change of the table, of its twin, and of the table that is merged on read."""
    return [change(op, offset, key, customer, total, table) for table in (ORDERS, TWIN, ON_READ)]


def left_open(spark: SparkSession, folder: Path) -> list[str]:
    """The files below the folder that the JVM has open."""
    jvm = Path("/proc") / str(gateway.of(spark).java.lang.ProcessHandle.current().pid()) / "fd"
    files = (str(each.resolve()) for each in jvm.iterdir())
    return [file for file in files if file.startswith(str(folder))]


PLAIN = f"id INT, {merge.SYSTEM_DDL}"
HOODIE = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path",
          "_hoodie_file_name")  # fmt: skip

STEPS = [
    [*each_of("c", 0, 1, "ALFKI", "EtaH"), *each_of("c", 1, 2, "VINET", "AfQ="), *each_of("c", 2, 3, None, "AfQ=")],
    [*each_of("u", 3, 1, "VINET", "EtaH"), *each_of("d", 4, 2, "VINET", "AfQ="), *each_of("c", 5, 4, "a/b=c", "AfQ=")],
    [*each_of("c", 6, 2, "ALFKI", "AfQ="), *each_of("u", 0, 1, "ALFKI", "EtaH")],
]


def test_a_table_in_hudi_holds_what_its_twin_in_delta_holds(exact: SparkSession, tmp_path: Path) -> None:
    """Every row and system column, behind every batch, copied on write and merged on read; a row lies in one partition,
    wherever it was before. DuckDB, which reads all of them without Spark, sees the same. A query by the column that
    parts them finds its rows, also beside a row that has NULL there. No file is left open: on S3 that would be a
    connection for each partition and batch, until there is none.
    """
    kept: dict[str, Any] = {"format": "hudi", "partition_by": ("customer",)}
    hudi = Declaration(ORDERS, COLUMNS, **kept), Declaration(ON_READ, COLUMNS, merge_on_read=True, **kept)
    world = World(exact, tmp_path, (*hudi, Declaration(TWIN, COLUMNS)))
    parts: dict[str, list[dict[str, int]]] = {ORDERS: [], ON_READ: []}
    for step in STEPS:
        accounts = world.take(*step)
        assert [str(account.error) for account in accounts.values() if account.error] == []
        for table, seen in parts.items():
            assert world.rows(table) == world.rows(TWIN), table
            seen.append(world.parts(table))
        assert left_open(exact, tmp_path) == []
    assert bool(list(Path(Lake(str(tmp_path)).silver("s", ON_READ).location).rglob(".*.log.*")))
    place = str(tmp_path)
    query = "SELECT id, customer, total FROM {table} ORDER BY id"
    orders, on_read, twin = (
        list(DuckdbEngine(Store(place), Lake(place)).ask(query.format(table=table), None).texts())
        for table in ("orders", "on_read", "twin")
    )
    assert (
        orders
        == on_read
        == twin
        == [("1", "VINET", "12345.67"), ("2", "ALFKI", "5.00"), ("3", None, "5.00"), ("4", "a/b=c", "5.00")]
    )
    nowhere = "customer=__HIVE_DEFAULT_PARTITION__"
    lies = [
        {"customer=ALFKI": 1, "customer=VINET": 1, nowhere: 1},
        {"customer=VINET": 1, nowhere: 2, "customer=a%2Fb%3Dc": 1},
        {"customer=VINET": 1, "customer=ALFKI": 1, nowhere: 1, "customer=a%2Fb%3Dc": 1},
    ]
    assert parts == {ORDERS: lies, ON_READ: lies}
    for condition in ("customer > 'ALFKI'", "customer LIKE 'a/%'", "NOT customer = 'ALFKI'", "customer IS NULL"):
        assert world.rows(ORDERS, condition) == world.rows(ON_READ, condition) == world.rows(TWIN, condition) != []


def test_a_row_that_has_a_partition_of_its_own_is_changed_and_deleted_there(
    exact: SparkSession, tmp_path: Path
) -> None:
    """Partitions by customer and key, as an outbox of orders has them: a delete brings nothing but the key."""
    kept: dict[str, Any] = {"format": "hudi", "partition_by": ("customer", "id"), "keys": ("id",)}
    world = World(exact, tmp_path, (Declaration(ORDERS, COLUMNS, deletes="rewrite-with-tombstone", **kept),))
    world.take(flat("r", 0, 1, "ALFKI"), flat("r", 1, 2, "VINET"))
    assert world.parts(ORDERS) == {"customer=ALFKI/id=1": 1, "customer=VINET/id=2": 1}
    thin = flat("d", 3, 2, "")
    world.take(flat("u", 2, 1, "VINET"), thin, record(thin.topic, 4, {"id": 2}, None))
    assert {row[:2] for row in world.rows(ORDERS)} == {(1, "VINET"), (2, None)}
    assert world.parts(ORDERS) == {"customer=VINET/id=1": 1, "customer=__HIVE_DEFAULT_PARTITION__/id=2": 1}


def test_what_hudi_cannot_keep_stops_the_table_with_the_way_out(exact: SparkSession, tmp_path: Path) -> None:
    """docs/limits.md: said before anything is written, by the name of the column, and the next batch meets no rest of
    it; the other tables go on. A partition column that the table has not is said where it is declared.
    """
    nested, by_at = Column("times", "array<micro_timestamp>"), {"partition_by": ("at",)}
    name, missing = Column("name", "string"), {"partition_by": ("customers",)}
    cases: dict[str, tuple[Column, dict[str, Any], Any, int]] = {
        "cannot begin with a digit: 2fa": (Column("2fa", "int"), {}, 1, 1),
        "timestamps without time zone within another type: times": (nested, {}, [1_700_000_000_000_000], 1),
        "timestamp_ntz cannot partition a table": (Column("at", "micro_timestamp"), by_at, 1, 1),
        "binary cannot partition a table": (Column("at", "binary"), by_at, "AAE=", 1),
        "a key that is an empty string": (name, {"keys": ("name",)}, "", 1),
        "empty bytes": (Column("name", "bytes"), {"keys": ("name",)}, "", 1),
        "own encoding of such keys": (name, {"keys": ("name", "id")}, "a,id:7", 1),
        "no partition column customers": (name, missing, "x", 1),
    }
    bad, declared = [], []
    for number, (column, kept, value, key) in enumerate(cases.values()):
        table, row = f"shop.bad_{number}", {"id": key, column.name: value}
        declared.append(Declaration(table, (Column("id", "int"), column), format="hudi", **kept))
        key_of = {each: row[each] for each in kept.get("keys", ("id",))}
        bad.append(record(f"s.{table}", 0, key_of, envelope("c", row, pos=100, table=table)))
    world = World(exact, tmp_path, (*declared, Declaration(TWIN, COLUMNS)))
    for offset in (0, 1):
        again = [replace(each, offset=offset) for each in bad]
        accounts = world.take(*again, change("c", offset, 1, "ALFKI", "EtaH", TWIN))
        assert accounts[f"s/{TWIN}"].error is None
        for says, told in zip(cases, declared, strict=True):
            error = str(accounts[f"s/{told.table}"].error)
            assert says in error
            assert "format: delta" in error or told.partition_by


def test_a_first_write_that_died_ends_no_source_in_hudi_as_in_delta(exact: SparkSession, tmp_path: Path) -> None:
    """A folder without a commit is no table whose progress is lost: it is made from bronze."""
    tables = Declaration(ORDERS, COLUMNS, format="hudi"), Declaration(TWIN, COLUMNS), Declaration(ON_READ, COLUMNS)
    world = World(exact, tmp_path, tables)
    world.take(*STEPS[0])
    died = [Path(Lake(str(tmp_path)).silver("s", table).location) for table in (ORDERS, TWIN)]
    for commit in (commit for place in died for commit in place.glob("*/[0-9]*[0-9].*")):
        if commit.suffix in (".json", ".commit"):
            commit.unlink()
            commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    world.format = MixedFormat({"delta": DeltaFormat(), "hudi": HudiFormat()})
    accounts = world.take(*STEPS[1])
    assert [str(account.error) for account in accounts.values() if account.error] == []
    assert world.rows(ORDERS) == world.rows(TWIN) == world.rows(ON_READ)


def test_a_key_that_would_be_read_as_null_stops_its_table(exact: SparkSession, tmp_path: Path) -> None:
    """Text that stands for NULL in a column that parts the table and is of the key: each change would add a row. Its
    next batch stops the table, too, whatever comes with it.
    """
    texts = {"empty": "", "nowhere": "__HIVE_DEFAULT_PARTITION__"}
    kept: dict[str, Any] = {"keys": ("id", "customer"), "partition_by": ("customer",)}
    names = {f"shop.{format_}_{name}": (format_, text) for format_ in ("delta", "hudi") for name, text in texts.items()}
    declared = (Declaration(table, COLUMNS, format=format_, **kept) for table, (format_, _) in names.items())
    world = World(exact, tmp_path, tuple(declared))
    for offset in (0, 1):
        sent = {table: "ALFKI" if offset else text for table, (_, text) in names.items()}
        accounts = world.take(*[change("c", offset, 1, text, "EtaH", table) for table, text in sent.items()])
        for table in names:
            error = str(accounts[f"s/{table}"].error)
            assert "cannot be stored in a column that is both of the key and a partition column: customer" in error, (
                table
            )


def test_a_table_in_hudi_is_not_built_over_in_delta(exact: SparkSession, tmp_path: Path) -> None:
    """`formats` and `format` both taken out of the configuration: nobody would see the rows that are there."""
    world = World(exact, tmp_path, (Declaration(ORDERS, COLUMNS, format="hudi"),))
    world.take(change("c", 0, 1, "ALFKI", "EtaH"))
    there: Any = world.format
    bare: Any = DeltaFormat()
    world.format = bare
    world.tables = (Declaration(ORDERS, COLUMNS),)
    error = world.take(change("c", 1, 2, "ALFKI", "EtaH"))[f"s/{ORDERS}"].error
    assert isinstance(error, TableStopped)
    assert "the existing table is in Hudi" in str(error)
    world.format, world.tables = there, (Declaration(ORDERS, COLUMNS, format="hudi"),)
    assert world.take(change("c", 2, 3, "ALFKI", "EtaH"))[f"s/{ORDERS}"].error is None
    assert [row[0] for row in world.rows(ORDERS)] == [1, 2, 3]


def test_a_column_named_like_a_side_of_the_join_is_any_column(exact: SparkSession, tmp_path: Path) -> None:
    """In Hudi a change is joined by a select that names columns: none of them is taken for the row that has it."""
    columns = (Column("id", "int"), *(Column(name, "map") for name in ("s", "t", "old", "new", "image")))
    world = World(exact, tmp_path, (Declaration(ORDERS, columns, format="hudi"),))
    for n in (1, 2):
        row = {"id": 1, **{each.name: {"_seq": str(n), "id": "x"} for each in columns[1:]}}
        told = record(f"s.{ORDERS}", n, {"id": 1}, envelope("u", row, pos=100 + n, table=ORDERS))
        assert world.take(told)[f"s/{ORDERS}"].error is None
    assert world.rows(ORDERS)[0][1:6] == ({"_seq": "2", "id": "x"},) * 5


def test_a_table_in_hudi_may_begin_with_a_truncate_and_a_value_that_was_not_sent(
    exact: SparkSession, tmp_path: Path
) -> None:
    """What its first commit says of `_column_seq` (no value of it is NULL there) is not asked of later ones."""
    world = World(exact, tmp_path, (Declaration(ORDERS, COLUMNS, format="hudi"), Declaration(TWIN, COLUMNS)))
    emptied = [record(f"s.{t}", 0, None, envelope("t", pos=99, table=t)) for t in (ORDERS, TWIN)]
    for step in (
        [*emptied, *(change("u", 1, 1, UNSENT, "EtaH", table) for table in (ORDERS, TWIN))],
        [change("c", 2, 2, "ALFKI", "EtaH", table) for table in (ORDERS, TWIN)],
        [change("u", 3, 1, UNSENT, "AfQ=", table) for table in (ORDERS, TWIN)],
    ):
        assert [str(account.error) for account in world.take(*step).values() if account.error] == []
        assert world.rows(ORDERS) == world.rows(TWIN)


def test_a_table_in_hudi_that_duckdb_cannot_read_says_so(exact: SparkSession, tmp_path: Path) -> None:
    """hudi-rs panics at a time without a zone: an error of ours, with the other engine."""
    told = Declaration(ORDERS, (COLUMNS[0], Column("at", "micro_timestamp")), format="hudi")
    world = World(exact, tmp_path, (told,))
    row = {"id": 1, "at": 1_700_000_000_000_000}
    world.take(record(f"s.{ORDERS}", 0, {"id": 1}, envelope("c", row, pos=100, table=ORDERS)))
    with pytest.raises(ReplicatorError, match=r"cannot be read without Spark.*--engine spark"):
        DuckdbEngine(Store(str(tmp_path)), Lake(str(tmp_path))).ask("SELECT * FROM orders", None)


def test_a_clock_behind_the_newest_commit_writes_nothing_to_hudi(exact: SparkSession, tmp_path: Path) -> None:
    """Hudi names commits by the clock and orders them by name: a commit that stands before another is never seen."""
    table, format_ = Table("t", str(tmp_path / "t"), ("id",)), HudiFormat()

    def rows(seq: str) -> Any:
        return made(exact, [(1, seq, False, None, 1)], f"id INT, {merge.SYSTEM_DDL}")

    format_.apply(rows("10"), table, Progress("bronze", 1))
    for step in Path(table.location, ".hoodie").glob("2*"):
        step.rename(step.with_name(f"29{step.name[2:]}"))
    with pytest.raises(TableStopped, match="seconds ahead of this machine's clock"):
        format_.apply(rows("20"), table, Progress("bronze", 2))
    assert HudiFormat().progress(exact, table, "bronze") == Progress("bronze", 1)


def test_upkeep_of_hudi_is_done_in_utc_wherever_the_machine_stands(exact: SparkSession, tmp_path: Path) -> None:
    """Also in a process that has written no row: east of Greenwich its commits would lie ahead of the clock for hours,
    or no log be old enough to be merged.
    """
    table, jvm = Table("t", str(tmp_path / "t"), ("id",), merge_on_read=True), gateway.of(exact)
    for version in range(2):
        _put(exact, table, version, (1, "upsert"))
    clock = jvm.org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator
    zones, javas = jvm.org.apache.hudi.common.model.HoodieTimelineTimeZone, jvm.java.util.TimeZone
    javas.setDefault(javas.getTimeZone("Asia/Tokyo"))
    clock.setCommitTimeZone(zones.LOCAL)
    try:
        session.session(settings.bare(None).model_copy(update={"formats": ("delta", "hudi")}))
        HudiFormat().maintain(exact, table, 168)
        _put(exact, table, 2, (1, "upsert"))
    finally:
        clock.setCommitTimeZone(zones.UTC)
        javas.setDefault(javas.getTimeZone("UTC"))
    assert len(list(Path(table.location, ".hoodie").glob("*.compaction.requested"))) == 1


def test_another_format_declared_later_stops_the_table(exact: SparkSession, tmp_path: Path) -> None:
    """What lies there decides; nothing is written beside it."""
    world = World(exact, tmp_path, (Declaration(ORDERS, COLUMNS),))
    world.take(change("c", 0, 1, "ALFKI", "EtaH"))
    world.tables = (Declaration(ORDERS, COLUMNS, format="hudi"),)
    error = world.take(change("c", 1, 2, "ALFKI", "EtaH"))["s/shop.orders"].error
    assert isinstance(error, TableStopped)
    assert "stored as delta, but hudi is declared" in str(error)
    assert len(world.rows(ORDERS)) == 1


def test_a_rebuild_gives_a_table_in_hudi_other_types_and_leaves_its_partitions(
    exact: SparkSession, tmp_path: Path
) -> None:
    """All rows in one commit, and changes join as before; what Hudi keeps for ever is refused with its reason."""
    told = Declaration(ORDERS, COLUMNS, format="hudi", partition_by=("customer",))
    world = World(exact, tmp_path, (told,))
    world.take(*[each for each in STEPS[0] if each.topic.endswith(ORDERS)])
    texts = replace(told, columns=(*COLUMNS[:2], Column("total", "string")))
    world.tables = (texts,)
    assert rebuild(exact, world.at, ORDERS, RebuildOptions()).columns == ("total: decimal(10,2), now string",)
    assert world.take(change("u", 3, 1, "VINET", "new"))[f"s/{ORDERS}"].error is None
    assert [row[:3] for row in world.rows(ORDERS)] == [(1, "VINET", "new"), (2, "VINET", "AfQ="), (3, None, "AfQ=")]
    world.tables = (replace(texts, partition_by=()),)
    with pytest.raises(SchemaRefused, match="the key and the partitions of a table in Hudi cannot be changed"):
        rebuild(exact, world.at, ORDERS, RebuildOptions())
    assert len(world.rows(ORDERS)) == 3


def test_a_table_in_hudi_is_read_behind_a_change_of_the_column_that_parts_it(
    exact: SparkSession, tmp_path: Path
) -> None:
    """Folders of values that the new type does not have are there until they are cleaned, and those of later versions
    beside an older one: without rows of the version that is read.
    """
    table, format_ = Table("t", str(tmp_path / "t"), ("id",), partition_by=("p",)), HudiFormat()
    row: tuple[Any, ...] = (1, "x", "10", False, None, 1)
    format_.apply(made(exact, [row], f"id INT, p STRING, {merge.SYSTEM_DDL}"), table, Progress("bronze", 1))
    format_.evolve(exact, table, Evolution(added=(("p", "BIGINT"),), moved=(("p", "p__v2", "STRING"),)))
    row = (2, 7, None, *row[2:])
    columns = f"id INT, p BIGINT, p__v2 STRING, {merge.SYSTEM_DDL}"
    format_.apply(made(exact, [row], columns), table, Progress("bronze", 2))
    format_.evolve(exact, table, Evolution(added=(("p", "STRING"),), moved=(("p", "p__v3", "BIGINT"),)))
    row = (3, "y", None, None, *row[3:])
    columns = f"id INT, p STRING, p__v2 STRING, p__v3 BIGINT, {merge.SYSTEM_DDL}"
    format_.apply(made(exact, [row], columns), table, Progress("bronze", 3))
    seen = [format_.read(exact, table, version).select("id", "p").collect() for version in (0, 2, 4)]
    assert [sorted(map(tuple, rows)) for rows in seen] == [
        [(1, "x")],
        [(1, None), (2, 7)],
        [(1, None), (2, None), (3, "y")],
    ]


def test_captured_events_become_a_table_in_hudi_that_sql_reads(spark: SparkSession, tmp_path: Path) -> None:
    """`run --recorded --declare` brings the format that is declared, and `sql --lake` sees what lies there."""
    assert spark
    declared, events = tmp_path / "declare.yaml", tmp_path / "events.jsonl"
    declared.write_text(
        "tables:\n  shop.orders:\n    format: hudi\n    partition_by: [customer]\n"
        "    columns: {id: int, customer: string, total: 'decimal(10,2)'}\n"
    )
    told = [change("c", 0, 1, "ALFKI", "EtaH"), change("c", 1, 2, "VINET", "AfQ=")]
    place: dict[str, Any] = {"topic": "s.shop.orders", "partition": 0, "tstype": "create", "ts": 1, "headers": []}
    lines = [json.dumps({**place, "offset": each.offset, "key": each.key, "payload": each.value}) for each in told]
    events.write_text("\n".join(lines) + "\n")
    lake = str(tmp_path / "lake")
    said("run", "--recorded", str(events), "--declare", str(declared), "--lake", lake)
    assert (Path(lake) / "silver/s/shop.orders/.hoodie").is_dir()
    answer = said("sql", "SELECT id, customer, total FROM orders ORDER BY id", "--lake", lake, "--format", "csv")
    assert answer.splitlines()[1:] == ["1,ALFKI,12345.67", "2,VINET,5.00"]


def test_a_table_of_somebody_else_is_not_written_to(exact: SparkSession, tmp_path: Path) -> None:
    """Another key generator, other keys: our upserts would double its rows."""
    table = Table("t", str(tmp_path / "t"), ("id",))
    theirs = exact.range(3).selectExpr("cast(id AS INT) AS id", "'x' AS customer", "id AS _seq")
    keys: dict[str, Any] = {
        "hoodie.datasource.write.recordkey.field": "customer,id",
        "hoodie.table.ordering.fields": "_seq",
    }
    theirs.write.format("hudi").options(**keys, **{"hoodie.table.name": "t"}).save(table.location)
    ours = made(exact, [(1, "10", False, None, 1)], f"id INT, {merge.SYSTEM_DDL}")
    with pytest.raises(TableStopped, match="written by another program"):
        HudiFormat().apply(ours, table, Progress("bronze", 1))
    assert exact.read.format("hudi").load(table.location).count() == 3


def _put(spark: SparkSession, table: Table, version: int, *rows: tuple[int, str]) -> None:
    """One commit, by a process of its own, that upserts or deletes keys."""
    told = made(spark, [(key, f"{version:02}", False, None, 1, op) for key, op in rows], f"{PLAIN}, _op STRING")
    HudiFormat().put(told, table, Progress("model", version))


def _keys(spark: SparkSession, table: Table, after: int, upto: int) -> list[int] | None:
    """What changed in these commits."""
    found = HudiFormat().changed_keys(spark, table, after, upto)
    return None if found is None else sorted(row["id"] for row in found.collect())


def test_what_somebody_else_cleaned_is_no_version_any_more(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's own cleaning may keep fewer commits than ours: whoever asks for what changed since compares all."""
    table = Table("t", str(tmp_path / "t"), ("id",))
    _put(exact, table, 0, (1, "upsert"), (2, "upsert"))
    _put(exact, table, 1, (1, "delete"))
    _put(exact, table, 2, (3, "upsert"))
    monkeypatch.setitem(hudi_options._ALWAYS, "hoodie.clean.commits.retained", "1")
    HudiFormat().maintain(exact, table, 168)
    assert _keys(exact, table, 0, 2) is None
    assert _keys(exact, table, 1, 2) == [3]
    with pytest.raises(VersionMissing, match=r"The oldest one kept is version 2 .* unless another program cleans it"):
        HudiFormat().version_at(exact, table, 1)
    assert HudiFormat().read(exact, table, 2).count() == 2


def test_a_table_that_somebody_else_wrote_by_a_later_hudi_goes_on(exact: SparkSession, tmp_path: Path) -> None:
    """Their first write makes it one of a later version, with a timeline elsewhere and other times: it is among the
    tables of its folder, its commits tell their own keys, and of what they deleted nobody is told wrongly.
    """
    table = Table("t", str(tmp_path / "t"), ("id",))
    _put(exact, table, 0, (1, "upsert"), (2, "upsert"))
    theirs: dict[str, Any] = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    theirs["hoodie.datasource.write.operation"] = "delete"
    one = exact.read.format("hudi").load(table.location).where("id = 1").drop(*HOODIE)
    one.write.format("hudi").options(**theirs).mode("append").save(table.location)
    _put(exact, table, 1, (3, "upsert"))
    _put(exact, table, 2, (4, "upsert"))
    assert "hoodie.table.version=6" not in Path(table.location, ".hoodie/hoodie.properties").read_text()
    assert HudiFormat().tables(exact, str(tmp_path)) == ("t",)
    assert [_keys(exact, table, *each) for each in ((0, 1), (1, 2))] == [None, [4]]
    assert sorted(row["id"] for row in HudiFormat().read(exact, table, 1).collect()) == [2, 3]


def test_columns_called_as_hudis_own_keep_their_values(exact: SparkSession, tmp_path: Path) -> None:
    """N-3: one that tells Hudi of deletes was left out, one of its own was overwritten, and another kept it from the
    table.
    """
    columns = {"_hoodie_is_deleted": "boolean", "_hoodie_record_key": "string", "_hoodie_operation": "string"}
    declared = tuple(Column(name, kind) for name, kind in {"id": "int", **columns}.items())
    world = World(exact, tmp_path, (Declaration(ORDERS, declared, format="hudi"),))
    for number, values in enumerate([(False, "a", "b"), (True, "c", "d")]):
        row = {"id": 1, **dict(zip(columns, values, strict=True))}
        account = world.take(record(f"s.{ORDERS}", number, {"id": 1}, envelope("u", row, pos=10 + number)))
        assert account[f"s/{ORDERS}"].error is None
    [row_there] = world.rows(ORDERS)
    assert row_there[:4] == (1, True, "c", "d")
