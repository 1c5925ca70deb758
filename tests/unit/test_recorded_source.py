"""Records from files."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.errors import BadRecording, LakeBusy
from replicator.lake import Lake
from replicator.operate.lock import exclusive
from replicator.sources import kcat_files
from replicator.sources.recorded import RecordedSource
from tests.cli import said

pytestmark = pytest.mark.spark


def line(offset: int, topic: str = "s.shop.orders", **more: Any) -> str:
    told = {"topic": topic, "partition": 0, "offset": offset, "tstype": "create", "ts": 1700000000123, "broker": 1}
    return json.dumps(told | {"headers": [], "key": f'{{"id":{offset}}}', "payload": '{"a":"é\\u0000"}'} | more)


def test_a_line_is_a_kafka_record(exact: SparkSession, tmp_path: Path) -> None:
    """Text becomes bytes, a null stays a null, headers come in pairs; plain and compressed files, blank lines."""
    headers = ["__debezium.newkey", "é", "twice", "1", "twice", ""]
    (tmp_path / "a.jsonl").write_text("\n\n".join([line(0), line(1, payload=None, headers=headers), " "]), "utf-8")
    with gzip.open(tmp_path / "b.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(line(4, topic="s", key=None, payload=""))
    source = RecordedSource([str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl.gz")])
    first, second, third = sorted(source.read(exact).collect(), key=lambda row: row["offset"])
    assert first["value"] == b'{"a":"\xc3\xa9\\u0000"}'
    assert (first["topic"], first["partition"], first["key"], first["headers"]) == ("s.shop.orders", 0, b'{"id":0}', [])
    assert second["value"] is None
    assert [(name, bytes(value)) for name, value in second["headers"]] == [
        ("__debezium.newkey", "é".encode()), ("twice", b"1"), ("twice", b""),
    ]  # fmt: skip
    assert (third["key"], third["value"]) == (None, b"")
    assert first["timestamp"].microsecond == 123000


def test_a_part_that_is_no_text_keeps_its_numbers(exact: SparkSession, tmp_path: Path) -> None:
    """Y1: as `kcat -J -s value=avro` prints it, or a person writes it; a text stays what it is, whatever it says."""
    numbers = '{"a":1.50,"b":123456789876543212345678987654321.110,"c":-0,"d":1e400,"e":null}'
    quoted = json.dumps(numbers)
    told = [("1.5", numbers), (quoted, quoted), ("null", numbers), (quoted, "null"), ('"k"', "[1.50]")]
    lines_ = [
        f'{{"topic":"t","partition":0,"offset":{at},"key":{key},"payload":{value}}}'
        for at, (key, value) in enumerate(told)
    ]
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(lines_), encoding="utf-8")
    rows = RecordedSource([str(file)]).read(exact).orderBy("offset").collect()
    found = [
        tuple(None if part is None else bytes(part).decode() for part in (row["key"], row["value"])) for row in rows
    ]
    assert found == [("1.5", numbers), (numbers, numbers), (None, numbers), (numbers, None), ("k", "[1.50]")]
    by_python = [(each.key, each.value) for each in kcat_files.read_records(file)]
    assert [tuple(None if part is None else part.decode() for part in pair) for pair in by_python] == found


def test_the_ends_are_the_first_offset_and_the_one_after_the_last_record(exact: SparkSession, tmp_path: Path) -> None:
    """Per topic and partition; gaps are normal (J1)."""
    (tmp_path / "a.jsonl").write_text("\n".join([line(0), line(7), line(3, partition=2), line(1, topic="s")]))
    source = RecordedSource([str(tmp_path)])
    assert source.end_offsets(exact) == {("s.shop.orders", 0): 8, ("s.shop.orders", 2): 4, ("s", 0): 2}
    assert source.first_offsets(exact) == {("s.shop.orders", 0): 0, ("s.shop.orders", 2): 3, ("s", 0): 1}
    assert source.topic_ids(exact) == {}


def without(part: str, **more: Any) -> str:
    """A line that lacks a member."""
    return json.dumps({name: value for name, value in json.loads(line(1, **more)).items() if name != part})


@pytest.mark.parametrize(
    "bad",
    [
        "{oops", "[]", "17", '{"topic":"t","partition":0}', '{"topic":"t","partition":0,"offset":"x"}',
        line(2) + line(3), line(2) + " oops", line(2) + "," + line(3), f"[{line(2)}]", line(2) + "]",
        without("payload", value="{}"), without("key"), without("payload"), line(2)[:-2] + '\udce9"}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_names_its_file(exact: SparkSession, tmp_path: Path, bad: str) -> None:
    """Nothing is skipped silently: neither what stands behind the first object of a line, nor a member whose name other
    tools write differently, which is no null; and bytes that are no text are not replaced.
    """
    (tmp_path / "good.jsonl").write_text(line(0))
    (tmp_path / "odd.jsonl").write_text(f"{line(1)}\n{bad}\n", "utf-8", "surrogateescape")
    with pytest.raises(BadRecording, match="1 line is not a Kafka record") as caught:
        RecordedSource([str(tmp_path / "good.jsonl"), str(tmp_path / "odd.jsonl")]).read(exact)
    assert str(caught.value.where) == str(tmp_path / "odd.jsonl:2")


def test_the_name_of_a_file_that_is_there_is_no_pattern(exact: SparkSession, tmp_path: Path) -> None:
    """Brackets and stars mean themselves then; else they say which files."""
    folder = tmp_path / "{a,b}"
    folder.mkdir()
    for offset, name in enumerate(("x[1].jsonl", "x1.jsonl", "y*.jsonl", "y2.jsonl")):
        (folder / name).write_text(line(offset))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "z3.jsonl").write_text(line(4))
    for name, offsets in (
        ("{a,b}/x[1].jsonl", {0}),
        ("{a,b}/y*.jsonl", {2}),
        ("[c]/z?.jsonl", {4}),
        ("{a,b}", {0, 1, 2, 3}),
    ):
        rows = RecordedSource([f"{tmp_path}/{name}"]).read(exact).collect()
        assert {row["offset"] for row in rows} == offsets, name


def test_a_file_that_is_not_there_is_told_by_name(exact: SparkSession, tmp_path: Path) -> None:
    """A configuration error, not a stack trace of the engine."""
    (tmp_path / "there.jsonl").write_text(line(0))
    with pytest.raises(BadRecording) as caught:
        RecordedSource([str(tmp_path / "there.jsonl"), str(tmp_path / "absent.jsonl")]).read(exact)
    assert caught.value.where == str(tmp_path / "absent.jsonl")


def test_a_file_that_is_not_there_leaves_no_lake(tmp_path: Path) -> None:
    """It is looked for before anything is made; one of several, too. A pattern is Spark's to read."""
    (tmp_path / "there.jsonl").write_text(line(0))
    for files in (["absent.jsonl"], ["there.jsonl", "absent.jsonl"]):
        with pytest.raises(BadRecording) as caught:
            said("run", "--recorded", *[str(tmp_path / file) for file in files], "--lake", str(tmp_path / "lake"))
        assert (caught.value.where, caught.value.exit_code) == (str(tmp_path / "absent.jsonl"), 2)
    assert not (tmp_path / "lake").exists()
    kcat_files.refuse_missing([str(tmp_path / "there.jsonl"), "/no/{a,b}.jsonl", "/no/*.jsonl", "s3a://no/a.jsonl"])


