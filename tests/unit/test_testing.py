"""``replicator.testing``: users test their own models and declarations with what the stages run (docs/testing.md)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import BadRecording, ChecksFailed, ConfigError, ReplicatorError, TableStopped
from replicator.testing import Project
from tests import readme

pytestmark = pytest.mark.spark

PAGE = "docs/testing.md"
SHOP = """
name: shop
tables:
  sales.orders:
    columns: {id: int, total: "decimal_string(10,2)", state: string}
    stored_as_scd_type: 2
    truncate: fail
"""
MODEL = """
key: [order_key]
inputs: {orders: shop/sales.orders, states: dim_states}
columns:
  order_key: {type: integer, nullable: false}
  state: {type: text, checks: [{relationship: {to: dim_states, field: state}}]}
  updated_ms: {type: bigint, checks: [{not_null: true, severity: warn}]}
unknown_member: {order_key: -1, updated_ms: 0}
"""
FACT = """
SELECT o.id AS order_key, o.state, o._source_ts_ms AS updated_ms
FROM {orders} AS o LEFT JOIN {states} AS s ON s.state = o.state
"""
STATES = "key: [state]\ninputs: {}\ncolumns: {state: text}\n"


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of one table with a history and two models."""
    assert spark
    conf = tmp_path_factory.mktemp("conf")
    files = {
        "dev.yaml": "kafka: {bootstrap_servers: 'k:1'}\n",
        "sources/shop.yaml": SHOP,
        "models/fact_orders.yaml": MODEL,
        "models/fact_orders.sql": FACT,
        "models/dim_states.yaml": STATES,
        "models/dim_states.sql": "SELECT 'new' AS state",
    }
    for name, text in files.items():
        (conf / name).parent.mkdir(exist_ok=True)
        (conf / name).write_text(text, encoding="utf-8")
    return Project(conf, "dev")


def record(op: str, pos: int, **row: object) -> dict[str, object]:
    source = {"connector": "mysql", "name": "shop", "db": "sales", "table": "orders", "file": "b.1", "pos": pos}
    payload = {"op": op, "before": None, "after": row or None, "source": {**source, "ts_ms": pos}}
    return {"topic": "shop.sales.orders", "key": {"id": 1}, "payload": payload}


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def test_the_examples_of_its_page_are_tests_that_pass(tmp_path: Path) -> None:
    """As whoever copies them runs them, in a process of their own; here, whatever cluster is configured."""
    shutil.copytree(readme.ROOT / "conf", tmp_path / "conf")
    local = tmp_path / "conf/local.yaml"
    local.write_text(local.read_text(encoding="utf-8").replace("spark.master: local[2]", "spark.master: yarn"))
    (tmp_path / "tests").mkdir()
    names = re.findall(r"`(\w+\.py)`:", (readme.ROOT / PAGE).read_text(encoding="utf-8"))
    for name, text in zip(names, readme.shown("python", PAGE), strict=True):
        (tmp_path / "tests" / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    env = {**os.environ, "PYTHONPATH": str(readme.ROOT), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("5 passed")


def test_silver_is_what_a_run_would_make_of_the_batches(shop: Project) -> None:
    """Types and histories as declared; what comes again or late changes nothing."""
    new, paid = record("c", 1, id=1, total="5.00", state="new"), record("u", 3, id=1, total="5.00", state="paid")
    silver = shop.silver("shop", [paid], [new, paid])
    assert rows(silver.tables["sales.orders"]) == [(1, Decimal("5.00"), "paid", 3)]
    history = silver.tables["sales.orders__history"]
    assert rows(history.select("state", "__END_AT").where("__END_AT IS NULL")) == [("paid", None)]
    assert silver.dead_letters.count() == 0


def test_records_of_a_file_and_others_are_one_log(shop: Project, tmp_path: Path) -> None:
    """What is given behind a captured file comes behind its last offset: it is not taken for what bronze has."""
    captured = tmp_path / "captured.jsonl"
    captured.write_text(
        '{"topic":"shop.sales.orders","partition":0,"offset":7,"ts":0,"headers":[],"key":"{\\"id\\":2}","payload":null}\n',
        encoding="utf-8",
    )
    silver = shop.silver("shop", captured, [record("c", 1, id=1, total="x", state="new")])
    assert (8, "type_mismatch") in rows(silver.dead_letters.select("offset", "reason"))


def test_what_stops_a_table_is_raised(shop: Project) -> None:
    """As a run would tell it: nothing is passed over."""
    emptied = record("t", 2) | {"key": None}
    with pytest.raises(TableStopped, match="the table was truncated at the source"):
        shop.silver("shop", [record("c", 1, id=1, total="5.00", state="new"), emptied])


def test_a_model_is_held_to_its_checks_as_a_first_build(shop: Project) -> None:
    """Its unknown member is there, what only warns warns, and a relationship is looked at where its parent is given."""
    made = shop.spark.createDataFrame
    states = shop.model("dim_states")
    orders = made([(1, "new")], "id INT, state STRING")
    with pytest.warns(UserWarning, match="fact_orders: .*1 row fails"):
        built = shop.model("fact_orders", orders=orders, states=states)
    assert rows(built) == [(-1, None, 0), (1, "new", None)]
    at = "id INT, state STRING, _source_ts_ms BIGINT"
    with pytest.raises(ChecksFailed, match=r"order_key=2"):
        shop.model("fact_orders", orders=made([(2, "odd", 5)], at), states=states)
    with pytest.raises(ChecksFailed, match="occur more than once"):
        shop.model("fact_orders", orders=made([(2, "new", 5), (2, "new", 6)], at), states=states)


def test_what_is_wrong_is_said(shop: Project, tmp_path: Path) -> None:
    """Names that do not exist with the nearest one, inputs that are missing, records that are none or of others, what
    stops a table.
    """
    states, other = shop.model("dim_states"), json.dumps(record("c", 1, id=1)).replace('"shop', '"other')
    keyless = {"topic": "shop.sales.orders", "payload": None}
    refused: list[tuple[type[ReplicatorError], str, Callable[[], object]]] = [
        (ConfigError, "model 'dim_state' does not exist; did you mean", lambda: shop.model("dim_state")),
        (ConfigError, "reads orders, for which no rows", lambda: shop.model("fact_orders", states=states)),
        (ConfigError, "has no input 'state'; did you mean", lambda: shop.model("fact_orders", state=states)),
        (ConfigError, "source 'shp' does not exist", lambda: shop.silver("shp")),
        (ConfigError, "topic other.sales.orders is not of", lambda: shop.silver("shop", [json.loads(other)])),
        (BadRecording, "a record lacks key", lambda: shop.silver("shop", [keyless])),
        (BadRecording, "cannot be read", lambda: shop.silver("shop", tmp_path / "none.jsonl")),
    ]
    for kind, told, call in refused:
        with pytest.raises(kind, match=re.escape(told)):
            call()
