"""Bronze, its checkpoint and silver are of one time, or nothing goes on: what was put back or is damaged is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from replicator import checkpoint
from replicator.errors import (
    BronzeReplaced,
    CheckpointBehindTable,
    CheckpointDamaged,
    ConfigError,
    TableMissing,
    TopicRecreated,
)
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.operate.purge import purge
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.row.trace import find_table
from replicator.sources.recorded import RecordedSource
from replicator.stages import continuous, pipeline
from replicator.stages.bronze import Ingestion, ingest_files, lost_commit
from replicator.stages.ingest import bronze_stream
from replicator.stages.ingest.bronze_state import refuse_mismatch
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.pipeline import Pipeline
from replicator.stages.run_report import ReportLine
from tests.builders import Record, envelope, record
from tests.unit.test_bronze_stream import Folder
from tests.unit.test_order_stops import Silver

pytestmark = pytest.mark.spark

FILES = ["metadata", "offsets/1", "offsets/0", "commits/1"]
DAMAGE = {"garbage": b"\x00\xff{garbage", "empty": b"", "cut off": None, "zeroed": b"\x00" * 40}


@dataclass(frozen=True)
class Topics(Folder):
    """Files whose topic has an id."""

    ids: Mapping[str, str] = field(default_factory=lambda: {"t": "one"})

    def topic_ids(self, _: SparkSession) -> Mapping[str, str]:
        return self.ids


class Bronze:
    """A source of files, its bronze and its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, name: str = "s") -> None:
        self.spark, self.folder, self.name = spark, folder, name
        self.lake, self.source, self.arrived = Lake(str(folder / "lake")), Topics(folder / f"files of {name}"), 0
        self.checkpoint = Path(self.lake.checkpoint(name))
        self.table = Path(self.lake.bronze(name).location)

    @property
    def at(self) -> Ingestion:
        """As another process has it."""
        return Ingestion(self.name, self.source, DeltaFormat(), self.lake, 0.1)

    def arrive(self) -> None:
        """Ten records."""
        self.source.arrive(self.spark, self.arrived, 10)
        self.arrived += 10

    def run(self) -> int:
        """A run over what there is; how many records bronze has, each once."""
        bronze_stream.ingest_stream(self.spark, self.at, once=True).finish()
        return self.count()

    def count(self) -> int:
        rows = self.at.format.read(self.spark, self.at.table).select("topic", "partition", "offset").collect()
        assert len(rows) == len(set(rows))
        return len(rows)

    def kept(self, place: Path, name: str) -> None:
        shutil.copytree(place, self.folder / name)

    def back(self, place: Path, name: str) -> None:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.folder / name, place)

    def damage(self, name: str, content: bytes | None) -> None:
        """Without a checksum beside it, as on an object store."""
        file = self.checkpoint / name
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        file.write_bytes(file.read_bytes()[:12] if content is None else content)


