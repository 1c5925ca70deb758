"""`verify` against live databases: values of every kind, planted differences, a source that is ahead or away."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infra.sources.classicmodels.load import log_in
from replicator import assemble, settings
from replicator.operate import epoch, verify
from replicator.operate.verify import Verdict, VerifyOptions
from replicator.settings import Settings
from replicator.sinks.postgres import PostgresConnection
from replicator.spec import Progress, SourceSpec, Table
from replicator.stages import gold, publish, silver
from tests.builders import Record, bronze, envelope, exact_session, record
from tests.cli import said

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PG = """
CREATE TYPE {s}.mood AS ENUM ('calm', 'wild');
CREATE DOMAIN {s}.price AS numeric(10,2);
CREATE TABLE {s}."Odd things" (
  id int PRIMARY KEY, small smallint, big bigint, price {s}.price, exact numeric, ratio double precision, part real,
  ok boolean, flag bit(1), raw bytea, day date, at timestamp, seen timestamptz, clock time, doc jsonb, code uuid,
  name varchar(40), numbers int[], mood {s}.mood, pad char(5), loose bpchar, bits bit(5),
  vary bit varying(63), gone interval, fresh text);
INSERT INTO {s}."Odd things" VALUES
  (1, -3, 9007199254740993, 1234.50, 1.500, 0.30000000000000004, 0.1, true, B'1', '\\x00ff', '2020-02-29',
   '2020-02-29 01:02:03.000004', '2020-02-29 01:02:03.5+02', '24:00:00', '{{"b": 1.50, "a": [1, null]}}',
   '6F9619FF-8B86-D011-B42D-00C04FC964FF', 'é 😀 ''"\\', '{{1,NULL,3}}', 'wild', 'ab', 'ab ', B'00101',
   B'0', '1 mon', NULL),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL, NULL, NULL),
  (3, 32767, -1, -0.05, -12345678901234567890123456789012345678901234.5, 'NaN', '-Infinity', false, B'0', '',
   'infinity', 'infinity', '-infinity', '00:00:00.000001', '[]', '00000000-0000-0000-0000-000000000000', '', '{{}}',
   'calm', '', '', B'11111', repeat('1', 63)::bit varying, '0', '')
"""
MARIA = """
CREATE TABLE things (
  id int PRIMARY KEY, tiny tinyint(1), huge bigint unsigned, wrapped bigint unsigned, price decimal(10,2), ratio double,
  part float, raw varbinary(9), fixed binary(4), day date, at datetime(6), seen timestamp(6) NULL, clock time(6),
  doc json, kind enum('a b', 'c'), tags set('x', 'y', 'z'), bits bit(5), flag bit(1), made year, name varchar(40),
  place point) CHARACTER SET utf8mb4;
INSERT INTO things VALUES
  (1, 1, 18446744073709551615, 18446744073709551615, 1234.50, 0.1, 0.1, X'00FF', X'01', '2020-02-29',
   '2020-02-29 01:02:03.000004', '2020-02-29 01:02:03.5', '-12:30:00.5', '{"b": 1, "a": 2}', 'a b', 'x,z', 5, 1, 2003,
   'é 😀 ''"\\\\%', NULL),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL),
  (3, 0, 0, 7, -0.05, -1e300, 16777216, '', X'00000000', '9999-12-31', '1000-01-01 00:00:00', NULL, '838:59:59', '[]',
   'c', '', 0, 0, 1901, '', NULL)
