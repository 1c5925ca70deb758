"""A query on its way to an engine: read only, in the engine's SQL, by the engine's names."""

from __future__ import annotations

import pytest

from replicator.catalog.sql_query import SqlQuery, transpile
from replicator.errors import ConfigError
from replicator.protocols.engine import Dialect

pytest.importorskip("sqlglot")

ITEMS = """
SELECT e.customer_id, CAST(i['quantity'] AS decimal(6,2)) AS quantity
FROM datalake.cdc_events AS e
CROSS JOIN UNNEST(CAST(json_parse(e.order_items) AS array(map(varchar, varchar)))) AS u (i)
"""
DATABASES = {("datalake", "cdc_events"): ("demo__datalake__cdc_events",), ("a", "t"): ("x__a__t", "y__a__t")}
WRITES = [
    "DROP TABLE t",
    "INSERT INTO t VALUES (1)",
    "WITH x AS (SELECT 1 AS a) INSERT INTO t SELECT * FROM x",
    "FROM t INSERT INTO a SELECT 1 INSERT INTO b SELECT 2",
    "CREATE TABLE t AS SELECT 1 AS a",
    "CREATE VIEW v AS SELECT 1 AS a",
    "SELECT 1 AS a INTO t",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "COPY t TO 'file'",
    "SET x = 1",
    "CALL f()",
    "EXECUTE p",
    "GRANT SELECT ON t TO x",
    "VACUUM t",
    "OPTIMIZE t",
    "MSCK REPAIR TABLE t",
    "UNLOAD (SELECT 1) TO 's3://x' WITH (format = 'PARQUET')",
    "USING EXTERNAL FUNCTION f(x INT) RETURNS INT LAMBDA 'l' SELECT f(1)",
    "EXPLAIN INSERT INTO t SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM t",
    "EXPLAIN (FORMAT json) DROP TABLE t",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE t",
    "selec",
    "",
    "-- nothing",
]
READS = [
    "SELECT 1",
    "SELECT 1;",
    "(SELECT 1)",
    "VALUES (1)",
    "SELECT 1 UNION SELECT 2",
    "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
    "SHOW TABLES",
    "DESCRIBE t",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "SELECT 'DROP TABLE t; DELETE FROM t' AS text -- ; DROP TABLE t",
]


@pytest.mark.parametrize("dialect", ["athena", "duckdb"])
@pytest.mark.parametrize("statement", WRITES)
def test_whatever_is_no_query_is_refused(dialect: Dialect, statement: str) -> None:
    """Nothing that writes, defines or changes a session gets as far as an engine."""
    with pytest.raises(ConfigError):
        transpile(SqlQuery(statement, dialect), dialect, {})


@pytest.mark.parametrize("dialect", ["athena", "duckdb", "spark"])
@pytest.mark.parametrize("query", READS)
def test_a_query_goes_to_its_own_engine_word_for_word(dialect: Dialect, query: str) -> None:
    """What needs no translation is not written anew."""
    assert transpile(SqlQuery(query, dialect), dialect, DATABASES) == query


@pytest.mark.parametrize("statement", ["DROP TABLE t", "selec", "?? no SQL of ours"])
def test_an_engine_with_a_guard_of_its_own_is_asked_what_is_not_understood_here(statement: str) -> None:
    """Spark's parser knows more of its SQL than any other."""
    assert transpile(SqlQuery(statement, "spark"), "spark", {}, guards_itself=True) == statement
    with pytest.raises(ConfigError):
        transpile(SqlQuery(statement, "athena"), "spark", {}, guards_itself=True)


def test_the_scenarios_item_query_becomes_sparks() -> None:
    """json_parse is from_json there, UNNEST a lateral view; the table goes by the name of its view."""
    told = transpile(SqlQuery(ITEMS, "athena"), "spark", DATABASES)
    assert "FROM `demo__datalake__cdc_events` AS e" in told
    assert "LATERAL VIEW EXPLODE(FROM_JSON(e.order_items, 'ARRAY<MAP<STRING, STRING>>')) u AS i" in told


def test_the_scenarios_item_query_becomes_duckdbs() -> None:
    """UNNEST stays; the JSON becomes maps by a cast."""
    told = transpile(SqlQuery(ITEMS, "athena"), "duckdb", DATABASES)
    assert 'FROM "demo__datalake__cdc_events" AS e' in told
    assert "UNNEST(CAST(JSON(e.order_items) AS MAP(TEXT, TEXT)[])) AS u(i)" in told


def test_an_array_of_rows_spreads_into_columns() -> None:
    """As Athena does it; sqlglot alone would name two columns for one."""
    rows = "SELECT p FROM t CROSS JOIN UNNEST(CAST(json_parse(x) AS array(row(p integer, q double)))) AS u (p, q)"
    assert "LATERAL (SELECT INLINE(FROM_JSON(x, 'ARRAY<STRUCT<p: INT, q: DOUBLE>>'))) AS u(p, q)" in transpile(
        SqlQuery(rows, "athena"), "spark", {}
    )
    assert 'UNNEST(JSON_TRANSFORM(x, \'[{"p": "INT", "q": "DOUBLE"}]\'), max_depth := 2)) AS u(p, q)' in transpile(
        SqlQuery(rows, "athena"), "duckdb", {}
    )


def test_what_would_come_out_otherwise_is_refused() -> None:
    """Spark counts positions from 0, Athena from 1."""
    query = "SELECT n FROM t CROSS JOIN UNNEST(a) WITH ORDINALITY AS u (x, n)"
    with pytest.raises(ConfigError, match="counts from 0"):
        transpile(SqlQuery(query, "athena"), "spark", {})


