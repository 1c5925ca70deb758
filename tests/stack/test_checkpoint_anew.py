"""A checkpoint that is damaged, gone or an older copy is made anew of what bronze has, and gaps are noted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from replicator import failpoints
from replicator.config.topicnames import topic_pattern
from replicator.errors import (
    BronzeReplaced,
    CheckpointBehindTable,
    CheckpointDamaged,
    OffsetsLost,
    TopicDeleted,
    TopicRecreated,
)
from replicator.failpoints import POINTS, Killed
from replicator.formats.control import JsonControl
from replicator.formats.delta import DeltaFormat
from replicator.operate import new_checkpoint
from replicator.operate.new_checkpoint import StoppedSource
from replicator.protocols import UNFENCED
from replicator.sources.kafka import KafkaSource
from replicator.stages.bronze import Ingestion
from replicator.stages.table import snapshots
from replicator.stages.table.snapshots import FullSnapshot
from tests.builders import envelope, wrapped
from tests.cli import said
from tests.kafka import create, produce
from tests.stack.test_topics_change import Shop

pytestmark = [pytest.mark.stack, pytest.mark.spark]

DAMAGE = (("metadata", b""), ("offsets/{now}", b"\x00" * 40), ("offsets/{before}", b"\x00{"), ("commits/{now}", b"v1"))
"""What lies in a file of the checkpoint instead."""

CONFIGURATION = """
lake: {{root: {lake}}}
kafka: {{bootstrap_servers: "{broker}"}}
"""


class Kept(Shop):
    """The same, whose checkpoint is made anew."""

    def stopped(self) -> StoppedSource:
        """As another process has it."""
        kafka = KafkaSource(self.broker, topic_pattern(self.name, ()))
        at = Ingestion(self.name, kafka, DeltaFormat(), self.lake)
        return StoppedSource(at, kafka, at.format, JsonControl(self.spark), UNFENCED)

    def anew(self, *, accept_gap: bool = False, **told: int) -> dict[str, int]:
        """Where each table's topic starts; ``told`` moves some."""
        of = self.stopped()
        plan = new_checkpoint.build_plan(self.spark, of, {(self.topic(table), 0): at for table, at in told.items()})
        new_checkpoint.carry_out(self.spark, of, plan, accept_gap=accept_gap)
        return {each.topic.rpartition(".")[2]: each.start for each in plan.starts}

    @property
    def gaps(self) -> list[tuple[str, int, int]]:
        """Table, first and last offset."""
        return [(gap.topic.rpartition(".")[2], gap.first, gap.last) for gap in self.stopped().known]

    def damage(self, name: str, content: bytes) -> None:
        """Without a checksum beside it, as on an object store."""
        file = Path(self.checkpoint, name)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        file.write_bytes(content)

    def batch(self) -> int:
        """The newest one."""
        return max(int(file.name) for file in Path(self.checkpoint, "commits").glob("[0-9]*"))


@pytest.fixture
def shop(spark: SparkSession, broker: str, tmp_path: Path) -> Kept:
    """Two batches, and a copy of the checkpoint behind the first."""
    made = Kept(spark, broker, tmp_path / "lake")
    made.changed("a", 3)
    made.run()
    shutil.copytree(made.checkpoint, tmp_path / "older")
    made.changed("b", 3)
    made.run()
    return made


def test_a_damaged_file_is_fixed_of_what_bronze_has(shop: Kept) -> None:
    """Whichever it is, bronze goes on and has each record once (F-C1)."""
    for count, (name, content) in enumerate(DAMAGE, 3):
        named = name.format(now=(now := shop.batch()), before=now - 1)
        shop.damage(named, content)
        shop.changed("a", 1)
        with pytest.raises(CheckpointDamaged, match=f"{named}.*`replicator rebuild --checkpoint"):
            shop.run()
        assert shop.anew() == {"a": count, "b": 3}
        assert shop.run() == {"a": count + 1, "b": 3}
        assert shop.batch() == now + 1
    aside = Path(shop.lake.checkpoint_aside(shop.name, "x")).parent
    assert [each.read_bytes() for each in aside.glob("*/metadata")].count(b"") == 1
    assert len(list(aside.iterdir())) == len(DAMAGE)


