"""Changes of silver and gold as events for others: what is sent, with which ids, and when not."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import failpoints
from replicator.errors import (
    ChangesLost,
    ConfigError,
    EngineFailed,
    SchemaRefused,
    TableMissing,
    Unreachable,
    ValueRefused,
)
from replicator.failpoints import Killed
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.sinks.memory_outlet import MemoryOutlet, SentEvent
from replicator.spec import Declaration, Evolution, Feed, Progress, SourceSpec, Transform
from replicator.stages import canonical, silver
from replicator.stages.canonical import DeliveryResult, FeedContext
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.table import ordering
from replicator.transforms import events
from replicator.transforms.event_schema import build_json_schema
from tests.builders import Record, bronze, envelope, exact_session, made, record

pytestmark = pytest.mark.spark

TOPIC = "cdm.people"
GOLD = "id INT, name STRING, credit DECIMAL(10,2), _source STRING, _op STRING"
OF_GOLD = Feed("people", TOPIC, "dim_people", bootstrap_servers="memory")
OF_SILVER = replace(
    OF_GOLD, table="s/shop.orders", select=(("order_id", "id"), ("what", "upper(Name)")), where="id < 9"
)


@dataclass
class World:
    """A lake and a topic, in memory unless told otherwise."""

    spark: SparkSession
    feed: Feed = OF_GOLD
    tables: Any = field(default_factory=MemoryFormat)
    control: MemoryControl = field(default_factory=MemoryControl)
    outlet: MemoryOutlet = field(default_factory=lambda: MemoryOutlet(TOPIC))
    lake: Lake = field(default_factory=lambda: Lake("memory"))
    written: int = 0
    declared: tuple[Declaration, ...] = ()
    key: tuple[str, ...] = ("id",)

    @cached_property
    def source(self) -> Refinement:
        """As a driver has it that goes on: it knows how records are written."""
        return Refinement(
            SourceSpec("s", "s[.].*", tables=self.declared), self.tables, self.tables, self.control, self.lake, 1.0
        )

    def put(self, *rows: tuple[Any, ...]) -> None:
        """The next version of gold: id, name, credit, op."""
        self.written += 1
        typed = [(key, name, credit, "lineage", op) for key, name, credit, op in rows]
        table = self.lake.gold("dim_people", ("id",))
        self.tables.put(made(self.spark, typed, GOLD), table, Progress("in", self.written))

    def record(self, *values: Any, refine: bool = True) -> None:
        """Records of the source's topic, taken through bronze and silver, one batch."""
        rows = []
        for value in values:
            self.written += 1
            image = None if not isinstance(value, dict) else value["after"] or value["before"]
            rows.append(record("s.shop.orders", self.written, {"id": image["id"] if image else 0}, value))
        self.take(*rows)
        if refine:
            assert [a.error for a in silver.refine(self.spark, self.source) if a.error] == []

    def take(self, *records: Record) -> None:
        """Records as Kafka has them, into bronze."""
        self.tables.append(bronze(self.spark, records), self.lake.bronze("s"), None)

    def offer(self, *more: Feed) -> FeedContext:
        at, feeds = Warehouse(self.tables, self.tables, self.control, self.lake), (self.feed, *more)
        outlets = {feed.name: self.outlet for feed in feeds}
        return FeedContext(feeds, outlets, {"dim_people": self.key}, {"s": self.source}, at)

    def deliver(self, *more: Feed) -> list[DeliveryResult]:
        return canonical.deliver(self.spark, self.offer(*more))

    @property
    def sent(self) -> list[SentEvent]:
        return self.outlet.topics[TOPIC]

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(each.value) for each in self.sent if each.value is not None]


def died(world: World, at: str) -> None:
    """A run that is killed there."""

    def watch(name: str) -> None:
        if name == at:
            raise Killed(name)

    with failpoints.watched(watch), pytest.raises(Killed):
        world.deliver()


def brief(event: dict[str, Any], *columns: str) -> tuple[Any, ...]:
    images = (event[side] and tuple(event[side][c] for c in columns) for side in ("before", "after"))
    return (event["op"], *event["key"].values(), *images)


