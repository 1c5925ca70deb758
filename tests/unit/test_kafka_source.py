"""What Spark's Kafka source is told, whatever a configuration says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.brokers import topic_id
from replicator.formats.memory import MemoryFormat
from replicator.jvm import gateway
from replicator.lake import Lake
from replicator.sources.kafka import KafkaSource
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest.bronze_state import BronzeTableState
from tests.builders import made

pytestmark = pytest.mark.spark


def told(spark: SparkSession, options: Mapping[str, str]) -> Any:
    """The options of a stream of all topics, as Spark has them."""
    read = KafkaSource("nowhere:9092", ".*", options).read(spark)
    return read._jdf.queryExecution().logical().collectLeaves().head().extraOptions()


def test_no_option_takes_back_what_promise_a_rests_on(exact: SparkSession) -> None:
    """Lost records are an error, aborted ones are not read, and a topic is read from its beginning with its headers."""
    options = told(exact, {})
    found = {name: options.get(name) for name in ("failOnDataLoss", "startingOffsets", "includeHeaders")}
    assert found == {"failOnDataLoss": "true", "startingOffsets": "earliest", "includeHeaders": "true"}
    assert options.get("kafka.isolation.level") == "read_committed"


@pytest.mark.parametrize(("options", "waits"), [({}, "1"), ({"fetch.max.wait.ms": "100"}, "100")])
def test_no_batch_waits_for_records_that_are_not_there_unless_it_is_asked_to(
    exact: SparkSession, options: Mapping[str, str], waits: str
) -> None:
    """Spark reads up to offsets that it has seen: what a broker would wait for belongs to the next batch."""
    assert told(exact, options).get("kafka.fetch.max.wait.ms") == waits


def test_a_broker_that_knows_no_ids_of_topics_gives_none(exact: SparkSession) -> None:
    """What it says instead is no incarnation: once it is updated, the topic has an id and is not another one (J5)."""
    kafka = gateway.of(exact).org.apache.kafka
    nobody, nowhere = exact._jvm.java.util.HashSet(), exact._jvm.java.util.ArrayList()
    described = kafka.clients.admin.TopicDescription
    fresh = kafka.common.Uuid(7, 8)
    assert topic_id(described("shop.db.orders", False, nowhere)) is None
    assert topic_id(described("shop.db.orders", False, nowhere, nobody, fresh)) == str(fresh)


def test_an_id_of_zeros_that_bronze_has_is_none(exact: SparkSession) -> None:
    """Of an earlier checkout, from such a broker: the topic's first id does not take its place (J5)."""
    zeros = str(gateway.of(exact).org.apache.kafka.common.Uuid.ZERO_UUID)
    at = Ingestion("s", KafkaSource("nowhere:9092", ".*"), MemoryFormat(), Lake("memory"))
    rows = made(exact, [("a", zeros), ("b", "one"), ("c", None)], "topic STRING, topic_id STRING")
    at.format.append(rows.withColumn("ingested_at", F.current_timestamp()), at.table, None)
    assert BronzeTableState(exact, at).ids() == {"b": "one"}
