"""``sql --engine duckdb``: the lake's tables without Spark. Tables here are written by delta-rs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import boto3
import deltalake
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import parquet

from replicator import settings
from replicator.catalog import tables
from replicator.catalog.as_of import AsOf
from replicator.catalog.local import DuckdbEngine
from replicator.catalog.sql_query import SqlQuery, transpile
from replicator.catalog.store import SPARK_HINT, Store
from replicator.cli import views
from replicator.errors import ConfigError, ReplicatorError, Unreachable, VersionMissing
from replicator.lake import Lake
from tests.cli import said

ROOT = Path(__file__).parents[2]
ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "order_x20_key": ["a", "b", "c"],
        "_x5f_seq": ["x", "y", "z"],
        "gr_xc3__xb6__xc3__x9f_e": pa.array([1.5, None, 2.5]),
        "_seq": ["10", "11", "12"],
        "_deleted": [False, True, False],
        "_column_seq": pa.array([None, None, None], pa.map_(pa.string(), pa.string())),
        "_source_ts_ms": [1, 2, 3],
    }
)
HISTORY = pa.table(
    {
        "id": pa.array([1, 1, 2], pa.int32()),
        "__START_AT": ["10", "11", "12"],
        "__END_AT": ["11", "11", None],
        "_seq": ["10", "11", "12"],
        "_deleted": [False, True, True],
    }
)
GOLD = pa.table({"order_key": [1, 2], "_deleted_by": ["x", "y"]})


def write(root: str | Path, orders: pa.Table = ORDERS) -> Lake:
    """A lake with a silver table, its history and a gold model."""
    lake = Lake(str(root))
    deltalake.write_deltalake(lake.silver("shop", "sales.orders").location, orders)
    deltalake.write_deltalake(lake.history("shop", "sales.orders").location, HISTORY)
    deltalake.write_deltalake(lake.gold("fact_orders").location, GOLD)
    return lake


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One lake for all that only read it."""
    place = tmp_path_factory.mktemp("local") / "lake"
    write(place)
    return str(place)


def ask(root: str, query: str, store: Store | None = None) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """The answer of a fresh engine: its columns and its rows as texts."""
    engine = DuckdbEngine(store or Store(root), Lake(root))
    answer = engine.ask(query, None)
    return list(answer.columns), [tuple(row) for row in answer.texts()]


@pytest.mark.parametrize("query", ["SHOW TABLES", " show  tables ;"])
def test_the_tables_are_listed(root: str, query: str) -> None:
    """All that a query may name, opened or not."""
    names = ["fact_orders", "orders", "orders__history", "shop__sales__orders", "shop__sales__orders__history"]
    assert ask(root, query) == (["name"], [(name,) for name in names])


def test_the_tables_are_listed_beside_one_that_cannot_be_read(tmp_path: Path) -> None:
    """Nothing of them is read for their names."""
    place = write(tmp_path).silver("shop", "sales.orders").location
    Path(place, "_delta_log", f"{0:020d}.json").unlink()
    with pytest.raises(ReplicatorError, match="cannot be read without Spark"):
        ask(str(tmp_path), "SELECT * FROM orders")
    assert ("orders",) in ask(str(tmp_path), "SHOW TABLES")[1]


def test_a_folder_that_somebody_made_beside_ours_is_no_table(tmp_path: Path) -> None:
    """A copy is called as we call nothing: its name stands for another place, or is not even UTF-8."""
    lake = write(tmp_path)
    before = ask(str(tmp_path), "SHOW TABLES")
    for folder in (lake.silver_root(), lake.silver_root("shop"), lake.gold_root()):
        for name in ("x_xff_", "fact_orders-bak", ".hidden"):
            shutil.copytree(lake.gold("fact_orders").location, f"{folder}/{name}")
    assert ask(str(tmp_path), "SHOW TABLES") == before
    assert ask(str(tmp_path), "SELECT count(*) AS n FROM orders")[0] == ["n"]