def test_gold_is_told_commit_by_commit(spark: SparkSession) -> None:
    """First the rows that are there, then what each commit did; money is text, lineage stays here; the second run has
    nothing to say.
    """
    world = World(spark, replace(OF_GOLD, tombstones=True))
    world.put((1, "Ann", Decimal("1.50"), "upsert"), (2, "Bob", None, "upsert"))
    assert [each.events for each in world.deliver()] == [2]
    world.put((1, "Ann", Decimal("2.50"), "upsert"), (2, None, None, "delete"))
    world.put((1, "Anna", Decimal("2.50"), "upsert"))
    assert [(each.feed, each.events, each.error) for each in world.deliver()] == [("people", 3, None)]
    assert world.deliver() == []
    first, *_ = world.told
    assert set(first["after"]) == {"id", "name", "credit"}
    assert [brief(event, "name", "credit") for event in world.told] == [
        ("read", 1, None, ("Ann", "1.50")),
        ("read", 2, None, ("Bob", None)),
        ("update", 1, ("Ann", "1.50"), ("Ann", "2.50")),
        ("delete", 2, ("Bob", None), None),
        ("update", 1, ("Ann", "2.50"), ("Anna", "2.50")),
    ]
    assert [(each.key, each.headers) for each in world.sent if each.value is None] == [('{"id":2}', {})]
    assert len({event["id"] for event in world.told}) == 5
    assert world.sent[0].headers == {
        "ce_specversion": b"1.0", "ce_id": first["id"].encode(), "ce_type": b"people.v1", "ce_source": b"dim_people",
        "ce_sequence": first["source"]["sequence"].encode(), "content-type": b"application/json",
    }  # fmt: skip


def test_the_key_of_a_model_is_that_of_its_file(spark: SparkSession) -> None:
    """Its columns come with what tables of silver have noted of them: one that is a key there is none here."""
    world = World(spark)
    for version, name in enumerate(("Ann", "Anna")):
        rows = made(spark, [(1, name, None, "lineage", "upsert")], GOLD).withMetadata("name", {"name": "n", "key": 0})
        world.tables.put(rows, world.lake.gold("dim_people", ("id",)), Progress("in", version))
        world.deliver()
    assert [brief(event, "name") for event in world.told] == [
        ("read", 1, None, ("Ann",)),
        ("update", 1, ("Ann",), ("Anna",)),
    ]


@pytest.mark.parametrize("point", ["canonical.begun", "canonical.sent"])
def test_what_is_sent_again_has_the_ids_that_it_had(spark: SparkSession, point: str) -> None:
    """A run that dies between Kafka and the lake, or before its first event, with the table moving on meanwhile: the
    topic has every event at least once, and without repetitions what a run that was not killed has sent.
    """
    calm, killed = World(spark), World(spark)
    killed.tables = calm.tables
    calm.put((1, "Ann", None, "upsert"))
    calm.deliver()
    died(killed, point)
    calm.put((1, "Bob", None, "upsert"))
    calm.put((1, "Ann", None, "upsert"))
    calm.deliver()
    if point == "canonical.sent":
        died(killed, point)
        died(killed, point)
    killed.deliver()
    by_id = {event["id"]: event for event in killed.told}
    assert list(by_id.values()) == calm.told
    assert [event["after"]["name"] for event in calm.told] == ["Ann", "Bob", "Ann"]
    assert len(killed.told) == (3 if point == "canonical.begun" else 6)


