"""``consistency: transaction`` against the living: whole orders in gold while orders are being written."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from infra.sample_source import connector, wait_delivered
from infra.sources.classicmodels.load import log_in
from replicator import assemble, settings
from replicator.connect.rest import Connect
from replicator.stages import continuous, pipeline
from replicator.stages.run_report import ReportLine
from replicator.stages.tick import transaction_cut

pytestmark = [pytest.mark.stack, pytest.mark.spark]

SOURCE = "whole"
TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, lines_of int NOT NULL);
CREATE TABLE order_lines (order_id int, id int, PRIMARY KEY (order_id, id));
INSERT INTO orders VALUES (0, 1);
INSERT INTO order_lines VALUES (0, 0);
COMMIT
"""
MODEL = {
    "key": ["order_id", "line"],
    "inputs": {"orders": f"{SOURCE}/{SOURCE}.orders", "order_lines": f"{SOURCE}/{SOURCE}.order_lines"},
    "lineage": {"orders": ["order_id"], "order_lines": ["order_id", "line"]},
    "columns": {name: {"type": "integer"} for name in ("order_id", "line", "lines_of")},
}
SQL = """
SELECT l.order_id, l.id AS line, o.lines_of FROM {order_lines} l JOIN {orders} o ON o.id = l.order_id
"""
BEFORE, LOOKS = 12, 2
PATIENCE_SECONDS = 240


@dataclass
class Writer:
    """Commits orders with their lines, each beside a new line of the order before it. ``lines``: so many has each."""

    connection: Any
    lines: dict[int, int] = field(default_factory=lambda: {0: 1})

    @property
    def written(self) -> int:
        return max(self.lines)

    def write(self, upto: int) -> None:
        while self.written < upto:
            number, before = self.written + 1, self.written
            count = max(2, 50 - 2 * number)  # topics that are read at one pace come apart: the first ones are long
            rows = [(number, line) for line in range(count)] + [(before, self.lines[before])]
            with self.connection.cursor() as cursor:
                cursor.execute("INSERT INTO orders VALUES (%s, %s)", (number, count))
                cursor.execute("UPDATE orders SET lines_of = lines_of + 1 WHERE id = %s", (before,))
                cursor.executemany("INSERT INTO order_lines VALUES (%s, %s)", rows)
            self.connection.commit()
            self.lines |= {number: count, before: self.lines[before] + 1}


@pytest.fixture
def writer(endpoints: Any) -> Iterator[Writer]:
    """A source with one order, whose connector tells transactions and is past its snapshot, which knows of none."""
    connect = Connect(endpoints.connect)
    with closing(log_in(endpoints.mariadb)) as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {SOURCE}")
            connection.select_db(SOURCE)
            for statement in TABLES.split(";"):
                cursor.execute(statement)
        config = connector(endpoints, prefix=SOURCE, database=SOURCE)
        connect.apply(SOURCE, config | {"provide.transaction.metadata": "true", "poll.interval.ms": "50"})
        connect.wait_running(SOURCE)
        wait_delivered(endpoints.kafka, f"{SOURCE}.{SOURCE}.", 2)
        yield Writer(connection)
        connect.forget(SOURCE)
        connection.rollback()
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {SOURCE}")


def configured(home: Path, kafka: str) -> settings.Settings:
    """Bronze takes little at once, so that each of its versions has parts of transactions."""
    files = {
        "base.yaml": {
            "lake": {"root": str(home / "lake"), "lease": "off"},
            "kafka": {"bootstrap_servers": kafka},
            "bronze": {"max_offsets_per_trigger": 200, "trigger_seconds": 1},
        },
        "dev.yaml": {},
        f"sources/{SOURCE}.yaml": {"name": SOURCE, "consistency": "transaction"},
        "models/lines.yaml": MODEL,
    }
    for name, content in files.items():
        path = home / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    (home / "conf/models/lines.sql").write_text(SQL, encoding="utf-8")
    return settings.load(home / "conf", "dev", {})


@contextmanager
def running(spark: SparkSession, made: pipeline.Pipeline, lines: list[ReportLine]) -> Iterator[threading.Thread]:
    """A continuous run beside the test."""
    stop = threading.Event()
    stages = ("bronze", "silver", "gold")
    thread = threading.Thread(target=continuous.run_continuously, args=(spark, made, stages, lines.append, stop))
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)


def versions(spark: SparkSession, made: pipeline.Pipeline) -> int:
    """How many gold has had."""
    newest = made.warehouse.gold.version(spark, made.warehouse.lake.gold("lines"))
    return 0 if newest is None else newest + 1


def is_there(spark: SparkSession, made: pipeline.Pipeline, rows: int) -> bool:
    """Whether gold has so many."""
    return made.warehouse.gold.read(spark, made.warehouse.lake.gold("lines")).count() >= rows


def test_gold_shows_whole_orders_while_they_are_written(
    spark: SparkSession, endpoints: Any, writer: Writer, tmp_path: Path
) -> None:
    """Promise of decision 0029: every version of gold has all lines of each of its orders, and in the end all orders;
    that transactions had to wait on the way is seen too.
    """
    writer.write(BEFORE)
    made = assemble.pipeline(spark, configured(tmp_path, endpoints.kafka))
    at, waited, lines = made.warehouse, 0, list[ReportLine]()
    until = time.monotonic() + PATIENCE_SECONDS
    with running(spark, made, lines) as thread:
        while (looks := versions(spark, made)) < LOOKS or not is_there(spark, made, sum(writer.lines.values())):
            assert thread.is_alive(), lines
            assert time.monotonic() < until, lines
            writer.write(writer.written + (looks < LOOKS))
            stood = transaction_cut.load(at.control, at.lake, SOURCE)
            waited += stood is not None and bool(stood.cut.offsets)
            time.sleep(0.3)
    assert [str(line.error) for line in lines if line.error is not None] == []
    gold = at.lake.gold("lines")
    newest = versions(spark, made) - 1
    shown = [at.gold.read(spark, gold, v).withColumn("version", F.lit(v)) for v in range(newest + 1)]
    orders = reduce(DataFrame.unionByName, shown).groupBy("version", "order_id")
    told = orders.agg(F.count("*").alias("seen"), F.min("lines_of").alias("least"), F.max("lines_of").alias("most"))
    found = told.collect()
    assert [row for row in found if not row["seen"] == row["least"] == row["most"]] == []
    assert {row["order_id"]: row["seen"] for row in found if row["version"] == newest} == writer.lines
    assert waited, "nothing ever had to wait"
