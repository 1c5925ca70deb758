"""Objects that a sink wrote, through bronze and silver: the same rows as from Kafka, each line once, bad ones told."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from infra import landing as stand_in
from replicator import landing_objects
from replicator.debezium import headers
from replicator.errors import BronzeReplaced, ObjectRefused, SourceRewound, TopicsMissing
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.explain import explain
from replicator.operate.purge import purge
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import RebuildResult
from replicator.protocols import Listing
from replicator.sources.objects import ObjectsSource
from replicator.spec import Applied, Column, Declaration, Progress, SourceSpec, Table
from replicator.stages import continuous, silver
from replicator.stages.ingest import landing
from replicator.stages.ingest.landing import IngestResult, ObjectIngestion
from replicator.stages.refinement import Refinement
from replicator.stages.run_report import ReportLine
from replicator.stages.tick.source_state import SourceState
from tests.builders import BRONZE, bronze, made, record
from tests.golden.run import Run

pytestmark = pytest.mark.spark

TOPIC, TABLE = "demo.datalake.cdc_events", "datalake.cdc_events"
DATES, TEXTS = ("order_date", "required_date", "shipped_date"), (
    "customer_id", "order_items", "products", "customer", "employee", "shipper", "shipment",
)  # fmt: skip
OUTBOX = Declaration(
    TABLE,
    (
        Column("order_id", "smallint"),
        *[Column(name, "date") for name in DATES],
        *[Column(name, "string") for name in TEXTS],
        Column("updated_at", "zoned_timestamp"),
    ),
    keys=("order_id",),
)
SOURCE = SourceSpec("demo", "demo[.].*", tables=(OUTBOX,))
OLD = time.time() - 3_600


class Lander:
    """A folder of objects, and a lake in memory that takes them."""

    def __init__(self, spark: SparkSession, folder: Path, source: SourceSpec = SOURCE) -> None:
        self.spark, self.root, self.lake = spark, folder / "landing", Lake(str(folder / "lake"))
        self.root.mkdir(parents=True)
        self.format = MemoryFormat()
        source = replace(source, objects=str(self.root))
        self.at = Refinement(source, self.format, self.format, MemoryControl(), self.lake)
        self.intake = self.another()

    def another(self, format: MemoryFormat | None = None, most: int = 5_000) -> ObjectIngestion:  # noqa: A002
        """Another process: it remembers nothing."""
        source = self.at.source
        return ObjectIngestion(
            source.name, ObjectsSource(str(self.root), source.topics), format or self.format, self.lake, most
        )

    def put(self, name: str, content: str | bytes, modified: float = OLD) -> Path:
        """A file; by default an hour old."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(file, (modified, modified))
        return file

    def take(self, intake: ObjectIngestion | None = None) -> IngestResult:
        """All batches of one look as one."""
        every = list(landing.ingest(self.spark, intake or self.intake, once=True))
        warnings = tuple(word for each in every for word in each.warnings)
        return IngestResult(sum(each.rows for each in every), warnings, every[-1].error)

    def rows(self) -> DataFrame:
        return self.format.read(self.spark, self.intake.table)

    def places(self) -> set[tuple[str, int]]:
        """Object, below the folder, and line by the place of each record: of no two records the same one."""
        rows = self.rows().select("topic", "partition", "offset", "headers").collect()
        assert len({(row["topic"], row["partition"], row["offset"]) for row in rows}) == len(rows)
        told = [{each["key"]: bytes(each["value"]).decode() for each in row["headers"]} for row in rows]
        objects = [each["object"].removeprefix(f"file:{self.root}/") for each in told]
        return {(o, row["offset"] & (landing_objects.MAX_LINES - 1)) for o, row in zip(objects, rows, strict=True)}


@pytest.fixture
def lander(exact: SparkSession, tmp_path: Path) -> Lander:
    return Lander(exact, tmp_path)