def test_silver_is_told_through_select_and_where(spark: SparkSession) -> None:
    """Others see a row that enters the feed as created and one that leaves it as deleted; a change that they do not see
    is no event. The source's order and time come along, and keys go by the feed's names.
    """
    world = World(exact_session(spark), OF_SILVER)
    row = {"id": 1, "Name": "pen", "total": 1}
    world.record(envelope("c", row, pos=4))
    world.deliver()
    world.record(envelope("u", row | {"total": 2}, row, pos=8), envelope("c", row | {"id": 9}, pos=12))
    world.record(envelope("u", row | {"Name": "ink"}, row, pos=16))
    world.record(envelope("d", None, row, pos=20))
    world.deliver()
    assert [brief(event, "order_id", "what") for event in world.told] == [
        ("read", 1, None, (1, "PEN")), ("update", 1, (1, "PEN"), (1, "INK")), ("delete", 1, (1, "INK"), None),
    ]  # fmt: skip
    places = [event["source"]["sequence"] for event in world.told]
    assert places == sorted(places)
    assert (world.sent[0].key, world.told[0]["time"]) == ('{"order_id":1}', "2023-11-14T22:13:20.000000Z")
    assert [event["complete"] for event in world.told] == [True, True, True]


def test_every_change_is_an_event_whatever_silver_makes_of_a_batch(spark: SparkSession) -> None:
    """Straight from the source's topic: filtered, reshaped, the same key, with or without silver; bad JSON stays in
    bronze and stops nothing; sent again, the ids are the same.
    """
    world = World(exact_session(spark), replace(OF_SILVER, every_change=True))
    row = {"id": 1, "Name": "pen", "total": 1}
    batch = (
        envelope("c", row, pos=4),
        envelope("u", row | {"Name": "ink"}, row, pos=8),
        "{",
        envelope("c", row | {"id": 9}, pos=12),
        envelope("u", row | {"Name": "ink", "id": 1}, None, pos=16),
        envelope("d", None, row, pos=20),
        None,
    )
    world.record(*batch, refine=False)
    assert [(each.events, each.error) for each in world.deliver()] == [(4, None)]
    world.record(envelope("r", row, pos=24), refine=False)
    world.deliver()
    assert world.deliver() == []
    assert [brief(event, "what") for event in world.told] == [
        ("create", 1, None, ("PEN",)),
        ("update", 1, ("PEN",), ("INK",)),
        ("update", 1, None, ("INK",)),
        ("delete", 1, ("PEN",), None),
        ("read", 1, None, ("PEN",)),
    ]
    assert [event["source"]["offset"] for event in world.told] == [1, 2, 5, 6, 8]
    schema = world.control.get(world.lake.event_schema("people", 1)) or {}
    assert set(schema["properties"]["source"]["required"]) == set(world.told[0]["source"])
    once = world.told
    world.control.remove(world.lake.canonical("people"))
    world.deliver()
    assert [event["id"] for event in world.told[len(once) :]] == [event["id"] for event in once]


def test_an_update_that_is_declared_a_delete_is_an_event_that_deletes(spark: SparkSession) -> None:
    """`apply_as_deletes` holds for who reads bronze's changes as for silver; a row that is never there is no event."""
    declared = (Declaration("shop.orders", transform=Transform(as_deletes="status = 'D'")),)
    feed = replace(OF_GOLD, table="s/shop.orders", every_change=True)
    world = World(exact_session(spark), feed, declared=declared)
    row = {"id": 1, "status": "A"}
    marked = row | {"status": "D"}
    world.record(
        envelope("c", row, pos=4),
        envelope("u", marked, row, pos=8),
        envelope("u", row, marked, pos=12),
        envelope("c", marked | {"id": 2}, pos=16),
        refine=False,
    )
    world.deliver()
    assert [brief(event, "status") for event in world.told] == [
        ("create", 1, None, ("A",)),
        ("delete", 1, None, None),
        ("update", 1, None, ("A",)),
    ]


def test_records_with_one_position_and_offset_keep_apart_by_their_partition(spark: SparkSession) -> None:
    """Offsets repeat across partitions, and rows of a snapshot share a position: one event per record, each with its
    own key's image before and its own place.
    """
    world = World(exact_session(spark), replace(OF_GOLD, table="s/shop.orders", every_change=True))
    rows = {n: {"id": n, "name": f"n{n}"} for n in (0, 1, 2)}
    now = {n: row | {"name": f"m{n}"} for n, row in rows.items()}
    world.take(*[record("s.shop.orders", 0, {"id": n}, envelope("r", row), partition=n) for n, row in rows.items()])
    world.deliver()
    world.take(
        *[record("s.shop.orders", 1, {"id": n}, envelope("u", now[n], rows[n], pos=8), partition=n) for n in rows]
    )
    world.deliver()
    told = [(event["source"]["partition"], event["source"]["offset"], *brief(event, "name")) for event in world.told]
    assert sorted(told) == sorted(
        [(n, 0, "read", n, None, (f"n{n}",)) for n in rows]
        + [(n, 1, "update", n, (f"n{n}",), (f"m{n}",)) for n in rows]
    )
    assert len({event["id"] for event in world.told}) == 6