@pytest.mark.parametrize("torn", ["", '{"add":{"path":"a', "\0\0", "torn"], ids=["empty", "cut", "zeros", "no JSON"])
def test_a_commit_that_was_cut_off_is_told_with_its_file_and_what_fixes_it(tmp_path: Path, torn: str) -> None:
    """delta-rs names neither; Spark would say the same, so nobody is sent to ask it."""
    place = write(tmp_path).silver("shop", "sales.orders").location
    commit = Path(place, "_delta_log", f"{0:020d}.json")
    commit.write_text(torn, encoding="utf-8")
    with pytest.raises(ReplicatorError, match="a commit of the table's log is truncated") as caught:
        ask(str(tmp_path), "SELECT * FROM orders")
    assert caught.value.what.endswith(f": {commit}")
    assert f"remove the folder {place}: the next run rebuilds the table" in str(caught.value.fix)


def test_a_commit_with_lines_of_another_kind_in_its_statistics_is_whole(tmp_path: Path) -> None:
    """A text may hold what Python takes for the end of a line (U+0085, U+2028): the commit that is cut off is named."""
    lake = write(tmp_path)
    place = lake.silver("shop", "sales.orders").location
    names = pa.array(["\u2028", "a", "\x85"])
    deltalake.write_deltalake(place, ORDERS.set_column(1, "order_x20_key", names), mode="append")
    told = Path(place, "_delta_log", f"{1:020d}.json").read_text(encoding="utf-8")
    assert len(told.splitlines()) > len(told.split("\n"))
    torn = Path(place, "_delta_log", f"{0:020d}.json")
    torn.write_text(torn.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    with pytest.raises(ReplicatorError, match="a commit of the table's log is truncated") as caught:
        ask(str(tmp_path), "SELECT * FROM orders")
    assert caught.value.what.endswith(f": {torn}")


def test_a_lake_whose_path_has_an_escape_is_left_to_spark(tmp_path: Path) -> None:
    """delta-rs takes ``l%20k`` for ``l k``, and would read the log of a lake that lies there. A percent sign alone, and
    a blank, are none.
    """
    write(tmp_path / "plain")
    (tmp_path / "plain").rename(tmp_path / "l%20k")
    write(tmp_path / "l k", ORDERS.slice(0, 1))
    with pytest.raises(ReplicatorError, match="contains %20, which is read as a different character") as caught:
        ask(f"{tmp_path}/l%20k", "SELECT * FROM fact_orders")
    assert caught.value.fix == SPARK_HINT
    (tmp_path / "l k").rename(tmp_path / "5 % x")
    assert ask(f"{tmp_path}/5 % x", "SELECT count(*) AS n FROM fact_orders")[1] == [("2",)]


def test_a_lake_without_a_file_is_no_mistake_of_the_query(tmp_path: Path) -> None:
    """Exit code 1, not 2."""
    place = write(tmp_path).silver("shop", "sales.orders").location
    next(Path(place).glob("*.parquet")).unlink()
    with pytest.raises(ReplicatorError, match="a table cannot be read") as caught:
        ask(str(tmp_path), "SELECT * FROM orders")
    assert caught.value.exit_code == 1


def test_silver_shows_live_rows_with_the_sources_columns(root: str) -> None:
    """In the source's spelling, whatever that is (architecture section 4)."""
    columns, rows = ask(root, "SELECT * FROM orders ORDER BY id")
    assert columns == ["id", "order key", "_seq", "größe"]
    assert rows == [("1", "a", "x", "1.5"), ("3", "c", "z", "2.5")]


def test_a_history_shows_intervals(root: str) -> None:
    """Not the places that begin none."""
    columns, rows = ask(root, "SELECT * FROM orders__history ORDER BY id")
    assert columns == ["id", "__START_AT", "__END_AT"]
    assert rows == [("1", "10", "11"), ("2", "12", None)]


def test_gold_is_shown_as_it_is(root: str) -> None:
    """Every column and row."""
    assert ask(root, "SELECT * FROM fact_orders")[0] == ["order_key", "_deleted_by"]


def test_tables_go_by_the_names_that_they_have_in_spark(root: str) -> None:
    """Both names of a silver table, in any case; a query may name a table twice."""
    assert ask(root, "SELECT count(*) FROM SHOP__sales__Orders a JOIN orders b USING (id)")[1] == [("2",)]


def test_an_older_version_is_read_while_its_files_are_there(tmp_path: Path) -> None:
    """By number; what a vacuum took is refused before a row is written, and so is Hudi."""
    place = Lake(str(tmp_path)).gold("t").location
    for value in (1, 2, 3):
        deltalake.write_deltalake(place, pa.table({"x": [value]}), mode="overwrite")

    def then(version: int, query: str = "SELECT x FROM t") -> list[tuple[str | None, ...]]:
        return [
            tuple(row)
            for row in DuckdbEngine(Store(str(tmp_path)), Lake(str(tmp_path)), version).ask(query, None).texts()
        ]

    assert [then(version) for version in range(3)] == [[("1",)], [("2",)], [("3",)]]
    deltalake.DeltaTable(place).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert then(2) == [("3",)]
    with pytest.raises(VersionMissing, match=r"version 1 of .* no longer has all of its files.*maintenance\.keep"):
        then(1)
    hudi = Path(Lake(str(tmp_path)).gold("h").location) / ".hoodie"
    hudi.mkdir(parents=True)
    (hudi / "hoodie.properties").touch()
    with pytest.raises(VersionMissing, match=r"h is in Hudi.*--engine spark"):
        then(0, "SELECT * FROM h")


def test_a_table_that_the_query_does_not_name_is_not_opened(tmp_path: Path) -> None:
    """One that cannot be read disturbs nobody else; asked for, it is named, with the way out."""
    lake = write(tmp_path)
    broken = Path(lake.gold("dim_broken").location) / "_delta_log"
    broken.mkdir(parents=True)
    (broken / "00000000000000000000.json").write_text("no log")
    assert ask(str(tmp_path), "SELECT count(*) FROM orders")[1] == [("2",)]
    with pytest.raises(ReplicatorError, match=r"truncated: .*gold.dim_broken._delta_log.*remove the folder"):
        ask(str(tmp_path), "SELECT * FROM dim_broken")


def test_a_table_with_an_unknown_feature_is_not_read_wrongly(tmp_path: Path) -> None:
    """Whatever the feature means, it is named; here columns that have other names in the files."""
    place = Lake(str(tmp_path)).gold("mapped").location
    deltalake.write_deltalake(place, GOLD, configuration={"delta.columnMapping.mode": "name"})
    with pytest.raises(ReplicatorError, match=r"columnMapping|cannot be read without Spark"):
        ask(str(tmp_path), "SELECT * FROM mapped")


def test_names_that_there_are_not_are_told_with_those_that_there_are(root: str) -> None:
    """The mistake is the query's: exit 2."""
    with pytest.raises(ConfigError, match="Available: fact_orders, orders, orders__history, shop__sales__orders"):
        ask(root, "SELECT * FROM ordres")
    with pytest.raises(ConfigError, match="no tables in this lake yet"):
        ask(root + "/nothing", "SELECT * FROM orders")
    with pytest.raises(ConfigError, match=r'Function with name lowr does not exist! Did you mean "lower"[?]$'):
        ask(root, "SELECT lowr('A') FROM orders")
    with pytest.raises(ConfigError, match=r'not found in FROM clause! Candidate bindings: "'):
        ask(root, "SELECT order_key FROM orders")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{root}/x')",
        "SELECT * FROM '{root}/x.parquet'",
        "SELECT * FROM ORDERS_OF_THIS_TEST",
        "SET enable_external_access = true",
        "COPY (SELECT 1) TO '{root}/x'",
        "ATTACH '{root}/x.db'",
        "SELECT * FROM orders WHERE CAST('x' AS INT) = 1",
    ],
)
def test_what_is_not_the_lakes_is_closed(root: str, query: str) -> None:
    """No file, no variable of this process, no setting; and whatever DuckDB refuses is a mistake of the query."""
    ORDERS_OF_THIS_TEST = ORDERS  # noqa: F841, N806 - DuckDB would find it by its name
    with pytest.raises(ConfigError):
        ask(root, query.format(root=root))
    assert not Path(root, "x").exists()


