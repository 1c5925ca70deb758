"""The promises of ``Sink`` (replicator/protocols/), for every implementation, then those of Postgres alone."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from threading import Event

import pytest
from psycopg2 import OperationalError, sql
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import ConfigError, StaleWriter, TargetMoved, TargetRefused, Unreachable
from replicator.protocols import Difference, Unfenced
from replicator.sinks.memory import MemorySink
from replicator.sinks.postgres import Backoff, PostgresConnection, PostgresSink
from replicator.spec import Applied, ModelColumn, Progress, Target, Token
from tests.builders import made
from tests.contract.commit_proxy import CommitProxy
from tests.contract.serving import (
    CUSTOMERS,
    ORDERS,
    QUICK,
    Served,
    ann,
    customers,
    difference,
    execute,
    model,
    orders,
)


@pytest.fixture(
    params=[
        pytest.param("memory", marks=pytest.mark.spark),
        pytest.param("postgres", marks=[pytest.mark.spark, pytest.mark.stack]),
    ]
)
def served(request: pytest.FixtureRequest) -> Served:
    return Served(MemorySink(), "memory") if request.param == "memory" else request.getfixturevalue("postgres")


def test_publishing_twice_is_as_once(spark: SparkSession, served: Served) -> None:
    """A difference whose progress is in the ledger changes nothing."""
    of = customers(served.schema)
    first = difference(spark, of, [ann(), ann("Bob", key=2)], CUSTOMERS, 3, complete=True)
    assert served.sink.progress(of) is None
    assert served.sink.publish([first]) == {of.name: Applied(2, 0, 0, 3)}
    assert served.sink.publish([first]) == {of.name: Applied(0, 0, 0, 3)}
    assert served.sink.progress(of) == Progress("gold-1", 3)
    assert served.rows(of) == [(1, "Ann", Decimal("1.50")), (2, "Bob", Decimal("1.50"))]


def test_the_same_version_by_another_commit_is_sent(spark: SparkSession, served: Served) -> None:
    """F-C5: gold that was copied back comes to a number that it had; a ledger that does not say which commit it was, as
    one of an earlier checkout, goes on as it is.
    """
    of = customers(served.schema)
    sent = [difference(spark, of, [ann(name)], CUSTOMERS, 3, complete=True) for name in ("Ann", "Bob", "Cid")]
    commits = (None, "one", "other")
    old, one, other = (replace(d, progress=replace(d.progress, commit=c)) for d, c in zip(sent, commits, strict=True))
    assert served.sink.publish([old])[of.name].inserted == 1
    assert served.sink.progress(of) == Progress("gold-1", 3)
    assert served.sink.publish([one]) == {of.name: Applied(0, 0, 0, 3)}
    served.sink.publish([replace(one, progress=replace(one.progress, version=4))])
    assert served.sink.progress(of) == Progress("gold-1", 4, "one")
    other = replace(other, progress=replace(other.progress, version=4))
    for updated in (1, 0):
        assert served.sink.publish([other]) == {of.name: Applied(0, updated, 0, 4)}
    assert served.sink.progress(of) == Progress("gold-1", 4, "other")
    assert [row[:2] for row in served.rows(of)] == [(1, "Cid")]


def test_rows_are_inserted_updated_and_deleted_and_counted(spark: SparkSession, served: Served) -> None:
    """Counts are exact, and a row that stays the same is no update."""
    of = customers(served.schema)
    served.sink.publish([difference(spark, of, [ann(key=k) for k in (1, 2, 3)], CUSTOMERS, 1, complete=True)])
    changes = [ann(), ann("Bea", key=2), (3, None, None, "delete"), ann(key=4), (9, None, None, "delete")]
    assert served.sink.publish([difference(spark, of, changes, CUSTOMERS, 2)]) == {of.name: Applied(1, 1, 1, 2)}
    assert [row[:2] for row in served.rows(of)] == [(1, "Ann"), (2, "Bea"), (4, "Ann")]


def test_a_complete_difference_removes_strangers(spark: SparkSession, served: Served) -> None:
    """Keys that are not in the whole model go, also after the gold table was made anew."""
    of = customers(served.schema)
    served.sink.publish([difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 8, complete=True)])
    anew = difference(spark, of, [ann("Zoe", key=2), ann(key=5)], CUSTOMERS, 0, complete=True, input="gold-2")
    assert served.sink.publish([anew]) == {of.name: Applied(1, 1, 1, 0)}
    assert [row[:2] for row in served.rows(of)] == [(2, "Zoe"), (5, "Ann")]
    assert served.sink.progress(of) == Progress("gold-2", 0)


def test_a_table_that_others_changed_is_sent_whole_on_demand(spark: SparkSession, served: Served) -> None:
    """At the same progress too; a part of the model does not do then, and what was never published stays unknown."""
    of = customers(served.schema)
    served.sink.invalidate(of)
    assert served.sink.progress(of) is None
    whole = difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 4, complete=True)
    served.sink.publish([whole])
    if served.connection is None:
        served.sink.tables[of.name] = {(9,): {"id": 9, "name": "Eve", "credit": None}}
    else:
        execute(served, "DELETE FROM $.dim_customers; INSERT INTO $.dim_customers VALUES (9, 'Eve', NULL)")
    assert served.sink.publish([whole]) == {of.name: Applied(0, 0, 0, 4)}
    served.sink.invalidate(of)
    assert served.sink.progress(of) is None
    with pytest.raises(TargetRefused):
        served.sink.publish([difference(spark, of, [ann(key=3)], CUSTOMERS, 5)])
    assert served.sink.publish([whole]) == {of.name: Applied(2, 0, 1, 4)}
    assert served.sink.progress(of) == Progress("gold-1", 4)
    assert [row[:2] for row in served.rows(of)] == [(1, "Ann"), (2, "Ann")]


def test_an_older_difference_is_skipped(spark: SparkSession, served: Served) -> None:
    """What was published at a version is never published at a lower one."""
    of = customers(served.schema)
    served.sink.publish([difference(spark, of, [ann("New")], CUSTOMERS, 5, complete=True)])
    late = difference(spark, of, [ann("Old")], CUSTOMERS, 4)
    assert served.sink.publish([late]) == {of.name: Applied(0, 0, 0, 5)}
    assert served.rows(of) == [(1, "New", Decimal("1.50"))]


def test_a_writer_that_came_before_the_last_one_is_refused(spark: SparkSession, served: Served) -> None:
    """By their tokens, within one lake: nothing of its batch is visible (reliability.md F-W2)."""
    of = customers(served.schema)
    writers = [Token("lake", 2), Token("lake", 2), Token("another", 1), None, Token("lake", 4)]
    for version, token in enumerate(writers, start=1):
        batch = difference(spark, of, [ann(f"v{version}")], CUSTOMERS, version, complete=True)
        assert served.fenced(Unfenced(token)).publish([batch])[of.name].version == version
    late = difference(spark, of, [ann("Late")], CUSTOMERS, 9, complete=True)
    with pytest.raises(StaleWriter, match="a writer of this lake later than"):
        served.fenced(Unfenced(Token("lake", 3))).publish([late])
    assert served.sink.progress(of) == Progress("gold-1", 5)
    assert served.rows(of) == [(1, "v5", Decimal("1.50"))]


def test_an_empty_difference_moves_the_ledger(spark: SparkSession, served: Served) -> None:
    """No rows changed, and still the target stands at the new version."""
    of = customers(served.schema)
    served.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    assert served.sink.publish([difference(spark, of, [], CUSTOMERS, 2)]) == {of.name: Applied(0, 0, 0, 2)}
    assert served.sink.progress(of) == Progress("gold-1", 2)
    assert served.sink.publish([]) == {}


def test_a_part_of_a_model_needs_a_ledger_row_of_the_same_input(spark: SparkSession, served: Served) -> None:
    """Changes since a version that the target never had would leave it incomplete."""
    of = customers(served.schema)
    with pytest.raises(TargetRefused, match="dim_customers"):
        served.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1)])
    served.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    with pytest.raises(TargetRefused, match="dim_customers"):
        served.sink.publish([difference(spark, of, [ann("Eve")], CUSTOMERS, 9, input="gold-2")])
    assert served.rows(of) == [(1, "Ann", Decimal("1.50"))]


def test_a_part_of_a_model_needs_a_ledger_that_is_as_far_as_it_was(spark: SparkSession, served: Served) -> None:
    """A standby that takes over may lack what was committed last, rows and ledger alike: what changed since then does
    not tell of it.
    """
    of = customers(served.schema)
    served.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    lost = difference(spark, of, [ann("Zoë", key=3)], CUSTOMERS, 3, since=Progress("gold-1", 2))
    with pytest.raises(TargetRefused, match="dim_customers") as caught:
        served.sink.publish([lost])
    assert isinstance(caught.value.refused[of.name], TargetMoved)
    assert served.sink.progress(of) == Progress("gold-1", 1)
    assert len(served.rows(of)) == 1
    told = [ann("Bob", key=2), ann("Zoë", key=3)]
    served.sink.publish([difference(spark, of, told, CUSTOMERS, 3, since=Progress("gold-1", 1))])
    assert [row[1] for row in served.rows(of)] == ["Ann", "Bob", "Zoë"]


def test_a_model_whose_table_is_renamed_and_back_finds_each_as_it_left_it(spark: SparkSession, served: Served) -> None:
    """The ledger speaks of tables: one that rests is not taken for as new as the one that took its place."""
    one = customers(served.schema)
    other = replace(one, target=Target("warehouse", served.schema, "customers"))
    served.sink.publish([difference(spark, one, [ann(), ann(key=2)], CUSTOMERS, 1, complete=True)])
    assert served.sink.progress(other) is None
    served.sink.publish([difference(spark, other, [ann(), ann(key=3)], CUSTOMERS, 2, complete=True)])
    assert served.sink.progress(one) == Progress("gold-1", 1)
    since = [(2, None, None, "delete"), ann(key=3), ann(key=4)]
    served.sink.publish([difference(spark, one, since, CUSTOMERS, 3)])
    assert [row[0] for row in served.rows(one)] == [1, 3, 4]
    assert [row[0] for row in served.rows(other)] == [1, 3]


def test_a_table_that_another_model_had_meanwhile_is_sent_whole(spark: SparkSession, served: Served) -> None:
    """A model renamed and back, its gold table still there: what the table has now is of the other's gold."""
    first = customers(served.schema)
    second = replace(first, name="clients")
    served.sink.publish([difference(spark, first, [ann()], CUSTOMERS, 5, complete=True)])
    anew = difference(spark, second, [ann(), ann(key=2)], CUSTOMERS, 0, complete=True, input="gold-2")
    served.sink.publish([anew])
    assert served.sink.progress(first) == Progress("gold-2", 0)
    with pytest.raises(TargetRefused):
        served.sink.publish([difference(spark, first, [ann(key=3)], CUSTOMERS, 6)])
    served.sink.publish([difference(spark, first, [ann(), ann(key=3)], CUSTOMERS, 6, complete=True)])
    assert [row[0] for row in served.rows(first)] == [1, 3]


