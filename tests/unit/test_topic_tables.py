"""A topic's records as tables, and the commits of a table, for ``sql --topic`` and ``tail``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.cli import app
from replicator.cli.spark_sql import TopicEngine
from replicator.errors import ConfigError, VersionMissing
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import tail
from replicator.spec import Column, Declaration, Mask, Progress, SourceSpec, Table, Transform
from replicator.stages import topic_tables
from replicator.stages.refinement import Refinement
from replicator.stages.topic_tables import TopicTables
from tests.builders import UNSENT, envelope, made, record, wrapped
from tests.cli import said

pytestmark = pytest.mark.spark

KAFKA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
TOPIC = "s.shop.orders"
TYPED = Declaration("shop.orders", (Column("id", "int"), Column("total", "decimal(10,2)")))
ROW = {"id": 1, "Name": "Ann", "total": "BOI=", "note": "x"}


def _row_schema(kind: str) -> dict[str, Any]:
    """The schema block of an envelope whose rows have a Name of that type."""
    row = [{"type": "int32", "optional": False, "field": "id"}, {"type": kind, "optional": True, "field": "Name"}]
    images = [{"type": "struct", "optional": True, "fields": row, "field": side} for side in ("before", "after")]
    return {"type": "struct", "fields": [*images, {"type": "string", "optional": False, "field": "op"}]}


@contextmanager
def told(
    spark: SparkSession, *values: Any, name: str = TOPIC, declared: Declaration = TYPED, masks: tuple[Mask, ...] = ()
) -> Iterator[TopicTables]:
    """Records of a topic, one of each value."""
    records = [record(name, at, {"id": 1}, value) for at, value in enumerate(values)]
    rows: list[Any] = [
        (r.topic, 0, r.offset, None, (r.key or "").encode(), None if r.value is None else r.value.encode(), [])
        for r in records
    ]
    memory = MemoryFormat()
    source = SourceSpec("s", "s[.].*", tables=(declared,), masks=masks)
    at = Refinement(source, memory, memory, MemoryControl(), Lake("memory"))
    with topic_tables.read_tables(spark, at, lambda session: made(session, rows, KAFKA)) as found:
        yield found


def test_every_change_is_a_row_of_its_table(spark: SparkSession) -> None:
    """Typed as silver types it, in the source's spelling and order; what cannot be decoded is among the records."""
    changes = (
        envelope("c", ROW, pos=4),
        envelope("u", ROW | {"total": "BPY=", "note": UNSENT}, pos=8),
        envelope("d", None, ROW, pos=12),
        None,
        "{",
        envelope("c", {"id": 2, "Name": "B", "total": "1", "note": None}, pos=16, table="shop.other"),
    )
    with told(spark, *changes) as found:
        engine = TopicEngine(found)
        texts = list(engine.ask("SELECT ID, Name, total, note, _op, _offset FROM orders ORDER BY _seq", None).texts())
        assert texts == [
            ["1", "Ann", "12.50", "x", "c", "0"],
            ["1", "Ann", "12.70", None, "u", "1"],
            ["1", None, None, None, "d", "2"],
        ]
        notes = list(engine.ask("SELECT offset, op, note FROM records WHERE note IS NOT NULL ORDER BY 1", None).texts())
        assert notes == [["3", None, "tombstone"], ["4", None, "malformed_json"]]
        assert engine.summary() == "views: orders, other, records"
        with pytest.raises(ConfigError, match="Available: orders, other, records"):
            engine.ask("SELECT * FROM customers", None)
        with pytest.raises(ConfigError, match="Only queries"):
            engine.ask("DROP VIEW orders", None)


def test_a_topic_without_tables_has_its_records(spark: SparkSession) -> None:
    """Scenario 2's seven messages: seven, and six distinct ones."""
    messages = [
        {"id": number, "message": text}
        for number, text in zip([1, 2, 3, 4, 5, 6, 6], ["hi", "hello"] * 3 + ["hello"], strict=True)
    ]
    with told(spark, *messages, name="test_json_topic") as found:
        query = "SELECT count(*), count(DISTINCT value) FROM records"
        assert list(TopicEngine(found).ask(query, None).texts()) == [["7", "6"]]