def line(order: int, lsn: int, op: str = "u", customer: str = "A", **more: Any) -> str:
    told = {"order_id": order, "customer_id": customer, "__op": op, "__deleted": "false", "__lsn": lsn}
    return json.dumps(told | {"__table": "cdc_events", "__schema": "datalake", "__source_ts_ms": lsn} | more)


def name(order: int, offset: int, customer: str = "A") -> str:
    return f"customer_id={customer}/order_id={order}/{TOPIC}(0_{offset}).json"


def test_objects_end_in_the_same_silver_as_the_topic(exact: SparkSession, recorded: Path, tmp_path: Path) -> None:
    """Scenario 3, snapshot, updates, 4 events of one time and thin deletes: the source's columns are equal, row by row,
    of every order that changed and of some others.

    The objects come in two lots, the second one behind the first and into it; a further look adds nothing.
    """
    with gzip.open(recorded / "northwind.demo.jsonl.gz", "rt", encoding="utf-8") as file:
        every_record = [json.loads(each) for each in file]
    times = Counter(each["key"] for each in every_record)
    orders = {key for key, count in times.items() if count > 1 or json.loads(key)["order_id"] % 20 == 0}
    records = [each for each in every_record if each["key"] in orders]
    (tmp_path / "topic").mkdir()
    by_topic = Run(exact, tmp_path / "topic", SOURCE)
    by_topic.take(records)
    lander = Lander(exact, tmp_path / "objects")
    told = [stand_in.Record(r["topic"], r["partition"], r["offset"], r["payload"]) for r in records]
    every = list(stand_in.objects(told, ("customer_id", "order_id"), {}, flush_count=2))
    for lot in (every[::2], every[1::2]):
        for each in lot:
            lander.put(each.name, each.text)
        taken = lander.take()
        assert (taken.rows, taken.warnings, taken.error) == (sum(o.text.count("\n") for o in lot), (), None)
        accounts = silver.refine(exact, lander.at)
        assert [(a.residue, a.dead_lettered, a.error) for a in accounts] == [(0, 0, None)]
    again = lander.take(lander.another())
    assert again == IngestResult()
    assert lander.places() == {(each.name, n) for each in every for n in range(each.text.count("\n"))}
    assert silver.refine(exact, lander.at) == []

    def rows(at: Refinement) -> dict[int, dict[str, Any]]:
        found = at.silver.read(exact, at.lake.silver("demo", TABLE)).drop("_seq", "_column_seq").collect()
        return {row["order_id"]: row.asDict() for row in found}

    found, expected = rows(lander.at), rows(by_topic.at)
    assert {key for key in expected if found.get(key) != expected[key]} == set()
    assert len(found) == len(expected) == len(orders) == 51
    assert sum(not row["_deleted"] for row in found.values()) == 49


def test_a_line_keeps_its_bytes_its_place_and_where_it_came_from(lander: Lander) -> None:
    """Promise A: also what is no UTF-8, in odd folders, compressed; blank lines are none."""
    odd = lander.put(f"k=a b%20[é]{{x}}+/{TOPIC}(3_7).json", b'{"a":1}\r\n\n{"a":"\xff"}\n')
    lander.put(f"k=gz/{TOPIC}(3_8).json.gz", gzip.compress(b'{"a":"\xc3\xa9"}'))
    assert lander.take() == IngestResult(3)
    first, second, third = sorted(lander.rows().collect(), key=lambda row: row["offset"])
    assert [row["offset"] for row in (first, second, third)] == [7 << 20, (7 << 20) + 2, 8 << 20]
    assert (first["topic"], first["partition"], first["key"], first["topic_id"]) == (TOPIC, 3, None, None)
    assert (first["value"], second["value"], third["value"]) == ('{"a":1}\r', None, '{"a":"é"}')
    assert bytes(second["undecodable"]["value"]) == b'{"a":"\xff"}'
    told = {header["key"]: bytes(header["value"]).decode() for header in second["headers"]}
    assert told == {"object": f"file:{odd}", "line": "2", "size": str(odd.stat().st_size)}
    assert first["timestamp"].timestamp() == pytest.approx(OLD, abs=86_400)