def test_a_refused_model_leaves_the_others_committed(spark: SparkSession, served: Served) -> None:
    """The refused model is named, with its column and no value, and shows no part of its rows."""
    of, other = customers(served.schema), model(served.schema, "dim_products", {"id": "integer"})
    bad = difference(spark, of, [ann(key=7, credit="7654321.99"), ann(None, key=8)], CUSTOMERS, 1, complete=True)
    good = difference(spark, other, [(1, "upsert")], "id INT, _op STRING", 1, complete=True)
    with pytest.raises(TargetRefused) as caught:
        served.sink.publish([bad, good])
    assert caught.value.applied == {"dim_products": Applied(1, 0, 0, 1)}
    assert list(caught.value.refused) == ["dim_customers"]
    assert "column name" in str(caught.value)
    assert "7654321" not in str(caught.value)
    assert served.rows(other) == [(1,)]
    assert served.rows(of) == []
    assert served.sink.progress(of) is None


def test_a_model_whose_rows_spark_cannot_compute_is_refused(spark: SparkSession, served: Served) -> None:
    """Also in the midst of them; it shows none, and the others are committed."""
    of, other = customers(served.schema), model(served.schema, "dim_products", {"id": "integer"})
    bad = difference(spark, of, [ann(key=key) for key in range(4, 0, -1)], CUSTOMERS, 1, complete=True)
    name = F.when(F.col("id") > 1, F.col("name")).otherwise(F.raise_error(F.lit("no such name")))
    bad = replace(bad, rows=bad.rows.withColumn("name", name))
    good = difference(spark, other, [(1, "upsert")], "id INT, _op STRING", 1, complete=True)
    with pytest.raises(TargetRefused, match="no such name") as caught:
        served.sink.publish([bad, good])
    assert (list(caught.value.refused), caught.value.applied) == (["dim_customers"], {other.name: Applied(1, 0, 0, 1)})
    assert (served.rows(of), served.rows(other)) == ([], [(1,)])