def test_a_checkpoint_that_did_not_write_bronze_is_replaced(shop: Kept, tmp_path: Path) -> None:
    """Gone, older, or another stream's: no batch is skipped by its number and no record comes twice (F-C2, F-C3); an
    older copy stays one.
    """

    def older() -> None:
        shutil.rmtree(shop.checkpoint)
        shutil.copytree(tmp_path / "older", shop.checkpoint)

    def another() -> None:
        shop.damage("metadata", b'{"id":"11111111-2222-3333-4444-555555555555"}')

    for count, replaced in enumerate((another, lambda: shutil.rmtree(shop.checkpoint), older), 1):
        replaced()
        shop.changed("a", 2)
        with pytest.raises(CheckpointBehindTable, match=f"`replicator rebuild --checkpoint {shop.name}`"):
            shop.run()
        assert shop.anew() == shop.held() == {"a": 1 + 2 * count, "b": 3}
        assert shop.run() == {"a": 3 + 2 * count, "b": 3}
    older()
    with pytest.raises(CheckpointBehindTable, match="the checkpoint is an older copy"):
        shop.run()


def test_what_a_bronze_that_was_copied_back_lacks_is_read_again(shop: Kept, tmp_path: Path) -> None:
    """By a checkpoint of its time; once more, none is twice (F-C6)."""
    bronze = Path(shop.lake.bronze(shop.name).location)
    shutil.copytree(bronze, tmp_path / "bronze")
    shop.changed("a", 2)
    shop.run()
    shutil.rmtree(bronze)
    shutil.copytree(tmp_path / "bronze", bronze)
    with pytest.raises(BronzeReplaced, match=f"`replicator rebuild --checkpoint {shop.name}`"):
        shop.run()
    assert shop.anew() == {"a": 3, "b": 3}
    for _ in range(2):
        assert shop.run() == {"a": 5, "b": 3}


def test_what_kafka_dropped_is_passed_over_by_word_only_and_noted(shop: Kept) -> None:
    """Nothing goes on by itself (F-K2); what was accepted once need not be again."""
    shop.changed("b", 5)
    shop.cut("b", 6)
    with pytest.raises(OffsetsLost, match=r"next offset to read is 3, .*--accept-gap.*`replicator connect snapshot`"):
        shop.run()
    with pytest.raises(OffsetsLost, match=r"shop[.]b, partition 0, 3 to 5.*--accept-gap"):
        shop.anew()
    with pytest.raises(OffsetsLost):
        shop.run()
    assert shop.gaps == []
    assert shop.anew(accept_gap=True) == {"a": 3, "b": 6}
    shutil.rmtree(shop.checkpoint)
    assert shop.anew() == {"a": 3, "b": 6}
    assert shop.run() == {"a": 3, "b": 5}
    shop.changed("b", 3)
    assert shop.anew(b=9, accept_gap=True) == {"a": 3, "b": 9}
    assert shop.gaps == [("b", 3, 5), ("b", 8, 8)]
    assert shop.run() == {"a": 3, "b": 7}


def test_a_position_that_was_moved_forward_and_is_not_any_more_leaves_no_gap(shop: Kept) -> None:
    """What is read after all is not missing (F-K9)."""
    shop.changed("b", 4)
    with pytest.raises(OffsetsLost, match="3 to 4"):
        shop.anew(b=5)
    shop.anew(b=5, accept_gap=True)
    assert shop.gaps == [("b", 3, 4)]
    shutil.rmtree(shop.checkpoint)
    assert shop.anew() == {"a": 3, "b": 3}
    assert (shop.run(), shop.gaps) == ({"a": 3, "b": 7}, [])


