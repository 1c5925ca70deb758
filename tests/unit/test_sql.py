"""``replicator sql`` with Spark: names of views, nothing but queries, and the rows that other engines give."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from replicator.catalog.local import DuckdbEngine
from replicator.catalog.sql_query import SqlQuery, transpile
from replicator.catalog.store import Store
from replicator.cli import app, spark_sql
from replicator.cli.views import list_views, register
from replicator.errors import ConfigError, VersionMissing
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.lake import Lake
from replicator.spec import Progress
from replicator.transforms.merge import SYSTEM_DDL
from tests.builders import made
from tests.cli import said

LAKE = Lake("/lake")


def named(silver: Iterable[tuple[str, str]], gold: Iterable[str] = ()) -> dict[str, str]:
    tables = [(source, name, LAKE.silver(source, name)) for source, name in silver]
    return {name: table.name for name, table in list_views(tables, [(model, LAKE.gold(model)) for model in gold])}


def test_a_silver_table_goes_by_its_last_name_and_always_by_its_long_one() -> None:
    """Scripts use the long name, people the short one."""
    assert named([("s", "db.orders")]) == {"s__db__orders": "s/db.orders", "orders": "s/db.orders"}


def test_a_name_that_two_tables_have_is_nobodys() -> None:
    """Ambiguous names, in any case, are not guessed; a gold model keeps its own."""
    assert set(named([("s", "a.t"), ("s", "b.T")])) == {"s__a__t", "s__b__T"}
    assert named([("s", "a.t")], ["t"])["t"] == "t"


@pytest.mark.spark
@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE t",
        "INSERT INTO t VALUES (1)",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "FROM t INSERT INTO a SELECT 1 INSERT INTO b SELECT 2",
        "CREATE TABLE t AS SELECT 1",
        "SET spark.sql.ansi.enabled = false",
        "OPTIMIZE t",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "CACHE TABLE t",
        "EXPLAIN INSERT INTO t VALUES (1)",
        "INSERT OVERWRITE DIRECTORY '/nowhere/t' USING parquet SELECT 1",
        "SELECT TRANSFORM(1) USING 'cat' AS (a)",
        "SELECT (SELECT TRANSFORM(1) USING 'cat' AS (a))",
        "RESTORE TABLE t TO VERSION AS OF 0",
        "CREATE TABLE a SHALLOW CLONE b",
        "CACHE TABLE IDENTIFIER('t')",
        "EXECUTE IMMEDIATE 'DROP TABLE t'",
        "CALL system.something()",
        "BEGIN DROP TABLE t; END",
        "selec",
        "SELECT 1; SELECT 2",
    ],
)
def test_whatever_is_no_query_is_refused(spark: SparkSession, statement: str) -> None:
    """The lake is never changed by a question."""
    with pytest.raises(ConfigError):
        spark_sql.refuse_commands(spark, statement)


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1",
        "WITH x AS (SELECT 1 a) SELECT * FROM x",
        "VALUES (1)",
        "TABLE t",
        "SELECT 1 UNION SELECT 2",
        "DESCRIBE t",
        "EXPLAIN SELECT 1",
        "SELECT * FROM IDENTIFIER('t') WHERE a = (SELECT max(a) FROM t)",
    ],
)
def test_queries_are_let_through(spark: SparkSession, query: str) -> None:
    """Everything that only reads."""
    spark_sql.refuse_commands(spark, query)


@pytest.mark.spark
@pytest.mark.parametrize("call", ["table_changes_by_path('{other}', 0)", "table_changes('delta.`{other}`', 0)"])
def test_a_query_reads_no_lake_but_its_own(spark: SparkSession, tmp_path: Path, call: str) -> None:
    """Functions that open what they are told, by a path or a name, are not there; those that make rows are."""
    other = Lake(str(tmp_path / "other")).silver("s", "db.t", ("id",))
    ddl = f"id INT, {SYSTEM_DDL}"
    DeltaFormat().apply(made(spark, [(1, "1", False, None, 1)], ddl), other, Progress("b", 0))
    engine = spark_sql.SparkEngine(spark, DeltaFormat(), Lake(str(tmp_path / "own")))
    with pytest.raises(ConfigError, match="UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        engine.ask(f"SELECT * FROM {call.format(other=other.location)}", None)
    assert list(engine.ask("SELECT * FROM range(2) JOIN explode(array(5)) ORDER BY 1", None).texts()) == [
        ["0", "5"],
        ["1", "5"],
    ]


@pytest.mark.spark
def test_a_view_shows_live_rows_with_the_sources_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Deleted rows and the columns of our own are not the source's (architecture section 4)."""
    lake = Lake(str(tmp_path))
    rows = "SELECT 1 AS id, false AS _deleted, '0' AS _seq UNION ALL SELECT 2, true, '1'"
    spark.sql(rows).write.format("delta").save(lake.silver("s", "db.orders").location)
    session = spark.newSession()
    assert register(session, DeltaFormat(), lake, "select * from Orders") == ["orders", "s__db__orders"]
    assert [tuple(row) for row in session.sql("SELECT * FROM orders").collect()] == [(1,)]
    assert not session.catalog.tableExists("s__db__orders")