@pytest.fixture(scope="module")
def written(exact: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bronze:
    """Two batches; copies of bronze and checkpoint behind each; ten records more."""
    made = Bronze(exact, tmp_path_factory.mktemp("written"))
    for number in (1, 2):
        made.arrive()
        assert made.run() == 10 * number
        made.kept(made.checkpoint, f"checkpoint {number}")
        made.kept(made.table, f"bronze {number}")
    made.arrive()
    return made


@pytest.fixture
def bronze(written: Bronze) -> Bronze:
    """As it was then."""
    written.back(written.checkpoint, "checkpoint 2")
    written.back(written.table, "bronze 2")
    written.source = Topics(written.source.place)
    return written


@pytest.mark.parametrize("how", ["gone", "older", "another stream's", "older, another stream's", "without plans"])
def test_a_checkpoint_that_did_not_write_bronze_as_it_is_stops_the_source(bronze: Bronze, how: str) -> None:
    """Records would be stored twice, or skipped by their batch's number (F-C2, F-C3). The right one goes on."""
    shutil.rmtree(bronze.checkpoint)
    if how != "gone":
        bronze.back(bronze.checkpoint, "checkpoint 1" if how.startswith("older") else "checkpoint 2")
    if how.endswith("another stream's"):
        bronze.damage("metadata", b'{"id":"11111111-2222-3333-4444-555555555555"}')
    if how == "without plans":
        shutil.rmtree(bronze.checkpoint / "offsets")
    with pytest.raises(CheckpointBehindTable, match=r"^CHECKPOINT_BEHIND_TABLE: .*Restore the newest checkpoint"):
        bronze.run()
    assert bronze.count() == 20
    bronze.back(bronze.checkpoint, "checkpoint 2")
    assert bronze.run() == 30


def emptied(table: Path, version: int) -> None:
    commit = table / "_delta_log" / f"{version:020d}.json"
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    commit.write_bytes(b"")


@pytest.mark.parametrize("is_known", [True, False], ids=["the batch before", "none"])
def test_a_checkpoint_that_lacks_the_newest_batch_alone_is_an_older_copy(bronze: Bronze, *, is_known: bool) -> None:
    """It is not one that died in its midst: a batch without records behind it, as for a topic that comes, would take
    the number of the one in bronze, whose records the next batch had again (F-C3).
    """
    bronze.back(bronze.checkpoint, "checkpoint 1" if is_known else "checkpoint 2")
    if not is_known:  # of the first batch
        bronze.back(bronze.table, "bronze 1")
        for folder in ("offsets", "commits"):
            shutil.rmtree(bronze.checkpoint / folder)
    with pytest.raises(CheckpointBehindTable, match=r"its checkpoint has no batch.*the checkpoint is an older copy"):
        refuse_mismatch(bronze.spark, bronze.at)


@pytest.mark.parametrize("how", ["copied back", "gone", "emptied"])
def test_a_bronze_that_is_older_than_its_checkpoint_stops_the_source(bronze: Bronze, how: str) -> None:
    """The records between the two would be missing without a word. With the newest one the source goes on."""
    if how == "gone":
        shutil.rmtree(bronze.table)
    elif how == "emptied":  # its last commit, as by a power cut
        emptied(bronze.table, 1)
    else:
        bronze.back(bronze.table, "bronze 1")
    with pytest.raises(
        BronzeReplaced, match=r"its checkpoint completed batch 1: bronze is an older copy.*Restore the newest bronze"
    ):
        bronze.run()
    assert bronze.table.exists() == (how != "gone")
    bronze.back(bronze.table, "bronze 2")
    assert bronze.run() == 30


@pytest.mark.parametrize("is_taken", [True, False], ids=["in bronze", "not in bronze"])
def test_a_run_that_died_in_a_batch_goes_on(bronze: Bronze, *, is_taken: bool) -> None:
    """Of the first one, too: that bronze has it already, or has nothing, is no other bronze (K-B1, K-B3)."""
    for number in (2, 1):  # of two batches, and of one: the first run
        bronze.back(bronze.checkpoint, f"checkpoint {number}")
        shutil.rmtree(bronze.table)
        if is_taken or number > 1:
            bronze.back(bronze.table, f"bronze {number if is_taken else number - 1}")
        for name in (f"{number - 1}", f".{number - 1}.crc"):
            (bronze.checkpoint / "commits" / name).unlink()
        assert bronze.run() == 30


def test_batches_without_records_may_stand_behind_those_of_bronze(bronze: Bronze) -> None:
    """Those that let other topics go on (decision 0068)."""
    for _ in range(2):
        batch = checkpoint.read_newest_batch(bronze.spark, str(bronze.checkpoint))
        assert batch is not None
        checkpoint.append_empty_batch(bronze.spark, str(bronze.checkpoint), batch, batch.ends)
    assert bronze.run() == 30


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_of_the_checkpoint_is_named(bronze: Bronze, name: str, how: str) -> None:
    """With what fixes it (F-C1; tests/stack/test_checkpoint_anew.py)."""
    bronze.damage(name, DAMAGE[how])
    with pytest.raises(CheckpointDamaged, match="CHECKPOINT_DAMAGED: a file of the stream's checkpoint") as raised:
        bronze.run()
    assert (raised.value.where or "").endswith(f"/{name}")
    assert "`replicator rebuild --checkpoint SOURCE`" in (raised.value.fix or "")


def test_the_plan_before_the_newest_one_is_missed(bronze: Bronze) -> None:
    """A stream begins with the two; of a checkpoint that lost more nothing is known (F-C1)."""
    (bronze.checkpoint / "offsets/0").unlink()
    with pytest.raises(CheckpointDamaged, match="a file of the stream's checkpoint is gone") as raised:
        bronze.run()
    assert (raised.value.where or "").endswith("/offsets/0")


def test_a_file_with_another_checksum_is_damaged(bronze: Bronze) -> None:
    """On a local disk Hadoop keeps one beside each."""
    file = bronze.checkpoint / "offsets/1"
    file.write_bytes(file.read_bytes().replace(b'"logOffset":1', b'"logOffset":0'))
    with pytest.raises(CheckpointDamaged, match="offsets/1"):
        bronze.run()


def test_a_damaged_checkpoint_keeps_nothing_from_other_sources(exact: SparkSession, tmp_path: Path) -> None:
    """Once and in a run that goes on, whichever file it is."""
    well, ill = Bronze(exact, tmp_path, "well"), {Bronze(exact, tmp_path, "hurt"): "metadata"}
    ill |= {Bronze(exact, tmp_path, "ill"): "commits/0"}
    for each in (*ill, well):
        each.arrive()
        each.run()
        each.arrive()
    for each, name in ill.items():
        each.damage(name, b"garbage")
    delta, stop, lines = DeltaFormat(), Event(), list[ReportLine]()
    ingestions = (*(each.at for each in ill), well.at)
    made = Pipeline(ingestions, (), (), Warehouse(delta, delta, MemoryControl(), well.lake), (), {})
    pipeline.run_once(exact, made, ("bronze",), lines.append)
    told = [("hurt", 0, CheckpointDamaged), ("ill", 0, CheckpointDamaged), ("well", 10, type(None))]
    assert [(line.table, line.applied, type(line.error)) for line in lines] == told
    well.arrive()
    lines.clear()

    def report(line: ReportLine) -> None:
        lines.append(line)
        if {each.table for each in lines} == {"hurt", "ill", "well"}:
            stop.set()

    continuous.run_continuously(exact, made, ("bronze",), report, stop)
    assert sorted((line.table, line.applied, type(line.error)) for line in lines) == told


def test_a_topic_with_another_id_is_another_topic(bronze: Bronze) -> None:
    """However long it is (F-K4): nothing of it is taken, and it is named, with what lets the others go on."""
    bronze.source = Topics(bronze.source.place, {"t": "two"})
    with pytest.raises(TopicRecreated, match=r"^TOPIC_RECREATED: topic t was deleted.*`exclude` its table"):
        bronze.run()
    assert bronze.count() == 20


def made(offset: int, table: str = "shop.orders") -> Record:
    change = envelope("c", {"id": offset, "v": 1}, pos=1000 + offset, table=table)
    return record(f"s.{table}", offset, {"id": offset}, change)


def test_a_bronze_that_is_older_than_silver_stops_its_source(exact: SparkSession, tmp_path: Path) -> None:
    """Its next records would get versions that silver has read (F-C6). Nothing moves until the newest bronze, or silver
    of the same time, is back: a rebuild would take out the rows that this copy lacks.
    """
    lake = Silver(exact, tmp_path / "lake", format=DeltaFormat())
    bronze, silver = (Path(lake.at.lake.bronze("s").location), Path(lake.at.lake.silver_root("s")))
    for number in range(4):
        assert lake.take(made(number))["s/shop.orders"].applied == 1
        for place in (bronze, silver):
            shutil.copytree(place, tmp_path / f"{place.parent.name} {number}")

    def back(place: Path, number: int) -> None:
        shutil.rmtree(place)
        shutil.copytree(tmp_path / f"{place.parent.name} {number}", place)
        lake.format = DeltaFormat()
        lake.restart()

    back(bronze, 1)
    for number in (4, 5):
        with pytest.raises(BronzeReplaced, match=r"has read bronze up to version 3.*Restore the newest bronze"):
            lake.take(*([made(4)] if number == 4 else []))
        assert sorted(lake.rows()) == [0, 1, 2, 3]
    for dry in (True, False):
        with pytest.raises(BronzeReplaced, match=r"has read bronze up to version 3.*Restore the newest bronze"):
            rebuild(exact, lake.at, "shop.orders", RebuildOptions(dry=dry))
    assert sorted(lake.rows()) == [0, 1, 2, 3]
    back(bronze, 3)
    assert lake.take(made(4))["s/shop.orders"].applied == 1
    back(bronze, 1)
    back(silver, 1)
    assert lake.take(made(2), made(5))["s/shop.orders"].applied == 2
    assert sorted(lake.rows()) == [0, 1, 2, 5]


def test_a_bronze_that_goes_back_under_a_process_stops_its_source(exact: SparkSession, tmp_path: Path) -> None:
    """Whatever the process remembers."""
    lake = Silver(exact, tmp_path / "lake", format=DeltaFormat())
    bronze = Path(lake.at.lake.bronze("s").location)
    lake.take(made(0))
    shutil.copytree(bronze, tmp_path / "older")
    lake.take(made(1))
    lake.take(made(2))
    shutil.rmtree(bronze)
    shutil.copytree(tmp_path / "older", bronze)
    with pytest.raises(BronzeReplaced, match="has read bronze up to version 2"):
        lake.take(made(3))
    shutil.rmtree(bronze)
    lake.format = DeltaFormat()
    lake.restart()
    with pytest.raises(
        BronzeReplaced, match=r"bronze of s does not exist, but silver has tables .* Restore it, or specify the right"
    ):
        lake.take()


def test_a_silver_table_that_was_removed_by_hand_says_what_builds_it_again(exact: SparkSession, tmp_path: Path) -> None:
    """To whoever names it, as `rebuild`, `explain`, `purge` and `diff` do; nobody speaks of one that never was."""
    lake = Silver(exact, tmp_path / "lake")
    lake.take(made(0))
    lake.format.drop(exact, lake.at.lake.silver("s", "shop.orders"))
    for name in ("orders", "shop.orders", "s/shop.orders"):
        with pytest.raises(
            TableMissing, match=r"the table s/shop.orders, although bronze has .* `replicator run silver` builds it"
        ):
            find_table(exact, [lake.at], name)
    with pytest.raises(ConfigError, match="table 'orders2' does not exist"):
        find_table(exact, [lake.at], "orders2")
    lake.restart()
    lake.take()
    assert find_table(exact, [lake.at], "orders") == (lake.at, "shop.orders")


@pytest.mark.parametrize("is_new", [True, False], ids=["another process", "the same process"])
def test_a_silver_table_that_was_restored_reads_what_it_had_read_since(
    exact: SparkSession, tmp_path: Path, *, is_new: bool
) -> None:
    """Delta takes its rows back to an older version, and says nothing of its progress. A purge made since is taken back
    with them: what it had removed is read again, and so are the rows below its horizon.
    """
    lake = Silver(exact, tmp_path / "lake", format=DeltaFormat(), declared={"purge_after": 0})
    restore = f"RESTORE TABLE delta.`{lake.at.lake.silver('s', 'shop.orders').location}` TO VERSION AS OF 1"
    for number in range(3):
        lake.take(made(number))
    lake.take(record("s.shop.orders", 3, {"id": 0}, envelope("d", None, {"id": 0, "v": 1}, pos=1003)))
    assert purge(exact, lake.at, "shop.orders", 0).purged == 1
    exact.sql(restore)
    if is_new:
        lake.format = DeltaFormat()
        lake.restart()
        assert lake.take()["s/shop.orders"].applied == 2
        assert sorted(lake.rows()) == [1, 2]
        exact.sql(restore)
    assert lake.take(made(4))["s/shop.orders"].applied == 3
    assert sorted(lake.rows()) == [1, 2, 4]
    assert lake.take() == {}


def test_a_table_whose_log_is_damaged_stops_alone_and_is_made_anew(exact: SparkSession, tmp_path: Path) -> None:
    """Nobody can tell how far it is: its error names the folder that is to be removed, and the others go on."""
    Silver(exact, tmp_path / "lake", format=DeltaFormat()).take(made(0), made(0, "shop.items"))
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    lake = Silver(exact, tmp_path / "copy", format=DeltaFormat())
    place = Path(lake.at.lake.silver("s", "shop.orders").location)
    (place / f"_delta_log/{0:020}.json").write_text("{")
    (place / f"_delta_log/.{0:020}.json.crc").unlink()
    for number in (1, 2):
        accounts = lake.take(made(number), made(number, "shop.items"))
        assert {table: account.error is None for table, account in accounts.items()} == {
            "s/shop.orders": False,
            "s/shop.items": True,
        }
        told = str(accounts["s/shop.orders"].error)
        assert f"is truncated: {place}/_delta_log/{0:020}.json" in told
        assert f"remove the folder {place}: the next run" in told
    assert sorted(lake.rows("shop.items")) == [0, 1, 2]
    (place / f"_delta_log/{0:020}.json").rename(place / f"_delta_log/{1:020}.json")
    lake.restart()
    assert f"remove the folder {place}: the next run" in str(lake.error(made(3)))
    shutil.rmtree(place)
    lake.take()
    assert (sorted(lake.rows()), sorted(lake.rows("shop.items"))) == ([0, 1, 2, 3], [0, 1, 2])


def test_a_last_commit_of_bronze_that_is_empty_is_told_and_its_file_brings_it_back(
    exact: SparkSession, tmp_path: Path
) -> None:
    """A power cut may leave it so on a local disk, and no checkpoint knows of recorded files. Said as long as nothing
    came behind it; a bronze that is whole, or not there, says nothing.
    """
    lake, topics = Lake(str(tmp_path / "lake")), ["s.d.t"]
    told, rows = [], []

    def give(name: str, *offsets: int) -> None:
        lines = [
            {"topic": "s.d.t", "partition": 0, "offset": n, "ts": 1, "key": None, "payload": "{}"} for n in offsets
        ]
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
        at = Ingestion("s", RecordedSource([str(tmp_path / name)]), DeltaFormat(), lake)
        told.append(lost_commit(exact, at))
        rows.append(ingest_files(exact, at, topics))

    give("one", 0, 1)
    give("two", 2, 3, 4)
    emptied(Path(lake.bronze("s").location), 1)
    give("one", 0, 1)
    give("two", 2, 3, 4)
    give("one", 0, 1)
    assert rows == [2, 3, 0, 3, 0]
    assert [len(words) for words in told] == [0, 0, 1, 1, 0]
    assert "00000000000000000001.json" in told[2][0]