def test_the_first_records_of_a_topic_are_told_before_silver_has_seen_it(spark: SparkSession) -> None:
    """A shard that joins is of the table from its first record on; topics of others are not; nothing is sent twice as
    soon as silver knows.
    """
    world = World(exact_session(spark), replace(OF_GOLD, table="s/shop.orders", every_change=True))
    others = record("s.shop.others", 0, {"id": 7}, envelope("c", {"id": 7}, table="shop.others"))
    world.take(record("s.shop.orders", 0, {"id": 1}, envelope("c", {"id": 1})), others)
    assert [a.error for a in silver.refine(world.spark, world.source) if a.error] == []
    world.deliver()
    world.take(record("s.new.orders", 0, {"id": 2}, envelope("c", {"id": 2}, pos=8)), replace(others, offset=1))
    assert [(each.events, each.error) for each in world.deliver()] == [(1, None)]
    assert [a.error for a in silver.refine(world.spark, world.source) if a.error] == []
    world.take(record("s.new.orders", 1, {"id": 3}, envelope("c", {"id": 3}, pos=12)))
    world.deliver()
    assert [(event["source"]["topic"], event["key"]["id"]) for event in world.told] == [
        ("s.shop.orders", 1),
        ("s.new.orders", 2),
        ("s.new.orders", 3),
    ]


def test_a_feed_out_of_reach_keeps_nothing_from_the_others(spark: SparkSession) -> None:
    """Its topic is missing: that is its error, to be tried again, and those before and behind it are sent and told."""
    world = World(spark)
    world.put((1, "Ann", None, "upsert"))
    away, behind = replace(OF_GOLD, name="away", topic="cdm.away"), replace(OF_GOLD, name="behind")
    told = world.deliver(away, behind)
    assert [(each.feed, each.events, type(each.error)) for each in told] == [
        ("people", 1, type(None)),
        ("away", 0, Unreachable),
        ("behind", 1, type(None)),
    ]
    assert [event["type"] for event in world.told] == ["people", "behind"]


def stopped(world: World) -> Any:
    [report] = world.deliver()
    return report.error


def test_a_feed_stops_rather_than_break_its_word(spark: SparkSession) -> None:
    """Other columns under the same version, another table under the same name, expressions that do not fit, a table
    that is not there: a named error, nothing sent and no step forward; a topic that is not there is to be tried again.
    """
    world = World(spark)
    assert isinstance(stopped(world), TableMissing)
    world.put((1, "Ann", None, "upsert"))
    world.feed = replace(OF_GOLD, select=(("id", "ident"),))
    assert isinstance(error := stopped(world), ConfigError)
    assert "ident" in str(error)
    world.feed = replace(OF_GOLD, select=(("id", "id"), ("number", "CAST(name AS INT)")))
    assert isinstance(error := stopped(world), ValueRefused)
    assert "Ann" not in str(error)
    world.feed = replace(OF_GOLD, version=3)
    world.outlet.topics.clear()
    assert isinstance(error := stopped(world), Unreachable)
    assert TOPIC in str(error)
    world.outlet.topics[TOPIC] = []
    world.deliver()
    world.put((1, "Bob", None, "upsert"))
    world.feed = replace(OF_GOLD, version=3, select=(("id", "id"), ("name", "name")))
    assert isinstance(stopped(world), SchemaRefused)
    assert len(world.sent) == 1
    world.feed = replace(world.feed, version=4)
    world.deliver()
    assert [(event["version"], event["after"]) for event in world.told[1:]] == [(4, {"id": 1, "name": "Bob"})]
    world.tables = MemoryFormat()
    world.put((7, "Eve", None, "upsert"))
    assert isinstance(error := stopped(world), ChangesLost)
    assert "replicator canonical restart people" in str(error)
    world.control.remove(world.lake.canonical("people"))
    world.deliver()
    assert world.told[-1]["op"] == "read"