@pytest.mark.parametrize(("name", "reason"), [
    (b"_events.jsonl", "hidden"),
    (b".events.jsonl.gz", "hidden"),
    (b"events.jsonl._COPYING_", "hidden"),
    (b"events-10:00:00.jsonl", "colon"),
    (b"events-\xff.jsonl", "UTF-8"),
])  # fmt: skip
def test_a_file_that_spark_would_skip_or_not_open_is_told(
    exact: SparkSession, tmp_path: Path, name: bytes, reason: str
) -> None:
    """Spark takes some names for those of unfinished files and reads nothing from them: their records would be missing
    without a word, also beside other files.
    """
    file = os.path.join(os.fsencode(tmp_path), name)
    with open(file, "w", encoding="utf-8") as written:
        written.write(line(1))
    (tmp_path / "good.jsonl").write_text(line(0))
    with pytest.raises(BadRecording, match=reason) as caught:
        RecordedSource([str(tmp_path / "good.jsonl"), os.fsdecode(file)]).read(exact)
    assert (caught.value.fix, caught.value.exit_code) == ("Rename it.", 2)
    assert str(caught.value).encode()


def test_a_mark_before_the_text_of_a_file_is_no_part_of_it(exact: SparkSession, tmp_path: Path) -> None:
    """Some editors begin a file in UTF-8 so."""
    (tmp_path / "marked.jsonl").write_text(f"\ufeff{line(0)}\n{line(1)}\n", encoding="utf-8")
    rows = RecordedSource([str(tmp_path / "marked.jsonl")]).read(exact).collect()
    assert [row["offset"] for row in rows] == [0, 1]


