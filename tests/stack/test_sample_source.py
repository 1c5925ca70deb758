"""The sample source on a real MariaDB, and its connector's events in a real Kafka."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import pymysql
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from psycopg2.extensions import connection as Connection
from psycopg2.extras import execute_values

from infra import lab
from infra.local.endpoints import Endpoints
from infra.sample_source import connector
from infra.sources.classicmodels.load import load, log_in, original_rows
from infra.sources.classicmodels.rows import generate
from infra.sources.classicmodels.shapes import SHAPES
from infra.sources.shape import Rows
from infra.truth import STAR, check_star, compare, star_of_source, tables_of_source
from replicator.connect.rest import Connect

pytestmark = pytest.mark.stack

PREFIX = "sampletest"
DATABASE = "classicmodels_sample"
SCHEMA = "sampletest_star"
ORIGINALS = Path(__file__).resolve().parents[3] / "shared" / "data" / "birt"
SNAPSHOT = {table: len(rows) for table, rows in generate().items()}
AFTER_THE_LAB = {**SNAPSHOT, "customers": 127, "products": 113, "orders": 327, "orderdetails": 2998}
"""Records per topic: 3 inserts, delete and tombstone; 2 inserts, 1 update; 1 update; delete and tombstone."""


@pytest.fixture
def source(endpoints: Endpoints) -> Iterator[pymysql.Connection]:
    with closing(log_in(endpoints.mariadb)) as connection:
        yield connection
        connection.rollback()
        connection.cursor().execute(f"DROP DATABASE IF EXISTS {DATABASE}")


@pytest.fixture
def target(endpoints: Endpoints) -> Iterator[Connection]:
    """A schema of its own in Postgres."""
    server = endpoints.postgres
    login: dict[str, Any] = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    with closing(psycopg2.connect(dbname=server.database, **login)) as connection:
        with connection, connection.cursor() as cursor:
            cursor.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")
        yield connection
        connection.rollback()
        with connection, connection.cursor() as cursor:
            cursor.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


@pytest.fixture(params=["generated", "original"])
def rows(request: pytest.FixtureRequest) -> Rows:
    if request.param == "generated":
        return generate()
    if not ORIGINALS.is_dir():
        pytest.skip("the original rows are not beside the project")
    return original_rows(ORIGINALS)


@pytest.fixture
def topics(endpoints: Endpoints) -> Iterator[dict[str, str]]:
    """Table -> topic, of a connector that is registered by the test and forgotten afterwards."""
    connect, admin = Connect(endpoints.connect), AdminClient({"bootstrap.servers": endpoints.kafka})
    connect.forget(PREFIX)
    yield {table: f"{PREFIX}.{DATABASE}.{table}" for table in SHAPES}
    connect.forget(PREFIX)
    ours = [topic for topic in admin.list_topics(timeout=20).topics if PREFIX in topic]
    for deleted in admin.delete_topics(ours).values():
        deleted.result(20)


def records(endpoints: Endpoints, topics: dict[str, str], expected: dict[str, int]) -> dict[str, list[Any]]:
    """Table -> its records, once each topic has at least the expected number and nothing came for a second."""
    consumer = Consumer(
        {"bootstrap.servers": endpoints.kafka, "group.id": PREFIX, "auto.offset.reset": "earliest"}
        | {"enable.auto.commit": False, "allow.auto.create.topics": False}
    )
    found: dict[str, list[Any]] = {table: [] for table in topics}
    tables = {topic: table for table, topic in topics.items()}
    deadline = time.monotonic() + 90
    try:
        _wait_for_topics(consumer, set(tables), deadline)
        consumer.assign([TopicPartition(topic, 0, 0) for topic in tables])
        while time.monotonic() < deadline:
            batch = consumer.consume(5000, timeout=1.0)
            for message in batch:
                assert message.error() is None
                found[tables[message.topic()]].append(message)
            if not batch and all(len(found[table]) >= count for table, count in expected.items()):
                return found
    finally:
        consumer.close()
    raise AssertionError(f"{ {table: len(messages) for table, messages in found.items()} } instead of {expected}")


def _wait_for_topics(consumer: Consumer, wanted: set[str], deadline: float) -> None:
    while not wanted <= set(consumer.list_topics(timeout=20).topics):
        assert time.monotonic() < deadline, "the topics do not appear"
        time.sleep(0.3)


def test_loading_twice_ends_in_the_same_tables(source: pymysql.Connection, rows: Rows) -> None:
    """3,864 rows, read back with the same values and types, whatever was there before."""
    for _ in range(2):
        assert load(source, rows, DATABASE) == 3864
        told = tables_of_source(source, DATABASE)
        for table, shape in SHAPES.items():
            difference = compare([shape.record(row) for row in rows[table]], told[table], shape.key)
            assert difference.equal, f"{table}: {difference}"


def test_the_lab_changes_the_star_as_each_step_says(source: pymysql.Connection, rows: Rows) -> None:
    """Rows added, rewritten and removed per star table, computed by the source itself."""
    load(source, rows, DATABASE)
    before = star_of_source(source, DATABASE)
    assert {table: len(records) for table, records in before.items()} == lab.SNAPSHOT
    for step in lab.STEPS:
        lab.run(source, step)
        after = star_of_source(source, DATABASE)
        differences = {table: compare(before[table], after[table], star.key) for table, star in STAR.items()}
        changes = {
            table: lab.Changed(len(found.unexpected), len(found.different or ()), len(found.missing))
            for table, found in differences.items()
            if not found.equal
        }
        assert changes == step.changes, step.name
        assert {table: len(records) for table, records in after.items()} == step.rows, step.name
        before = after
    customers = {record["customer_key"]: record for record in before["dim_customers"]}
    assert (customers[498]["postal_code"], customers[500]["customer_first_name"]) == ("69045", " Susan")


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the original rows are not beside the project")
def test_the_star_of_the_original_rows_has_the_scenarios_sums(source: pymysql.Connection) -> None:
    """9,604,190.61 gross and 3,825,880.25 profit; 9,602,461.40 and 3,825,216.79 without line 1 of order 10100."""
    load(source, original_rows(ORIGINALS), DATABASE)
    assert _sums(source) == (105_516, Decimal("9604190.61"), Decimal("3825880.25"))
    for step in lab.STEPS:
        lab.run(source, step)
    assert _sums(source) == (105_467, Decimal("9602461.40"), Decimal("3825216.79"))


def _sums(source: pymysql.Connection) -> tuple[int, Decimal, Decimal]:
    facts = star_of_source(source, DATABASE)["fact_orders"]
    return (
        sum(fact["quantity_ordered"] for fact in facts),
        sum(fact["quantity_ordered"] * fact["product_price"] for fact in facts),
        sum(fact["profit"] for fact in facts),
    )


def test_the_target_is_compared_with_the_source_by_content(source: pymysql.Connection, target: Connection) -> None:
    """Equal right after the same rows were written; then each kind of difference is told by key and column."""
    load(source, generate(), DATABASE)
    _write_star(target, star_of_source(source, DATABASE))
    report = check_star(source, target, database=DATABASE, schema=SCHEMA)
    assert {table: (found.equal, found.actual_rows) for table, found in report.items()} == {
        table: (True, count) for table, count in lab.SNAPSHOT.items()
    }
    with target, target.cursor() as cursor:
        cursor.execute(f"UPDATE {SCHEMA}.dim_customers SET customer_first_name = 'x' WHERE customer_key = 103")
        cursor.execute(f"DELETE FROM {SCHEMA}.dim_products WHERE product_line = 'Trains'")
        cursor.execute(f"UPDATE {SCHEMA}.fact_orders SET profit = profit + 0.01 WHERE order_key = 10100")
    lab.run(source, lab.STEPS[4])
    report = check_star(source, target, database=DATABASE, schema=SCHEMA)
    assert report["dim_customers"].different == {(103,): ("customer_first_name",)}
    assert len(report["dim_products"].missing) == 3
    assert (len(report["fact_orders"].missing), len(report["fact_orders"].unexpected)) == (4, 4)


def _write_star(target: Connection, star: dict[str, list[dict[str, Any]]]) -> None:
    types = {int: "integer", str: "text", Decimal: "numeric(12,2)", date: "date"}
    with target, target.cursor() as cursor:
        for table, facts in star.items():
            kinds = {name: next(type(f[name]) for f in facts if f[name] is not None) for name in facts[0]}
            columns = ", ".join(f"{name} {types[kind]}" for name, kind in kinds.items())
            cursor.execute(f"CREATE TABLE {SCHEMA}.{table} ({columns})")
            execute_values(cursor, f"INSERT INTO {SCHEMA}.{table} VALUES %s", [tuple(fact.values()) for fact in facts])


def test_a_step_that_fails_leaves_nothing_behind(source: pymysql.Connection) -> None:
    """The second time the lab's customers are already there; the source stays as it was."""
    load(source, generate(), DATABASE)
    lab.run(source, lab.STEPS[0])
    before = tables_of_source(source, DATABASE)
    with pytest.raises(Exception, match="Duplicate entry"):
        lab.run(source, lab.STEPS[0])
    assert tables_of_source(source, DATABASE) == before