def test_a_model_whose_gold_lost_a_file_is_refused_with_what_fixes_it(
    spark: SparkSession, served: Served, tmp_path: Path
) -> None:
    """No SQL is to blame, nor the driver's memory: the file is named, with the way out."""
    of, folder = customers(served.schema), tmp_path / "gold" / "dim_customers"
    made(spark, [ann()], CUSTOMERS).write.parquet(str(folder))
    rows = spark.read.parquet(str(folder))
    [file] = folder.glob("*.parquet")
    file.unlink()
    with pytest.raises(TargetRefused, match=file.name) as caught:
        served.sink.publish([Difference(of, rows, Progress("gold-1", 1), complete=True)])
    assert f"remove the folder {folder}" in str(caught.value.fix)


def test_a_model_waits_for_the_refused_one_that_it_references(spark: SparkSession, served: Served) -> None:
    """A fact does not go ahead of its dimension."""
    dim, fact = customers(served.schema), orders(served.schema)
    batch = [
        difference(spark, fact, [(1, 8, "upsert")], ORDERS, 1, complete=True),
        difference(spark, dim, [ann(None, key=8)], CUSTOMERS, 1, complete=True),
    ]
    with pytest.raises(TargetRefused, match="waits") as caught:
        served.sink.publish(batch)
    assert sorted(caught.value.refused) == ["a_fact_orders", "dim_customers"]
    assert served.rows(fact) == []
    assert served.sink.progress(fact) is None


