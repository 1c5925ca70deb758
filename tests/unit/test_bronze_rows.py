"""Kafka records -> bronze rows, and which files' records are new."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.sources.recorded import RecordedSource
from replicator.stages import bronze
from replicator.stages.bronze import Ingestion
from tests.builders import envelope, made, wrapped

pytestmark = pytest.mark.spark

KAFKA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
BYTES = {
    "text": b'{"a":"\xc3\xa9"}',
    "nothing": None,
    "zero bytes": b"",
    "replacement character": "\ufffd".encode(),
    "nul": b"a\x00b",
    "not UTF-8": b'{"a":"\xff"}',
    "cut in a character": b"\xc3",
    "surrogate": b"\xed\xa0\x80",
    "overlong": b"\xc0\xaf",
}
UNDECODABLE = {"not UTF-8", "cut in a character", "surrogate", "overlong"}


def kafka(session: SparkSession, *records: tuple[str, bytes | None, bytes | None]) -> DataFrame:
    return made(session, [(topic, 0, at, None, k, v, []) for at, (topic, k, v) in enumerate(records)], KAFKA)


def test_every_byte_is_kept(exact: SparkSession) -> None:
    """Text where the bytes are UTF-8, the bytes themselves where they are not; key and value alone (A)."""
    records = kafka(exact, *[("t", value, value) for value in BYTES.values()], ("t", b"\xff", b"good"))
    *rows, mixed = sorted(bronze.rows(records, {}).collect(), key=lambda row: row["offset"])
    for (name, sent), row in zip(BYTES.items(), rows, strict=True):
        held = row["undecodable"]
        if name in UNDECODABLE:
            assert (row["key"], row["value"], held["key"], held["value"]) == (None, None, sent, sent), name
        else:
            texts = None if sent is None else sent.decode()
            assert (row["key"], row["value"], held) == (texts, texts, None), name
    assert (mixed["key"], mixed["value"], mixed["undecodable"]["key"], mixed["undecodable"]["value"]) == (
        None, "good", b"\xff", None,
    )  # fmt: skip


def test_a_row_carries_its_topics_incarnation(exact: SparkSession) -> None:
    """J5: Kafka's id of the topic; NULL where nobody knows one."""
    rows = bronze.rows(kafka(exact, ("a", b"", b""), ("b", b"", b"")), {"a": "id-of-a"}).collect()
    assert {row["topic"]: row["topic_id"] for row in rows} == {"a": "id-of-a", "b": None}


def test_a_topic_belongs_to_the_source_that_its_records_name(exact: SparkSession) -> None:
    """Architecture 9.1: `source.name` in any wrapping, else the first part of the topic's name."""
    told = {
        "renamed": envelope("c", {"id": 1}, name="one"),
        "wrapped": wrapped(envelope("c", {"id": 1}, name="two")),
        "three.shop.flat": {"id": 1},
        "__debezium-heartbeat.four": {"ts_ms": 1},
    }
    records = kafka(exact, *[(topic, None, json.dumps(value).encode()) for topic, value in told.items()],
                    ("renamed", b"k", None))  # fmt: skip
    found = bronze.sources_of(records)
    assert found == {
        "renamed": "one",
        "wrapped": "two",
        "three.shop.flat": "three",
        "__debezium-heartbeat.four": "four",
    }


def test_a_file_that_is_read_again_adds_what_is_new(exact: SparkSession, tmp_path: Path) -> None:
    """Architecture 9.6: (topic, partition, offset) is once in bronze, in one file, in two, and over several runs."""

    def line(offset: int, topic: str = "a.b.c") -> str:
        return json.dumps({"topic": topic, "partition": 0, "offset": offset, "ts": 1, "key": None, "payload": "{}"})

    (tmp_path / "one.jsonl").write_text("\n".join([line(0), line(1), line(1), line(0, "other")]))
    (tmp_path / "two.jsonl").write_text("\n".join([line(1), line(2)]))
    lake, memory = Lake(str(tmp_path / "lake")), MemoryFormat()
    one, two = (Ingestion("a", RecordedSource([str(tmp_path / f"{n}.jsonl")]), memory, lake) for n in ("one", "two"))
    added = [bronze.ingest_files(exact, each, ["a.b.c"]) for each in (one, one, two, two)]
    assert added == [2, 0, 1, 0]
    assert sorted(row["offset"] for row in memory.read(exact, one.table).collect()) == [0, 1, 2]