@pytest.mark.spark
def test_a_query_sees_every_table_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """At a version or a time, in Spark and DuckDB alike: live rows of then, and stderr says of which versions. A table
    that came later is missed only by who asks for it.
    """
    pytest.importorskip("duckdb")
    lake, delta = Lake(str(tmp_path)), DeltaFormat()
    orders, late = lake.silver("s", "db.orders", ("id",)), lake.gold("late", ("id",))
    ddl = f"id INT, x STRING, {SYSTEM_DDL}"
    first = made(spark, [(1, "a", "1", False, None, 1), (2, "b", "1", False, None, 1)], ddl)
    delta.apply(first, orders, Progress("b", 0))
    time.sleep(0.05)
    between = datetime.now(timezone.utc).isoformat()
    time.sleep(0.05)
    delta.apply(
        made(spark, [(1, "c", "2", False, None, 2), (2, None, "2", True, None, 2)], ddl), orders, Progress("b", 1)
    )
    delta.put(made(spark, [(1, "upsert")], "id INT, _op STRING"), late, Progress("late", 0))
    for engine in ("spark", "duckdb"):

        def ask(query: str, *more: str, engine: str = engine) -> Result:
            asked = ["sql", query, "--lake", str(tmp_path), "--engine", engine, "--format", "csv", *more]
            return CliRunner().invoke(app, asked, catch_exceptions=False)

        query = "SELECT id, x FROM orders JOIN s__db__orders AS late USING (id, x) ORDER BY id"
        for when in ("0", between):
            told = ask(query, "--as-of", when)
            assert told.stdout == "id,x\n1,a\n2,b\n"
            assert "s/db.orders: version 0 of 20" in told.stderr
        assert ask(query, "--as-of", "1").stdout == ask(query).stdout == "id,x\n1,c\n"
        with pytest.raises(VersionMissing, match=r"late did not exist at .* Its first version is version 0"):
            ask("SELECT * FROM late", "--as-of", between)
        with pytest.raises(VersionMissing, match=r"s/db.orders did not exist at"):
            ask(query, "--as-of", "2 hours ago")
        with pytest.raises(VersionMissing, match=r"has no version 2 .* The newest is version 1"):
            ask(query, "--as-of", "2")
    with pytest.raises(ConfigError, match="Athena cannot read older versions"):
        said("sql", "SELECT 1", "--lake", str(tmp_path), "--engine", "athena", "--as-of", "0")