def test_values_arrive_as_they_are(spark: SparkSession, served: Served) -> None:
    """Blanks, non-ASCII text, NULLs, exact numbers, dates, bytes: nothing is trimmed, rounded or shifted."""
    columns = {
        "id": "bigint", "text": "text", "exact": "numeric(38,18)", "day": "date", "wall": "timestamp",
        "small": "smallint", "yes": "boolean", "real": "double precision",
    }  # fmt: skip
    of = model(served.schema, "wide", columns)
    big = Decimal("12345678901234567890.123456789012345678")
    wall = datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001  wall time has no zone
    rows = [
        (-(2**63), "  Zoë 名 \\ ' \" \t\n?", big, date(1, 1, 1), wall, -32768, True, float("inf")),
        (2**63 - 1, "", -big, date(9999, 12, 31), datetime(2024, 3, 31, 2, 30), 32767, False, 0.1),  # noqa: DTZ001
        (0, None, None, None, None, None, None, None),
        *((key, text, *[None] * 6) for key, text in enumerate(("\\N", "\\.", "\r\n\\.\r\n", "\\t", "\x0b\x7f"), 1)),
    ]
    typed = (
        "id LONG, text STRING, exact DECIMAL(38,18), day DATE, wall TIMESTAMP_NTZ, "
        "small SHORT, yes BOOLEAN, real DOUBLE"
    )
    frame = made(spark, rows, typed).withColumn("_op", F.lit("upsert"))
    served.sink.publish([Difference(of, frame, Progress("gold-1", 1), complete=True)])
    assert served.rows(of) == sorted(rows)


def test_hostile_names_are_only_names(spark: SparkSession, served: Served) -> None:
    """Quotes, placeholders, dots and emoji in names of tables and columns."""
    columns = {
        'a"b': "integer",
        "%s; DROP TABLE x --": "text",
        "c.d`e?": "text",
        "select": "text",
        "Ä 😀": "text",
        "ID": "text",
        "id": "text",
    }
    of = model(served.schema, 'we"ird %s.ta`ble?', columns, key=('a"b', "select"))
    schema = ", ".join(
        f"`{name.replace('`', '``')}` {'INT' if kind == 'integer' else 'STRING'}" for name, kind in columns.items()
    )
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = made(spark, [(1, "x", "y", "k", "z", "up", "low")], schema).withColumn("_op", F.lit("upsert"))
        served.sink.publish([Difference(of, frame, Progress("g", 1), complete=True)])
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert served.rows(of) == [(1, "x", "y", "k", "z", "up", "low")]


def test_a_model_that_grew_is_asked_for_whole(spark: SparkSession, served: Served) -> None:
    """A new column and a wider type: no progress, no part of the model, and then every row at the same version."""
    of = customers(served.schema)
    served.sink.publish([difference(spark, of, [ann(), ann("Bob", key=2)], CUSTOMERS, 3, complete=True)])
    wider = (of.columns[0], ModelColumn("name", "varchar(30)", nullable=False), of.columns[2])
    grown = replace(of, columns=(*wider, ModelColumn("city", "text", nullable=False)))
    assert served.sink.progress(of) == Progress("gold-1", 3)
    assert served.sink.progress(grown) is None
    schema = "id INT, name STRING, credit DECIMAL(10,2), city STRING, _op STRING"
    rows = [(1, "Ann", None, "Rome", "upsert"), (2, "Bob of a long name", None, "Oslo", "upsert")]
    with pytest.raises(TargetRefused, match="dim_customers"):
        served.sink.publish([difference(spark, grown, rows[:1], schema, 4)])
    whole = difference(spark, grown, rows, schema, 3, complete=True)
    assert served.sink.publish([whole]) == {of.name: Applied(0, 2, 0, 3)}
    assert served.rows(grown) == [(1, "Ann", None, "Rome"), (2, "Bob of a long name", None, "Oslo")]
    assert served.sink.progress(grown) == Progress("gold-1", 3)
    assert served.sink.publish([whole]) == {of.name: Applied(0, 0, 0, 3)}


