"""``dead-letters`` and ``explain`` as a user calls them, over the events that README.md shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.errors import ConfigError
from tests import readme
from tests.cli import ended, said

pytestmark = pytest.mark.spark

PLACE = ("shop.sales.orders", "0", "3")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With events.jsonl, declare.yaml and the lake made of them; tests leave it as it is."""
    made = tmp_path_factory.mktemp("own")
    document = next(c for c in readme.commands("Your own captured events") if c.startswith("cat > events.jsonl"))
    (made / "events.jsonl").write_text("\n".join(document.splitlines()[1:-1]) + "\n", encoding="utf-8")
    (made / "declare.yaml").write_text(readme.file("declare.yaml"), encoding="utf-8")
    run(made, "run", "--recorded", str(made / "events.jsonl"), "--declare", str(made / "declare.yaml"))
    return made


def run(folder: Path, *arguments: str) -> str:
    """What a command over the folder's lake prints on stdout."""
    return said(*arguments, "--lake", str(folder / "lake"))


def data(folder: Path, *arguments: str) -> Any:
    return json.loads(run(folder, *arguments, "--json"))


def test_a_letter_is_counted_shown_with_its_bytes_and_explained(folder: Path) -> None:
    """R4: the reason in words, how to fix it, and the record from bronze."""
    [count] = data(folder, "dead-letters", "list")
    assert (count["table"], count["reason"], count["letters"]) == ("sales.orders", "key_missing", 1)
    [letter] = data(folder, "dead-letters", "list", "--rows", "--table", "orders")
    assert (letter["topic"], str(letter["partition"]), str(letter["offset"])) == PLACE
    assert data(folder, "dead-letters", "list", "--reason", "type_mismatch") == []
    shown = data(folder, "dead-letters", "show", *PLACE)
    assert shown["value"]["after"]["id"] == 3
    assert letter["position"] == shown["position"] == "file 1, pos 400, offset 3"
    assert "no key" in shown["meaning"]
    assert '"pos": 400' in run(folder, "dead-letters", "show", *PLACE)
    with pytest.raises(ConfigError, match="no such record"):
        run(folder, "dead-letters", "show", "shop.sales.orders", "0", "99")


def test_letters_that_are_not_shown_or_whose_records_are_gone_are_told(folder: Path, tmp_path: Path) -> None:
    """What a limit leaves out, and why a retry finds nothing to try."""
    folder = shutil.copytree(folder, tmp_path / "own")
    lake, declared = ("--lake", str(folder / "lake")), ("--declare", str(folder / "declare.yaml"))
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    keyless = [lines[3].replace('"offset":3', f'"offset":{offset}') for offset in (4, 5)]
    for name, some in (("keyless.jsonl", keyless), ("first.jsonl", lines[:2])):
        (folder / name).write_text("\n".join(some) + "\n", encoding="utf-8")
    run(folder, "run", "--recorded", str(folder / "keyless.jsonl"), *declared)
    for limit, left_out in (("2", True), ("3", False)):
        shown = ended("dead-letters", "list", "--rows", "--limit", limit, "--json", *lake)
        assert len(json.loads(shown.stdout)) == int(limit)
        assert ("only the first 2 dead letters per source" in shown.stderr) is left_out
    shutil.rmtree(folder / "lake" / "bronze")
    assert ended("run", "--recorded", str(folder / "first.jsonl"), *declared, *lake).returncode == 1
    retried = ended("dead-letters", "retry", "--all", *declared, *lake)
    assert (retried.returncode, retried.stdout) == (0, "")
    assert "3 dead letters stay: bronze no longer has their records" in retried.stderr


def test_explain_tells_the_life_of_a_row_and_how_it_stands(folder: Path) -> None:
    """Which record made it, what it replaced, and the values."""
    declared = ("--declare", str(folder / "declare.yaml"))
    life = data(folder, "explain", "orders", "1", *declared)
    assert [(e["offset"], e["op"], e["verdict"]) for e in life["entries"]] == [(0, "c", "applied"), (2, "u", "applied")]
    assert {cell["column"]: cell["value"] for cell in life["row"]} == {
        "id": "1",
        "placed": "2026-01-01",
        "total": "19.90",
    }
    told = run(folder, "explain", "sales.orders", "id=1", *declared)
    assert "sets the row, until shop.sales.orders/0/2" in told
    assert "was last changed at file 1, pos 300, offset 2" in told
    assert "no record of this key" in run(folder, "explain", "orders", "77", *declared)


def test_retry_and_drop_ask_what_is_meant_and_leave_a_trace(folder: Path, tmp_path: Path) -> None:
    """Nothing is given up by accident, and what was given up is found again."""
    folder = shutil.copytree(folder, tmp_path / "own")
    for verb in ("retry", "drop"):
        with pytest.raises(ConfigError, match="no dead letters are selected"):
            run(folder, "dead-letters", verb)
        with pytest.raises(ConfigError, match="--all cannot be combined"):
            run(folder, "dead-letters", verb, "--all", "--table", "orders")
    with pytest.raises(ConfigError, match=r"source 'shoop' does not exist"):
        run(folder, "dead-letters", "list", "--source", "shoop")
    told = "--declare", str(folder / "declare.yaml"), "--lake", str(folder / "lake")
    retried = ended("dead-letters", "retry", "--all", *told, "--json")
    assert "none of these records has a key" in retried.stderr, "others of the table have one"
    [line] = json.loads(retried.stdout)
    assert (line["letters"], line["applied"], line["still_dead"]) == (1, 0, 1)
    assert [count["letters"] for count in data(folder, "dead-letters", "drop", "--table", "orders")] == [1]
    assert len(data(folder, "dead-letters", "list")) == 1
    run(folder, "dead-letters", "drop", "--table", "orders", "--yes")
    assert data(folder, "dead-letters", "list") == []
    [gone] = data(folder, "dead-letters", "list", "--dropped", "--rows")
    assert (gone["reason"], gone["filter"]) == ("key_missing", "table=orders")
    assert data(folder, "dead-letters", "show", *PLACE)["dropped_at"] == gone["dropped_at"]
