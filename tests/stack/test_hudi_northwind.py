"""Northwind end to end on real servers: triggers, outbox, connector, Kafka, silver in Hudi, order items in gold."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2.errors
import pytest
from confluent_kafka import Consumer, TopicPartition
from psycopg2.extras import RealDictCursor
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from infra import northwind_lab
from infra.local import Stack
from infra.northwind_source import connector, topic
from infra.sample_source import wait_delivered
from infra.sources.northwind.load import load, log_in, original_rows
from infra.sources.northwind.rows import generate
from infra.truth import Difference, compare
from replicator.connect.rest import Connect
from replicator.errors import ConfigError
from tests import readme
from tests.cli import said

pytestmark = [pytest.mark.stack, pytest.mark.spark, pytest.mark.hudi, pytest.mark.timeout(900)]

CONF = Path(__file__).resolve().parents[2] / "conf" / "northwind"
PAGE = "docs/northwind.md"
ORIGINALS = Path(__file__).resolve().parents[3] / "shared" / "data" / "northwind" / "csv"
COMMANDS = [command for section in readme.sections(PAGE) for command in readme.commands(section, PAGE)]
LOADED = "3,307 rows in datalake, 829 orders in Kafka; connector demo is RUNNING\n"
BARE = "simple"
"""A second connector, without schemas."""

OUTBOX = """
SELECT order_id, customer_id, order_date, required_date, shipped_date, order_items::text, products::text,
  customer::text, employee::text, shipper::text, shipment::text,
  (extract(epoch FROM updated_at) * 1000000)::bigint AS updated_at
FROM cdc_events"""
ITEMS = """
SELECT o.customer_id, o.order_id, d.product_id::int, o.order_date, c.company_name,
  d.unit_price::numeric, d.quantity::int, d.discount::numeric,
  d.quantity * d.unit_price::numeric * (1 - d.discount::numeric) AS revenue
FROM orders o JOIN order_details d USING (order_id) JOIN customers c USING (customer_id)"""


@dataclass
class Played:
    """What was seen while the lab was played."""

    messages: list[tuple[Any, Any]] = field(default_factory=list)
    """Key and value of each record of the outbox's topic, as JSON."""
    bare: list[tuple[Any, Any]] = field(default_factory=list)
    """The same of the second connector."""
    silver: list[Difference] = field(default_factory=list)
    """Silver against the outbox: at the start, and behind the steps."""
    gold: list[Difference] = field(default_factory=list)
    """Order items against the source's tables, likewise."""
    leading: list[dict[str, Any]] = field(default_factory=list)
    """Customers by revenue, as the page asks for them."""


@pytest.fixture(scope="module")
def home() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="replicator-northwind-", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.fixture(scope="module")
def endpoints(home: str) -> Iterator[Any]:
    """Servers of its own: only those that the outbox needs."""
    stack = Stack(Path(home))
    try:
        yield stack.up(["postgres", "connect"], owner=os.getpid())
    finally:
        stack.delete()


@pytest.fixture(scope="module")
def source(endpoints: Any, home: str) -> Iterator[Any]:
    """The generated rows, in Kafka already: the first command of docs/northwind.md."""
    python, *words = shlex.split(COMMANDS[0])
    assert python == "python"
    done = subprocess.run([sys.executable, *words, "--home", home], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, LOADED)
    with closing(log_in(endpoints.postgres_source)) as connection:
        yield connection


@pytest.fixture(scope="module")
def following(endpoints: Any) -> Iterator[Any]:
    """The original rows where they are, in a database of their own whose outbox follows deletes."""
    name = "following"
    with closing(log_in(endpoints.postgres_admin)) as admin:
        admin.autocommit = True
        admin.cursor().execute(f"CREATE DATABASE {name} OWNER {endpoints.postgres_source.user}")
    with closing(log_in(replace(endpoints.postgres_source, database=name))) as connection:
        load(connection, published(), follow_deletes=True)
        yield connection


def published() -> Any:
    return original_rows(ORIGINALS) if ORIGINALS.is_dir() else generate(7)