def test_of_one_row_in_one_object_the_last_line_decides(lander: Lander) -> None:
    """Lines have places of their own, also where nothing else in them tells their order: no position, one time."""
    customers = [*"QXBZAYC"]
    for order in range(8):
        turned = customers[order % 7 :] + customers[: order % 7]
        lines = [line(order, 10, customer=each, __lsn=None) for each in turned]
        lander.put(name(order, 100 + order), "\n".join(lines))
    assert lander.take() == IngestResult(56)
    assert lander.places() == {(name(order, 100 + order), n) for order in range(8) for n in range(7)}
    [account] = silver.refine(lander.spark, lander.at)
    assert (account.residue, account.dead_lettered, account.error) == (0, 0, None)
    rows = lander.at.silver.read(lander.spark, lander.lake.silver("demo", TABLE)).collect()
    assert {row["order_id"]: row["customer_id"] for row in rows} == {
        order: customers[(order + 6) % 7] for order in range(8)
    }


def test_half_an_archive_keeps_nothing_else_out(lander: Lander) -> None:
    """It is told, and taken once it can be read."""
    packed = gzip.compress(f"{line(1, 10)}\n".encode() * 99)
    lander.put(f"k=gz/{TOPIC}(3_8).json.gz", packed[:-30])
    lander.put(name(2, 9), line(2, 11))
    taken = lander.take()
    assert (taken.rows, "1 objects could not be read" in str(taken.error)) == (1, True)
    lander.put(f"k=gz/{TOPIC}(3_8).json.gz", packed)
    assert lander.take() == IngestResult(99)


def test_a_bad_line_is_a_dead_letter_and_what_is_no_object_is_told(lander: Lander) -> None:
    """Others of the same object go on; nothing is skipped silently. A mark before a text in UTF-8 is no part of it."""
    lander.put(name(1, 4), f"{line(1, 10)}\nnot json\n{line(1, 11, x=1)}\n")
    lander.put("customer_id=A/notes.txt", "hello")
    lander.put("customer_id=B/000457.json", "{}")
    lander.put(f"_temporary/{TOPIC}(0_9).json", line(1, 12))
    lander.put(f"customer_id=B/.{TOPIC}(0_9).json", line(1, 12))
    lander.put(name(2, 5), "")
    lander.put(name(2, 6), " \n\r\n")
    lander.put(name(2, 7), b"\xef\xbb\xbf" + line(2, 12).encode())
    taken = lander.take()
    assert taken.rows == 4
    assert taken.warnings == (
        f"1 objects have only blank lines, such as file:{lander.root}/{name(2, 6)}",
        f"2 objects have names that no sink writes: ignored, such as file:{lander.root}/customer_id=A/notes.txt",
        f"1 objects are empty, such as file:{lander.root}/{name(2, 5)}",
    )
    lander.at = replace(lander.at, dead_letter_share=1.0)
    [account] = silver.refine(lander.spark, lander.at)
    assert (account.read, account.applied, account.dead_lettered, account.error) == (4, 2, 1, None)
    [letter] = lander.format.read(lander.spark, lander.lake.dead_letters("demo")).collect()
    assert (letter["reason"], letter["offset"]) == ("malformed_json", (4 << 20) + 1)