def test_a_table_that_is_not_there_yet_is_told_with_what_makes_it(spark: SparkSession) -> None:
    """By whoever asks what is promised, and by a run: a model's by a build, a source's by its first records, unless its
    file names one that there is none of.
    """
    world = World(spark)
    world.record(envelope("c", after={"id": 1}, pos=1, table="shop.orders"))
    told = {}
    for name in ("dim_people", "s/shop.order", "s/crm.people"):
        world.feed = replace(OF_GOLD, table=name)
        with pytest.raises(TableMissing) as asked:
            canonical.current_schema(spark, world.offer(), world.feed)
        assert str(asked.value) == str(stopped(world))
        told[name] = asked.value
    assert told["dim_people"].fix == "`replicator run` builds it, or reports what stops its model."
    first = "`replicator run` creates it from its first records; otherwise fix `table` in the file of feed people."
    assert {told[name].fix for name in ("s/shop.order", "s/crm.people")} == {first}
    assert told["s/shop.order"].what == "table s/shop.order does not exist yet; did you mean 's/shop.orders'?"
    assert told["s/crm.people"].what == "table s/crm.people does not exist yet"


def test_a_feed_notices_that_its_file_tells_of_other_rows(spark: SparkSession) -> None:
    """Another `where` begins the feed anew, since nobody was told which rows came and went by it; so does another
    topic, which has none of the rows, and another key of the model; and another `select`, or it is another version.
    Without news as well, and from a standing that did not say them yet. A topic that was dropped and made again is
    noticed with the next event.
    """
    world = World(spark, replace(OF_GOLD, where="id < 9"))
    world.put((1, "Ann", None, "upsert"), (12, "Bob", None, "upsert"))
    world.deliver()
    path, told = world.lake.canonical("people"), world.feed
    row = world.control.get(path)
    assert row is not None
    world.control.put(path, {name: value for name, value in row.items() if name != "rules"})
    assert world.deliver() == []
    for where in ("id < 99", None):
        world.feed = replace(told, where=where, version=2)
        assert isinstance(error := stopped(world), ChangesLost)
        assert "replicator canonical restart people" in str(error)
    world.feed = replace(told, topic="cdm.others", version=2)
    assert isinstance(error := stopped(world), ChangesLost)
    assert f"topic {TOPIC}" in str(error)
    world.feed = told
    sent, world.outlet.topics[TOPIC] = world.sent, []
    assert world.deliver() == []
    world.put((1, "Ann", Decimal("7.00"), "upsert"))
    assert isinstance(error := stopped(world), ChangesLost)
    assert "not the topic that events were sent to" in str(error)
    world.outlet.topics[TOPIC] = sent
    assert [(each.events, each.error) for each in world.deliver()] == [(1, None)]
    world.key = ("id", "name")
    assert isinstance(error := stopped(world), ChangesLost)
    assert "the key id" in str(error)
    world.key = ("id",)
    world.feed = replace(told, select=(("id", "id"), ("name", "upper(name)"), ("credit", "credit")))
    assert isinstance(error := stopped(world), SchemaRefused)
    assert "Raise `version`" in str(error)
    world.feed = replace(world.feed, version=2)
    world.put((1, "Bea", None, "upsert"))
    assert [(each.events, each.error) for each in world.deliver()] == [(1, None)]
    world.feed = replace(world.feed, where="id < 99")
    world.control.remove(path)
    assert [(each.events, each.error) for each in world.deliver()] == [(2, None)]


