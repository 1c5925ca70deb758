"""Events of SQL Server as its connector's manual shows them, from topics that have the database before the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.config.sourcefile import load_declare_file
from tests.golden.run import Run

pytestmark = pytest.mark.spark

ANNE = {"id": 1004, "first_name": "Anne", "email": "annek@noanswer.org"}
DECLARED = """
name: server1
include: [dbo.customers]
database: {kind: sqlserver, host: h, user: u}
tables:
  dbo.customers: {keys: [id], columns: {id: int, first_name: string, email: string}}
"""


def event(offset: int, op: str, before: Any, after: Any, lsn: str, table: str = "customers") -> dict[str, Any]:
    """A record of ``testDB`` as kcat prints it; positions are texts of three hexadecimal numbers."""
    source = {
        "version": "3.3.1.Final", "connector": "sqlserver", "name": "server1", "ts_ms": 1559729468470 + offset,
        "snapshot": "true" if op == "r" else "false", "db": "testDB", "schema": "dbo", "table": table,
        "change_lsn": None if op == "r" else f"{lsn[:-4]}0003", "commit_lsn": lsn,
        "event_serial_no": None if op == "r" else 1,
    }  # fmt: skip
    told = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1559729471739 + offset}
    place = {"topic": f"server1.testDB.dbo.{table}", "partition": 0, "offset": offset, "ts": 1559729471739}
    return {**place, "key": json.dumps({"id": 1004}), "payload": json.dumps(told)}


def test_a_table_of_sql_server_is_read_from_the_topic_that_names_its_database(
    exact: SparkSession, tmp_path: Path
) -> None:
    """`include: [dbo.customers]` reads ``server1.testDB.dbo.customers`` and no other topic."""
    (tmp_path / "declare.yaml").write_text(DECLARED, encoding="utf-8")
    source = load_declare_file(tmp_path / "declare.yaml")
    changed = ANNE | {"email": "anne@example.org"}
    sent = [
        event(0, "r", None, ANNE, "00000027:00000758:0005"),
        event(1, "u", ANNE, changed, "00000027:00000ac0:0002"),
        event(0, "c", None, ANNE, "00000027:00000758:0005", "orders"),
    ]
    run = Run(exact, tmp_path, source)
    run.take([each for each in sent if source.matches(each["topic"])])
    assert run.exists("dbo.customers")
    assert not run.exists("dbo.orders")
    [row] = run.shown("dbo.customers").values()
    assert {column: row[column] for column in changed} == changed
    deleted = event(2, "d", changed, None, "00000027:00000db0:0005")
    run.take([deleted, {**deleted, "offset": 3, "payload": None}])
    assert run.shown("dbo.customers") == {}