def test_a_folder_that_is_no_recording_is_told_by_name(exact: SparkSession, tmp_path: Path) -> None:
    """Whatever else lies in it, such as tables in hive-style folders of several depths."""
    for place in ("a/x=1", "b/c/x=2"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "e.jsonl").write_text(line(0))
    with pytest.raises(BadRecording, match="folder") as caught:
        RecordedSource([str(tmp_path)]).read(exact)
    assert caught.value.where == str(tmp_path)


def test_the_line_that_is_no_record_is_told_by_the_name_that_its_file_has(exact: SparkSession, tmp_path: Path) -> None:
    """Not as Spark writes it in an address; compressed files too."""
    file = tmp_path / "ä b%20c.jsonl.gz"
    with gzip.open(file, "wt", encoding="utf-8") as written:
        written.write(f"{line(0)}\n\n{line(1)}\noops\n")
    with pytest.raises(BadRecording) as caught:
        RecordedSource([str(file)]).read(exact)
    assert caught.value.where == f"{file}:4"


@pytest.mark.parametrize(("content", "fix"), [
    (gzip.compress(line(0).encode()), "It is compressed: name it odd.jsonl.gz, or `gunzip` it. Expected JSON"),
    (line(0).encode("utf-16"), "It is in UTF-16, .* `iconv -f UTF-16 -t UTF-8`. Expected JSON lines in UTF-8"),
    (line(0).encode("utf-16-be"), "It is in UTF-16, "),
])  # fmt: skip
def test_a_file_that_holds_its_lines_in_another_way_is_told_how(
    exact: SparkSession, tmp_path: Path, content: bytes, fix: str
) -> None:
    """Compressed with no name of that kind, or as a shell of Windows writes what it is given; without Spark, too."""
    file = tmp_path / "odd.jsonl"
    file.write_bytes(content)
    for read in (RecordedSource([str(file)]).read, lambda _: list(kcat_files.read_records(file))):
        with pytest.raises(BadRecording) as caught:
            read(exact)
        assert re.match(fix, str(caught.value.fix))


def test_a_file_that_is_not_what_its_name_says_is_named(exact: SparkSession, tmp_path: Path) -> None:
    """A compressed file that is none, or that was cut off."""
    whole = gzip.compress(b'{"topic": "t", "partition": 0, "offset": 0, "key": null, "payload": "x"}\n' * 500)
    for name, content in (("plain.gz", b"{}"), ("cut.jsonl.gz", whole[:-20])):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(BadRecording, match="cannot be read") as caught:
            RecordedSource([str(file)]).read(exact).count()
        assert caught.value.where == str(file)


@pytest.mark.parametrize("name", ["cut.jsonl.gz", "odd.jsonl", "empty.jsonl"])
def test_a_first_file_that_gives_no_record_leaves_no_lake(exact: SparkSession, tmp_path: Path, name: str) -> None:
    """One that was cut off, that holds something else, or nothing: it is read before a lease is taken in a folder that
    is not there. In a lake that is there the lease comes first, so that a second driver is told soon.
    """
    assert exact
    content = {"cut.jsonl.gz": gzip.compress(line(0).encode())[:-9], "odd.jsonl": b"{", "empty.jsonl": b""}
    (tmp_path / name).write_bytes(content[name])
    words = ("run", "--recorded", str(tmp_path / name), "--lake", str(tmp_path / "lake"))
    if name == "empty.jsonl":
        said(*words)
    else:
        with pytest.raises(BadRecording):
            said(*words)
    assert not (tmp_path / "lake").exists()
    (tmp_path / name).unlink()
    (tmp_path / "whole.jsonl").write_text(line(0))
    said("run", "--recorded", str(tmp_path / "whole.jsonl"), "--lake", str(tmp_path / "lake"))
    (tmp_path / name).write_bytes(content[name])
    with exclusive(Lake(str(tmp_path / "lake")), ("bronze",)), pytest.raises(LakeBusy):
        said(*words)