def test_what_is_sent_late_has_the_columns_that_the_table_has_now(spark: SparkSession) -> None:
    """A feed that lags when its table gains a column, and takes it up as another version: in the commits before, the
    column was NULL.
    """

    class Gaining(MemoryFormat):
        def read(self, spark: SparkSession, table: Any, version: int | None = None) -> DataFrame:
            rows = super().read(spark, table, version)
            return rows if version in (None, 2) else rows.drop("credit")

    known = (("id", "id"), ("name", "name"))
    world = World(spark, replace(OF_GOLD, select=known), tables=Gaining())
    world.tables.changed_keys = lambda *_: None  # as where columns change
    world.put((1, "Ann", None, "upsert"))
    world.deliver()
    world.put((1, "Bea", None, "upsert"))
    world.put((1, "Bea", Decimal("2.50"), "upsert"))
    world.feed = replace(world.feed, version=2, select=(*known, ("credit", "credit")))
    assert [(each.events, each.error) for each in world.deliver()] == [(2, None)]
    assert [brief(event, "name", "credit") for event in world.told[1:]] == [
        ("update", 1, ("Ann", None), ("Bea", None)),
        ("update", 1, ("Bea", None), ("Bea", "2.50")),
    ]


def test_a_column_that_gave_its_name_to_another_type_stops_feeds_that_tell_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What it had before is none of the new type: it was read as one, and no expression was to blame. Begun anew the
    feed goes on, and another one, which does not tell that column, all along.
    """
    feed = replace(OF_SILVER, where=None, select=(("id", "id"), ("name", "Name")))
    world = World(exact_session(spark), feed, DeltaFormat(), lake=Lake(str(tmp_path)))
    other = replace(feed, name="other", select=(("id", "id"),))
    world.record(envelope("c", {"id": 1, "Name": "abc"}, pos=10))
    world.deliver(other)
    table = world.lake.silver("s", "shop.orders", ("id",))
    moved = Evolution(added=(("Name", "int"),), moved=(("Name", "Name__v2", "string"),))
    world.tables.evolve(world.spark, table, moved)
    stored = world.tables.read(world.spark, table)
    new = {"id": F.lit(2), "Name": F.lit(7)}
    rows = [new.get(c.name, F.col(c.name)).cast(c.dataType).alias(c.name, metadata=c.metadata) for c in stored.schema]
    rows.append(F.lit("upsert").alias("_op"))
    world.tables.put(stored.select(*rows), table, Progress("rebuild", 1))
    world.feed = replace(world.feed, version=2)
    stops, goes_on = world.deliver(other)
    assert isinstance(stops.error, ChangesLost)
    assert "Name of s/shop.orders changed type after version 0" in stops.error.what
    assert (goes_on.feed, goes_on.events, goes_on.error) == ("other", 1, None)
    world.control.remove(world.lake.canonical(feed.name))
    world.outlet.topics[TOPIC].clear()
    assert [(each.events, each.error) for each in world.deliver()] == [(2, None)]
    assert sorted(brief(event, "name") for event in world.told) == [("read", 1, None, (None,)), ("read", 2, None, (7,))]


def test_a_column_of_a_model_may_get_another_type(spark: SparkSession, tmp_path: Path) -> None:
    """Its SQL says what its values are, also what they were: the next version of the feed goes on with those, cast."""
    world = World(spark, tables=DeltaFormat(), lake=Lake(str(tmp_path)))
    world.put((1, "Ann", Decimal("1.50"), "upsert"))
    world.deliver()
    table = world.lake.gold("dim_people", ("id",))
    rows = world.tables.read(spark, table).withColumn("credit", F.col("credit").cast("double") + 1)
    world.tables.replace(rows, table, Progress("in", 2))
    world.feed = replace(OF_GOLD, version=2)
    assert [(each.events, each.error) for each in world.deliver()] == [(1, None)]
    assert brief(world.told[-1], "credit") == ("update", 1, (1.5,), (2.5,))


def test_a_row_that_is_what_it_was_is_another_event(spark: SparkSession) -> None:
    """Also at the same place of the source, where a table was made again in another way and back: who drops an id that
    he has must not miss the last of them.
    """
    world = World(exact_session(spark), replace(OF_SILVER, where=None, select=()))
    world.record(envelope("c", {"id": 1, "Name": "a"}, pos=10))
    world.deliver()
    table = world.lake.silver("s", "shop.orders", ("id",))
    for number, name in enumerate(("b", "a", "b")):
        stored = world.tables.read(world.spark, table)
        kinds = {each.name: each.metadata for each in stored.schema}
        other = stored.withColumn("Name", F.lit(name))
        rows = other.select(*[F.col(each).alias(each, metadata=kinds[each]) for each in stored.columns])
        world.tables.put(rows.withColumn("_op", F.lit("upsert")), table, Progress("rebuild", number))
        world.deliver()
    assert [event["after"]["Name"] for event in world.told] == ["a", "b", "a", "b"]
    assert len({event["source"]["sequence"] for event in world.told}) == 1
    assert len({event["id"] for event in world.told}) == 4


def test_what_a_feed_has_sent_is_not_read_again(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for what its partitions had reached: the process remembers that, of topics that were idle, too."""
    world = World(exact_session(spark), replace(OF_GOLD, table="s/shop.orders", every_change=True))
    own, read, added = world.source, list[int](), MemoryFormat.added
    at = Warehouse(world.tables, world.tables, world.control, world.lake)
    offer = FeedContext((world.feed,), {world.feed.name: world.outlet}, {}, {"s": world.source}, at)

    def watched(self: MemoryFormat, spark: SparkSession, table: Any, after: Any, upto: int) -> Any:
        read.append(upto - min(after.values()))
        return added(self, spark, table, after, upto)

    for tick in range(6):
        world.take(*([] if tick == 3 else [change(tick, tick, "u" if tick == 2 else "r")]), other(tick))
        silver.refine(world.spark, own)
        with monkeypatch.context() as during:
            during.setattr(MemoryFormat, "added", watched)
            during.setattr(ordering, "read_below", None)
            delivered = canonical.deliver(world.spark, offer)
        assert [(each.events, each.error) for each in delivered] == ([] if tick == 3 else [(1, None)])
    assert read == [1] * 4
    assert sorted(told["after"]["v"] for told in world.told) == [0, 1, 2, 4, 5]