def test_a_column_that_comes_back_is_asked_for(spark: SparkSession, served: Served) -> None:
    """The table kept it with the values of before: what changed meanwhile was not told of it."""
    of = customers(served.schema)
    less = replace(of, columns=of.columns[:2])
    served.sink.publish([difference(spark, of, [ann(), ann("Bob", key=2)], CUSTOMERS, 1, complete=True)])
    assert served.sink.progress(less) == Progress("gold-1", 1)
    changed = [ann("Ann", "7.00"), ann("Bea", "8.00", key=2), ann("Cid", "9.00", key=3)]
    served.sink.publish([difference(spark, less, changed, CUSTOMERS, 2, since=Progress("gold-1", 1))])
    assert (served.sink.progress(less), served.sink.progress(of)) == (Progress("gold-1", 2), None)
    with pytest.raises(TargetRefused, match="dim_customers"):
        served.sink.publish([difference(spark, of, changed[:1], CUSTOMERS, 3, since=Progress("gold-1", 2))])
    served.sink.publish([difference(spark, of, changed, CUSTOMERS, 2, complete=True)])
    assert [row[2] for row in served.rows(of)] == [Decimal(7), Decimal(8), Decimal(9)]
    assert served.sink.progress(of) == Progress("gold-1", 2)


def test_what_answers_is_told(served: Served) -> None:
    """By a sink as the configuration makes it, of each kind."""
    where = {} if served.connection is None else vars(served.connection)
    assert type(served.sink).at(**where).check_connection()


# Postgres alone


@pytest.mark.spark
@pytest.mark.stack
def test_the_tables_of_the_star_schema_are_as_declared(spark: SparkSession, postgres: Served) -> None:
    """Types, NOT NULL and the key in its order, made when missing."""
    columns = {
        "order_key": "integer !", "order_line_key": "integer !", "customer_key": "integer !",
        "product_key": "varchar(15) !", "order_date": "date !", "profit": "numeric(12,2)", "updated_at": "timestamp(3)",
    }  # fmt: skip
    key = ("order_key", "order_line_key", "customer_key", "product_key")
    of = model(postgres.schema, "fact_orders", columns, key=key)
    typed = (
        "order_key INT, order_line_key SHORT, customer_key INT, product_key STRING, order_date DATE, "
        "profit DECIMAL(12,2), updated_at TIMESTAMP, _op STRING"
    )
    postgres.sink.publish([difference(spark, of, [], typed, 1, complete=True)])
    found = postgres.run(
        sql.SQL(
            "SELECT attname, pg_catalog.format_type(atttypid, atttypmod), attnotnull FROM pg_catalog.pg_attribute "
            "WHERE attrelid = {}::regclass AND attnum > 0 ORDER BY attnum"
        ).format(sql.Literal(f"{postgres.schema}.fact_orders"))
    )
    assert found == [
        ("order_key", "integer", True),
        ("order_line_key", "integer", True),
        ("customer_key", "integer", True),
        ("product_key", "character varying(15)", True),
        ("order_date", "date", True),
        ("profit", "numeric(12,2)", False),
        ("updated_at", "timestamp(3) without time zone", False),
    ]
    definition = sql.SQL("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = {}::regclass")
    found = postgres.run(definition.format(sql.Literal(f"{postgres.schema}.fact_orders")))
    assert found == [(f"PRIMARY KEY ({', '.join(key)})",)]


@pytest.mark.spark
@pytest.mark.stack
def test_a_foreign_key_holds_through_upserts_and_deletes(spark: SparkSession, postgres: Served) -> None:
    """Dimensions come first for upserts and last for deletes, whatever the order of the batch."""
    dim, fact = customers(postgres.schema), orders(postgres.schema)
    postgres.sink.publish(
        [difference(spark, fact, [], ORDERS, 1, complete=True), difference(spark, dim, [], CUSTOMERS, 1, complete=True)]
    )
    names = sql.Identifier(postgres.schema, fact.name), sql.Identifier(postgres.schema, dim.name)
    postgres.run(sql.SQL("ALTER TABLE {} ADD FOREIGN KEY (customer) REFERENCES {}").format(*names))
    both = [difference(spark, fact, [(10, 1, "upsert")], ORDERS, 2), difference(spark, dim, [ann()], CUSTOMERS, 2)]
    assert [each.written for each in postgres.sink.publish(both).values()] == [1, 1]
    gone = [
        difference(spark, dim, [ann(op="delete")], CUSTOMERS, 3),
        difference(spark, fact, [(10, None, "delete")], ORDERS, 3),
    ]
    assert {name: each.deleted for name, each in postgres.sink.publish(gone).items()} == {dim.name: 1, fact.name: 1}
    orphan = difference(spark, fact, [(11, 77123, "upsert")], ORDERS, 4)
    with pytest.raises(TargetRefused, match="a_fact_orders_customer_fkey") as caught:
        postgres.sink.publish([orphan])
    assert "77123" not in str(caught.value)


