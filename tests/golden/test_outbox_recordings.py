"""A captured outbox table, recorded from real Debezium, read in both modes (debezium.md I4)."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.spec import Column, Declaration, Outbox, SourceSpec
from tests.builders import exact_session
from tests.golden.run import Run
from tests.golden.test_recordings import read_gz, stream

pytestmark = pytest.mark.spark

TABLE = "datalake.cdc_events"


@pytest.fixture(scope="module")
def final(recorded: Path) -> dict[str, Any]:
    return dict(json.loads(read_gz(recorded / "northwind.truth.json.gz"))["final"][TABLE])


def run_of(spark: SparkSession, folder: Path, recorded: Path, final: dict[str, Any], mode: str) -> Run:
    columns = tuple(Column(column["name"], column["type"]) for column in final["columns"])
    source = SourceSpec("nwraw", "nwraw.*", tables=(Declaration(TABLE, columns, outbox=Outbox(mode)),))
    run = Run(exact_session(spark), folder, source)
    run.take(stream(recorded, "northwind.nwraw"))
    return run


def test_as_a_log_it_keeps_every_inserted_row(
    spark: SparkSession, tmp_path: Path, recorded: Path, final: dict[str, Any]
) -> None:
    """I4: rows of the snapshot and inserts, none of the 14 updates and 2 deletes."""
    run = run_of(spark, tmp_path, recorded, final, "log")
    [account] = run.accounts
    assert account.ignored == {"outbox_update": 14, "outbox_delete": 2, "tombstone": 2}
    assert len(run.shown(TABLE)) == account.applied == 830


def test_as_the_current_state_it_equals_the_table(
    spark: SparkSession, tmp_path: Path, recorded: Path, final: dict[str, Any]
) -> None:
    """I4, P6: an upserted image is an ordinary table."""
    shown = run_of(spark, tmp_path, recorded, final, "current").shown(TABLE)
    at = {column["name"]: index for index, column in enumerate(final["columns"])}
    told = {int(row[at["order_id"]]): row[at["shipped_date"]] for row in final["rows"]}
    wanted = {key: None if text is None else dt.date.fromisoformat(text) for key, text in told.items()}
    assert {key: row["shipped_date"] for (key,), row in shown.items()} == wanted
