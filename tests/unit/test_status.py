"""``replicator status``: how far a model is behind what it is made of, and what of a damaged lake is told."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.catalog.store import Store
from replicator.cli import app
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.progress import arrow_survey
from replicator.operate.progress.arrow_survey import ArrowSurvey
from replicator.operate.status import StatusInputs, list_statuses
from replicator.sources.kafka import KafkaSource
from replicator.spec import Model, ModelColumn
from replicator.stages import gold
from replicator.stages.models.warehouse import Warehouse
from tests.builders import made

pytestmark = pytest.mark.spark


def test_gold_is_behind_by_the_commits_of_its_inputs_that_it_has_not_read(spark: SparkSession) -> None:
    """Silver that went on is told, and gold tables that no configuration names are there all the same."""
    tables, control, lake = MemoryFormat(), MemoryControl(), Lake("memory")
    customers = lake.silver("s", "db.customers", ("id",))
    model = Model("m", "SELECT id FROM {c}", {"c": "s/db.customers"}, ("id",), (ModelColumn("id", "integer"),))
    tables.append(made(spark, [(1,)], "id int"), customers, None)
    [built] = gold.refresh(spark, [model], Warehouse(tables, tables, control, lake))
    assert built.error is None
    at = StatusInputs(lake, tables, control, readers={}, intakes={}, models=(model,), sinks={})
    assert [(each.layer, each.rows, each.lag_events) for each in list_statuses(spark, at)] == [("gold", 1, 0)]
    tables.append(made(spark, [(2,), (3,)], "id int"), customers, None)
    assert [(each.layer, each.rows, each.lag_events) for each in list_statuses(spark, at)] == [("gold", 1, 1)]
    unknown = replace(at, models=())
    assert [(each.table, each.rows, each.lag_events) for each in list_statuses(spark, unknown)] == [("m", 1, None)]


SILVER = pa.table(
    {
        "id": [1],
        "_seq": ["10"],
        "_deleted": [False],
        "_column_seq": pa.array([None], pa.map_(pa.string(), pa.string())),
        "_source_ts_ms": pa.array([5], pa.int64()),
    }
)


def written(lake: Lake, *tables: str) -> dict[str, Path]:
    """Tables of silver, in two commits, and bronze, as far as ``status`` reads them."""
    columns = {"topic": ["s.d.t"], "partition": pa.array([0], pa.int32()), "offset": pa.array([4], pa.int64())}
    times = pa.array([1], pa.timestamp("us", "UTC"))
    deltalake.write_deltalake(lake.bronze("s").location, pa.table({**columns, "timestamp": times}))
    places = {table: Path(lake.silver("s", table).location) for table in tables}
    for place in places.values():
        for _ in range(2):
            deltalake.write_deltalake(str(place), SILVER, mode="append")
    return places


def test_a_broken_table_is_named_and_the_others_are_told(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is gone, a commit that was cut off: exit code 1, and the rest on stdout. A log without commits, of a
    writer that died in its first, is no table yet.
    """
    tables = written(Lake(str(tmp_path)), "d.whole", "d.lost", "d.torn", "d.empty")
    next(tables["d.lost"].glob("*.parquet")).unlink()
    commit = tables["d.torn"] / "_delta_log" / f"{1:020d}.json"
    commit.write_text(commit.read_text(encoding="utf-8")[:200], encoding="utf-8")
    for each in (tables["d.empty"] / "_delta_log").iterdir():
        each.unlink()
    (tmp_path / "silver/s/stray").mkdir()
    (tmp_path / "silver/other").mkdir()
    (tmp_path / "silver/letter.txt").touch()
    done = CliRunner().invoke(app, ["status", "--lake", str(tmp_path), "--json"])
    assert [each["table"] for each in json.loads(done.stdout)] == ["s", "s/d.whole"]
    assert done.exit_code == 1
    broken = [line.split(" cannot be read: ")[0] for line in done.stderr.splitlines() if "cannot be read: " in line]
    assert [each for each in broken if each.startswith("silver")] == ["silver s/d.lost", "silver s/d.torn"]
    assert f"a commit of the table's log is truncated: {commit}" in done.stderr


def test_a_control_row_that_was_cut_off_breaks_the_tables_that_need_it_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Bronze needs none."""
    lake = Lake(str(tmp_path))
    written(lake, "d.t")
    row = Path(lake.pauses("s"))
    row.parent.mkdir(parents=True)
    row.write_text('{"tab', encoding="utf-8")
    done = CliRunner().invoke(app, ["status", "--lake", str(tmp_path), "--json"])
    assert ([each["table"] for each in json.loads(done.stdout)], done.exit_code) == (["s"], 1)
    told = " ".join(done.stderr.split())
    assert "silver s/d.t cannot be read: control row is not a JSON" in told
    assert "Restore it from a backup of the lake" in told


def test_silver_is_told_where_bronze_is_gone(exact: SparkSession, tmp_path: Path) -> None:
    """How far it is behind is not known, then; by Spark and without."""
    lake = Lake(str(tmp_path))
    written(lake, "d.t")
    shutil.rmtree(tmp_path / "bronze")
    around = StatusInputs(lake, DeltaFormat(), JsonControl(exact), {}, {}, (), {})
    survey = ArrowSurvey(lake, Store(str(tmp_path)), ("delta",), {}, (), {})
    for found in (list_statuses(exact, around), arrow_survey.list_statuses(survey)):
        assert [(each.layer, each.table, each.rows, each.lag_events) for each in found] == [
            ("silver", "s/d.t", 2, None)
        ]


def test_a_source_whose_kafka_lets_nobody_in_is_told_all_the_same(
    exact: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As one that does not answer: how far bronze is behind nobody can say, and why is told."""
    lake = Lake(str(tmp_path))
    written(lake, "d.t")
    reader = KafkaSource("127.0.0.1:9", ".*", {"security.protocol": "SSL", "ssl.truststore.location": "/none.jks"})
    around = StatusInputs(lake, DeltaFormat(), JsonControl(exact), {"s": reader}, {}, (), {})
    found = {each.layer: (each.rows, each.lag_events) for each in list_statuses(exact, around)}
    assert found["bronze"] == (1, None)
    assert found["silver"][0] == 2
    assert "source_silent source=s reason=the Kafka client does not start with these options: " in caplog.text
