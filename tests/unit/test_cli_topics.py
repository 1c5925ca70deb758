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