def test_objects_that_hold_every_record_prove_what_a_rebuild_takes_away(lander: Lander) -> None:
    """Their lines are as many as the newest of them counts, whose places are no offsets; else something may be lost."""
    for number, lines in ((0, [(7, 30)]), (2, [(2, 31), (1, 32)]), (3, [(9, 5)])):
        lander.put(name(lines[0][0], number), "\n".join(line(*each) for each in lines))
    lander.take()
    assert {each.applied for each in silver.refine(lander.spark, lander.at)} == {4}
    every = lander.rows().collect()

    def rebuilt(without: int) -> RebuildResult:
        """By another process, over a bronze that lacks one of the objects."""
        kept = [row for row in every if row["offset"] >> landing_objects.LINE_BITS != without]
        lander.format.drop(lander.spark, lander.intake.table)
        lander.format.append(made(lander.spark, kept, BRONZE), lander.intake.table, None)
        lander.at = replace(lander.at, state=SourceState())
        return rebuild(lander.spark, lander.at, TABLE, RebuildOptions(dry=True))

    assert "has 3 lines of objects that end with record 4" in " ".join(rebuilt(0).columns)
    done = rebuilt(3)
    assert (done.gone, done.columns) == (1, ())


def test_half_an_object_waits_for_the_rest_but_not_for_ever(lander: Lander) -> None:
    """Its lines are taken together; after ten minutes without a byte more the cut line is as bad as any."""
    whole = f"{line(1, 10)}\n{line(1, 11)}"
    half = lander.put(name(1, 4), whole[:-7], modified=time.time())
    lander.put(name(2, 5), line(2, 12), modified=time.time())  # whole, though not ended
    taken = lander.take()
    assert (taken.rows, taken.error) == (1, None)
    assert taken.warnings == (f"1 objects are still being written: left for a later run, such as file:{half}",)
    lander.put(name(1, 4), whole, modified=time.time())
    assert lander.take() == IngestResult(2)
    lander.put(name(3, 6), whole[:-7])
    assert lander.take() == IngestResult(2)


def test_an_object_that_was_replaced_is_an_error_and_the_others_are_taken(lander: Lander) -> None:
    """Bronze keeps what it read: another size stops loudly, at the place of another object too; another time alone and
    a twin are told.
    """
    grown = lander.put(name(1, 4), line(1, 10))
    touched = lander.put(name(2, 5), line(2, 11))
    assert lander.take() == IngestResult(2)
    lander.put(name(1, 4), f"{line(1, 10)}\n{line(1, 12)}")
    lander.put(name(2, 5), line(2, 11), modified=OLD + 9)
    twin = lander.put(name(2, 5, customer="Z"), line(2, 11))
    anew = lander.put(name(7, 5), line(7, 1, customer="of a topic made anew"))
    lander.put(name(3, 6), line(3, 13))
    taken = lander.take(lander.another())
    assert taken.rows == 1
    assert isinstance(taken.error, ObjectRefused)
    assert f"replaced by objects of another size after they were read, such as file:{grown}" in str(taken.error)
    assert f"but another size: their records are not in bronze, such as file:{anew}" in str(taken.error)
    assert [word.rpartition(" ")[2] for word in taken.warnings] == [f"file:{touched}", f"file:{twin}"]


def test_an_object_that_grows_while_it_is_read_waits(lander: Lander) -> None:
    """What is read is what was listed."""
    grown = lander.put(name(1, 4), f"{line(1, 10)}\n")
    listing = lander.intake.reader.list_objects(lander.spark)
    lander.put(name(1, 4), f"{line(1, 10)}\n{line(1, 11)}\n")
    lander.intake = replace(lander.intake, reader=Frozen(listing))
    taken = lander.take()
    assert taken == IngestResult(0, (f"1 objects are still being written: left for a later run, such as file:{grown}",))
    assert lander.take(lander.another()) == IngestResult(2)