"""
OF_PG = {
    "id": "int", "small": "smallint", "big": "bigint", "price": "decimal(10,2)", "exact": "variable_decimal",
    "ratio": "double", "part": "float", "ok": "boolean", "flag": "boolean", "raw": "bytes", "day": "date",
    "at": "micro_timestamp", "seen": "zoned_timestamp", "clock": "micro_time", "doc": "json", "code": "uuid",
    "name": "string", "numbers": "array<int>", "mood": "enum", "pad": "string", "loose": "string",
    "bits": "bits(5)", "vary": "bits(63)", "gone": "interval",
}  # fmt: skip
OF_MARIA = {
    "id": "int", "tiny": "smallint", "huge": {"type": "bigint", "unsigned": True}, "wrapped": "bigint",
    "price": "decimal(10,2)", "ratio": "double", "part": "float", "raw": "bytes", "fixed": "bytes", "day": "date",
    "at": "micro_timestamp", "seen": "zoned_timestamp", "clock": "micro_time", "doc": "json", "kind": "enum",
    "tags": "enum_set", "bits": "bits(5)", "flag": "boolean", "made": "year", "name": "string",
}  # fmt: skip


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


LONG = 123456789012345678901234567890123456789012345
EVENTS_OF_PG: list[dict[str, Any]] = [
    {"id": 1, "small": -3, "big": 9007199254740993, "price": text((123450).to_bytes(3, "big")),
     "exact": {"scale": 3, "value": text((1500).to_bytes(2, "big"))}, "ratio": 0.1 + 0.2, "part": 0.1, "ok": True,
     "flag": True, "raw": text(b"\x00\xff"), "day": 18321, "at": 1582938123000004, "seen": "2020-02-28T23:02:03.5Z",
     "clock": 86_400_000_000, "doc": '{"a": [1, null], "b": 1.5}', "code": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
     "name": "é 😀 '\"\\", "numbers": [1, None, 3], "mood": "wild", "pad": "ab   ", "loose": "ab ",
     "bits": text(b"\x05"), "vary": text(b"\0"), "gone": "P1M"},
    {"id": 2, **dict.fromkeys([name for name in OF_PG if name != "id"])},
    {"id": 3, "small": 32767, "big": -1, "price": text((-5).to_bytes(1, "big", signed=True)),
     "exact": {"scale": 1, "value": text((-LONG).to_bytes(20, "big", signed=True))},
     "ratio": "NaN", "part": "-Infinity", "ok": False, "flag": False, "raw": "", "day": 2146033979,
     "at": 9223372036854775807, "seen": "-infinity", "clock": 1, "doc": "[]",
     "code": "00000000-0000-0000-0000-000000000000", "name": "", "numbers": [], "mood": "calm", "pad": "     ",
     "loose": "", "bits": text(b"\x1f"), "vary": text(b"\xff" * 7 + b"\x7f"), "gone": "P0D"},
]  # fmt: skip
EVENTS_OF_MARIA: list[dict[str, Any]] = [
    {"id": 1, "tiny": 1, "huge": -1, "wrapped": -1, "price": text((123450).to_bytes(3, "big")), "ratio": 0.1,
     "part": 0.1, "raw": text(b"\x00\xff"), "fixed": text(b"\x01\0\0\0"), "day": 18321, "at": 1582938123000004,
     "seen": "2020-02-29T01:02:03.5Z", "clock": -45_000_500_000, "doc": '{"b": 1, "a": 2}', "kind": "a b",
     "tags": "x,z", "bits": text(b"\x05"), "flag": True, "made": 2003, "name": "é 😀 '\"\\%"},
    {"id": 2, **dict.fromkeys([name for name in OF_MARIA if name != "id"])},
    {"id": 3, "tiny": 0, "huge": 0, "wrapped": 7, "price": text((-5).to_bytes(1, "big", signed=True)), "ratio": -1e300,
     "part": 16777216.0, "raw": "", "fixed": text(b"\0\0\0\0"), "day": 2932896, "at": -30610224000000000, "seen": None,
     "clock": 3_020_399_000_000, "doc": "[]", "kind": "c", "tags": "", "bits": text(b"\0"), "flag": False, "made": 1901,
     "name": ""},
]  # fmt: skip
MODEL = """
SELECT id, price, ratio, name, doc, code, pad, raw, day, clock, numbers, CASE WHEN id = 1 THEN at END AS at_millis, at,
       timestamp_millis(_source_ts_ms) AS updated_at FROM {things}