def test_no_question_changes_the_lake(root: str) -> None:
    """Not even where the guard in front of the engine has been passed by: it has views."""
    before = sorted((path, path.stat().st_mtime_ns) for path in Path(root).rglob("*"))
    for statement in ("DELETE FROM orders", "DROP TABLE fact_orders", "INSERT INTO fact_orders VALUES (3, 'z')"):
        with pytest.raises(ConfigError):
            ask(root, statement)
    assert sorted((path, path.stat().st_mtime_ns) for path in Path(root).rglob("*")) == before


def test_times_beyond_nanoseconds_are_right(tmp_path: Path) -> None:
    """Spark writes INT96 times, which readers take for nanoseconds: 0001-01-01 would be a day in 1754."""
    place = Lake(str(tmp_path)).gold("times").location
    Path(place).mkdir(parents=True)
    microseconds = [-62_135_596_800_000_000, 1_714_979_289_123_456, 253_402_214_400_000_000]
    table = pa.table({"t": pa.array(microseconds, pa.timestamp("us"))})
    parquet.write_table(table, f"{place}/part.parquet", use_deprecated_int96_timestamps=True)
    deltalake.convert_to_deltalake(place)
    said = ["0001-01-01 00:00:00", "2024-05-06 07:08:09.123456", "9999-12-31 00:00:00"]
    assert ask(str(tmp_path), "SELECT t FROM times ORDER BY t")[1] == [(each,) for each in said]
    assert ask(str(tmp_path), "SELECT count(*) FROM times WHERE t < TIMESTAMP '1000-01-01'")[1] == [("1",)]


