"""``replicator sql``: names of views, and nothing but queries."""

from __future__ import annotations

import pytest

from replicator.cli import spark_sql
from replicator.cli.views import register, views
from replicator.errors import ConfigError
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake

LAKE = Lake("/lake")


def named(silver, gold=()):
    tables = [(source, name, LAKE.silver(source, name)) for source, name in silver]
    return {name: table.name for name, table in views(tables, [(model, LAKE.gold(model)) for model in gold])}


def test_a_silver_table_goes_by_its_last_name_and_always_by_its_long_one():
    """Scripts use the long name, people the short one."""
    assert named([("s", "db.orders")]) == {"s__db__orders": "s/db.orders", "orders": "s/db.orders"}


def test_a_name_that_two_tables_have_is_nobodys():
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
        "selec",
        "SELECT 1; SELECT 2",
    ],
)
def test_whatever_is_no_query_is_refused(spark, statement):
    """The lake is never changed by a question."""
    with pytest.raises(ConfigError):
        spark_sql.refuse_commands(spark, statement)


@pytest.mark.spark
@pytest.mark.parametrize(
    "query", ["SELECT 1", "WITH x AS (SELECT 1 a) SELECT * FROM x", "VALUES (1)", "TABLE t", "SELECT 1 UNION SELECT 2"]
)
def test_queries_are_let_through(spark, query):
    """Everything that only reads."""
    spark_sql.refuse_commands(spark, query)


@pytest.mark.spark
def test_a_view_shows_live_rows_with_the_sources_columns(spark, tmp_path):
    """Deleted rows and the columns of our own are not the source's (architecture section 4)."""
    lake = Lake(str(tmp_path))
    rows = "SELECT 1 AS id, false AS _deleted, '0' AS _seq UNION ALL SELECT 2, true, '1'"
    spark.sql(rows).write.format("delta").save(lake.silver("s", "db.orders").location)
    session = spark.newSession()
    assert register(session, DeltaFormat(), lake, "select * from Orders") == ["orders", "s__db__orders"]
    assert [tuple(row) for row in session.sql("SELECT * FROM orders").collect()] == [(1,)]
    assert not session.catalog.tableExists("s__db__orders")