def test_ends_of_transactions_are_no_gap(shop: Kept) -> None:
    """An offset without a record behind the last one: where the checkpoint is right, it knows that it was read."""
    producer = Producer({"bootstrap.servers": shop.broker, "transactional.id": shop.name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(shop.topic("a"), key="k", value="{}")
    producer.commit_transaction(30)
    assert shop.run() == {"a": 4, "b": 3}
    shop.changed("a", 1)
    shop.cut("a", 5)
    assert shop.anew() == {"a": 5, "b": 3}
    assert shop.run() == {"a": 5, "b": 3}


def test_a_topic_that_is_gone_or_another_one_is_named(shop: Kept) -> None:
    """A new checkpoint would forget that it was read (F-K3)."""
    shop.deleted("b")
    with pytest.raises(TopicDeleted, match=r"shop[.]b was deleted"):
        shop.anew(accept_gap=True)
    create(shop.broker, shop.topic("b"))
    with pytest.raises(TopicRecreated, match=r"shop[.]b was deleted and recreated"):
        shop.anew(accept_gap=True)


def test_a_death_in_the_midst_is_fixed_by_the_same_again(shop: Kept) -> None:
    """No run goes on from what is left there; gaps are noted once."""
    points = [name for name in POINTS if name.startswith("checkpoint.")]
    shop.changed("b", 5)
    shop.cut("b", 6)
    for point in points:
        with pytest.raises(Killed), failpoints.watched(_death(point)):
            shop.anew(accept_gap=True)
        with pytest.raises(CheckpointBehindTable):
            shop.run()
        assert shop.held() == {"a": 3, "b": 3}
        assert shop.gaps == ([] if point == "checkpoint.set_aside" else [("b", 3, 5)])
    assert shop.anew() == {"a": 3, "b": 6}
    assert shop.run() == {"a": 3, "b": 5}
    assert shop.gaps == [("b", 3, 5)]


def _death(point: str) -> Callable[[str], None]:
    def dies(name: str) -> None:
        if name == point:
            raise Killed(name)

    return dies


def test_the_command_shows_where_what_starts_and_status_tells_of_gaps(shop: Kept, tmp_path: Path) -> None:
    """Nothing is written without --yes; a table's gap is told of until it was read again as a whole."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "shop.yaml").write_text(f"name: {shop.name}\ntables: {{shop.b: {{keys: [id]}}}}\n")
    (tmp_path / "anew.yaml").write_text(CONFIGURATION.format(lake=shop.lake.root, broker=shop.broker))
    ours = ("--conf", str(tmp_path), "--env", "anew")
    verb = ("rebuild", "--checkpoint", shop.name, *ours)
    change = wrapped(envelope("c", {"id": 1}, table="shop.b", name=shop.name))
    produce(shop.broker, shop.topic("b"), [(json.dumps({"id": 1}), json.dumps(change))] * 3)
    shop.cut("b", 5)
    before = sorted(Path(shop.checkpoint).rglob("*"))
    told = {each["topic"]: each for each in json.loads(said(*verb, "--json"))}
    assert told[shop.topic("b")]["gap"] == {"from": 3, "to": 4}
    with pytest.raises(OffsetsLost):
        said(*verb, "--yes")
    said(*verb, "--accept-gap", "--yes", "--dry-run")
    assert sorted(Path(shop.checkpoint).rglob("*")) == before
    assert "3 to 4" in said(*verb, "--accept-gap", "--yes")
    said("run", "bronze", "silver", *ours)
    [gap] = [each for each in json.loads(said("status", "--json", *ours)) if each["layer"] == "gap"]
    assert (gap["table"], gap["rows"]) == (f"{shop.topic('b')}/0", 2)
    assert gap["position"].startswith("offsets 3 to 4 were skipped at 20")
    assert "offsets 3 to 4" in said("status", *ours)
    whole = FullSnapshot(1, {(shop.topic("b"), 0): 6}, {(shop.topic("b"), 0): 7})
    snapshots.add(JsonControl(shop.spark), shop.lake.snapshots(shop.name), {"shop.b": whole})
    assert "gap" not in {each["layer"] for each in json.loads(said("status", "--json", *ours))}