def test_partitions_are_columns(tmp_path: Path) -> None:
    """Whatever is in them: their values are in the log, not in the files."""
    place = Lake(str(tmp_path)).gold("parted").location
    rows = pa.table({"c": ["a/b c=%", "é", None], "d": pa.array([1, 2, 3], pa.date32()), "x": [1, 2, 3]})
    deltalake.write_deltalake(place, rows, partition_by=["c", "d"])
    found = ask(str(tmp_path), "SELECT x, c, d FROM parted ORDER BY x")[1]
    assert found == [("1", "a/b c=%", "1970-01-02"), ("2", "é", "1970-01-03"), ("3", None, "1970-01-04")]
    assert ask(str(tmp_path), "SELECT x FROM parted WHERE c IS NULL OR c = 'é' ORDER BY x")[1] == [("2",), ("3",)]


def test_a_column_that_came_later_is_null_before(tmp_path: Path) -> None:
    """Old files do not have it."""
    place = Lake(str(tmp_path)).gold("grown").location
    deltalake.write_deltalake(place, pa.table({"a": [1]}))
    deltalake.write_deltalake(place, pa.table({"a": [2], "b": ["x"]}), mode="append", schema_mode="merge")
    assert ask(str(tmp_path), "SELECT * FROM grown ORDER BY a")[1] == [("1", None), ("2", "x")]