@pytest.mark.spark
@pytest.mark.stack
def test_a_lost_answer_to_commit_is_decided_by_the_ledger(spark: SparkSession, postgres: Served) -> None:
    """COMMIT sent, reply swallowed (F-P5): the batch is there once and its counts are told."""
    of = customers(postgres.schema)
    with CommitProxy(postgres.connection.host, postgres.connection.port) as proxy:
        through = replace(postgres.connection, host="127.0.0.1", port=proxy.port)
        sink = PostgresSink(through, backoff=QUICK)
        first = difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 1, complete=True)
        proxy.swallow_after(b"WITH written", b"COMMIT")
        assert sink.publish([first]) == {of.name: Applied(2, 0, 0, 1)}
        assert proxy.swallowed == 1
    assert len(postgres.rows(of)) == 2


@pytest.mark.spark
@pytest.mark.stack
@pytest.mark.parametrize(
    ("seen", "trigger"),
    [
        (b"pg_advisory_lock", b"CREATE TABLE"),
        (b"FROM STDIN", b"Ann\t1.50"),
        (b"pg_advisory_lock", b"SET CONSTRAINTS ALL DEFERRED"),
        (b"SET CONSTRAINTS ALL DEFERRED", b"WITH written"),
        (b"WITH written", b"COMMIT"),
    ],
    ids=["ddl", "staging", "staged", "writing", "commit"],
)
def test_a_connection_cut_before_the_commit_is_tried_again(
    spark: SparkSession, postgres: Served, seen: bytes, trigger: bytes
) -> None:
    """Cut at any step (K-T1 to K-T4, F-P4): the retry publishes the batch once."""
    of = customers(postgres.schema)
    with CommitProxy(postgres.connection.host, postgres.connection.port) as proxy:
        sink = PostgresSink(replace(postgres.connection, host="127.0.0.1", port=proxy.port), backoff=QUICK)
        proxy.cut_before(seen, trigger)
        batch = difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 1, complete=True)
        assert sink.publish([batch]) == {of.name: Applied(2, 0, 0, 1)}
        assert proxy.cut == 1
    assert len(postgres.rows(of)) == 2


@pytest.mark.spark
@pytest.mark.stack
def test_text_that_is_too_long_names_the_column_and_not_the_value(spark: SparkSession, postgres: Served) -> None:
    """Postgres does not say which column; we do. Nothing is cut to fit."""
    of = customers(postgres.schema)
    with pytest.raises(TargetRefused, match="The column is name") as caught:
        postgres.sink.publish([difference(spark, of, [ann("secret text too long")], CUSTOMERS, 1, complete=True)])
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert postgres.rows(of) == []


@pytest.mark.spark
@pytest.mark.stack
def test_text_with_nul_is_refused_by_staging_and_the_others_go_on(spark: SparkSession, postgres: Served) -> None:
    """What the server says of a row that it cannot read is told by its SQLSTATE like any other, with the column by its
    name in the target, and no value.
    """
    of, other = customers(postgres.schema), model(postgres.schema, "other", {"id": "integer"})
    bad = difference(spark, of, [ann(), ann("secret\0", key=2)], CUSTOMERS, 1, complete=True)
    with pytest.raises(TargetRefused, match=r"SQLSTATE 22021 - column name\.") as caught:
        postgres.sink.publish([bad, difference(spark, other, [(1, "upsert")], "id INT, _op STRING", 1, complete=True)])
    assert caught.value.applied == {"other": Applied(1, 0, 0, 1)}
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.spark
@pytest.mark.stack
def test_a_number_that_would_be_rounded_is_refused(spark: SparkSession, postgres: Served) -> None:
    """Postgres would round silently."""
    of = customers(postgres.schema)
    rows = made(
        spark, [(1, "Ann", Decimal("1.505"), "upsert")], "id INT, name STRING, credit DECIMAL(10,3), _op STRING"
    )
    with pytest.raises(TargetRefused, match=r"credit.*rounded"):
        postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])


@pytest.mark.spark
@pytest.mark.stack
@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/New_York"])
def test_no_time_zone_takes_part(spark: SparkSession, postgres: Served, zone: str) -> None:
    """Instants arrive the same whatever the zone of the JVM and of the session (types.md Y5)."""
    columns = {"id": "integer", "instant": "timestamptz", "utc": "timestamp(3)", "wall": "timestamp"}
    of = model(postgres.schema, "times", columns)
    jvm_zone = spark._jvm.java.util.TimeZone
    before, session_before = jvm_zone.getDefault(), spark.conf.get("spark.sql.session.timeZone")
    frame = spark.sql(
        "SELECT 1 AS id, timestamp_micros(1711852200123000) AS instant, timestamp_micros(1711852200123000) AS utc, "
        "TIMESTAMP_NTZ'2024-03-31 02:30:00' AS wall, 'upsert' AS _op"
    )
    try:
        jvm_zone.setDefault(jvm_zone.getTimeZone(zone))
        spark.conf.set("spark.sql.session.timeZone", zone)
        postgres.sink.publish([Difference(of, frame, Progress("g", 1), complete=True)])
    finally:
        jvm_zone.setDefault(before)
        spark.conf.set("spark.sql.session.timeZone", session_before)  # type: ignore[arg-type] # it has one
    expected = datetime(2024, 3, 31, 2, 30, 0, 123000, tzinfo=timezone.utc)
    assert postgres.rows(of) == [(1, expected, expected.replace(tzinfo=None), datetime(2024, 3, 31, 2, 30))]  # noqa: DTZ001


