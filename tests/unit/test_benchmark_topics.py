"""What the benchmark's systems read from Kafka, and what they say that are not built."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.cdc_ch import environments, plans, runner, topics
from benchmarks.cdc_ch.contender import PUBLISH, REFINE, Case, events, tables
from benchmarks.cdc_ch.dataset import Parameters
from benchmarks.cdc_ch.plans import Plan
from benchmarks.cdc_ch.sweep import Sweep
from benchmarks.cdc_ch.systems import sink
from benchmarks.cdc_ch.tables import WIDE
from benchmarks.cdc_ch.tpcc import Scale
from infra.local import Stack
from infra.local.home import Home
from infra.local.processes import identity
from infra.local.stack import REPOSITORY
from replicator.errors import Unreachable

TRADE = Parameters(2_000, Scale(1, 10, 50), duplicates=0.05, disorder=0.05)
PLAN = Plan(TRADE, (), (), (), (Sweep(500, 100),), TRADE, 0, 1)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """One of each track."""
    home = tmp_path_factory.mktemp("topics")
    return {case.track: case for case in plans.cases(PLAN, [REFINE, PUBLISH], home, lambda _: None)}


def told(records: list[topics.Record]) -> list[dict[str, Any]]:
    """The events, tombstones left out."""
    return [json.loads(record.value) for record in records if record.value is not None]


def test_every_stored_event_keeps_its_place_and_an_update_has_a_row_before(cases: dict[str, Case]) -> None:
    """Flink refuses an update without: what a table with the default identity sends."""
    case, seen = cases[REFINE], set()
    for table in tables(case):
        for file in events(case, table):
            given = duckdb.sql(f"SELECT partition, key, value FROM '{file}'").fetchall()
            made = list(topics.events([file]))
            assert [(each.partition, each.key, each.value is None) for each in made] == [
                (partition, key, value is None) for partition, key, value in given
            ]
            for was, now in zip((json.loads(row[2]) for row in given if row[2] is not None), told(made), strict=True):
                seen.add(was["op"])
                assert now == was | ({"before": was["after"]} if was["op"] == "u" else {})
    assert seen == {"c", "u", "d"}


@pytest.mark.parametrize("before", [True, False])
def test_prepared_changes_become_events_of_the_rows_before_and_behind_them(
    cases: dict[str, Case], *, before: bool
) -> None:
    """Inserts, updates and deletes as the oracle's table has them, a tombstone behind each delete, no key in two
    partitions.
    """
    case = cases[PUBLISH]
    made = list(topics.changes(case, 2, before=before))
    state = {row[0]: row for row in duckdb.sql(f"SELECT * FROM '{case.input}/state/wide.parquet'").fetchall()}
    start = {row[0]: row for row in duckdb.sql(f"SELECT * FROM '{case.target}/*.parquet'").fetchall()}
    assert len(told(made)) == case.changes
    for event in told(made):
        key = (event["after"] or event["before"])["id"]
        assert event["op"] == ("d" if key not in state else "u" if key in start else "c")
        assert (event["before"] is None) == (event["op"] == "c" or (event["op"] == "u" and not before))
        for image, row in (("after", state.get(key)), ("before", start.get(key))):
            if event[image] is not None:
                assert row is not None
                assert (event[image]["name"], f"{event[image]['price']:.2f}") == (row[5], str(row[3]))
    gone = [record.key for record in made if record.value is None]
    assert sorted(json.loads(key)["id"] for key in gone) == sorted(start.keys() - state.keys())
    assert len({record.key for record in made}) == len({(record.key, record.partition) for record in made})


def test_the_schemas_that_connect_is_given_are_those_of_the_events(cases: dict[str, Case]) -> None:
    """It reads no other fields than these, and fails where one is missing that is not optional."""
    schema = json.loads(sink._schemas(WIDE)["value.converter.schema.content"])
    for event in told(list(topics.changes(cases[PUBLISH], 2, before=True))):
        assert [field["field"] for field in schema["fields"]] == list(event)
        for field in schema["fields"]:
            if field["type"] == "struct" and event[field["field"]] is not None:
                assert {each["field"] for each in field["fields"]} == set(event[field["field"]])


def test_the_sink_is_done_when_the_last_upsert_and_the_last_delete_of_each_partition_are(
    cases: dict[str, Case],
) -> None:
    """A task writes both in an order of its own."""
    case = cases[PUBLISH]
    state = dict(duckdb.sql(f"SELECT id, note FROM '{case.input}/state/wide.parquet'").fetchall())
    last = sink._last(case)
    assert sorted((key % 2, note is None) for key, note in last) == [(0, False), (0, True), (1, False), (1, True)]
    assert all(state.get(key) == note for key, note in last)


def test_a_connect_that_does_not_become_ready_is_ended(tmp_path: Path) -> None:
    """Nobody else knows of it."""
    with pytest.raises(Unreachable, match="connect is not ready after 0 s"):
        sink.bound(folder(tmp_path), ["sleep", "60"], lambda: False, 0.1)
    assert not (tmp_path / "connect" / "pid").exists()


def test_connect_ends_with_the_other_servers_when_who_has_started_it_is_killed(tmp_path: Path) -> None:
    """The stack's watchdog stops it, and so does the stack."""
    process = sink.bound(folder(tmp_path), ["sleep", "60"], lambda: True, 5)
    Stack(tmp_path).down()
    assert process.pid() is None
    start = "from tests.unit import test_benchmark_topics as t; t.started_and_killed(sys.argv[1])"
    ended = subprocess.run([sys.executable, "-c", f"import sys; {start}", tmp_path], check=False, cwd=REPOSITORY)
    assert ended.returncode == -signal.SIGKILL
    assert process.pid() is not None
    owner = (tmp_path / "owner").read_text()
    subprocess.run([sys.executable, "-m", "infra.local.watchdog", tmp_path, owner.split()[0], owner], check=True)
    assert process.pid() is None


def folder(home: Path) -> Home:
    """A stack's, with one for Connect."""
    made = Home(home)
    made.folder("connect")
    return made


def started_and_killed(home: str) -> None:
    """The end of a process that has started Connect."""
    sink.bound(Home(Path(home)), ["sleep", "60"], lambda: True, 5)
    (Path(home) / "owner").write_text(identity(os.getpid()))
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_is_not_built_says_how_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`make bench` goes on without such a system."""
    monkeypatch.setattr(environments, "HOME", tmp_path)
    monkeypatch.setattr(environments, "cache_dir", lambda: tmp_path)
    with pytest.raises(environments.Missing, match=r"environment of flink is not built. Run `make bench-flink`"):
        environments.made("flink")
    with pytest.raises(environments.Missing, match=r"JARs are not in the cache: .* Run `make bench-sink`"):
        environments.jars("sink")


def test_a_system_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    """Its process answers the first command with that, and ends."""
    worker = runner.Worker("B99", REFINE, tmp_path, "1g")
    assert worker.introduced() == {"failed": "KeyError: 'B99'"}
    worker.close()