def change(offset: int, value: int, op: str) -> Record:
    row = envelope(op, {"id": 1, "v": value}, pos=100 + offset, snapshot="incremental" if op == "r" else "false")
    return record("s.shop.orders", offset, {"id": 1}, row)


def other(offset: int) -> Record:
    return record("s.shop.lines", offset, {"id": 1}, envelope("c", {"id": 1}, pos=100 + offset, table="shop.lines"))


@pytest.mark.parametrize("every_change", [False, True], ids=["silver", "bronze"])
def test_a_time_that_no_calendar_has_stops_no_feed(spark: SparkSession, every_change: bool) -> None:
    """An event may say any number: it is none then."""
    world = World(exact_session(spark), replace(OF_SILVER, where=None, select=(), every_change=every_change))
    world.record(envelope("c", {"id": 1}, pos=10, ts_ms=2**63 - 1), envelope("c", {"id": 2}, pos=20, ts_ms=10**15))
    assert [(each.events, each.error) for each in world.deliver()] == [(2, None)]
    assert [event["time"] for event in world.told] == [None, None]


def test_a_new_column_of_the_table_changes_no_event_by_itself(spark: SparkSession) -> None:
    """Rows that only got the column, or a wider type, are not told."""
    before = made(spark, [(1, "Ann"), (2, "Bob")], "id INT, name STRING")
    after = made(spark, [(1, "Ann", None), (2, "Bea", None)], "id BIGINT, name STRING, more STRING")
    was, is_ = (events.images(side, ("id",), OF_GOLD) for side in (events.align_columns(before, after), after))
    [change] = events.from_images(was, is_).collect()
    assert (change["op"], change["before"]["name"], change["after"]["name"]) == ("update", "Bob", "Bea")


def test_keys_of_maps_are_texts(spark: SparkSession) -> None:
    """Of bytes as bytes are written, and of what is nested its JSON, as in answers of `sql`."""
    maps = "map(X'ff00', DATE'2020-01-02') AS raw, map(struct(1.50BD AS x), map(DATE'2020-01-02', 2BD)) AS pairs"
    rows = spark.sql(f"SELECT 1 AS id, {maps}")
    [[told]] = events.images(rows, ("id",), OF_GOLD).select(F.to_json("image")).collect()
    pairs = {'{"x":1.50}': {"2020-01-02": "2"}}
    assert json.loads(told) == {"id": 1, "raw": {"/wA=": "2020-01-02"}, "pairs": pairs}


