"""What `replicator run` decides before it has a JVM, and what a run over captured events tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.cli import app, recorded_files, run_summary
from replicator.cli.best_effort import write_best_effort
from replicator.config.sourcefile import load_declare_file
from replicator.errors import ConfigError, Unreachable
from tests.builders import envelope
from tests.cli import said

DECLARED = """
hash_key: a key of hashed columns
mask_before_bronze: {shop.peple: {drop: [ssn]}}
tables:
  shop.orders: {columns: {id: int}}
  shop.order_line: {columns: {id: int}}
  all.items: {columns: {id: int}, shards: 'shop[.]items_.*', shard_column: shard, truncate: fail}
"""


@pytest.mark.parametrize(
    ("sizes", "few"),
    [((10, 20), True), ((recorded_files._SMALL_BYTES, 1), False), ((recorded_files._SMALL_BYTES,), True)],
    ids=str,
)
def test_a_few_captured_events_are_taken_by_a_jvm_that_compiles_quickly(
    tmp_path: Path, sizes: tuple[int, ...], few: bool
) -> None:
    """All files together decide (decision 0053)."""
    files = []
    for at, size in enumerate(sizes):
        file = tmp_path / f"{at}.jsonl"
        with file.open("wb") as out:
            out.truncate(size)
        files.append(str(file))
    assert recorded_files._is_small(files) is few


def test_what_is_no_file_here_may_be_long(tmp_path: Path) -> None:
    """A pattern, a folder, an object: their size is not known before they are read."""
    assert not recorded_files._is_small([f"{tmp_path}/*.jsonl"])
    assert not recorded_files._is_small([str(tmp_path)])
    assert not recorded_files._is_small(["s3a://bucket/events.jsonl"])


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("", False),
        ("tables: {a.b: {}}", False),
        ("name: s\ndeletes: rewrite", False),
        ("name: s\ninclude: [a.b]", True),
        ("name: s\nexclude: [a.b]", True),
        ("name: s\ntopics: 's[.]a[.].*'", True),
    ],
)
def test_a_selection_of_topics_in_a_declaration_is_noticed(tmp_path: Path, text: str, selects: bool) -> None:
    """Every record of a file is loaded: a run says that such a key has no effect on it."""
    (tmp_path / "d.yaml").write_text(text, encoding="utf-8")
    assert recorded_files._selects_topics(load_declare_file(tmp_path / "d.yaml")) is selects


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gold", "--lake", "lake", "--conf", "conf"], "neither a source .*: with --lake no configuration is read"),
        (["--recorded", "e.jsonl", "--lake", "lake", "--continuous"], "recorded files are finite"),
        (["silver", "--recorded", "e.jsonl", "--lake", "lake"], "silver is a stage, not a file"),
        (["--recorded", "", "--lake", "lake"], "an empty file name"),
        (["--declare", "declare.yaml", "--conf", "conf"], "--declare needs --recorded FILE"),
    ],
    ids=["nothing to do", "no end", "a stage", "no name", "declared for nothing"],
)
def test_a_run_that_could_do_nothing_says_so(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matter of usage (exit code 2), before anything is made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=words):
        said("run", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_takes_no_note_of_a_run_holds_nothing_up(capsys: pytest.CaptureFixture[str]) -> None:
    """A full disk: what became of the tables is told all the same, and decides the exit code."""

    def note() -> None:
        raise Unreachable("no space is left", where="lake/_replicator/runs/1.json")

    write_best_effort(note, run_summary._RUN_LOG_LOST)
    assert "will not show all of this run: Unreachable: no space is left" in capsys.readouterr().err


@pytest.mark.spark
def test_a_recording_tells_its_time_and_what_is_declared_of_no_table(spark: SparkSession, tmp_path: Path) -> None:
    """A misspelled table, or mask, holds for nothing: it is named on stderr with the nearest that there is."""
    events, declare = tmp_path / "events.jsonl", tmp_path / "declare.yaml"
    declare.write_text(DECLARED)
    tables = ("orders", "order_lines", "people", "items_1")
    records = [
        {"topic": f"s.shop.{table}", "partition": 0, "offset": 0, "ts": 1700000000000, "key": '{"id": 1}',
         "payload": json.dumps(envelope("c", {"id": 1}, table=f"shop.{table}", pos=10))}
        for table in tables
    ]  # fmt: skip
    events.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    command = ["run", "--recorded", str(events), "--declare", str(declare), "--lake", str(tmp_path / "lake"), "--json"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    lines = json.loads(done.stdout)
    assert [(line["rows_in"], line["seconds"] > 0) for line in lines if line["stage"] == "bronze"] == [(4, True)]
    assert [line for line in done.stderr.splitlines() if "no record belongs to" in line] == [
        f"{declare} declares shop.order_line, but no record belongs to it; did you mean 'shop.order_lines'?",
        f"{declare} declares shop.peple, but no record belongs to it; did you mean 'shop.people'?",
    ]