class Frozen:
    """A place where nothing new is seen."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    def list_objects(self, spark: SparkSession) -> Listing:  # noqa: ARG002
        return self._listing


def test_a_run_that_goes_on_says_a_thing_once(lander: Lander) -> None:
    """It waits for objects, and repeats neither warning nor error while nothing changes; their end is told."""
    told: list[ReportLine] = []
    look = continuous._ObjectPoller(replace(lander.intake, every_seconds=0.0))

    def lines_of_a_look() -> list[tuple[int, int, bool]]:
        told.clear()
        look.poll_if_due(lander.spark, told.append)
        return [(each.rows_in, len(each.warnings), each.error is not None) for each in told]

    assert lines_of_a_look() == []
    lander.put(name(1, 4), line(1, 10))
    lander.put("notes.txt", "x")
    assert lines_of_a_look() == [(1, 1, False)]
    lander.put(name(2, 5), line(2, 11))
    assert lines_of_a_look() == [(1, 0, False)]
    assert lines_of_a_look() == []
    lander.put(name(1, 4), line(1, 10) * 2)
    assert lines_of_a_look() == [(0, 0, True)]
    assert lines_of_a_look() == []
    lander.put(name(1, 4), line(1, 10))
    assert lines_of_a_look() == [(0, 0, False)]


class Dying(MemoryFormat):
    """Ends its process at an append, before or after it counts."""

    def __init__(self, alive: MemoryFormat, *, after: bool) -> None:
        self.__dict__ = alive.__dict__
        self._after = after

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        if self._after:
            super().append(rows, table, progress)
        raise KeyboardInterrupt


def test_a_run_that_dies_leaves_nothing_twice_and_nothing_out(lander: Lander) -> None:
    """Before an append nothing has happened; after it the objects are known, whoever looks."""
    for order in range(5):
        lander.put(name(order, order), f"{line(order, order)}\n{line(order, order + 1)}\n")
    for after, rows in ((False, 0), (True, 4), (True, 8)):
        dying = lander.another(Dying(lander.format, after=after), most=2)
        with pytest.raises(KeyboardInterrupt):
            lander.take(dying)
        held = lander.format.version(lander.spark, lander.intake.table)
        assert (0 if held is None else lander.rows().count()) == rows
    assert lander.take(lander.another()) == IngestResult(2)
    assert lander.rows().select("topic", "partition", "offset").distinct().count() == 10


def test_of_two_drivers_that_see_the_same_objects_one_takes_them(lander: Lander) -> None:
    """The second one's append has a number that is there already; it looks again and goes on."""
    lander.put(name(1, 1), line(1, 1))
    slow = lander.another()
    landing.load_known(lander.spark, slow)
    assert lander.take() == IngestResult(1)
    slow.known.bronze = lander.format.identity(lander.spark, slow.table)  # as if it had looked when the table was there
    assert lander.take(slow) == IngestResult()
    lander.put(name(2, 2), line(2, 2))
    assert lander.take(slow) == IngestResult(1)
    assert lander.take() == IngestResult()


def test_what_there_is_to_take_is_counted_and_nothing_at_all_is_an_error(lander: Lander) -> None:
    """`status` shows objects; a run over an empty folder would hide a wrong prefix."""
    with pytest.raises(TopicsMissing):
        lander.take()
    lander.put("k=1/other.shop.orders(0_1).json", "{}")
    with pytest.raises(TopicsMissing):
        lander.take()
    lander.put(name(1, 1), line(1, 1))
    assert landing.count_waiting(lander.spark, lander.intake) == 1
    assert lander.take() == IngestResult(1)
    assert landing.count_waiting(lander.spark, lander.intake) == 0
    gone = ObjectsSource(f"{lander.root}/nowhere", ".*").list_objects(lander.spark)
    assert (gone.objects, gone.unrecognized) == ((), ())


def test_records_from_kafka_and_lines_do_not_meet_in_one_bronze(lander: Lander) -> None:
    """Their offsets have no common order."""
    lander.put(name(1, 1), line(1, 1))
    lander.format.append(bronze(lander.spark, [record(TOPIC, 0, None, "{}")]), lander.intake.table, None)
    with pytest.raises(BronzeReplaced, match="did not come from objects"):
        lander.take()