def test_what_the_source_hides_is_null(spark: SparkSession) -> None:
    """In its table and, since a text has it all, in the records."""
    declared = Declaration("shop.orders", transform=Transform(masked=("Name",)))
    with told(spark, envelope("c", ROW), declared=declared) as found:
        engine = TopicEngine(found)
        assert list(engine.ask("SELECT id, Name, note FROM orders", None).texts()) == [["1", None, "x"]]
        assert list(engine.ask("SELECT key, value, op FROM records", None).texts()) == [[None, None, "c"]]
    versions = [
        wrapped(envelope("c", {"id": 1, "Name": value}, pos=at), _row_schema(kind))
        for at, (kind, value) in enumerate((("int32", 7), ("string", "Ann")))
    ]
    with told(spark, *versions, declared=declared) as found:
        rows = found.tables["shop.orders"].select("Name", "Name__v2").collect()
        assert list(map(tuple, rows)) == [(None, None), (None, None)]


def test_what_the_source_hides_of_a_shard_is_null_in_the_table_of_all(spark: SparkSession) -> None:
    """A mask names one shard; the topic itself has its values in clear text."""
    shards = Declaration("shop.orders", shards="shop_[0-9][.]orders", transform=Transform(shard="shard"))
    masks = (Mask("shop_1.orders", hashed=("Name",)), Mask("shop_2.orders", dropped=("note",)))
    change = envelope("c", ROW, table="shop_1.orders")
    with told(spark, change, name="s.shop_1.orders", declared=shards, masks=masks) as found:
        assert [tuple(row) for row in found.tables["shop.orders"].select("id", "Name", "note").collect()] == [
            (1, None, None)
        ]


def test_the_commits_of_a_table_are_told_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    """The first one made all rows; later ones show what they changed; nothing of deleted rows is shown as live. Those
    that upkeep has left no files of are passed over, unless one of them is asked for.
    """
    gold, columns = DeltaFormat(), "id INT, name STRING, _op STRING"
    table = Table("people", f"{tmp_path}/gold/people", ("id",))

    def put(version: int, *rows: tuple[Any, ...]) -> None:
        gold.put(made(spark, rows, columns), table, Progress("in", version))

    put(1, (1, "Ann", "upsert"), (2, "Bob", "upsert"))
    put(2, (1, "Anna", "upsert"), (2, None, "delete"), (3, "Cid", "upsert"))
    seen = []
    for version in (0, 1):
        with tail.read_commit(spark, gold, table, version) as (moment, rows):
            assert moment.version == version
            seen.append(
                [(row["change"], row["key"], row["before"], row["after"]) for row in rows.orderBy("at").collect()]
            )
    assert [change for change, *_ in seen[0]] == ["added", "added"]
    assert seen[1] == [
        ("changed", {"id": "1"}, {"name": '"Ann"'}, {"name": '"Anna"'}),
        ("removed", {"id": "2"}, {"name": '"Bob"'}, None),
        ("added", {"id": "3"}, None, {"name": '"Cid"'}),
    ]
    with pytest.raises(VersionMissing), tail.read_commit(spark, gold, table, 2):
        pass
    conf = tmp_path / "conf"
    (conf / "models").mkdir(parents=True)
    (conf / "local.yaml").write_text(f"lake: {{root: {tmp_path}}}\n", encoding="utf-8")
    (conf / "models/people.sql").write_text("SELECT 1 AS id, 'x' AS name", encoding="utf-8")
    model = "key: [id]\ninputs: {}\ncolumns: {id: {type: integer}, name: {type: text}}\n"
    (conf / "models/people.yaml").write_text(model, encoding="utf-8")
    shown = said("tail", "people", "--conf", str(conf), "--from", "1", "--limit", "1").strip()
    assert shown.startswith("1  20")
    assert shown.endswith("changed  id=1  name: Ann → Anna")
    [line] = said("tail", "people", "--conf", str(conf), "--from", "-1", "--limit", "1", "--json").splitlines()
    assert json.loads(line) | {"timestamp": ""} == {
        "table": "people", "version": 1, "timestamp": "", "change": "changed", "key": {"id": 1},
        "before": {"name": "Ann"}, "after": {"name": "Anna"},
    }  # fmt: skip
    put(3, (3, "Cyd", "upsert"))
    put(4, (4, "Dan", "upsert"))
    files = [set(spark.read.format("delta").option("versionAsOf", v).load(table.location).inputFiles()) for v in (1, 2)]
    for gone in files[0] - files[1]:
        Path(gone.removeprefix("file:")).unlink()
    for start in ((), ("--from", "beginning")):
        told = CliRunner().invoke(app, ["tail", "people", "--conf", str(conf), *start], catch_exceptions=False)
        assert [line[0] for line in told.stdout.splitlines()] == ["0", "0", "3"]
        assert "The changes of versions 1 to 2 of people cannot be shown" in told.stderr
    with pytest.raises(VersionMissing):
        said("tail", "people", "--conf", str(conf), "--from", "1")
