"""The path over an object store: Kafka, objects on S3, bronze and silver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from infra import landing
from infra.local.endpoints import Endpoints
from replicator import settings
from tests.cli import said
from tests.objects import known_store

pytestmark = [pytest.mark.stack, pytest.mark.spark]

TOPIC = "landed.shop.orders"
CONFIGURATION = """
lake: {{root: {lake}}}
s3: {{endpoint: "{endpoint}", access_key: {key}, secret_key: {secret}, path_style: true}}
"""
SOURCE = """
name: landed
objects: s3a://{bucket}/landing
tables:
  shop.orders: {{keys: [order_id], columns: {{order_id: int, customer_id: string}}}}
"""


def row(order: int, customer: str, lsn: int, *, deleted: bool = False) -> str:
    told = {"__deleted": str(deleted).lower(), "__table": "orders", "__schema": "shop", "__lsn": lsn}
    return json.dumps({"order_id": order, "customer_id": customer, "__op": "d" if deleted else "u"} | told)


def test_a_topic_may_end_with_a_transaction_and_has_to_be_there(
    endpoints: Endpoints, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its marker takes an offset, which was waited for; of a mistyped name 0 objects were landed without a word."""
    topic, flags = "landed.transactions", ["--partition-by", "a", "--bootstrap-servers", endpoints.kafka]
    producer = Producer({"bootstrap.servers": endpoints.kafka, "transactional.id": topic})
    producer.init_transactions()
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"a": number}))
        producer.flush()
        end()
    assert landing.main([topic, str(tmp_path), *flags]) == 0
    assert [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.json")] == [f"a=0/{topic}(0_0).json"]
    capsys.readouterr()
    assert landing.main([f"{topic}s", str(tmp_path), *flags]) == 3
    assert f"Kafka gives no records of {topic}s" in capsys.readouterr().err


def replicator(conf: Path, *arguments: str) -> Any:
    """What our program prints as JSON."""
    return json.loads(said(*arguments, "--env", "landed", "--conf", str(conf), "--json"))


def test_a_topic_arrives_over_objects_on_s3(
    spark: SparkSession, endpoints: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record once, in its own order; a row whose delete lies in another folder is gone."""
    for variable, value in endpoints.env().items():
        monkeypatch.setenv(variable, value)
    producer = Producer({"bootstrap.servers": endpoints.kafka})
    sent = [row(n, f"C {n % 7}/é", n) for n in range(40)] + [row(3, "", 50, deleted=True), row(4, "C 4/é", 51)]
    for each in [*sent, None]:
        producer.produce(TOPIC, each)
    assert producer.flush(60) == 0
    target = f"s3://{endpoints.s3.bucket}/landing"
    for _ in range(2):
        assert landing.main([TOPIC, target, "--partition-by", "customer_id,order_id"]) == 0
    store = endpoints.s3
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "landed.yaml").write_text(SOURCE.format(bucket=store.bucket))
    (tmp_path / "landed.yaml").write_text(
        CONFIGURATION.format(
            lake=tmp_path / "lake", endpoint=store.endpoint, key=store.access_key, secret=store.secret_key
        )
    )
    known_store(spark, settings.load(tmp_path, "landed", {}), store.bucket)
    lines = {line["stage"]: line for line in replicator(tmp_path, "run", "bronze", "silver")}
    assert (lines["bronze"]["applied"], lines["bronze"]["error"]) == (42, None)
    assert (lines["silver"]["rows_in"], lines["silver"]["dead_lettered"], lines["silver"]["error"]) == (42, 0, None)
    standing = {each["layer"]: each for each in replicator(tmp_path, "status")}
    assert (standing["bronze"]["rows"], standing["bronze"]["lag_events"]) == (42, 0)
    assert standing["silver"]["rows"] == 39
