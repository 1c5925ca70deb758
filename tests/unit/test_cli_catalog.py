"""``replicator catalog`` over a small lake: what the formats say of their tables reaches Glue and Athena."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import sqlglot
from moto import mock_aws
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.cli import app
from replicator.formats.delta import DeltaFormat
from replicator.formats.hudi import HudiFormat
from replicator.lake import Lake
from replicator.spec import Progress, Table
from tests.builders import made
from tests.cli import said

pytestmark = pytest.mark.spark

CONF = Path(__file__).parents[2] / "conf"
SILVER = "id INT, customer STRING, placed TIMESTAMP_NTZ, _seq STRING, _deleted BOOLEAN, _column_seq MAP<STRING, STRING>"


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Where AWS's own tools would look for a region, there is one."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-southeast-2")
    with mock_aws():
        yield boto3.client("glue")


def outcomes(*arguments: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(said("catalog", "sync", "--json", *arguments))}


def test_silver_and_gold_are_registered_with_the_words_of_their_models(
    spark: SparkSession, glue: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta: the table, the view of live rows, the model's words for its columns; a second run is quiet. A table that
    cannot be read is named, and keeps nothing from the others.
    """
    lake, tables = Lake(str(tmp_path / "lake")), DeltaFormat()
    row = (1, "ALFKI", None, "1", False, None)
    tables.apply(made(spark, [row], SILVER), lake.silver("s", "shop.Orders", ("id",)), Progress("b", 1))
    gold = made(spark, [("Classic", 1)], "product_key STRING, extra INT")
    tables.append(gold, lake.gold("dim_products"), None)
    monkeypatch.setenv("REPLICATOR_LAKE", lake.root)
    done = outcomes("--database", "datalake", "--env", "demo", "--conf", str(CONF))
    assert {name: each["action"] for name, each in done.items()} == dict.fromkeys(
        ("datalake", "orders__all", "orders", "dim_products"), "created"
    )
    table = glue.get_table(DatabaseName="datalake", Name="dim_products")["Table"]
    assert table["StorageDescriptor"]["Location"] == f"file://{lake.root}/gold/dim_products"
    assert [each.get("Comment", "") != "" for each in table["StorageDescriptor"]["Columns"]] == [True, False]
    again = CliRunner().invoke(app, ["catalog", "sync", "--database", "datalake", "--lake", lake.root])
    assert (again.exit_code, again.stdout.count("unchanged")) == (0, 3)
    assert "Athena may be unable to read orders, dim_products: it reads S3 only." in again.stderr
    told = said("catalog", "ddl", "orders", "--lake", lake.root)
    assert [each.key for each in sqlglot.parse(told, dialect="athena") if each] == ["create"] * 3
    torn = Path(lake.silver("s", "shop.torn").location, "_delta_log", f"{0:020d}.json")
    torn.parent.mkdir(parents=True)
    torn.write_text('{"commitInfo":{"timest', encoding="utf-8")
    partly = CliRunner().invoke(app, ["catalog", "ddl", "--lake", lake.root])
    assert (partly.exit_code, partly.stdout.count("CREATE EXTERNAL TABLE")) == (1, 2)
    assert "torn: TABLE_STOPPED: the table cannot be read: " in partly.stderr


@pytest.mark.hudi
def test_a_table_in_hudi_is_registered_with_its_partitions(spark: SparkSession, glue: Any, tmp_path: Path) -> None:
    """From Hudi's own properties and list of partitions: composite paths, escaped values, NULL. A table without
    partitions has none.
    """
    lake = Lake(str(tmp_path / "lake"))
    place = lake.silver("s", "shop.orders", ("id",))
    table = Table(place.name, place.location, ("id",), ("customer", "id"), merge_on_read=True)
    rows = [(1, "a/b=c", None, "1", False, None), (2, None, None, "2", True, None)]
    for each in (table, lake.silver("s", "shop.plain", ("id",))):
        HudiFormat().apply(made(spark, rows, SILVER), each, Progress("b", 1))
    done = outcomes("--lake", lake.root)
    assert set(done) == {"lakehouse", "orders__all_rt", "orders__all_ro", "orders", "plain__all", "plain"}
    assert done["plain__all"]["partitions"] == {"added": 0, "changed": 0, "removed": 0}
    assert "PARTITION" not in said("catalog", "ddl", "plain", "--lake", lake.root)
    for name in ("orders__all_rt", "orders__all_ro"):
        assert done[name]["partitions"] == {"added": 2, "changed": 0, "removed": 0}
        found = glue.get_partitions(DatabaseName="lakehouse", TableName=name)["Partitions"]
        assert {tuple(each["Values"]) for each in found} == {("a/b=c", "1"), ("__HIVE_DEFAULT_PARTITION__", "2")}
        places = [each["StorageDescriptor"]["Location"].removeprefix("file://") for each in found]
        assert all(Path(each, ".hoodie_partition_metadata").is_file() for each in places)