def asked(connection: Any, query: str, *changes: str) -> list[dict[str, Any]]:
    """The answer to a query behind changes that are taken back."""
    with connection.cursor(cursor_factory=RealDictCursor) as cursor:
        for change in changes:
            cursor.execute(change)
        cursor.execute(query)
        rows = [dict(row) for row in cursor.fetchall()]
    connection.rollback()
    return rows


def of_order(order: int) -> str:
    return f"SELECT *, jsonb_array_length(order_items) AS items FROM cdc_events WHERE order_id = {order}"


def records(kafka: str, name: str) -> list[tuple[Any, Any]]:
    """All that a topic of one partition holds."""
    with closing(Consumer({"bootstrap.servers": kafka, "group.id": f"test-{name}"})) as consumer:
        count = consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=20)[1]
        consumer.assign([TopicPartition(name, 0, 0)])
        found: list[tuple[Any, Any]] = []
        while len(found) < count:
            came = [(m.key() or b"", m.value()) for m in consumer.consume(count, 10)]
            found += [(json.loads(key), value and json.loads(value)) for key, value in came]
    return found


def replicator(command: str, lake: Path, *more: str) -> str:
    """What a command of the page prints, with the configuration beside the lake."""
    program, *words = shlex.split(command.replace("conf/northwind", f"{lake}.conf"))
    assert program == "replicator"
    return said(*words, *more)


def unparted(conf: Path) -> None:
    """The configuration without partitions: one per order, or per customer, is several times the work.

    Rows with partitions of their own, and rows that change theirs, are in tests/unit/test_hudi_tables.py.
    """
    shutil.copytree(CONF, conf)
    demo = conf / "sources" / "demo.yaml"
    told = demo.read_text(encoding="utf-8")
    assert "partition_by: [customer_id, order_id]" in told
    demo.write_text(told.replace("[customer_id, order_id]", "[]"), encoding="utf-8")


def look(spark: SparkSession, lake: Path, source: Any, played: Played) -> None:
    """Bring the lake up to date and compare it with the source."""
    told = json.loads(replicator(COMMANDS[1], lake, "--json"))
    assert [line["error"] for line in told] == [None] * 3
    silver = spark.read.format("hudi").load(f"{lake}/silver/demo/datalake.cdc_events").where("NOT _deleted")
    rows = [row.asDict() for row in silver.withColumn("updated_at", F.unix_micros("updated_at")).collect()]
    played.silver.append(compare(asked(source, OUTBOX), rows, ["order_id"]))
    items = [row.asDict() for row in spark.read.format("delta").load(f"{lake}/gold/order_items").collect()]
    played.gold.append(compare(asked(source, ITEMS), items, ["order_id", "product_id"]))


@pytest.fixture(scope="module")
def played(spark: SparkSession, endpoints: Any, source: Any, tmp_path_factory: Any) -> Played:
    """The lab: snapshot, both steps, and the lake brought up to date behind each of the two."""
    lake, seen, connect = tmp_path_factory.mktemp("lake"), Played(), Connect(endpoints.connect)
    unparted(Path(f"{lake}.conf"))
    connect.apply(BARE, connector(endpoints, prefix=BARE, schemas=False))
    connect.wait_running(BARE)
    wait_delivered(endpoints.kafka, topic(BARE), northwind_lab.SNAPSHOT.messages)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**endpoints.env(), "REPLICATOR_LAKE": str(lake)}.items():
            patch.setenv(name, value)
        look(spark, lake, source, seen)
        for step in northwind_lab.STEPS:
            northwind_lab.run(source, step)
            wait_delivered(endpoints.kafka, topic(), step.held.messages)
        look(spark, lake, source, seen)
        seen.leading = json.loads(replicator(COMMANDS[2], lake, "--format", "json"))
    wait_delivered(endpoints.kafka, topic(BARE), step.held.messages)
    seen.messages, seen.bare = records(endpoints.kafka, topic()), records(endpoints.kafka, topic(BARE))
    return seen