@pytest.mark.spark
@pytest.mark.stack
def test_a_time_of_day_and_nested_values_have_a_form(spark: SparkSession, postgres: Served) -> None:
    """24:00:00 survives (types.md Y12); maps, structs and arrays become jsonb."""
    of = model(
        postgres.schema, "forms", {"id": "integer", "at": "time", "lasts": "interval", "doc": "jsonb", "raw": "bytea"}
    )
    frame = spark.sql(
        "SELECT 1 AS id, 86400000000L AS at, -1500000L AS lasts, "
        "named_struct('a', array(1, NULL)) AS doc, X'00ff5c0a' AS raw, 'upsert' AS _op "
        "UNION ALL SELECT 2, 3723000004L, NULL, NULL, X'', 'upsert' "
        "UNION ALL SELECT 3, NULL, 0L, NULL, NULL, 'upsert'"
    )
    postgres.sink.publish([Difference(of, frame, Progress("g", 1), complete=True)])
    table = sql.Identifier(postgres.schema, "forms")
    found = postgres.run(
        sql.SQL('SELECT id, "at"::text, lasts::text, doc::text, raw::text FROM {} ORDER BY id').format(table)
    )
    assert found == [
        (1, "24:00:00", "-00:00:01.5", '{"a": [1, null]}', "\\x00ff5c0a"),
        (2, "01:02:03.000004", None, None, "\\x"),
        (3, None, "00:00:00", None, None),
    ]


@pytest.mark.spark
@pytest.mark.stack
def test_rows_of_many_tasks_and_pieces_all_arrive(spark: SparkSession, postgres: Served) -> None:
    """Once each: tasks with more rows than a piece has, and tasks with none."""
    of = model(postgres.schema, "many", {"id": "integer", "name": "text"})
    rows = spark.range(0, 30_000, 1, 3).selectExpr("CAST(id AS INT) id", "concat('ü ', id) name", "'upsert' _op")
    batch = Difference(of, rows.where("id < 23456"), Progress("g", 1), complete=True)
    assert postgres.sink.publish([batch]) == {of.name: Applied(23_456, 0, 0, 1)}
    assert postgres.rows(of) == [(key, f"ü {key}") for key in range(23_456)]


@pytest.mark.spark
@pytest.mark.stack
def test_a_row_that_changes_stays_in_its_page(spark: SparkSession, postgres: Served) -> None:
    """Decision 0062: in a table that the sink makes a page has room for changed rows, a tenth of it, so that no index
    learns of them; what its owner sets instead stays.
    """
    of = model(postgres.schema, "pages", {"id": "integer", "name": "text"})
    rows = spark.range(0, 3_000, 1, 1).selectExpr("CAST(id AS INT) id", "concat('name ', id) name", "'upsert' _op")
    pages = "SELECT id, (ctid::text::point)[0] FROM $.pages ORDER BY id"
    told = "SELECT reloptions FROM pg_class WHERE oid = '$.pages'::regclass"
    postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])
    before = execute(postgres, pages)
    assert (len({page for _, page in before}) > 5, execute(postgres, told)) == (True, [(["fillfactor=90"],)])
    changed = rows.where("id % 20 = 0").withColumn("name", F.lit("other"))
    assert postgres.sink.publish([Difference(of, changed, Progress("g", 2))])[of.name].updated == 150
    assert execute(postgres, pages) == before
    execute(postgres, "ALTER TABLE $.pages SET (fillfactor = 70)")
    postgres.sink.publish([Difference(of, changed.withColumn("name", F.lit("third")), Progress("g", 3))])
    assert execute(postgres, told) == [(["fillfactor=70"],)]