@pytest.fixture(scope="module")
def s3(root: str) -> Iterator[Store]:
    """The same lake on an S3 server of this process; and how it is reached."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    store = Store("s3a://lakehouse/some/lake", f"http://{host}:{port}", "key", "secret", "us-east-1", path_style=True)
    login = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=store.endpoint, **login)
    client.create_bucket(Bucket="lakehouse")
    for folder, _, files in os.walk(root):
        for name in files:
            path = Path(folder, name)
            client.put_object(Bucket="lakehouse", Key=f"some/lake/{path.relative_to(root)}", Body=path.read_bytes())
    yield store
    server.stop()


def test_a_lake_on_s3_answers_as_the_same_lake_on_a_disk(root: str, s3: Store) -> None:
    """With an endpoint and path style, as the local stack has it."""
    query = "SELECT * FROM orders JOIN fact_orders ON order_key = id"
    assert ask(s3.root, query, s3) == ask(root, query)


def test_a_store_that_does_not_answer_is_out_of_reach(s3: Store) -> None:
    """Exit 3, in seconds."""
    with pytest.raises(Unreachable, match="does not answer"):
        ask(s3.root, "SELECT 1", Store(s3.root, "http://127.0.0.1:9", "key", "secret", "us-east-1", path_style=True))


def test_a_file_system_that_needs_a_jvm_is_refused() -> None:
    """With the engine that has one."""
    with pytest.raises(ConfigError, match="--engine spark"):
        DuckdbEngine(Store("hdfs://host/lake"), Lake("hdfs://host/lake"))


def test_a_database_and_a_table_are_a_view() -> None:
    """Without regard to case; a name that two sources have is known with both."""
    silver: list[Any] = [("a", "Sales.Orders", None), ("b", "sales.orders", None), ("b", "sales.x", None)]
    assert tables.databases(silver) == {
        ("sales", "orders"): ("a__Sales__Orders", "b__sales__orders"),
        ("sales", "x"): ("b__sales__x",),
    }


def test_the_command_line_answers_without_spark(root: str) -> None:
    """A second instead of a JVM: pyspark is not even imported."""
    code = (
        "import sys\n"
        f"sys.argv = ['replicator', 'sql', 'SELECT count(*) AS n FROM sales.orders', '--engine', 'duckdb',"
        f" '--lake', {root!r}, '--json']\n"
        "from replicator.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'py4j', 'boto3'}), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ('[{"n":2}\n]\n', "[]\n")


def test_a_query_in_athenas_words_is_answered_by_another_engine(root: str) -> None:
    """``--dialect`` says whose words they are."""
    query = "SELECT o.id, cardinality(array[1, 2]) AS c FROM sales.orders AS o ORDER BY id DESC"
    told = said("sql", query, "--engine", "duckdb", "--dialect", "athena", "--lake", root, "--format", "csv")
    assert told == "id,c\n3,2\n1,2\n"


def test_the_shipped_query_of_product_lines_adds_up(tmp_path: Path) -> None:
    """By hand: two lines of two orders, one order twice; every column is one that the models have."""
    lake = Lake(str(tmp_path))
    facts = {"order_key": [1, 1, 2], "product_key": ["a", "b", "a"], "quantity_ordered": [2, 1, 3]}
    money = pa.decimal128(12, 2)
    prices = [Decimal("1.50"), Decimal("10.00"), Decimal("2.00")]
    facts |= {"product_price": pa.array(prices, money), "profit": pa.array(prices, money)}
    deltalake.write_deltalake(lake.gold("fact_orders").location, pa.table(facts))
    products = pa.table({"product_key": ["a", "b"], "product_line": ["Planes", "Trains"]})
    deltalake.write_deltalake(lake.gold("dim_products").location, products)
    told = said("sql", "--saved", "product_lines", "--conf", str(ROOT / "conf"), "--engine", "duckdb",
                "--lake", str(tmp_path), "--format", "csv")  # fmt: skip
    assert told.splitlines()[1:] == ["Trains,1,1,10.00,10.00", "Planes,2,5,9.00,3.50"]
    models = settings.load(ROOT / "conf", "local", {}).models
    known = {column.name for model in models for column in model.columns}
    assert {*facts, "product_line"} <= known


def test_a_query_that_fails_late_fails_as_one_that_fails_at_once(root: str) -> None:
    """Its rows are computed as they are read, the 50,000th after others were shown."""
    for bad in (5, 50_000):
        query = f"SELECT CAST(CASE WHEN a = {bad} THEN 'x' ELSE '1' END AS INT) FROM range(100000) AS t (a)"
        with pytest.raises(ConfigError, match=r"^Conversion Error: Could not convert string 'x' to INT32$"):
            ask(root, query)


@pytest.mark.parametrize(("named", "number"), [(" AS u (p, q, n)", "n"), (" AS u", "ordinality"), ("", "ordinality")])
def test_rows_that_are_spread_keep_their_numbers(root: str, named: str, number: str) -> None:
    """WITH ORDINALITY counts from 1, in the last column."""
    values = """(VALUES (7, '[{"p": 3}, {"q": "b"}]'), (8, '[]'), (9, NULL)) AS t (id, x)"""
    rows = f"UNNEST(CAST(json_parse(x) AS array(row(p integer, q varchar)))) WITH ORDINALITY{named}"
    query = f"SELECT id, p, q, {number} FROM {values} CROSS JOIN {rows} ORDER BY {number}"
    told = transpile(SqlQuery(query, "athena"), "duckdb", {})
    assert ask(root, told)[1] == [("7", "3", None, "1"), ("7", None, "b", "2")]


def test_a_table_is_found_whose_name_holds_a_quotation_mark(tmp_path: Path) -> None:
    """It stands twice in the query."""
    lake = Lake(str(tmp_path))
    for name in ('we"ird', "b`a"):
        deltalake.write_deltalake(lake.silver("shop", f"sales.{name}").location, ORDERS)
    for query in ('SELECT count(*) FROM "we""ird"', 'SELECT count(*) FROM "b`a"'):
        assert ask(str(tmp_path), query)[1] == [("2",)]
    assert tables.is_named("b`a", "SELECT * FROM `b``a`")


def test_no_query_gets_the_rows_of_another_table_whose_name_is_the_long_one(tmp_path: Path) -> None:
    """A table or a model may be called as the long name of a table is made: a name of two is not guessed."""
    lake = Lake(str(tmp_path))

    def write_one(location: str) -> None:
        deltalake.write_deltalake(location, ORDERS.slice(0, 1).set_column(1, "told", [[location]]))

    for name in ["sales.orders", "sales.shop__sales__orders", "sales.items", "a__b.c", "a.b__c", "sales.x"]:
        write_one(lake.silver("shop", name).location)
    write_one(lake.gold("shop__sales__items").location)
    write_one(lake.history("shop", "sales.x").location)
    write_one(lake.silver("shop", "sales.x__history").location)
    engine = DuckdbEngine(Store(lake.root), lake)
    for name, table in {
        "orders": "sales.orders", "sales.orders": "sales.orders", "shop__sales__orders": "sales.orders",
        "sales.shop__sales__orders": "sales.shop__sales__orders", "items": "sales.items", "c": "a__b.c",
        "b__c": "a.b__c", "x__history": "sales.x__history", "sales.x__history": "sales.x__history",
    }.items():  # fmt: skip
        query = transpile(SqlQuery(f"SELECT told FROM {name}", "duckdb"), "duckdb", engine.databases)
        assert list(engine.ask(query, None).texts()) == [(lake.silver("shop", table).location,)]
    for name, one, other in [
        ("shop__a__b__c", "shop/a.b__c", "shop/a__b.c"),
        ("shop__sales__items", "shop__sales__items", "shop/sales.items"),
    ]:
        with pytest.raises(ConfigError, match=rf"{name} may be {one} or {other}"):
            engine.ask(f"SELECT * FROM {name}", None)


def test_no_query_gets_the_rows_of_a_table_that_only_case_tells_apart(tmp_path: Path) -> None:
    """MySQL and PostgreSQL may have ``Orders`` beside ``orders``; engines do not: neither is shown in place of
    the other, by none of them, and other tables are asked as ever.
    """
    lake = write(tmp_path)
    deltalake.write_deltalake(lake.silver("shop", "sales.Orders").location, ORDERS)
    engine, nothing = DuckdbEngine(Store(lake.root), lake), cast("Any", None)
    twins = [("shop", name, lake.silver("shop", name)) for name in ("sales.Orders", "sales.orders")]
    known = dict(tables.list_views(twins, []))
    assert sorted(known) == ["shop__sales__Orders", "shop__sales__orders"]
    for name in known:
        query = f"SELECT * FROM {name}"
        with pytest.raises(ConfigError, match=r"shop__sales__Orders and shop__sales__orders are two tables"):
            engine.ask(query, None)
        with pytest.raises(ConfigError, match="Keep one of them in another lake"):
            views.register_views(nothing, nothing, known, query, AsOf(None, nothing))  # before Spark is asked
    assert list(engine.ask("SELECT count(*) FROM fact_orders", None).texts()) == [("2",)]
