"""Which topics a source reads changes between two runs: bronze goes on, has each record once, and says what is gone."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from replicator import checkpoint, failpoints
from replicator.config.topicnames import topic_pattern
from replicator.errors import CheckpointBehindTable, OffsetsLost, TopicDeleted, TopicRecreated
from replicator.failpoints import Killed
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.sources.kafka import KafkaSource
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest import bronze_stream
from tests.kafka import create, produce

pytestmark = [pytest.mark.stack, pytest.mark.spark]


class Shop:
    """Two topics of a source, and its bronze."""

    def __init__(self, spark: SparkSession, broker: str, folder: Path) -> None:
        self.spark, self.broker, self.lake = spark, broker, Lake(str(folder))
        self.name = f"t{uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": broker})
        create(broker, self.topic("a"), self.topic("b"))

    def topic(self, table: str) -> str:
        return f"{self.name}.shop.{table}"

    def changed(self, table: str, count: int) -> None:
        produce(self.broker, self.topic(table), [("k", "{}")] * count)

    def cut(self, table: str, before: int) -> None:
        """What retention does."""
        place = TopicPartition(self.topic(table), 0, before)
        self.admin.delete_records([place])[place].result(timeout=30)

    def deleted(self, table: str) -> None:
        self.admin.delete_topics([self.topic(table)])[self.topic(table)].result(timeout=30)

    def run(self, *tables: str) -> dict[str, int]:
        """A run over these tables, all without any; what bronze has then."""
        pattern = topic_pattern(self.name, tuple(f"shop.{table}" for table in tables))
        at = Ingestion(self.name, KafkaSource(self.broker, pattern), DeltaFormat(), self.lake)
        bronze_stream.ingest_stream(self.spark, at, once=True).finish()
        return self.held()

    def held(self) -> dict[str, int]:
        """The records of bronze by table, each of which is there once."""
        at = Ingestion(self.name, KafkaSource(self.broker, ""), DeltaFormat(), self.lake)
        rows = at.format.read(self.spark, at.table).select("topic", "partition", "offset").collect()
        assert len(rows) == len(set(rows))
        names = [row["topic"].rpartition(".")[2] for row in rows]
        return {name: names.count(name) for name in set(names)}

    @property
    def checkpoint(self) -> str:
        return self.lake.checkpoint(self.name)


@pytest.fixture
def shop(spark: SparkSession, broker: str, tmp_path: Path) -> Shop:
    made = Shop(spark, broker, tmp_path / "lake")
    for table in "ab":
        made.changed(table, 3)
    return made


def test_a_table_that_is_taken_out_and_back_in_goes_on_where_it_was(shop: Shop) -> None:
    """What came to its topic meanwhile is read then."""
    assert shop.run("a", "b") == {"a": 3, "b": 3}
    for table in "ab":
        shop.changed(table, 1)
    assert shop.run("a") == {"a": 4, "b": 3}
    assert shop.run("a") == {"a": 4, "b": 3}
    shop.changed("b", 1)
    assert shop.run("a", "b") == {"a": 4, "b": 5}
    assert shop.run("a", "b") == {"a": 4, "b": 5}


def test_a_table_that_comes_later_begins_where_its_topic_does(shop: Shop) -> None:
    """As in a first run, also where retention has taken the topic's first records."""
    assert shop.run("a") == {"a": 3}
    shop.cut("b", 2)
    assert shop.run("a", "b") == {"a": 3, "b": 1}


def test_what_retention_took_while_a_table_was_out_is_said(shop: Shop) -> None:
    """Its rows would be wrong without a word. Without the table the others go on."""
    shop.run("a", "b")
    shop.run("a")
    shop.changed("b", 3)
    shop.cut("b", 5)
    with pytest.raises(OffsetsLost, match=r"dropped its records 3 to 4"):
        shop.run("a", "b")
    shop.changed("a", 1)
    assert shop.run("a") == {"a": 4, "b": 3}


def test_a_deleted_topic_is_named_until_it_is_taken_out(shop: Shop) -> None:
    """Nobody knows whether all of it was read: the source goes on once its user says so."""
    shop.run()
    shop.deleted("b")
    shop.changed("a", 1)
    for _ in range(2):
        with pytest.raises(TopicDeleted, match=r"shop[.]b was deleted"):
            shop.run()
    assert shop.run("a") == {"a": 4, "b": 3}


def test_what_retention_took_before_it_was_read_is_named(shop: Shop) -> None:
    """With topic, partition and offsets (F-K2). Without the table the others go on."""
    shop.run()
    shop.changed("b", 5)
    shop.cut("b", 6)
    shop.changed("a", 1)
    for _ in range(2):
        with pytest.raises(OffsetsLost, match=r"shop[.]b, partition 0: .* read is 3, .* is 6, .* before 8.*`exclude`"):
            shop.run()
    assert shop.run("a") == {"a": 4, "b": 3}