"""
OF_MODEL = {
    "id": "integer", "price": "numeric(12,4)", "ratio": "double precision", "name": "text", "doc": "jsonb",
    "code": "uuid", "pad": "char(8)", "raw": "bytea", "day": "date", "clock": "time", "numbers": "jsonb",
    "at_millis": "timestamp(3)", "at": "timestamptz", "updated_at": "timestamp(3)",
}  # fmt: skip


Sent = list[tuple[dict[str, Any], dict[str, Any]]]
"""Keys with rows."""


@dataclass
class World:
    """Two sources with a table each, a model, its target; configured in a folder as a user has it."""

    spark: SparkSession
    conf: Path
    schema: str
    pg: Any
    maria: Any

    @property
    def settings(self) -> Settings:
        return settings.load(self.conf, "dev", {})

    @property
    def checks(self) -> verify.VerifyInputs:
        return assemble.verify_inputs(self.spark, self.settings, SourceSpec("", ""))

    def table(self, source: str) -> Table:
        name = {"pg": f"{self.schema}.Odd things", "maria": f"{self.schema}.things"}[source]
        return replace(self.checks.warehouse.lake.silver(source, name), keys=("id",))

    def take(self, source: str, rows: list[dict[str, Any]], after: int = 0, **place: Any) -> None:
        """Rows as the source's connector sends them, into silver."""
        name = self.table(source).name.split("/", 1)[1]
        self.feed(source, name, [({"id": row["id"]}, row) for row in rows], after, **place)

    def feed(self, source: str, name: str, rows: Sent, after: int = 0, **place: Any) -> None:
        """Keys and rows of a table likewise."""
        self.feed_all(source, {name: rows}, after, **place)

    def feed_all(self, source: str, tables: dict[str, Sent], after: int = 0, **place: Any) -> None:
        """Keys and rows of tables, in one batch."""
        told = {"name": source, "connector": "mariadb"} | place
        if source == "pg":
            told |= {"connector": "postgresql", "schema": self.schema, "lsn": 10, "sequence": '["9","10"]'}
        records: list[Record] = []
        for name, rows in tables.items():
            for offset, (key, row) in enumerate(rows, after):
                value = envelope("c", row, pos=4 + offset, table=name, **told)
                records.append(record(f"{source}.{name.replace(' ', '_')}", offset, key, value))
        at = next(each for each in self.checks.sources if each.source.name == source)
        at.bronze.append(bronze(self.spark, records), at.lake.bronze(source), None)
        accounts = list(silver.refine(self.spark, at))
        assert [str(account.error) for account in accounts if account.error] == []
        assert sum(account.dead_lettered for account in accounts) == 0

    def verdict(self, layer: str, table: str | None = None, **look: Any) -> Verdict:
        [told] = self.verdicts(layer, table, **look)
        return told

    def verdicts(self, layer: str, table: str | None = None, **look: Any) -> list[Verdict]:
        """Of every table, or of one."""
        comparisons = verify.select_comparisons(self.spark, self.checks, None if table is None else [table], [layer])
        return list(verify.verify(self.spark, comparisons, VerifyOptions(**look)))

    def said(self, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        """What the command tells as JSON."""
        done = said("verify", *arguments, "--conf", str(self.conf), "--env", "dev", "--json", code=code)
        return list(json.loads(done))

    def put(self, source: str, rows: Any) -> None:
        """Rows with ``_op`` into silver behind everybody's back."""
        self.checks.warehouse.silver.put(rows, self.table(source), Progress("a mistake", time.monotonic_ns()))

    def publish(self) -> None:
        at = self.checks
        lake, sink = at.warehouse.lake, at.sinks["warehouse"]
        done = publish.publish(self.spark, at.models, at.warehouse.gold, lake, sink)
        assert [str(each.error) for each in done if each.error] == []

    def run(self, statement: str) -> None:
        with self.pg, self.pg.cursor() as cursor:
            cursor.execute(statement)


@pytest.fixture(scope="module")
def world(spark: SparkSession, endpoints: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Everything equal: sources, silver, gold, target."""
    schema, home = f"verify_{uuid4().hex[:8]}", tmp_path_factory.mktemp("verify")
    admin = endpoints.postgres_admin
    own = PostgresConnection(admin.host, admin.port, admin.database, admin.user, admin.password, sslmode="disable")
    configure(home, schema, endpoints)
    with closing(own.open()) as pg, closing(log_in(endpoints.mariadb)) as maria:
        with pg, pg.cursor() as cursor:
            cursor.execute(f"ALTER ROLE {own.user} SET extra_float_digits = 0")  # no role decides how values are told
            cursor.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}; " + PG.format(s=schema))
        with maria.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"CREATE DATABASE {schema}")
            maria.select_db(schema)
            for statement in MARIA.split(";\n"):
                cursor.execute(statement)
            maria.commit()
        made = World(exact_session(spark), home / "conf", schema, pg, maria)
        made.take("pg", EVENTS_OF_PG)
        made.take("maria", EVENTS_OF_MARIA)
        at = made.checks
        assert [str(built.error) for built in gold.refresh(made.spark, at.models, at.warehouse) if built.error] == []
        made.publish()
        yield made
        maria.rollback()
        with maria.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {schema}")
        pg.rollback()
        made.run(f"ALTER ROLE {own.user} RESET extra_float_digits")
        made.run(f"DROP SCHEMA {schema} CASCADE; DROP SCHEMA {schema}_star CASCADE")


def configure(home: Path, schema: str, endpoints: Any) -> None:
    """A configuration that names both sources and the target."""

    def login(server: Any, **more: Any) -> dict[str, Any]:
        return {"host": server.host, "port": server.port, "user": server.user, "password": server.password, **more}

    admin, maria = endpoints.postgres_admin, login(endpoints.mariadb, kind="mariadb", sslmode="disable")
    pg = login(admin, kind="postgresql", dbname=admin.database, sslmode="disable")
    target = login(admin, database=admin.database, sslmode="disable")
    inputs = {"things": f"pg/{schema}.Odd things"}
    columns = {name: {"type": kind} for name, kind in OF_MODEL.items()}
    place = {"target": "warehouse", "schema": f"{schema}_star", "table": "things"}
    files = {
        "base.yaml": {"lake": {"root": str(home / "lake")}},
        "dev.yaml": {"targets": {"warehouse": target}},
        "sources/pg.yaml": {"name": "pg", "database": pg, "tables": {f"{schema}.Odd things": {"columns": OF_PG}}},
        "sources/maria.yaml": {
            "name": "maria",
            "database": maria,
            "tables": {f"{schema}.things": {"columns": OF_MARIA}},
        },
        "models/things.yaml": {"key": ["id"], "inputs": inputs, "columns": columns, "publish": place},
    }
    for name, content in files.items():
        path = home / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    (home / "conf/models/things.sql").write_text(MODEL, encoding="utf-8")


def test_values_of_every_kind_are_equal_in_every_layer(world: World) -> None:
    """types.md section 2, from two live databases to the serving one: numbers at their ends, NaN, endless dates, bytes,
    JSON in another order, NULL and ''; what has several texts is listed and not guessed.
    """
    told = {f"{each['layer']} {each['against']}": each for each in world.said()}
    assert {place: (each["verdict"], each["named"], each["rows"]) for place, each in told.items()} == {
        "source mariadb": ("equal", [], 3),
        "source postgresql": ("equal", [], 3),
        "gold silver": ("equal", [], 3),
        "target warehouse": ("equal", [], 3),
    }
    assert told["source postgresql"]["not_compared"] == [
        "gone: interval has several representations",
        "fresh: silver has no such column",
    ]
    assert told["source mariadb"]["not_compared"] == ["place: silver has no such column"]
    assert told["target warehouse"]["not_compared"] == []
    marks = world.said("--show")
    assert [(mark["layer"], mark["rows"]) for mark in marks] == [
        ("source", 3),
        ("source", 3),
        ("gold", 3),
        ("target", 3),
    ]


@pytest.mark.parametrize("source", ["pg", "maria"])
def test_a_cell_and_a_row_that_silver_has_wrong_are_named(world: World, source: str) -> None:
    """By key and column, each column that there is, with exit code 1; put right, the two are equal again."""
    rows = world.checks.warehouse.silver.read(world.spark, world.table(source))
    upsert = F.lit("upsert").alias("_op")
    other = rows.where("id = 1").withColumn("id", F.lit(3))
    world.put(source, other.select("*", upsert).localCheckpoint())
    world.put(source, rows.where("id = 2").select("*", F.lit("delete").alias("_op")).localCheckpoint())
    [told] = world.said(world.table(source).name, "--layer", "source", "--wait", "0", code=1)
    assert (told["missing"], told["differing"], told["extra"]) == (1, 1, 0)
    missing, differing = sorted(told["named"])
    assert missing == "id=2: missing"
    compared = set(OF_PG if source == "pg" else OF_MARIA) - {"id", "gone"}
    assert set(differing.removeprefix("id=3: ").split(", ")) == compared
    before = world.checks.warehouse.silver.version(world.spark, world.table(source)) - 2
    back = world.checks.warehouse.silver.read(world.spark, world.table(source), before)
    world.put(source, back.where("id IN (2, 3)").select("*", upsert).localCheckpoint())
    assert world.verdict("source", world.table(source).name).is_equal


KEYS = sorted({f"{'aAbBzZéÉ_~'[n % 10]}{n * 7919 % 1009}" for n in range(400)})


@pytest.fixture(scope="module")
def many(world: World) -> str:
    """A table of each database with keys of text, in an order that is not that of their bytes."""
    rows = ", ".join(f"('{key}', {at})" for at, key in enumerate(KEYS))
    create = "CREATE TABLE {}many (code varchar(20){} PRIMARY KEY, at int)"
    world.run(f"{create.format(f'{world.schema}.', '')}; INSERT INTO {world.schema}.many VALUES {rows}")
    with world.maria.cursor() as cursor:
        cursor.execute(create.format("", " COLLATE utf8mb4_bin") + " CHARACTER SET utf8mb4")
        cursor.execute(f"INSERT INTO many VALUES {rows}")
        cursor.execute("CREATE TABLE loose AS SELECT * FROM many")
        cursor.execute("ALTER TABLE loose MODIFY code varchar(20) COLLATE utf8mb4_unicode_ci")
        world.maria.commit()
    return f"{world.schema}.many"


def test_a_database_sends_the_ranges_that_are_asked_for(world: World, many: str) -> None:
    """By the bytes of texts, whatever its collation, and by numbers; ends belong to the range before them."""
    low, high, last = KEYS[100], KEYS[220], KEYS[350]
    inside = [key for key in KEYS if low < key <= high or key > last]
    for source, table in (("pg", many), ("maria", many), ("maria", many.replace("many", "loose"))):
        with world.checks.databases[source].read_snapshot() as snapshot:
            held = {each.name: each for each in snapshot.columns(table)}
            code, at = snapshot.codec(held["code"], T.StringType()), snapshot.codec(held["at"], T.IntegerType())
            assert code is not None
            assert at is not None
            within = ("code", code.ordered), [(low, high), (last, None)]
            found = snapshot.rows(table, [("code", code.sql)], None, 50, within)
            assert sorted(row[0] or "" for chunk in found for row in chunk) == inside
            numbers = snapshot.rows(table, [("at", at.sql)], None, 50, (("at", at.ordered), [(None, 3), (397, 398)]))
            assert sorted(int(row[0] or "") for chunk in numbers for row in chunk) == [0, 1, 2, 3, 398]


def test_a_sample_and_a_second_look_read_what_they_need(
    world: World, endpoints: Any, many: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of the keys is a fifth of what the database sends; where more keys differ than are remembered, their
    ranges are read again, and nothing else.
    """
    configure(tmp_path, world.schema, endpoints)
    own = replace(world, conf=tmp_path / "conf")
    with (own.conf / "sources/maria.yaml").open("a", encoding="utf-8") as file:
        file.write(f"  {many}: {{columns: {{code: string, at: int}}}}\n")
    own.feed("maria", many, [({"code": key}, {"code": key, "at": at}) for at, key in enumerate(KEYS)])
    silver, table = (
        own.checks.warehouse.silver,
        replace(own.checks.warehouse.lake.silver("maria", many), keys=("code",)),
    )
    read: list[int] = []
    told = own.verdict("source", table.name, share=0.2, advance=read.append)
    assert (told.is_equal, told.error, 0.1 < told.rows / len(KEYS) < 0.4) == (True, None, True)
    assert sum(read) == 3 * told.rows
    right = silver.read(own.spark, table).where(F.col("code").isin(KEYS[100:120])).localCheckpoint()
    upsert = F.lit("upsert").alias("_op")
    silver.put(right.withColumn("at", F.col("at") + 1).select("*", upsert), table, Progress("a mistake", 1))
    for module in ("source", "equality"):
        monkeypatch.setattr(f"replicator.operate.verify.{module}.KNOWN", 5)
    told = own.verdict("source", table.name)
    assert (told.differing, told.rows, len(told.named)) == (20, len(KEYS), 5)
    assert told.ranges[0].startswith(f"code {KEYS[100]}")
    assert sum(int(line.split()[-2]) for line in told.ranges) == 20
    read.clear()

    def advance(rows: int) -> None:
        read.append(rows)
        if len(read) == 4:  # the second look
            silver.put(right.select("*", upsert), table, Progress("a mistake", 2))

    assert own.verdict("source", table.name, wait=120, advance=advance).is_equal
    assert read[:3] == [len(KEYS)] * 3
    assert 20 <= read[3] < len(KEYS) // 4


@pytest.mark.parametrize(("rows", "exclude"), [(2, []), (0, []), (2, ["{}.alone"])], ids=["rows", "none", "not read"])
def test_a_table_that_only_the_source_has_lacks_all_of_its_rows(
    world: World, endpoints: Any, tmp_path: Path, rows: int, exclude: list[str]
) -> None:
    """One that the source's file names, and of which no record ever came: nothing would tell of it."""
    configure(tmp_path, world.schema, endpoints)
    own, name = replace(world, conf=tmp_path / "conf"), f"{world.schema}.alone"
    path = own.conf / "sources/pg.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content |= {"tables": {name: {}, f"{world.schema}.logged": {"append_only": True}}}
    content |= {"exclude": [each.format(world.schema) for each in exclude]}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    world.run(f"CREATE TABLE {name} AS SELECT id FROM generate_series(1, {rows}) id")
    try:
        known = verify.select_comparisons(own.spark, own.checks, None, ["source"])
        told = list(
            verify.verify(own.spark, [each for each in known if "Odd things" not in each.table], VerifyOptions())
        )
    finally:
        world.run(f"DROP TABLE {name}")
    named = ["all rows: silver does not have the table"] if rows else []
    expected = [] if exclude else [(f"pg/{name}", rows, rows, named, rows == 0)]
    found = [each for each in told if each.table.startswith("pg/")]
    assert [(each.table, each.rows, each.missing, [*each.named], each.is_equal) for each in found] == expected


def test_what_is_on_its_way_is_not_called_a_difference(world: World) -> None:
    """The source is ahead: looked at again until silver has it; silver is ahead: in flight, and left out."""
    name = world.table("maria").name
    with world.maria.cursor() as cursor:
        cursor.execute("INSERT INTO things (id, name) VALUES (4, 'new')")
        world.maria.commit()
    assert world.verdict("source", name).missing == 1
    row = {**EVENTS_OF_MARIA[1], "id": 4, "name": "new"}
    late = threading.Timer(2, world.take, ("maria", [row], 3))
    late.start()
    told = world.verdict("source", name, wait=60)
    late.join()
    assert (told.is_equal, told.rows, told.named) == (True, 4, ())
    world.take("maria", [{**row, "id": 5}], 4, file="binlog.999999")
    told = world.verdict("source", name)
    assert (told.is_equal, told.in_flight) == (True, 1)
    with world.maria.cursor() as cursor:
        cursor.execute("DELETE FROM things WHERE id = 4")
        world.maria.commit()
    gone = world.checks.warehouse.silver.read(world.spark, world.table("maria")).where("id > 3")
    world.put("maria", gone.select("*", F.lit("delete").alias("_op")).localCheckpoint())


MINUTE = 60_000_000
OTHERWISE = [
    ("maria", "filled", "int(6) unsigned zerofill", "int", [("7", 7), ("42", 42)]),
    ("maria", "costs", "decimal(9,2) zerofill", "decimal(9,2)", [("7", text(b"\x02\xbc")), ("42", text(b"\x10\x68"))]),
    ("maria", "huge", "bigint unsigned", "bigint", [("7", 7), ("18446744073709551615", -1)]),
    ("maria", "clock", "time", "micro_time", [("'00:07:00'", 7 * MINUTE), ("'08:00:00'", 480 * MINUTE)]),
    ("maria", "made", "year", "year", [("2003", 2003), ("0", 0)]),
    ("pg", "ends", "date", "date", [("'2020-02-29'", 18321), ("'infinity'", 2146033979)]),
    ("pg", "costs", "numeric(9,2)", "decimal(9,2)", [("7", text(b"\x02\xbc")), ("42", text(b"\x10\x68"))]),
    ("maria", "raw", "binary(2)", "bytes", [("X'0001'", text(b"\0\1")), ("X'00FF'", text(b"\0\xff"))]),
    ("pg", "raw", "bytea", "bytes", [("'\\x0001'", text(b"\0\1")), ("'\\x00ff'", text(b"\0\xff"))]),
    ("maria", "maybe", "varchar(9)", "string", [("'a'", "a"), ("NULL", None)]),
    ("pg", "maybe", "varchar(9)", "string", [("'a'", "a"), ("NULL", None)]),
]  # fmt: skip


class TwoLooks:
    """A clock that goes on by a second with each look at it, so that there is time for a second look, and no third."""

    WAIT = 2.5

    def __init__(self) -> None:
        self._now, self.slept = 0.0, 0

    def monotonic(self) -> float:
        self._now += 1
        return self._now

    def sleep(self, _: float) -> None:
        self.slept += 1


def test_a_missing_row_is_missing_at_the_second_look_however_its_key_is_written(
    world: World, endpoints: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that writes a key in another way than silver is not taken for one that has no such row, nor one whose
    key is NULL for one that silver has.
    """
    configure(tmp_path, world.schema, endpoints)
    own = replace(world, conf=tmp_path / "conf")
    for source in ("maria", "pg"):
        path = own.conf / f"sources/{source}.yaml"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["tables"] = {
            f"{world.schema}.{table}": {"columns": {"id": kind}} for of, table, _, kind, _ in OTHERWISE if of == source
        }
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    feeds: dict[str, dict[str, Sent]] = {"maria": {}, "pg": {}}
    for source, table, type_, _, rows in OTHERWISE:
        pairs: Any = rows
        (first, sent), (second, _) = pairs
        name = f"{world.schema}.{table}"
        statements = f"CREATE TABLE {name} (id {type_} UNIQUE)", f"INSERT INTO {name} VALUES ({first}), ({second})"
        if source == "pg":
            world.run(";".join(statements))
        else:
            with world.maria.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                world.maria.commit()
        feeds[source][name] = [({"id": sent}, {"id": sent})]
    for source, tables in feeds.items():
        own.feed_all(source, tables)
    monkeypatch.setattr("replicator.operate.verify.source.time", clock := TwoLooks())
    verdicts = own.verdicts("source", wait=TwoLooks.WAIT)
    assert clock.slept == len(OTHERWISE)
    told = {each.table: (each.missing, each.extra, each.error) for each in verdicts}
    assert told == {f"{source}/{world.schema}.{table}": (1, 0, None) for source, table, *_ in OTHERWISE}


def test_what_silver_has_no_room_for_is_a_difference(world: World, endpoints: Any, tmp_path: Path) -> None:
    """A value of the source that is no value of silver's type (a dead letter, types.md Y2) is neither rounded until the
    two are equal nor the end of the comparison, also where silver has NULL. A zero date is the NULL that it is sent as.
    """
    configure(tmp_path, world.schema, endpoints)
    own = replace(world, conf=tmp_path / "conf")
    name = f"{world.schema}.beyond"
    columns = {"id": "int", "price": "decimal(5,2)", "big": "int", "at": "micro_timestamp"}
    for source in ("maria", "pg"):
        path = own.conf / f"sources/{source}.yaml"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["tables"] = {name: {"columns": columns}}
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    create = f"CREATE TABLE {name} (id int PRIMARY KEY, price decimal(9,4), big bigint, at {{}})"
    insert = (
        f"INSERT INTO {name} VALUES (1, 1.2300, 7, '2020-02-29 01:02:03.000004'), (2, 1.2345, 7, {{}}), "
        "(3, 1000, 7, NULL), (4, -0.0001, -5000000000, NULL), (5, NULL, NULL, {})"
    )
    world.run(
        f"{create.format('timestamp')}; {insert.format('NULL', chr(39) + '0044-03-15 00:00:00 BC' + chr(39))}; "
        f"INSERT INTO {name} VALUES (6, 'NaN', 7, NULL); "
        f"CREATE TABLE {name}_late () INHERITS ({name}); INSERT INTO {name}_late VALUES (7, 1, 7, NULL)"
    )
    with world.maria.cursor() as cursor:
        cursor.execute(create.format("datetime(6)"))
        cursor.execute(insert.format("'0000-00-00'", "'2020-00-15'"))
        world.maria.commit()
    cent = text((123).to_bytes(1, "big"))
    rows = [{"id": 1, "price": cent, "big": 7, "at": 1582938123000004}, {"id": 2, "price": cent, "big": 7, "at": None}]
    rows += [{"id": number, "price": None, "big": 7, "at": None} for number in (3, 4, 5, 6)]
    rows[4]["big"] = None
    for source, last in (("maria", 5), ("pg", 6)):
        own.feed(source, name, [({"id": row["id"]}, row) for row in rows[:last]])
        told = own.verdict("source", f"{source}/{name}")
        assert told.error is None
        differing = ["id=2: price", "id=3: price", "id=4: price, big", "id=5: at", "id=6: price"]
        assert sorted(told.named) == differing[: last - 1]


def test_rows_that_are_marked_as_deleted_are_none_of_the_sources_rows(
    world: World, endpoints: Any, tmp_path: Path
) -> None:
    """`apply_as_deletes` holds for both sides, of a column that silver leaves out; a row whose mark was taken away at
    the source, and not in silver, is missed.
    """
    configure(tmp_path, world.schema, endpoints)
    own = replace(world, conf=tmp_path / "conf")
    name = f"{world.schema}.marked"
    told = {"columns": {"id": "int", "gone": "date"}, "apply_as_deletes": "gone IS NOT NULL"}
    for source in ("maria", "pg"):
        path = own.conf / f"sources/{source}.yaml"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["tables"] = {name: {**told, "transform": {"except_column_list": ["gone"]}}}
        path.write_text(yaml.safe_dump(content), encoding="utf-8")

    def both(*statements: str) -> None:
        world.run("; ".join(statements))
        with world.maria.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        world.maria.commit()

    def seen() -> dict[str, tuple[bool, int, int]]:
        verdicts = {source: own.verdict("source", f"{source}/{name}", wait=0) for source in ("maria", "pg")}
        return {source: (each.is_equal, each.rows, each.missing) for source, each in verdicts.items()}

    both(
        f"CREATE TABLE {name} (id int PRIMARY KEY, gone date)",
        f"INSERT INTO {name} VALUES (1, NULL), (2, '2026-11-26')",
    )
    for source in ("maria", "pg"):
        own.feed(source, name, [({"id": 1}, {"id": 1, "gone": None}), ({"id": 2}, {"id": 2, "gone": 20783})])
    assert seen() == dict.fromkeys(("maria", "pg"), (True, 1, 0))
    both(f"UPDATE {name} SET gone = NULL")
    assert seen() == dict.fromkeys(("maria", "pg"), (False, 2, 1))


def test_only_places_in_the_log_that_is_written_now_are_ahead_of_it(
    world: World, endpoints: Any, tmp_path: Path
) -> None:
    """debezium.md Q2, Q9: a row of an epoch before, or of a table that times order, is no row on its way."""
    configure(tmp_path, world.schema, endpoints)
    own = replace(world, conf=tmp_path / "conf")
    name, columns = f"{world.schema}.restored", {"id": "int"}
    for source, more in (("maria", {}), ("pg", {"sequence_by": "source.ts_ms"})):
        path = own.conf / f"sources/{source}.yaml"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["tables"] = {name: {"columns": columns, **more}}
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    world.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    with world.maria.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)")
        world.maria.commit()
    rows = [({"id": 1}, {"id": 1})]
    own.feed("pg", name, rows, ts_ms=1_780_000_000_000)
    told = own.verdict("source", f"pg/{name}")
    assert (told.extra, told.in_flight) == (1, 0)
    own.feed("maria", name, rows, file="binlog.999999")
    told = own.verdict("source", f"maria/{name}")
    assert (told.extra, told.in_flight) == (0, 1)
    at = own.checks.warehouse
    bronze_of = next(each.bronze for each in own.checks.sources if each.source.name == "maria")
    epoch.bump(own.spark, epoch.LakeSource("maria", at.lake, bronze_of, at.control, at.silver), "restored", {})
    told = own.verdict("source", f"maria/{name}")
    assert (told.extra, told.in_flight) == (1, 0)
    own.feed("maria", name, [({"id": 2}, {"id": 2})], 1, file="binlog.999999")
    told = own.verdict("source", f"maria/{name}")
    assert (told.extra, told.in_flight) == (1, 1)


def test_what_others_do_to_the_target_is_named(world: World) -> None:
    """F-P8: an UPDATE, a DELETE and an INSERT by hand. ``run publish`` has nothing new for them; ``republish`` writes
    these three rows and no other.
    """
    place = f"{world.schema}_star.things"
    world.run(
        f'UPDATE {place} SET doc = \'{{"a": [1, null], "b": 1.51}}\' WHERE id = 1; DELETE FROM {place} WHERE id = 2; '
        f"INSERT INTO {place} SELECT (jsonb_populate_record(t, '{{\"id\": 9}}')).* FROM {place} t WHERE id = 3"
    )
    told = world.verdict("target")
    assert (told.rows, sorted(told.named)) == (3, ["id=1: doc", "id=2: missing", "id=9: extra"])
    assert world.verdict("gold").is_equal
    world.publish()
    assert not world.verdict("target").is_equal
    [line] = json.loads(said("republish", "things", "--conf", str(world.conf), "--env", "dev", "--json"))
    assert (line["stage"], line["table"], line["applied"], line["error"]) == ("publish", "things", 3, None)
    assert world.verdict("target").is_equal


def test_a_source_that_is_away_keeps_nobody_from_the_others(world: World) -> None:
    """Exit code 3, and every other verdict is told."""
    path = world.conf / "sources/maria.yaml"
    kept = path.read_text(encoding="utf-8")
    content = yaml.safe_load(kept)
    content["database"]["port"] = 1
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    try:
        told = world.said("--layer", "source", code=3)
    finally:
        path.write_text(kept, encoding="utf-8")
    assert sorted(each["verdict"] for each in told) == ["equal", "unknown"]
