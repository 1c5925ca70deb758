"""T6 without servers: what is sent, what the star must hold, and what figures are made of rows and words."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.cdc_ch import charts, dataset, driver, lag, plans, producer, report, served, targets
from benchmarks.cdc_ch.dataset import Dataset, Parameters
from benchmarks.cdc_ch.driver import Driver, Stopped, Told, Work
from benchmarks.cdc_ch.flow import Flow, Given, _Flow, run
from benchmarks.cdc_ch.lag import Seen
from benchmarks.cdc_ch.tpcc import Scale
from infra.local import Stack
from infra.local.endpoints import Database, Endpoints, ObjectStore
from replicator import settings


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A workload of a few thousand events."""
    return dataset.made(Parameters(3_000, Scale(1, 10, 50)), tmp_path_factory.mktemp("data"))


class Kept:
    """A client that keeps what it is given and is full now and then."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, bytes | None, bytes, int]] = []
        self.polled = 0
        self._full = itertools.cycle([False] * 100 + [True])

    def produce(self, topic: str, value: bytes | None, key: bytes, partition: int) -> None:
        if next(self._full):
            raise BufferError
        self.taken.append((topic, value, key, partition))

    def poll(self, _: float) -> int:
        self.polled += 1
        return 0


def test_records_go_out_as_they_are_but_for_their_times(data: Dataset) -> None:
    """All of them, a partition's in its order; of an event nothing changes but ``ts_ms``, there and in ``source``."""
    client = Kept()
    folder = data.folder / "batch-0000"
    assert producer.sent(producer.ready(folder), client, 1_000_000) == data.meta["records"]  # type: ignore[arg-type]
    stored = duckdb.sql(
        f"SELECT topic, partition, key, value FROM '{folder}/*.parquet' ORDER BY topic, partition, \"offset\""
    )
    wanted, found = defaultdict(list), defaultdict(list)
    for topic, partition, key, value in stored.fetchall():
        wanted[topic, partition].append((key, untimed(value)))
    for topic, value, key, partition in client.taken:
        found[topic, partition].append((key.decode(), untimed(value)))
    assert found == wanted
    assert abs(next(filter(None, map(parsed, reversed(client.taken))))["ts_ms"] / 1000 - time.time()) < 60


