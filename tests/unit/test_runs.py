"""What a run leaves behind about itself."""

from __future__ import annotations

from dataclasses import asdict

from replicator.errors import TableStopped
from replicator.formats.control import MemoryControl
from replicator.lake import Lake
from replicator.operate.runs import KEPT_RUNS, Entry, Run, RunLog, Runs
from replicator.operate.verify.marks import Mark, Marks
from replicator.stages.run_report import ReportLine


def test_a_run_adds_up_what_its_passes_did_with_each_table() -> None:
    """R1: the sums of the account stay with the lake, and so does the last error."""
    control, lake = MemoryControl(), Lake("lake")
    runs, log = Runs(control, lake), RunLog(control, lake, "run silver")
    log.add(ReportLine("silver", "s/orders", 5, 2, 1, 1, {"tombstone": 1}, 0.5))
    log.add(ReportLine("silver", "s/orders", 3, 1, 0, 0, {"tombstone": 1, "key_swap": 1}, 0.25))
    log.add(ReportLine("silver", "s/items", error=TableStopped("no", where="s/items")))
    log.close()
    [run] = runs.last(5)
    assert run.ended is not None
    assert run.command == "run silver"
    items, orders = run.entries
    assert orders == Entry("silver", "s/orders", 2, 8, 3, 1, 1, {"tombstone": 2, "key_swap": 1}, 0.75)
    assert items.error is not None
    assert orders.read == orders.applied + orders.superseded + orders.dead_lettered + sum(orders.ignored.values())
    assert runs.read(run.id) == run
    assert runs.read("other") is None


def test_a_run_that_did_nothing_leaves_nothing() -> None:
    """Polling an idle source does not fill the lake."""
    control, lake = MemoryControl(), Lake("lake")
    RunLog(control, lake, "run").close()
    assert Runs(control, lake).last(5) == []


def test_the_oldest_runs_are_removed_beyond_a_thousand() -> None:
    """A lake that gets a run each minute stays one short listing; a run removes a hundred others at most."""
    control, lake = MemoryControl(), Lake("lake")
    for number in range(KEPT_RUNS + 150):
        control.put(lake.run(f"20260101T{number:06}-aaaa"), {"number": number})

    def numbers() -> list[int]:
        log = RunLog(control, lake, "run")
        log.add(ReportLine("silver", "s/orders", 1, 1))
        log.close()
        return [int(name[9:15]) for name in control.under(lake.runs_root()) if name.endswith("aaaa")]

    assert numbers() == list(range(100, KEPT_RUNS + 150))
    assert numbers() == list(range(152, KEPT_RUNS + 150))


def test_the_newest_runs_come_first() -> None:
    """And no more than were asked for."""
    control = MemoryControl()
    runs = Runs(control, Lake("lake"))
    for id_ in ("20260101T000000-aaaa", "20260301T000000-aaaa", "20260201T000000-aaaa"):
        control.put(Lake("lake").run(id_), {"id": id_, "command": "run", "started": "", "ended": None, "entries": []})
    assert [run.id[:6] for run in runs.last(2)] == ["202603", "202602"]


def test_what_a_newer_version_tells_besides_is_passed_over() -> None:
    """Who goes back to an older version still sees the runs of both, and what was verified."""
    control, lake = MemoryControl(), Lake("lake")
    entry = {"stage": "silver", "table": "s/orders", "read": 5, "newer": 1}
    row = {"id": "r", "command": "run", "started": "", "ended": None, "entries": [entry], "newer": 1}
    control.put(lake.run("r"), row)
    assert Runs(control, lake).last(1) == [Run("r", "run", "", None, (Entry("silver", "s/orders", read=5),))]
    mark = Mark("source", "s/orders", "postgresql", "", "", 1, "c")
    control.put(lake.verified(mark.layer, mark.table, mark.against), {**asdict(mark), "newer": 1})
    assert Marks(lake, control, lambda: "").every() == [mark]