def test_the_snapshot_has_every_order_under_its_key(played: Played) -> None:
    """829 records of operation r, none deleted, keys of order_id alone; key and value have their schemas."""
    snapshot = played.messages[: northwind_lab.SNAPSHOT.messages]
    assert {tuple(message) for pair in snapshot for message in pair} == {("schema", "payload")}
    payloads = [(key["payload"], value["payload"]) for key, value in snapshot]
    assert sorted(key["order_id"] for key, _ in payloads) == [n for n in range(10248, 11078) if n != 11075]
    assert all(list(key) == ["order_id"] for key, _ in payloads)
    told = {(row["__op"], row["__deleted"], row["__db"], row["__schema"], row["__table"]) for _, row in payloads}
    assert told == {("r", "false", "devdb", "datalake", "cdc_events")}


def test_the_steps_are_one_change_and_four(played: Played) -> None:
    """The ship date as days since 1970; one transaction as 0, 1, 2 and 3 items at one time; 834 records in all."""
    shipped, *inserted = [value["payload"] for _, value in played.messages[829:]]
    assert (shipped["order_id"], shipped["__op"], shipped["shipped_date"]) == (11077, "u", 10392)
    assert [len(json.loads(row["order_items"] or "[]")) for row in inserted] == [0, 1, 2, 3]
    assert [row["__op"] for row in inserted] == ["c", "u", "u", "u"]
    assert {row["order_id"] for row in inserted} == {11075}
    assert len({row["__source_ts_ms"] for row in inserted}) == len({row["updated_at"] for row in inserted}) == 1
    assert sorted({row["__lsn"] for row in inserted}) == [row["__lsn"] for row in inserted]
    assert json.loads(inserted[-1]["shipment"])["freight"] == 6.19


def test_every_change_has_all_values(played: Played) -> None:
    """Large columns that a change leaves alone are written anew, so none is a placeholder."""
    assert "__debezium_unavailable_value" not in json.dumps(played.messages)


def test_without_schemas_the_same_rows_are_bare(played: Played) -> None:
    """Positions and times apart, which are the connector's own."""
    own = ("__lsn", "__sequence")
    with_schemas = [(key["payload"], value["payload"]) for key, value in played.messages]

    def bare(pairs: Any) -> list[Any]:
        return [(key, {name: told for name, told in row.items() if name not in own}) for key, row in pairs]

    snapshot = northwind_lab.SNAPSHOT.messages
    assert [key for key, _ in played.bare] == [key for key, _ in with_schemas]
    assert bare(played.bare[snapshot:]) == bare(with_schemas[snapshot:])


def test_silver_is_the_outbox_and_gold_the_order_lines(played: Played) -> None:
    """By the source's own SQL: 829 and 830 orders, 2,152 and 2,155 lines, every value."""
    assert [str(difference) for difference in played.silver] == ["829 rows, equal", "830 rows, equal"]
    assert [str(difference) for difference in played.gold] == ["2152 rows, equal", "2155 rows, equal"]


def test_the_query_of_the_page_tells_the_leading_customers(played: Played, source: Any) -> None:
    """Revenue by customer, the greatest first."""
    query = f"SELECT customer_id, sum(revenue) AS revenue FROM ({ITEMS}) AS i GROUP BY 1 ORDER BY 2 DESC"
    wanted = [(row["customer_id"], row["revenue"]) for row in asked(source, query)]
    assert [(customer, Decimal(str(told))) for customer, told in (row.values() for row in played.leading)] == wanted
    assert len(wanted) == 89


def test_the_outbox_follows_another_employee(source: Any) -> None:
    """With the employee's territories."""
    [row] = asked(source, of_order(10248), "UPDATE orders SET employee_id = 3 WHERE order_id = 10248")
    assert row["employee"]["employee_id"] == 3
    assert row["employee"]["territories"]


def test_an_order_without_shipper_and_employee_is_there(source: Any) -> None:
    """With NULL for both; it has no items yet."""
    new = "INSERT INTO orders (order_id, customer_id, order_date) VALUES (11078, 'PARIS', '1998-05-07')"
    [row] = asked(source, of_order(11078), new)
    assert (row["shipper"], row["employee"], row["order_items"], row["products"]) == (None, None, None, None)


def test_a_renamed_customer_shows_when_the_order_is_written_again(source: Any) -> None:
    """Stated in outbox.sql: what changes in other tables alone is not followed."""
    rename = "UPDATE customers SET company_name = 'Another' WHERE customer_id = 'VINET'"
    [before] = asked(source, of_order(10248), rename)
    [after] = asked(source, of_order(10248), rename, "UPDATE orders SET freight = freight WHERE order_id = 10248")
    assert [before["customer"]["company_name"], after["customer"]["company_name"]] == ["Vinet & Filles", "Another"]


