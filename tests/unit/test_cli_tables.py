"""``replicator tables``, and a transform and a mask from a ``--declare`` file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest

from replicator.errors import LeaseLost
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import pause
from replicator.operate.lock import LeaseOptions, operator_lock
from replicator.spec import SourceSpec
from replicator.stages.refinement import Refinement
from replicator.transforms.table_transform.hashing import digest
from tests.builders import envelope
from tests.cli import said

pytestmark = pytest.mark.spark

KEY = "the key of hashed columns"
DECLARED = """
hash_key: ${TEST_HASH_KEY}
mask_before_bronze:
  shop.people: {hash: [email], drop: [ssn]}
tables:
  shop.people:
    columns: {id: int, email: string, name: string}
    transform: {derive: {initial: "substring(name, 1, 1)"}, where: id < 3, hash: [name]}
"""


def line(offset: int, key: int, **values: object) -> str:
    """A record as kcat prints it."""
    row = {"id": key, "email": "ann@example.org", "ssn": "078-05", "name": "Ann", **values}
    told = envelope("c" if offset < 4 else "u", row, table="shop.people", pos=10 * offset)
    place = {"topic": "s.shop.people", "partition": 0, "offset": offset, "ts": 1700000000000}
    return json.dumps({**place, "key": json.dumps({"id": key}), "payload": json.dumps(told)})


def test_recorded_events_are_masked_transformed_and_paused(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file to a query: nothing of the lake holds what policy keeps out; a paused table waits for its records."""
    assert spark is not None
    monkeypatch.setenv("TEST_HASH_KEY", KEY)
    declare, first, more = (tmp_path / name for name in ("declare.yaml", "first.jsonl", "more.jsonl"))
    declare.write_text(DECLARED)
    first.write_text("".join(f"{line(key, key)}\n" for key in (1, 2, 3)))
    more.write_text(f"{line(4, 2, name='Bob')}\n{line(5, 1)}\n{line(6, 1, id=1, name=None)}\n")
    lake = ("--lake", str(tmp_path / "lake"))

    def run(file: Path) -> dict[str, int]:
        told = json.loads(said("run", "--json", "--recorded", str(file), "--declare", str(declare), *lake))
        assert [each["error"] for each in told if each["error"]] == []
        return {each["stage"]: each["applied"] for each in told}

    def rows() -> list[list[object]]:
        told = said("sql", "SELECT id, email, name, initial FROM people ORDER BY id", *lake, "--format", "json")
        return [list(each.values()) for each in json.loads(told)]

    assert run(first) == {"bronze": 3, "silver": 3}
    paused = json.loads(said("tables", "pause", "people", *lake, "--json"))
    assert [each["table"] for each in paused] == ["s/shop.people"]
    assert run(more) == {"bronze": 3}
    assert "s/shop.people (paused)" in said("status", *lake)
    assert json.loads(said("tables", "show", *lake, "--json")) == paused
    assert json.loads(said("tables", "resume", "s/shop.people", *lake, "--json"))[0]["paused"] is None
    assert run(more) == {"bronze": 0, "silver": 2}
    email = digest(KEY, "ann@example.org")
    assert rows() == [[1, email, None, None], [2, email, digest(KEY, "Bob"), "B"]]
    files = [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
    held = "".join(
        str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_bytes().decode("latin1")
        for path in files
    )
    assert email in held
    assert not [clear for clear in ("ann@example", "078-05", KEY) if clear in held]


@pytest.fixture
def lake(spark: object, tmp_path: Path) -> Lake:
    """With one table."""
    assert spark is not None
    first, made = tmp_path / "first.jsonl", Lake(str(tmp_path / "lake"))
    first.write_text(f"{line(1, 1)}\n")
    said("run", "--recorded", str(first), "--lake", made.root)
    return made


def test_a_paused_table_can_be_resumed_when_it_is_no_longer_declared(lake: Lake, tmp_path: Path) -> None:
    """``show`` lists it, so ``resume`` knows it: its records would wait for ever once they come."""
    source = tmp_path / "conf" / "sources" / "s.yaml"
    source.parent.mkdir(parents=True)
    (tmp_path / "conf" / "base.yaml").write_text(f"lake: {{root: {lake.root}}}\n")
    given = ("--conf", str(tmp_path / "conf"), "--env", "base", "--json")
    source.write_text("name: s\ntables: {shop.later: {}}\n")
    said("tables", "pause", "later", *given)
    source.write_text("name: s\n")
    assert json.loads(said("tables", "resume", "later", *given)) == [{"table": "s/shop.later", "paused": None}]


def test_of_two_who_say_something_at_once_no_word_is_lost(lake: Lake) -> None:
    """Who pauses a table writes anew what is said of all: one that had read it before would lose the other's word."""
    row, begun, seen = Path(lake.pauses("s")), Event(), list[bool]()

    def speaking() -> None:
        with operator_lock(lake, LeaseOptions()):
            begun.set()
            give_up = time.monotonic() + 4
            while not row.exists() and time.monotonic() < give_up:
                time.sleep(0.1)
            seen.append(row.exists())

    other = Thread(target=speaking)
    other.start()
    assert begun.wait(30)
    said("tables", "pause", "people", "--lake", lake.root)
    other.join()
    assert (seen, row.exists()) == ([False], True)
    assert "words" in said("lease", "show", "--lake", lake.root)


def test_a_word_is_not_written_once_its_lease_is_lost(lake: Lake) -> None:
    """Who was suspended, and shut out meanwhile, would undo what another has said."""
    at = Refinement(SourceSpec("s", ".*"), MemoryFormat(), MemoryFormat(), MemoryControl(), lake)

    def say() -> None:
        with operator_lock(lake, LeaseOptions(length=1.0)) as fence:
            said("lease", "break", "words", "--lake", lake.root)
            time.sleep(0.2)  # for so long the store's word is taken as it was
            pause.pause(pause.with_fence([(at, "shop.people")], fence), "now")

    with pytest.raises(LeaseLost):
        say()
    assert at.control.get(lake.pauses("s")) is None