ODD = """
id, CAST(id * 1.005 AS DECIMAL(10,2)) AS price, id * CAST(12345678901234567 AS DECIMAL(28,4)) AS wide,
DATE'0001-01-01' + id AS day, TIMESTAMP'2024-05-06 07:08:09.123456' + MAKE_INTERVAL(0,0,0,0,id) AS at,
IF(id % 2 = 0, TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP'9999-12-31 23:59:59.999999') AS far,
CAST(REPEAT('abc', 40) AS BINARY) AS bytes, MAP('a', STRING(id), 'b', NULL) AS tags, ARRAY(1, NULL, id) AS list,
NAMED_STRUCT('x', 1, 'y', 'é', 'z', 0.1F) AS parts, id / 3D AS third, FLOAT(id * 0.1) AS tenth, id % 2 = 0 AS even,
SMALLINT(id) AS small, id * 1e20D AS huge, 'x' AS order_x20_key, 'u' AS _x5f_seq, STRING(NULL) AS nothing,
MAP(DATE'2020-01-02', MAP(CAST(REPEAT('abc', 40) AS BINARY), id)) AS days,
MAP(CAST(1e-9 AS DECIMAL(12,10)), id) AS exact,
ARRAY(MAP(TIMESTAMP'2020-01-02 03:04:05.06', STRUCT(MAP(true, 1) AS m)), NULL) AS times,
MAP(STRUCT(DATE'2020-01-02' AS d, 'q"' AS q), 1) AS pairs, STRUCT(CAST(-1e-18 AS DECIMAL(28,18)) AS t) AS deep,
CAST(id * 1e-9 AS DECIMAL(28,18)) AS tiny, CAST(0 AS DECIMAL(28,18)) AS none,
"""
SYSTEM = "'{seq}' AS _seq, {deleted} AS _deleted, CAST(NULL AS MAP<STRING,STRING>) AS _column_seq, 1L AS _source_ts_ms"


@pytest.mark.spark
def test_duckdb_gives_the_rows_that_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    """Every type and spelling, deleted rows in deletion vectors, changed ones in files of their own: as texts and as
    JSON, character by character.
    """
    pytest.importorskip("duckdb")
    lake, delta = Lake(str(tmp_path)), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table = lake.silver("s", "db.odd", ("id",))
    for version, (first, end, deleted) in enumerate([(0, 9, "false"), (0, 5, "id < 3")]):
        system = SYSTEM.format(seq=version, deleted=deleted)
        spark.range(first, end).selectExpr("INT(id) AS id").createOrReplaceTempView("ids")
        rows = spark.sql(f"SELECT {ODD} {system} FROM ids")
        delta.apply(rows, table, Progress("b", version))
    assert list(tmp_path.rglob("deletion_vector_*.bin"))
    query = SqlQuery("SELECT * FROM db.odd ORDER BY id", "spark")
    found = []
    for engine in (spark_sql.SparkEngine(spark, delta, lake), DuckdbEngine(Store(str(tmp_path)), lake)):
        words = transpile(query, engine.dialect, engine.databases)
        answer = engine.ask(words, None)
        found.append((answer.columns, list(map(tuple, answer.texts())), list(engine.ask(words, None).objects())))
    assert [row[0] for row in found[0][1]] == ["3", "4", "5", "6", "7", "8"]
    assert found[0] == found[1]


@pytest.mark.spark
def test_the_scenarios_item_query_counts_every_line_of_every_order(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    """Kept in Athena's words, answered by Spark and DuckDB: 2,152 lines, 2,155 once order 11075 is there."""
    assert spark
    pytest.importorskip("duckdb")
    conf = str(Path(__file__).parents[2] / "conf" / "northwind")
    with gzip.open(recorded / "northwind.demo.jsonl.gz", "rt", encoding="utf-8") as stream:
        events = list(stream)
    lake, file = str(tmp_path / "lake"), tmp_path / "events.jsonl"
    for upto, lines in ((829, 2152), (834, 2155)):
        file.write_text("".join(events[:upto]), encoding="utf-8")
        said("run", "--recorded", str(file), "--lake", lake)
        shown = [
            said("sql", "--saved", "order_items", "--conf", conf, "--lake", lake, "--engine", engine, "--format", "csv")
            for engine in ("spark", "duckdb")
        ]
        assert len(shown[0].splitlines()) == lines + 1
        assert shown[0] == shown[1]