def test_a_snapshot_row_ranks_above_the_lines_of_its_own_folder_only(lander: Lander) -> None:
    """Q5 where an object waits for its last record: the row of a snapshot is older than what other folders hold.

    Order 1 lies with its update in an object that was ended late. PostgreSQL's LSNs interleave: the change of order 2
    has the greater one, and came first.
    """
    lander.put(name(1, 900), f"{line(1, 1, op='r', customer='A')}\n{line(1, 40, customer='B')}\n")
    lander.put(name(2, 850), line(2, 50))
    lander.take()
    silver.refine(lander.spark, lander.at)
    rows = lander.format.read(lander.spark, lander.lake.silver("demo", TABLE)).collect()
    assert {row["order_id"]: row["customer_id"] for row in rows} == {1: "B", 2: "A"}
    told = explain(lander.spark, lander.at, TABLE, "1")
    assert told.warnings == ()
    assert [(entry.line, entry.verdict) for entry in told.entries] == [
        (f"file:{lander.root}/{name(1, 900)}:1", "applied"),
        (f"file:{lander.root}/{name(1, 900)}:2", "applied"),
    ]
    lander.put(name(1, 950), line(1, 1, op="r", customer="C"))  # the source was read again: this is what holds now
    lander.take()
    silver.refine(lander.spark, lander.at)
    rows = lander.format.read(lander.spark, lander.lake.silver("demo", TABLE)).collect()
    assert {row["order_id"]: row["customer_id"] for row in rows} == {1: "C", 2: "A"}


def test_an_object_that_ended_late_is_no_source_that_went_back(lander: Lander) -> None:
    """J4: places of two folders do not tell what came first. A binlog's times are those of statements, so that what was
    committed later may be older by them; in one folder a change below another is what it is for Kafka.
    """
    file: dict[str, Any] = {"__lsn": None, "__file": "binlog.000001"}
    lander.put(name(2, 850), line(2, 1_000, **file, __pos=900))
    lander.put(name(1, 900), line(1, 2_000, **file, __pos=500))
    lander.take()
    assert [account.error for account in silver.refine(lander.spark, lander.at)] == [None]
    lander.put(name(1, 950), line(1, 3_000, **file, __pos=400))
    lander.take()
    [account] = silver.refine(lander.spark, lander.at)
    assert isinstance(account.error, SourceRewound)


@pytest.mark.parametrize(("lsn", "applied"), [(300, 0), (None, 1)])
def test_an_object_that_ended_before_a_purge_and_came_behind_it(lander: Lander, lsn: int | None, applied: int) -> None:
    """M9: the greatest place that silver has read does not tell what came after a purge. A late change is a dead
    letter, or in a topic that only places order what it is in Kafka: new (Q8).
    """
    table = replace(OUTBOX, purge_after=0)
    lander.at = replace(lander.at, source=replace(lander.at.source, tables=(table,)), dead_letter_share=1.0)
    place: dict[str, Any] = {} if lsn else {"__lsn": None}
    lines = [line(1, 500, op="c", **place), line(1, 600, op="d", __deleted="true", **place)]
    lander.put(name(1, 900), "\n".join(lines))
    lander.take()
    silver.refine(lander.spark, lander.at)
    assert purge(lander.spark, lander.at, TABLE, 0).purged == 1
    lander.put(name(2, 850), line(2, 300, op="c", **place))
    lander.take()
    [account] = silver.refine(lander.spark, lander.at)
    assert (account.error, account.applied, account.dead_lettered) == (None, applied, 1 - applied)


def test_a_record_knows_its_folder(exact: SparkSession) -> None:
    """'' for a record from Kafka."""
    told = [("object", b"s3a://b/k=1/t(0_1).json")]
    records = bronze(exact, [record("t", 0, None, "{}"), record("t", 1, None, "{}", headers=tuple(told))])
    found: Callable[..., Any] = records.select(headers.folder(records["headers"]).alias("f")).collect
    assert sorted(row["f"] for row in found()) == ["", "s3a://b/k=1"]
