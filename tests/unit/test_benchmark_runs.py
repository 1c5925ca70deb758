"""The benchmark's runner: fresh tables for each run, a gate behind it, and figures that say how sure they are."""

from __future__ import annotations

import math
import os
import re
import shutil
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from benchmarks.cdc_ch import (
    charts,
    environments,
    figures,
    gate,
    machine,
    page,
    plans,
    process,
    reads,
    runner,
    summary,
    systems,
    targets,
)
from benchmarks.cdc_ch.__main__ import TRACK_NAMES
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, REFINE, SOAK, Case
from benchmarks.cdc_ch.dataset import Parameters
from benchmarks.cdc_ch.plans import Plan
from benchmarks.cdc_ch.runner import Run
from benchmarks.cdc_ch.sweep import Sweep
from benchmarks.cdc_ch.systems import ABOUT, OURS, TRACKS
from benchmarks.cdc_ch.tpcc import Scale

TRADE = Parameters(2_000, Scale(1, 10, 50))
SOAKED = Parameters(500, Scale(1, 10, 50), batches=3)
PLAN = Plan(TRADE, (), (Sweep(2_000, 100),), (), (), SOAKED, 1, 2)
SYSTEMS = ("B4", "B5")
pytestmark = pytest.mark.timeout(300)  # its set-up is the longest of all that have no server
Measured = tuple[list[Case], dict[str, object], list[Run]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """The systems without a JVM, in every track."""
    home = tmp_path_factory.mktemp("benchmark")
    cases = list(plans.cases(PLAN, [COLLAPSE, APPLY, REFINE, SOAK], home, lambda _: None))
    abouts: dict[str, object] = {}
    runs: list[Run] = []
    for each in runner.measured(cases, SYSTEMS, PLAN, home / "work", "1g", lambda _: None):
        if isinstance(each, Run):
            runs.append(each)
        else:
            abouts[each.track] = each.about
    return cases, abouts, runs


def report(measured: Measured, runs: list[Run] | None = None) -> dict[str, object]:
    """As the command writes it."""
    cases, settings, found = measured
    told = {"size": "S", "heap": "1g", "at": "2026-11-23T00:00:00+00:00", "commit": "abc", "plan": plans.value(PLAN)}
    told |= {"machine": {"processor": "p", "cores": 2, "memory_gib": 8.0, "load": 0.0}}
    told |= {"system": {"kernel": "k", "python": "3", "java": "j"}, "about": ABOUT, "settings": settings}
    return {**told, "cases": [c.value() for c in cases], "runs": [r.value() for r in (found if runs is None else runs)]}


def test_systems_run_in_turn_and_every_result_is_the_oracles(measured: Measured) -> None:
    """A warm-up and two rounds of each case, begun by another system each time, all through the gate."""
    cases, settings, runs = measured
    assert [run.problem for run in runs] == [""] * len(runs)
    assert {run.case for run in runs} == {case.name for case in cases}
    refined = [(run.round, run.system) for run in runs if run.case.startswith(REFINE)]
    assert refined == [(-1, "B5"), (-1, "B4"), (0, "B4"), (0, "B5"), (1, "B5"), (1, "B4")]
    assert all(run.seconds > 0 and run.rss > 1 << 20 for run in runs)
    assert sum(run.cpu for run in runs) > 0
    assert all(run.new_bytes > 0 for run in runs if run.case.startswith((APPLY, REFINE)))
    assert set(settings) == {COLLAPSE, APPLY, REFINE, SOAK}
    assert all("orderline" in run.phases for run in runs if run.case.startswith(REFINE))
    asked = [run.queries for run in runs if run.case.startswith((REFINE, SOAK))]
    assert all(set(seconds) == set(reads.QUERIES) and min(seconds.values()) > 0 for seconds in asked)
    assert not any(run.queries for run in runs if run.case.startswith((COLLAPSE, APPLY)))


def test_a_wrong_result_has_no_time_and_its_system_no_further_run(tmp_path: Path) -> None:
    """A row that is missing, one that is wrong, and a table that is not there at all."""
    [case] = plans.cases(PLAN, [APPLY], tmp_path, lambda _: None)
    right, out = f"{case.input}/state/wide.parquet", tmp_path / "out"
    (out / "wide").mkdir(parents=True)
    file = out / "wide" / "all.parquet"
    duckdb.sql(f"COPY (FROM '{right}') TO '{file}'")
    assert gate.problems(case, out) == []
    changed = "CASE WHEN id = 7 THEN 'elsewhere' ELSE city END AS city"
    duckdb.sql(f"COPY (SELECT * REPLACE ({changed}) FROM '{right}' WHERE id <> 9) TO '{file}'")
    assert gate.problems(case, out) == ["wide: 2 rows are missing, 1 are not the source's"]
    duckdb.sql(f"COPY (FROM '{right}' UNION ALL FROM '{right}' WHERE id = 9) TO '{file}'")
    assert gate.problems(case, out) == ["wide: 0 rows are missing, 1 are not the source's"]
    file.unlink()
    [told] = gate.problems(case, out)
    assert told.startswith("wide: IO Error")


def test_a_query_that_is_answered_wrongly_takes_the_time_too(measured: Measured) -> None:
    """Numbers are compared as numbers, row by row, in their order; none of the answers is empty."""
    case = next(case for case in measured[0] if case.track == REFINE)
    right = {name: gate.oracles_answer(case.input, query) for name, query in reads.of(case).items()}
    assert set(right) == set(reads.QUERIES)
    assert all(right.values())
    assert gate.wrong_answers(case, right) == []
    assert gate.wrong_answers(case, right | {"Q1": right["Q1"][::-1]}) == ["Q1: the answer is wrong"]
    assert gate.wrong_answers(case, right | {"Q6": []}) == ["Q6: the answer is wrong"]
    assert reads.answer([(Decimal("100.00"), 100, 100.0, None, "x")]) == [["100", "100", "100", "None", "x"]]


def test_a_system_whose_environment_is_not_there_says_how_to_build_it(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others run, and so does `make bench`."""
    monkeypatch.setattr(environments, "HOME", tmp_path)
    told = list(runner.measured(measured[0][-1:], ["B8"], PLAN, tmp_path / "work", "1g", lambda _: None))
    [begun] = told
    assert begun.about["B8"]["failed"].endswith("Run `make bench-dlt`.")
    assert systems.absence("B4") is None


def test_a_copy_of_tables_shares_the_data_files_and_nothing_that_grows(tmp_path: Path) -> None:
    """Hudi's logs, the lakes' own, and databases are the copy's own; base files are never changed in place."""
    table, copy = tmp_path / "table", tmp_path / "copy"
    (table / "_delta_log").mkdir(parents=True)
    shared = table / "a_0-1_20261123.parquet"
    own = [table / ".a_20261123.log.1_0-1", table / "_delta_log" / "1.checkpoint.parquet", table / "tables.duckdb"]
    for file in (shared, *own):
        file.write_text("rows")
    shutil.copytree(table, copy, copy_function=runner.linked)
    assert [file.stat().st_nlink for file in (shared, *own)] == [2, 1, 1, 1]
    assert all((copy / file.relative_to(table)).read_text() == "rows" for file in (shared, *own))


def test_a_system_that_does_not_answer_is_ended_and_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is waited for as long as a command may take, then ended; it has no runs."""
    [case] = plans.cases(PLAN, [APPLY], tmp_path, lambda _: None)
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setattr(systems, "python", lambda _: str(silent))
    monkeypatch.setattr(runner, "PATIENCE", 0.2)
    told = list(runner.measured([case], ["B5"], PLAN, tmp_path / "work", "1g", lambda _: None))
    assert isinstance(told[0], runner.Begun)
    assert told[0].about["B5"]["failed"].startswith("its process ended, after 0.2 s at the latest, see ")
    assert told[1:] == []


def test_a_run_that_was_refused_is_left_out_of_figures(measured: Measured) -> None:
    """No median, no ratio, but its reason."""
    cases, _, runs = measured
    wrong = [Run(run.case, run.system, run.round, 1.0, problem="odd" if run.system == "B4" else "") for run in runs]
    lines = summary.lines(report(measured, wrong))
    assert {line.system for line in lines if line.problem} == {"B4"}
    assert "B4         no time: odd\n" in page.text(report(measured, wrong))
    assert len(lines) == 2 * len(cases) - 1


def test_figures_have_medians_and_paired_ratios(measured: Measured) -> None:
    """Rounds are compared one by one: a slow minute slows both."""
    case = next(case.name for case in measured[0] if case.track == REFINE)
    ours = [Run(case, OURS, number, seconds) for number, seconds in enumerate((1.0, 10.0, 2.0))]
    other = [Run(case, "B0", number, seconds) for number, seconds in enumerate((3.0, 30.0, 6.0))]
    lines = {line.system: line for line in summary.lines(report(measured, [*ours, *other]))}
    assert (lines[OURS].seconds, lines[OURS].least, lines[OURS].most, lines[OURS].runs) == (2.0, 1.0, 10.0, 3)
    ratio = lines["B0"].ratio
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high, ratio.is_sure) == (3.0, 3.0, 3.0, True)
    told = {verdict.what: verdict for verdict in targets.verdicts(list(lines.values()))}
    assert told["T3, TPC-C, against B0"].is_met is True
    assert told["T2, growth with latest keys"].is_met is None


def test_a_difference_that_may_be_chance_is_none() -> None:
    """The interval holds 1."""
    assert not figures.paired([1.0, 3.0, 1.0, 2.9, 1.1], [2.0, 1.0, 2.0, 1.0, 1.0]).is_sure
    assert figures.paired([1.0, 1.1, 0.9], [2.0, 2.0, 2.0]).is_sure


def test_batches_are_timed_one_by_one_and_what_they_left_is_checked_in_the_end(measured: Measured) -> None:
    """T7: one round, without a warm-up."""
    soaked = [run for run in measured[2] if run.case.startswith(SOAK)]
    assert [(run.round, run.system, len(run.series)) for run in soaked] == [(0, "B4", 3), (0, "B5", 3)]
    assert all(sum(run.series) == pytest.approx(run.seconds) and run.files for run in soaked)
    assert figures.degradation([1.0] * 10 + [2.0] * 10) == 2.0


def test_growth_is_the_slope_on_two_logarithmic_axes() -> None:
    """Time that grows with the square root has 0.5; one size has none."""
    sizes = [1e5, 1e6, 1e7]
    assert figures.exponent(sizes, [math.sqrt(size) for size in sizes]) == pytest.approx(0.5)
    assert figures.exponent(sizes, [4.0] * 3) == pytest.approx(0.0)
    assert math.isnan(figures.exponent([1e5], [1.0]))


def test_the_page_has_every_case_and_runs_no_script_of_others(measured: Measured, tmp_path: Path) -> None:
    """It is whole without a network."""
    page.write(report(measured), tmp_path)
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(case.name in html for case in measured[0])
    assert re.findall(r'src="([^"]+)"', html) == ["plotly.min.js"]
    assert (tmp_path / "plotly.min.js").stat().st_size > 1 << 20
    assert "T2: write amplification" in html


def test_a_process_is_measured_with_its_children() -> None:
    """This process has used the processor, and is its own tree's root."""
    pids = process.tree(os.getpid())
    used = process.used(pids)
    assert pids[0] == os.getpid()
    assert os.getpid() in process.tree(process.parent(os.getpid()))
    assert used.cpu > 0
    assert used.rss > 1 << 20
    assert process.busy() > used.cpu / 2


def test_every_system_has_a_description_tracks_and_a_colour_that_no_other_of_a_plot_has() -> None:
    """A report names all of them, and draws those of a track together."""
    for track in TRACK_NAMES:
        drawn = [charts.COLOURS[system] for system in ABOUT if track in TRACKS[system]]
        assert len(set(drawn)) == len(drawn)
    assert set(charts.COLOURS) == set(ABOUT)
    assert set(TRACKS) == set(ABOUT)
    assert all(set(tracks) <= set(TRACK_NAMES) for tracks in TRACKS.values())


def test_a_report_does_not_tell_where_it_was_made() -> None:
    """Folders go, names and addresses stay."""
    told = '{"input": "/home/x/.cache/cdc-ch/tpcc-1", "o": "-Dlog=/a/b.c -Dx=1", "u": "http://h:1/a/b", "n": "1/2"}'
    assert (
        machine.nowhere(told)
        == '{"input": ".../tpcc-1", "o": "-Dlog=.../b.c -Dx=1", "u": "http://h:1/a/b", "n": "1/2"}'
    )


def test_plots_have_a_line_per_system_over_sizes_and_over_changes(measured: Measured) -> None:
    """Growth is drawn where there are several sizes, with its exponent; phases and bars where there are runs."""
    sizes = [(1_000_000, 100), (4_000_000, 100), (4_000_000, 10_000)]
    cases = [Case(APPLY, f"T2, {n} of {rows}", "", "", rows, n, "uniform", 130 * n) for rows, n in sizes]
    seconds = {OURS: (2.0, 4.0, 5.0), "B1": (2.0, 8.0, 9.0)}
    runs = [
        Run(case.name, system, number, took[at], new_bytes=case.bytes)
        for system, took in seconds.items()
        for at, case in enumerate(cases)
        for number in range(2)
    ]
    told = {**report(measured, runs), "cases": [case.value() for case in cases]}
    found = summary.lines(told)
    drawn = {chart.name: chart.figure for chart in charts.drawings(found)}
    assert [line["name"] for line in drawn["T2: growth with the table, uniform keys"]["data"]] == [
        "ours, b = 0.50",
        "B1, b = 1.00",
    ]
    assert [list(line["x"]) for line in drawn["T2: growth with the changes"]["data"]] == [[100, 10_000]] * 2
    assert drawn["T2: growth with the table, uniform keys"]["layout"]["xaxis"]["type"] == "log"
    verdicts = {verdict.what: verdict for verdict in targets.verdicts(found)}
    assert verdicts["T2, growth with uniform keys"].is_met is True
    assert verdicts["T2, write amplification"].reached == "1.00 at most"