@pytest.mark.spark
@pytest.mark.stack
def test_nothing_is_left_of_staging(spark: SparkSession, postgres: Served) -> None:
    """Of a run that ends well, and of one that is refused after it has staged: there is nothing to read (F-P10), in
    any schema.
    """
    of = customers(postgres.schema)
    staging = sql.SQL("SELECT relname FROM pg_catalog.pg_class WHERE relname LIKE 'replicator_staging_%'")
    seen = []

    def look(point: str) -> None:
        if point == "publish.model_staged":
            seen.extend(postgres.run(staging))

    with failpoints.watched(look):
        postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
        with pytest.raises(TargetRefused):
            postgres.sink.publish([difference(spark, of, [ann("Bob", key=2), ann(None, key=3)], CUSTOMERS, 2)])
    assert set(seen) == {("replicator_staging_0",)}
    assert len(seen) >= 2
    ends = time.monotonic() + 30  # the server clears up behind a session a moment after that is closed
    while left := postgres.run(staging):
        assert time.monotonic() < ends, left
        time.sleep(0.05)
    tables = sql.SQL("SELECT tablename::text FROM pg_tables WHERE schemaname = {}")
    assert sorted(postgres.run(tables.format(sql.Literal(postgres.schema)))) == [
        ("_replicator_ledger",),
        ("_replicator_writers",),
        ("dim_customers",),
    ]
    assert [row[0] for row in postgres.rows(of)] == [1]


@pytest.mark.spark
@pytest.mark.stack
def test_who_sleeps_in_the_midst_of_handing_rows_over_is_ended(spark: SparkSession, postgres: Served) -> None:
    """For the server such a session is at work: the next publisher ends it once it has said nothing for its limit."""
    of = customers(postgres.schema)
    asleep, woken = Event(), Event()

    class Sleeper(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asleep.set()
            woken.wait(60)
            return super().read(size)

    def hand_over() -> None:
        with closing(postgres.connection.open()) as session, session.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_lock(hashtextextended(%s, 0))", (f"replicator publish {of.target.schema}",)
            )
            cursor.execute("CREATE TEMP TABLE rows (id int)")
            cursor.copy_expert("COPY pg_temp.rows FROM STDIN", Sleeper(b"1\n"))

    hasty = replace(postgres.connection, options={"idle_in_transaction_session_timeout": "1s", "lock_timeout": "2s"})
    with ThreadPoolExecutor(1) as pool:
        sleeper = pool.submit(hand_over)
        try:
            assert asleep.wait(60)
            patient = PostgresSink(hasty, backoff=Backoff(retries=4, first=0.1))
            batch = difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)
            assert patient.publish([batch]) == {of.name: Applied(1, 0, 0, 1)}
        finally:
            woken.set()
        with pytest.raises(OperationalError):
            sleeper.result()


@pytest.mark.spark
@pytest.mark.stack
def test_a_second_publisher_of_a_schema_is_kept_out(spark: SparkSession, postgres: Served) -> None:
    """Two at once: one waits, then says that it cannot."""
    of = customers(postgres.schema)
    hasty = replace(postgres.connection, options={"lock_timeout": "200ms"})
    sink = PostgresSink(hasty, backoff=Backoff(retries=0))
    with closing(postgres.connection.open()) as rival, rival.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (f"replicator publish {of.target.schema}",))
        rival.commit()
        with pytest.raises(Unreachable, match="55P03"):
            sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])


@pytest.mark.spark
def test_a_database_out_of_reach_is_named(spark: SparkSession) -> None:
    """Host and port are said, the password is not."""
    away = PostgresConnection("127.0.0.1", 1, "db", "me", "hunter2", sslmode="disable")
    sink = PostgresSink(away, backoff=QUICK)
    of = customers("public")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1/db") as caught:
        sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    assert caught.value.retry
    assert "hunter2" not in str(caught.value) + repr(away)
    with pytest.raises(Unreachable):
        sink.progress(of)
    with pytest.raises(Unreachable):
        sink.check_connection()


@pytest.mark.parametrize(
    "option", ["socketFactory", "sslfactory", "options", "password", "preferQueryMode", "passfile"]
)
def test_options_outside_the_list_are_refused(option: str) -> None:
    """Drivers have options that load classes or carry secrets."""
    with pytest.raises(ConfigError, match=option):
        PostgresConnection("db", 5432, "d", "u", options={option: "x"})


@pytest.mark.parametrize("limit", ["10", "1 s", "1s -c search_path=x", "-1s", ""])
def test_a_limit_that_is_no_time_is_refused(limit: str) -> None:
    """It becomes a setting of the session: nothing else may ride along."""
    with pytest.raises(ConfigError, match="is not a duration"):
        PostgresConnection("db", 5432, "d", "u", options={"lock_timeout": limit})


def test_a_host_with_url_parts_is_refused() -> None:
    """A host cannot smuggle options."""
    with pytest.raises(ConfigError, match="host"):
        PostgresConnection("db/x?socketFactory=y", 5432, "d", "u")


@pytest.mark.stack
def test_a_server_without_tls_is_out_of_reach_for_who_asks_for_it(postgres: Served) -> None:
    """No silent fall-back to plain text; the reason is libpq's."""
    with pytest.raises(Unreachable, match="SSL"):
        replace(postgres.connection, sslmode="require").open()