DELETE_LINE = "DELETE FROM order_details WHERE order_id = 10248 AND product_id = 72"
DELETE_ORDER = "DELETE FROM order_details WHERE order_id = 10248; DELETE FROM orders WHERE order_id = 10248"


def test_deletes_are_followed_only_by_an_outbox_that_was_loaded_so(source: Any, following: Any) -> None:
    """A deleted line leaves the items, a deleted order takes its row along; else three items stay."""
    for delete in (DELETE_LINE, DELETE_ORDER):
        assert [row["items"] for row in asked(source, of_order(10248), delete)] == [3]
    [row] = asked(following, of_order(10248), DELETE_LINE)
    assert row["items"] == len(row["products"]) == asked(following, of_order(10248))[0]["items"] - 1
    assert asked(following, of_order(10248), DELETE_ORDER) == []


def test_a_line_that_moves_to_another_order_leaves_the_first(source: Any) -> None:
    """Both orders are written anew."""
    move = "UPDATE order_details SET order_id = 11074 WHERE order_id = 10248 AND product_id = 72"
    [row] = asked(source, of_order(10248), f"DELETE FROM order_details WHERE order_id = 11074; {move}")
    assert row["items"] == 2


def test_only_the_outbox_is_published_so_that_tables_without_a_key_can_be_updated(source: Any) -> None:
    """PostgreSQL refuses updates of published tables that have neither key nor replica identity."""
    query = "SELECT schemaname || '.' || tablename AS name FROM pg_publication_tables WHERE pubname = 'cdc_publication'"
    keyless = "CREATE TABLE keyless (n int); INSERT INTO keyless VALUES (1); UPDATE keyless SET n = 2"
    assert asked(source, query, keyless) == [{"name": "datalake.cdc_events"}]


def test_a_schema_that_is_there_is_refused_and_left_as_it_is(source: Any) -> None:
    """Loading again would remove changes: it must be asked for."""
    with pytest.raises(ConfigError, match="datalake is there already"):
        load(source, generate())
    assert asked(source, "SELECT count(*) AS tables FROM pg_tables WHERE schemaname = 'datalake'") == [{"tables": 12}]


def test_loading_anew_keeps_the_publication(following: Any) -> None:
    """A connector that is at work would not find another one of the same name, and get nothing any more."""
    query = """
        SELECT p.oid, t.tablename, (SELECT count(*) FROM cdc_events) AS orders
        FROM pg_publication AS p JOIN pg_publication_tables AS t ON t.pubname = p.pubname"""
    before = asked(following, query)
    assert [(row["tablename"], row["orders"]) for row in before] == [("cdc_events", 829)]
    load(following, published(), follow_deletes=True, replace=True)
    assert asked(following, query) == before


def test_a_load_that_fails_leaves_nothing_behind(endpoints: Any) -> None:
    """One transaction: the first broken row undoes the schema."""
    with closing(log_in(endpoints.postgres_admin)) as elsewhere:
        broken = dict(generate()) | {"order_details": ((1, 1, 1, 1, 0),)}
        with pytest.raises(psycopg2.errors.ForeignKeyViolation):
            load(elsewhere, broken)
        assert asked(elsewhere, "SELECT to_regnamespace('datalake') AS schema") == [{"schema": None}]


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the original rows are not beside the project")
def test_the_original_rows_have_the_scenarios_sums(following: Any) -> None:
    """Out of the outbox's own JSON: 829 orders of 89 customers, 2,152 lines, 1,265,294.94."""
    query = """
        SELECT count(DISTINCT order_id) AS orders, count(DISTINCT customer_id) AS customers, count(*) AS lines,
          round(sum((i->>'quantity')::numeric * (i->>'unit_price')::numeric * (1 - (i->>'discount')::numeric)), 2)::text
            AS revenue
        FROM cdc_events, jsonb_array_elements(order_items) AS i"""
    told = {"orders": 829, "customers": 89, "lines": 2152, "revenue": "1265294.94"}
    assert asked(following, query) == [told]