def test_nulls_stay_where_the_query_has_them() -> None:
    """Last in Athena, first in Spark, unless somebody says so."""
    assert "NULLS LAST" in transpile(SqlQuery("SELECT a FROM t ORDER BY a", "athena"), "spark", {})


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "SELECT cdc_events.x, Datalake.CDC_EVENTS.y FROM DataLake.Cdc_Events",
            'SELECT cdc_events.x, CDC_EVENTS.y FROM "demo__datalake__cdc_events" AS Cdc_Events',
        ),
        ("SELECT * FROM datalake.cdc_events AS e", 'SELECT * FROM "demo__datalake__cdc_events" AS e'),
        ("DESCRIBE datalake.cdc_events", 'DESCRIBE "demo__datalake__cdc_events"'),
        ("SUMMARIZE datalake.cdc_events", 'SUMMARIZE "demo__datalake__cdc_events"'),
        ("SELECT * FROM datalake.others", "SELECT * FROM datalake.others"),
    ],
)
def test_a_name_of_two_parts_is_the_view_of_that_table(query: str, told: str) -> None:
    """The source's own database and table, in any case; what is no table of the lake is left to the engine."""
    assert transpile(SqlQuery(query, "duckdb"), "duckdb", DATABASES) == told


def test_a_name_that_tables_of_two_sources_have_is_not_guessed() -> None:
    """The message names both views."""
    with pytest.raises(ConfigError, match="x__a__t, y__a__t"):
        transpile(SqlQuery("SELECT * FROM a.t", "duckdb"), "duckdb", DATABASES)


def test_a_parameter_is_a_text_whatever_it_says() -> None:
    """No value is ever read as SQL."""
    question = SqlQuery("SELECT * FROM t WHERE x = :x AND y > :y", "duckdb", {"x": "'; DROP TABLE t --", "y": "1"})
    assert transpile(question, "duckdb", {}) == "SELECT * FROM t WHERE x = '''; DROP TABLE t --' AND y > '1'"


@pytest.mark.parametrize("dialect", ["athena", "duckdb", "spark"])
@pytest.mark.parametrize("item", [":day", "(:day)", ":day || 'x'", "1, :day AS d", "CASE WHEN a = :day THEN :day END"])
def test_a_parameter_may_stand_wherever_a_text_may(dialect: Dialect, item: str) -> None:
    """Also at the head of what is selected, where DuckDB has an alias before a colon."""
    told = transpile(SqlQuery(f"SELECT {item} FROM t", dialect, {"day": "it's"}), dialect, {})
    assert told.replace("''", "").count("'it") == item.count(":day")


@pytest.mark.parametrize("item", ["total: a", "date:a", "{'k':a}", "l[1:a]", "a::int", "':a'"])
def test_no_other_colon_of_duckdb_is_taken_for_a_parameter(item: str) -> None:
    """Of an alias written first, of a field, of a slice, of a cast, within a text."""
    query = f"SELECT {item} FROM t"
    assert transpile(SqlQuery(query, "duckdb"), "duckdb", {}) == query


@pytest.mark.parametrize(
    ("parameters", "said"), [({}, "a value for day"), ({"day": "1", "dey": "2"}, "no :dey; did you mean 'day'")]
)
def test_parameters_are_those_that_the_query_has(parameters: dict[str, str], said: str) -> None:
    """A missing one and a superfluous one are both mistakes."""
    with pytest.raises(ConfigError, match=said):
        transpile(SqlQuery("SELECT :day AS d", "spark", parameters), "spark", {})


DOTTED = {("shop", "my.dotted.tab"): ("s__shop__my_x2e_dotted_x2e_tab",), ("a", "x.t"): ("1",), ("b", "x.t"): ("2",)}
VIEW = "`s__shop__my_x2e_dotted_x2e_tab`"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT id FROM shop.my.dotted.tab AS t", f"SELECT id FROM {VIEW} AS t"),
        ("SELECT tab.id FROM Shop.my.dotted.Tab", f"SELECT tab.id FROM {VIEW} AS Tab"),
        ("SELECT id FROM shop.`my.dotted.tab`", f"SELECT id FROM {VIEW} AS `my.dotted.tab`"),
        ("SELECT id FROM `my.dotted.tab` AS t", f"SELECT id FROM {VIEW} AS t"),
        ("SELECT id FROM `shop.my.dotted.tab` AS t", f"SELECT id FROM {VIEW} AS t"),
        ("SELECT id FROM other.my.dotted.tab", "SELECT id FROM other.my.dotted.tab"),
        ("WITH `my.dotted.tab` AS (SELECT 1) SELECT * FROM `my.dotted.tab`",) * 2,
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_a_table_whose_name_has_dots_is_asked_as_it_is_called(dialect: Dialect, query: str, told: str) -> None:
    """As `status` writes it, or quoted by its own name; columns know it by what stands last, or by an alias."""
    query, told = (text if dialect == "spark" else text.replace("`", '"') for text in (query, told))
    assert transpile(SqlQuery(query, dialect), dialect, DOTTED) == told


def test_a_name_with_dots_that_two_tables_have_is_not_guessed() -> None:
    """As of names without."""
    with pytest.raises(ConfigError, match="1, 2"):
        transpile(SqlQuery('SELECT * FROM "x.t"', "duckdb"), "duckdb", DOTTED)