def test_the_connector_delivers_the_snapshot_and_then_the_lab(
    endpoints: Endpoints, source: pymysql.Connection, topics: dict[str, str]
) -> None:
    """3,864 `r` events with their schema in eight topics, then what each statement does: 3,875 records together."""
    load(source, generate(), DATABASE)
    connect = Connect(endpoints.connect)
    connect.apply(PREFIX, connector(endpoints, prefix=PREFIX, database=DATABASE))
    connect.wait_running(PREFIX)
    snapshot = records(endpoints, topics, SNAPSHOT)
    assert {table: len(messages) for table, messages in snapshot.items()} == SNAPSHOT
    values = [json.loads(message.value()) for messages in snapshot.values() for message in messages]
    assert Counter(value["payload"]["op"] for value in values) == {"r": 3864}
    assert all(value["schema"]["type"] == "struct" for value in values)
    for step in lab.STEPS:
        lab.run(source, step)
    everything = records(endpoints, topics, AFTER_THE_LAB)
    assert {table: len(messages) for table, messages in everything.items()} == AFTER_THE_LAB
    assert sum(AFTER_THE_LAB.values()) == 3875
    assert _operations(everything["customers"][122:]) == ["c", "c", "c", "d", None]
    assert _operations(everything["products"][110:]) == ["c", "c", "u"]
    assert _operations(everything["orderdetails"][2996:]) == ["d", None]


def _operations(messages: list[Any]) -> list[str | None]:
    """``op`` of each record; None for a tombstone."""
    return [None if message.value() is None else json.loads(message.value())["payload"]["op"] for message in messages]