def test_the_schema_holds_for_what_is_sent(spark: SparkSession) -> None:
    """JSON Schema 2020-12 is written beside the control row; types, nullability and constants are those of the
    events.
    """
    world = World(spark)
    world.put((1, "Ann", Decimal("1.50"), "upsert"))
    world.deliver()
    schema = world.control.get(world.lake.event_schema("people", 1))
    assert schema is not None
    members = schema["properties"]
    assert members["key"]["properties"] == {"id": {"type": "integer"}}
    image, nothing = members["after"]["anyOf"]
    assert nothing == {"type": "null"}
    assert image["properties"] == {
        "id": {"type": ["integer", "null"]},
        "name": {"type": ["string", "null"]},
        "credit": {"type": ["string", "null"]},
    }
    assert set(schema["required"]) == set(world.told[0])
    assert set(members["source"]["required"]) == set(world.told[0]["source"])
    assert members["type"]["const"] == world.told[0]["type"]


def test_numbers_that_json_lacks_are_texts_and_the_schema_allows_them(spark: SparkSession) -> None:
    """A consumer that validates events would refuse those of a row with NaN."""
    rows = spark.sql("SELECT 1 AS id, stack(4, 1.5D, double('NaN'), double('inf'), double('-inf')) AS x")
    images = events.images(rows, ("id",), OF_GOLD)
    told = [json.loads(text)["x"] for [text] in images.select(F.to_json("image")).collect()]
    assert told == [1.5, "NaN", "Infinity", "-Infinity"]
    image = images.schema["image"].dataType
    assert isinstance(image, T.StructType)
    wanted = build_json_schema(OF_GOLD, image, image)["properties"]["after"]["anyOf"][0]["properties"]["x"]
    assert wanted["type"] == ["number", "string", "null"]
    assert all(isinstance(each, float) or re.search(wanted["pattern"], each) for each in told)


@pytest.mark.parametrize("damage", ["gone", "cut off"])
def test_a_table_that_lost_a_file_is_not_taken_for_an_expression(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    """Nobody has to look for what is wrong with `select`: the file is named, with the way out. One that is gone is
    missed when the query is made, another when it runs.
    """
    world = World(spark, tables=DeltaFormat(), lake=Lake(str(tmp_path)))
    world.put((1, "Ann", None, "upsert"))
    folder = Path(world.lake.gold("dim_people").location)
    [file] = folder.glob("*.parquet")
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9])
    error = stopped(world)
    assert isinstance(error, EngineFailed), error
    assert file.name in str(error)
    assert f"remove the folder {folder}" in str(error.fix)


def test_versions_that_are_not_kept_any_more_stop_the_feed(spark: SparkSession) -> None:
    """Nobody could tell what they did: a named error, and how to go on."""
    world = World(spark)
    world.put((1, "Ann", None, "upsert"))
    world.deliver()
    world.put((1, "Bob", None, "upsert"))
    world.tables._tables[world.lake.gold("dim_people").location].begins = 1
    assert isinstance(stopped(world), ChangesLost)
    assert len(world.sent) == 1


def test_two_keys_within_a_millisecond_are_two(spark: SparkSession) -> None:
    """Types.md Y2: a key that is a time is told apart by all of its digits."""

    def images(*values: int) -> Any:
        rows = ", ".join(f"(TIMESTAMP_NTZ'2024-03-31 02:30:00.00000{at}', {v})" for at, v in enumerate(values))
        return spark.sql(f"SELECT struct(at) AS key, struct(v) AS image FROM VALUES {rows} AS t (at, v)")

    found = events.from_images(images(1, 2), images(1, 3)).collect()
    assert [(row["before"]["v"], row["after"]["v"], row["op"]) for row in found] == [(2, 3, events.UPDATE)]