def test_what_is_sent_again_is_as_old_as_it_was(data: Dataset) -> None:
    """A time of the source becomes one other: when a record of that time was first sent."""
    client = Kept()
    producer.sent(producer.ready(data.folder / "batch-0000"), client, 5_000)  # type: ignore[arg-type]
    sent = [event for event in map(parsed, client.taken) if event is not None]
    first: dict[int, int] = {}
    for event in sent:
        first.setdefault(event["source"]["ts_us"] // 1000, event["ts_ms"])
    assert [event["source"]["ts_ms"] for event in sent] == [first[e["source"]["ts_us"] // 1000] for e in sent]
    assert any(event["ts_ms"] - event["source"]["ts_ms"] > 10 for event in sent)


def parsed(taken: tuple[Any, ...]) -> Any:
    """The event."""
    return None if taken[1] is None else json.loads(taken[1])


def untimed(value: str | bytes | None) -> Any:
    """An event without the times of its sending."""
    if value is None:
        return None
    event = json.loads(value)
    assert len(str(event.pop("ts_ms"))) == len(str(event["source"].pop("ts_ms"))) == 13
    return event


def test_a_rate_is_kept(data: Dataset) -> None:
    """No faster, and hardly slower."""
    records = list(itertools.islice(producer.ready(data.folder / "batch-0000"), 500))
    started = time.monotonic()
    assert producer.sent(iter(records), Kept(), 2_000) == 500  # type: ignore[arg-type]
    assert 0.2 < time.monotonic() - started < 1


def test_rows_of_before_keep_their_times(data: Dataset) -> None:
    """Rate 0: as fast as it goes, unstamped."""
    client = Kept()
    producer.sent(producer.ready(data.folder / "snapshot"), client, 0)  # type: ignore[arg-type]
    values = {value.decode() for _, value, _, _ in client.taken if value is not None}
    assert values == {row[0] for row in duckdb.sql(f"SELECT value FROM '{data.folder}/snapshot/*.parquet'").fetchall()}


def test_percentiles_are_of_rows_and_the_first_seconds_do_not_count() -> None:
    """98 rows after a second, one after three and one after nine; what was sent before they count is only drawn."""
    seen = [Seen(100, 60_100, 1_000), Seen(10_000, 11_000, 98), Seen(10_400, 13_400, 1), Seen(11_000, 20_000, 1)]
    told = lag.told(seen, 0, 10)
    assert told is not None
    assert (told.rows, told.p50, told.p95, told.p99, told.most) == (100, 1.0, 1.0, 3.0, 9.0)
    assert [(s.at, s.rows, s.most) for s in lag.by_second(seen, 0)] == [(0, 1_000, 60.0), (10, 99, 3.0), (11, 1, 9.0)]
    assert lag.told(seen, 0, 12) is None


@pytest.mark.parametrize(("speed", "is_held"), [(1.0, True), (0.5, False)])
def test_a_rate_is_held_where_the_lag_does_not_grow(speed: float, *, is_held: bool) -> None:
    """What is sent in a minute is seen in batches of four seconds; at half the speed the lag grows by a second each."""
    sent = range(0, 60_000, 50)
    seen = [Seen(at, int((at // 4_000 + 1) * 4_000 / speed) + 1_000, 1) for at in sent]
    told = lag.told(seen, 0, 8)
    assert told is not None
    assert told.growth == pytest.approx(1 / speed - 1, abs=0.03)
    assert Flow(20, lag=told, drained=5).is_held is is_held
    assert not Flow(20, lag=told, drained=31).is_held


def test_a_pass_is_taken_apart_by_what_was_said() -> None:
    """From the line before a stage's own to its last; passes without gold, and what was said before, are left out."""
    said = [Told(1.0, "publish"), Told(3.0, "silver"), Told(3.5, "silver"), Told(5.0, "gold"), Told(9.0, "publish")]
    said += [Told(11.0, "silver"), Told(12.0, "silver"), Told(14.0, "gold")]
    assert driver.phases(said, 2.0) == [{"silver": 2.5, "gold": 1.5, "publish": 4.0}, {"silver": 3.0, "gold": 2.0}]
    assert driver.phases(said, 10.0) == [{"silver": 3.0, "gold": 2.0}]
    beside = [Told(1.0, "silver"), Told(2.0, "publish"), Told(4.0, "gold"), Told(9.0, "silver"), Told(10.0, "gold")]
    assert driver.phases(beside, 0.0) == [{"publish": 1.0, "gold": 2.0}, {"silver": 5.0, "gold": 1.0}]


def test_work_is_summed_behind_the_rows_of_before() -> None:
    """By stage and table."""
    line = {"stage": "silver", "table": "shop.t", "rows_in": 3, "seconds": 1.5}
    bronze = {"stage": "bronze", "table": "shop", "rows_in": 10, "seconds": 0.1}
    assert driver.work([bronze, line, bronze, line, line], 10) == [
        Work("bronze", "shop", 1, 10, 0.1),
        Work("silver", "shop.t", 3, 9, 4.5),
    ]


def test_the_oracle_of_the_star_is_the_sources_tables_joined(data: Dataset) -> None:
    """A row for each line of an order, each customer and each stock; every column is one of the source."""
    state = data.folder / "state"
    for model, count in zip(served.STAR, ("orderline", "customer", "stock"), strict=True):
        rows, every = duckdb.sql(model.oracle(state)), duckdb.sql(f"FROM '{state}/{count}.parquet'")
        assert rows is not None
        assert every is not None
        assert rows.columns == list(model.table.names)
        assert len(rows) == len(every) > 0


def test_the_configuration_is_one(tmp_path: Path) -> None:
    """The product takes it: sources, models with their lineage, the target."""
    at = Database("127.0.0.1", 5432, "user", "secret", "db")
    store = ObjectStore("", "", "", "", "")
    endpoints = Endpoints("127.0.0.1:9092", "", at, at, at, at, at, store)
    made = settings.load(served.configured(tmp_path, endpoints, "2g"), served.ENV, {})
    assert [model.name for model in made.models] == sorted(each.table.name for each in served.STAR)
    assert all(model.refresh == "incremental" for model in made.models)
    assert len(made.sources[0].tables) == 9


def test_a_report_shows_the_highest_rate_that_was_held() -> None:
    """With its lag; the target is met at the asked rate and lag only."""
    assert targets.of_flows([]).is_met is None
    flows = [flow(5_000, 4_000).value(), flow(22_400, 9_000).value(), Flow(30_000, problem="gone").value()]
    assert targets.of_flows(flows[:1]).is_met is False
    told = targets.of_flows(flows)
    assert told.is_met is True
    assert "22,400 a second held" in told.reached
    assert len(charts.of_flows(flows)) == 2


def test_whatever_ends_a_rate_is_its_problem_and_the_next_one_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here nothing can be had of which the servers are made: their cache is a file."""
    monkeypatch.setenv("REPLICATOR_CACHE", __file__)
    monkeypatch.setitem(plans.PLANS, "S", replace(plans.PLANS["S"], trade=Parameters(100, Scale(1, 10, 50))))
    told: list[str] = []
    found = list(run([100, 200], 1, 0, "S", Given(tmp_path, "1g", told.append)))
    assert [each.rate for each in found] == [100, 200]
    assert all(each.problem.startswith("NotADirectoryError: ") for each in found)
    assert not any(each.is_held for each in found)
    assert list(tmp_path.glob("cdc-ch-flow-*")) == []


def test_the_last_that_the_producer_said_is_why_a_rate_has_no_figures(tmp_path: Path) -> None:
    """All of it is in its log."""
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "item.parquet").write_text("no rows")
    with pytest.raises(Stopped, match=r"what sends the events ended with 1 and said: .*Parquet"):
        begun(tmp_path)._produced("snapshot", 0)
    assert "Traceback" in (tmp_path / "producer.log").read_text()


def test_a_rate_of_which_no_row_counts_has_no_figures(tmp_path: Path) -> None:
    """Neither the last commit nor a percentile is one of nothing."""
    made = begun(tmp_path)
    made.told = {"since": 0, "until": 20_000, "records": 3, "cpu": 0.1}
    for seen in ([], [Seen(5_000, 6_000, 3)]):
        made.seen = seen
        with pytest.raises(Stopped, match="no row of the star is of what was sent after the first 10 s"):
            made.figures([])


def begun(folder: Path) -> _Flow:
    """A rate whose parts nobody has started."""
    at = Stack(folder / "stack").endpoints()
    return _Flow(Dataset(folder, {}), 10, 10, folder, Stack(folder / "stack"), at, ended(folder, signal.SIGTERM))


def ended(folder: Path, how: signal.Signals) -> Driver:
    """A driver that had hardly begun."""
    made = Driver(folder / "conf", "base", folder)
    os.kill(made.pid, how)
    made.stop()
    return made


def test_a_driver_that_was_killed_has_told_nothing(tmp_path: Path) -> None:
    """Half of what it says is no account, and none is not an empty one."""
    with pytest.raises(Stopped, match="the driver was killed"):
        ended(tmp_path, signal.SIGKILL).lines()
    assert ended(tmp_path, signal.SIGTERM).lines() == []


def test_both_commands_keep_in_a_report_what_the_other_has_measured(tmp_path: Path) -> None:
    """Whichever was first; a rate that is measured again replaces itself, and says what it was measured with."""
    ran, head = {"size": "S", "heap": "4g", "at": "1", "commit": "a"}, {"size": "M", "heap": "2g", "at": "2"}
    begun_by_run = {**ran, "cases": [], "runs": [{"case": "T2"}], "flows": []}
    report.write(begun_by_run, tmp_path)
    for rate, commit in ((5_000, "b"), (1_000, "b"), (5_000, "c")):
        stored = report.stored(tmp_path)
        assert stored is not None
        report.write(report.with_flow(stored, {**head, "commit": commit}, flow(rate, 100).value()), tmp_path)
    stored = report.stored(tmp_path)
    assert stored is not None
    assert {**stored, "flows": []} == begun_by_run
    told = [(each["rate"], each["size"], each["heap"], each["commit"]) for each in stored["flows"]]
    assert told == [(1_000, "M", "2g", "b"), (5_000, "M", "2g", "c")]
    again = report.with_flows({**ran, "runs": []}, stored)
    assert again == {**ran, "runs": [], "flows": stored["flows"]}
    assert report.with_flows(ran, report.stored(tmp_path / "new")) == {**ran, "flows": []}


def test_a_run_replaces_its_own_logs_only(tmp_path: Path) -> None:
    """Those of T6 stay."""
    work, logs = tmp_path / "work", tmp_path / "logs"
    (work / "T2").mkdir(parents=True)
    logs.mkdir()
    (work / "T2" / "B1.log").write_text("new")
    for name in ("T6 5000 driver.log", "T2 B1.log", "T3 B1.log"):
        (logs / name).write_text("old")
    report.keep_logs(work, logs)
    assert {log.name: log.read_text() for log in logs.iterdir()} == {"T6 5000 driver.log": "old", "T2 B1.log": "new"}


def flow(rate: int, most: int) -> Flow:
    """One that was held."""
    seen = [Seen(at, at + 1_000 + at % most, 1) for at in range(0, 40_000, 10)]
    figures = lag.told(seen, 0, 0)
    passes = ({"silver": 1.0, "gold": 1.0, "publish": 0.5},)
    return Flow(rate, 40, 4_000, lag=figures, series=tuple(lag.by_second(seen, 0)), passes=passes)
