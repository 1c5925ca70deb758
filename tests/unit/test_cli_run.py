"""What `replicator run` decides before it has a JVM."""

from __future__ import annotations

import pytest

from replicator.cli import run
from replicator.errors import ConfigError
from tests.cli import said


@pytest.mark.parametrize(
    ("sizes", "few"), [((10, 20), True), ((run._FEW_BYTES, 1), False), ((run._FEW_BYTES,), True)], ids=str
)
def test_a_few_captured_events_are_taken_by_a_jvm_that_compiles_quickly(tmp_path, sizes, few):
    """All files together decide (decision 0053)."""
    files = []
    for at, size in enumerate(sizes):
        file = tmp_path / f"{at}.jsonl"
        with file.open("wb") as out:
            out.truncate(size)
        files.append(str(file))
    assert run._are_few(files) is few


def test_what_is_no_file_here_may_be_long(tmp_path):
    """A pattern, a folder, an object: their size is not known before they are read."""
    assert not run._are_few([f"{tmp_path}/*.jsonl"])
    assert not run._are_few([str(tmp_path)])
    assert not run._are_few(["s3a://bucket/events.jsonl"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lake", "lake"], "neither a source nor a model is configured"),
        (["--recorded", "e.jsonl", "--lake", "lake", "--continuous"], "recorded files have an end"),
        (["silver", "--recorded", "e.jsonl", "--lake", "lake"], "silver is a stage, not a file"),
    ],
    ids=["nothing to do", "no end", "a stage"],
)
def test_a_run_that_could_do_nothing_says_so(arguments, words, tmp_path, monkeypatch):
    """A matter of usage (exit code 2), before anything is made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=words):
        said("run", *arguments)
    assert list(tmp_path.iterdir()) == []
