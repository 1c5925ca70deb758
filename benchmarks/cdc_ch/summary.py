"""A report's runs -> the figures of each system in each case."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cdc_ch import figures
from benchmarks.cdc_ch.contender import APPLY, Case
from benchmarks.cdc_ch.figures import Ratio
from benchmarks.cdc_ch.sweep import UNIFORM
from benchmarks.cdc_ch.systems import OURS

BUSY = 0.1
"""Where others used more than this share of the machine, a time says little."""


@dataclass(frozen=True)
class Line:
    """One system in one case. Seconds and counts are medians, memory the greatest; ``cold`` is the first warm-up.

    ``ratio`` is how many times longer than ours it took, None of ours and where either has too few runs; ``written`` is
    bytes in new files per byte of changed rows, None where no bytes are given. With a ``problem`` there are no times.
    """

    case: Case
    system: str
    seconds: float = 0.0
    least: float = 0.0
    most: float = 0.0
    cold: float = 0.0
    cpu: float = 0.0
    rss: int = 0
    read: float = 0.0
    queries: Mapping[str, float] | None = None
    new_bytes: float = 0.0
    written: float | None = None
    jobs: float | None = None
    tasks: float | None = None
    phases: Mapping[str, float] | None = None
    series: Sequence[float] = ()
    upkeep: float = 0.0
    kept: Sequence[int] = ()
    files: int = 0
    others: float = 0.0
    runs: int = 0
    ratio: Ratio | None = None
    problem: str = ""

    @property
    def per_second(self) -> float:
        """Events, or changed rows."""
        return self.case.changes / self.seconds

    @property
    def megabytes(self) -> float:
        """Of events, or of changed rows, a second."""
        return self.case.bytes / self.seconds / 1e6


def lines(report: Mapping[str, Any]) -> list[Line]:
    """Case by case, systems in the report's order."""
    cases = [Case(**told) for told in report["cases"]]
    runs: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for run in report["runs"]:
        runs[run["case"], run["system"]].append(run)
    return [
        _line(case, system, runs[case.name, system], runs[case.name, OURS])
        for case in cases
        for system in report["about"]
        if runs[case.name, system]
    ]


def _line(case: Case, system: str, runs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> Line:
    problem = next((run["problem"] for run in runs if run["problem"]), "")
    timed = [run for run in runs if run["round"] >= 0]
    if problem or not timed:
        return Line(case, system, problem=problem or "it was only warmed up")
    seconds = [run["seconds"] for run in timed]
    new = _median(timed, lambda run: run["new_bytes"])
    return Line(
        case,
        system,
        statistics.median(seconds),
        min(seconds),
        max(seconds),
        next((run["seconds"] for run in runs if run["round"] < 0), seconds[0]),
        _median(timed, lambda run: run["cpu"]),
        max(run["rss"] for run in timed),
        _median(timed, lambda run: run["read"]),
        _inner(timed, "queries"),
        new,
        new / case.bytes if case.track == APPLY else None,
        _inner(timed, "counts").get("jobs"),
        _inner(timed, "counts").get("tasks"),
        _inner(timed, "phases"),
        timed[0]["series"],
        _median(timed, lambda run: run["upkeep"]),
        timed[0].get("kept", ()),
        timed[0]["files"],
        max(run["others"] for run in timed),
        len(timed),
        None if system == OURS else _ratio(timed, ours),
    )


def _ratio(runs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> Ratio | None:
    """Of rounds in which both have a time."""
    own = {run["round"]: run["seconds"] for run in ours if run["round"] >= 0 and not run["problem"]}
    both = [run for run in runs if run["round"] in own]
    if len(both) < 2:
        return None
    return figures.paired([run["seconds"] for run in both], [own[run["round"]] for run in both])


def _inner(runs: Sequence[Mapping[str, Any]], kind: str) -> dict[str, float]:
    """Medians by name of what runs have a mapping of."""
    return {name: statistics.median(run[kind].get(name, 0) for run in runs) for name in runs[0][kind]}


def _median(runs: Sequence[Mapping[str, Any]], value: Callable[[Mapping[str, Any]], float]) -> float:
    return statistics.median(value(run) for run in runs)


def growth(found: Sequence[Line], keys: str) -> dict[str, list[Line]]:
    """Per system the lines of T2 over tables of several sizes, with the number of changes that most of them have."""
    chosen = [line for line in found if line.case.track == APPLY and line.case.keys == keys and not line.problem]
    if not chosen:
        return {}
    changes = statistics.mode(line.case.changes for line in chosen)
    return _by_system([line for line in chosen if line.case.changes == changes], lambda line: line.case.rows)


def widths(found: Sequence[Line]) -> dict[str, list[Line]]:
    """Per system the lines of T2 with several numbers of changes, of the table that most of them have."""
    chosen = [line for line in found if line.case.track == APPLY and line.case.keys == UNIFORM and not line.problem]
    sizes: dict[int, set[int]] = defaultdict(set)
    for line in chosen:
        sizes[line.case.rows].add(line.case.changes)
    rows = max(sizes, key=lambda size: len(sizes[size]), default=None)
    return _by_system([line for line in chosen if line.case.rows == rows], lambda line: line.case.changes)


def _by_system(found: Sequence[Line], place: Callable[[Line], int]) -> dict[str, list[Line]]:
    systems: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(found, key=place):
        systems[line.system].append(line)
    return dict(systems)