def test_an_older_checkpoint_is_one_also_where_topics_go(shop: Shop, tmp_path: Path) -> None:
    """One batch older, too: the batch without records that lets the others go on would take the newest one's number,
    and the next one its records again (F-C3).
    """
    shop.run("a", "b")
    shutil.copytree(shop.checkpoint, tmp_path / "older")
    shop.changed("a", 1)
    shop.run("a", "b")
    shutil.rmtree(shop.checkpoint)
    shutil.copytree(tmp_path / "older", shop.checkpoint)
    with pytest.raises(CheckpointBehindTable, match="the checkpoint is an older copy"):
        shop.run("a")
    assert shop.held() == {"a": 4, "b": 3}


@pytest.mark.parametrize("count", [1, 6], ids=["shorter", "longer"])
def test_a_topic_that_was_made_again_is_named(shop: Shop, count: int) -> None:
    """Whatever its offsets are (F-K3, F-K4): they mean other records. Without the table the others go on."""
    shop.run()
    shop.deleted("b")
    create(shop.broker, shop.topic("b"))
    shop.changed("b", count)
    shop.changed("a", 1)
    for _ in range(2):
        with pytest.raises(TopicRecreated, match=r"shop[.]b was deleted and recreated.*`exclude`"):
            shop.run()
    assert shop.run("a") == {"a": 4, "b": 3}


def test_records_of_a_transaction_that_was_taken_back_are_none(shop: Shop) -> None:
    """F-K7; that their offsets are missing is no loss. One that is open yet is not waited for."""
    producer = Producer({"bootstrap.servers": shop.broker, "transactional.id": shop.name})
    producer.init_transactions(30)
    for ends in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(shop.topic("a"), key="k", value="{}")
        producer.flush(30)
        ends(30)
    assert shop.run() == {"a": 4, "b": 3}
    producer.begin_transaction()
    producer.produce(shop.topic("a"), key="k", value="{}")
    producer.flush(30)
    assert shop.run() == {"a": 4, "b": 3}
    assert KafkaSource(shop.broker, topic_pattern(shop.name)).bounded(shop.spark).count() == 7
    producer.abort_transaction(30)


def test_a_first_batch_that_died_holds_no_run_over_other_topics(shop: Shop) -> None:
    """Nothing was read yet: a table that is out is not missed, one that is in begins as in a first run, and what the
    first plan said of other topics is nobody's loss.
    """
    shop.cut("b", 2)
    for tables in (("a",), ("a", "b"), ("a",)):
        with failpoints.watched(failpoints.parse("bronze.batch_checked:raise:1")), pytest.raises(Killed):
            shop.run(*tables)
    assert shop.run("a", "b") == {"a": 3, "b": 1}


@pytest.mark.parametrize("is_taken", [True, False], ids=["in bronze", "not in bronze"])
def test_a_batch_that_was_planned_with_other_topics_does_not_hold_the_run(shop: Shop, is_taken: bool) -> None:
    """Of a run that died in it: if bronze has it, it is done, else its records are planned anew."""
    shop.run("a", "b")
    shop.changed("b", 2)
    shop.run("a", "b")
    batch = checkpoint.read_newest_batch(shop.spark, shop.checkpoint)
    assert batch is not None
    if is_taken:
        Path(shop.checkpoint, "commits", str(batch.number)).unlink()
        Path(shop.checkpoint, "commits", f".{batch.number}.crc").unlink(missing_ok=True)
    else:
        ends = {**batch.ends, shop.topic("b"): {"0": 7}}
        checkpoint.append_empty_batch(shop.spark, shop.checkpoint, batch, ends)
        Path(shop.checkpoint, "commits", str(batch.number + 1)).unlink()
        Path(shop.checkpoint, "commits", f".{batch.number + 1}.crc").unlink(missing_ok=True)
    shop.changed("a", 1)
    assert shop.run("a") == {"a": 4, "b": 5}
    shop.changed("b", 1)
    assert shop.run("a", "b") == {"a": 4, "b": 6}


@pytest.mark.parametrize("before", ["ab", "a"], ids=["topic taken out", "topic added"])
def test_a_run_that_died_while_it_planned_for_other_topics_holds_no_later_run(shop: Shop, before: str) -> None:
    """The batch without records is planned and not done: nothing is lost, and nobody is told so."""
    shop.cut("b", 2)
    shop.run(*before)
    batch = checkpoint.read_newest_batch(shop.spark, shop.checkpoint)
    assert batch is not None
    after = {"ab": {"a": 3}, "a": {"a": 3, "b": 2}}[before]
    ends = {shop.topic(table): {"0": end} for table, end in after.items()}
    checkpoint.append_empty_batch(shop.spark, shop.checkpoint, batch, ends)
    for name in (str(batch.number + 1), f".{batch.number + 1}.crc"):
        Path(shop.checkpoint, "commits", name).unlink(missing_ok=True)
    shop.changed("a", 1)
    assert shop.run(*after) == {"a": 4, "b": 1}
