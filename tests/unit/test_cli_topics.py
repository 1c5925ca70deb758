"""What `tail` and `schema infer` are given: a file, a topic or a table; no Spark needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from replicator.cli import topics
from replicator.errors import BadRecording
from tests.cli import ended


@pytest.mark.parametrize("verb", [("tail",), ("schema", "infer")])
@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz", "./events", "/nowhere/events.json", "."])
def test_a_file_that_is_not_there_is_told_as_one(tmp_path: Path, verb: tuple[str, ...], name: str) -> None:
    """And not as a configuration that is missing, which a file does not need."""
    done = ended(*verb, name, "--conf", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"[{name}] Check the path." in done.stderr


@pytest.mark.parametrize(
    "name", ["orders", "shop.sales.orders", "shop/sales.orders", "shop.sales.json", "überweisungen"]
)
def test_what_may_be_a_topic_or_a_table_is_no_file(name: str) -> None:
    """Topics may end as files do that hold JSON."""
    assert topics.recorded_file(name) is None


def test_a_folder_is_no_file_of_events(tmp_path: Path) -> None:
    """Its files are."""
    with pytest.raises(BadRecording, match="it is a folder"):
        topics.recorded_file(str(tmp_path))
    file = tmp_path / "events"
    file.write_text("", encoding="utf-8")
    assert topics.recorded_file(str(file)) == file


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    """`tail <(zcat events.jsonl.gz)`: the shell gives its name."""
    os.mkfifo(tmp_path / "pipe")
    assert topics.recorded_file(str(tmp_path / "pipe")) == tmp_path / "pipe"


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        (("tail",), "--brokers"),
        (("tail",), "--lake"),
        (("schema", "infer"), "--brokers"),
        (("schema", "avro"), "--brokers"),
    ],
)
def test_a_file_is_not_looked_for_in_a_cluster_or_a_lake(tmp_path: Path, verb: tuple[str, ...], option: str) -> None:
    """An option without effect is refused: whoever gives it expects the topic or the table."""
    (tmp_path / "events.jsonl").write_text("", encoding="utf-8")
    done = ended(*verb, str(tmp_path / "events.jsonl"), option, "127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"events.jsonl is a file, which needs no {option}. Omit {option}." in done.stderr


def test_a_file_with_the_name_of_a_topic_is_not_read_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--brokers` a name is a topic, whatever lies in the folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.sales.orders").write_text("", encoding="utf-8")
    assert topics.recorded_file("shop.sales.orders") == Path("shop.sales.orders")
    assert topics.recorded_file("shop.sales.orders", "--brokers") is None
