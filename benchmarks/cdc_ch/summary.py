"""A report's runs -> the figures of each system in each case, and what became of the targets."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cdc_ch import figures
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, GOLD, PUBLISH, REFINE, Case
from benchmarks.cdc_ch.figures import Ratio
from benchmarks.cdc_ch.sweep import LATEST, UNIFORM
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
    new_bytes: float = 0.0
    written: float | None = None
    jobs: float | None = None
    tasks: float | None = None
    phases: Mapping[str, float] | None = None
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
        new,
        new / case.bytes if case.track == APPLY else None,
        _inner(timed, "counts").get("jobs"),
        _inner(timed, "counts").get("tasks"),
        _inner(timed, "phases"),
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


@dataclass(frozen=True)
class Target:
    """What performance.md section 8 asks: ``least`` times as fast as a system in the track's cases of these ``keys``,
    ``rows`` and ``changes`` (0: any); ``limit`` is what the machine allows at most (its section 7).
    """

    track: str
    keys: str
    rows: int
    against: str
    least: float
    limit: str = ""
    changes: int = 0


TARGETS = (
    Target(COLLAPSE, "4 of each key", 0, "B0", 3.0, "676,000 events/s at 4.25 events per key"),
    Target(COLLAPSE, "1 of each key", 0, "B0", 1.3, "320,000 events/s"),
    Target(APPLY, UNIFORM, 16_000_000, "B0", 4.0, "bytes of the changes, once"),
    Target(APPLY, UNIFORM, 16_000_000, "B1", 2.0, "bytes of the changes, once"),
    Target(APPLY, LATEST, 16_000_000, "B0", 8.0, "bytes of the changes, once"),
    Target(APPLY, LATEST, 16_000_000, "B1", 3.0, "bytes of the changes, once"),
    Target(APPLY, UNIFORM, 16_000_000, "B4", 3.0, "bytes of the changes, once"),
    Target(REFINE, "TPC-C", 0, "B0", 3.0, "200,000 events/s, bronze's write included"),
    Target(GOLD, "every 100th", 16_000_000, "rebuild", 10.0, "rows that change, once"),
    Target(PUBLISH, UNIFORM, 0, "B7 rows", 3.0, "186,000 rows/s (COPY, then MERGE)", 200_000),
    Target(PUBLISH, UNIFORM, 0, "B7 jdbc", 2.0, "186,000 rows/s (COPY, then MERGE)", 200_000),
)
GROWTH = {LATEST: 0.15, UNIFORM: 0.5}
"""The exponent of T2's time over the size of the table, at most."""

WRITTEN = 3.0
"""Bytes written per byte of changed rows, at most."""


@dataclass(frozen=True)
class Verdict:
    """A target, what was reached ('not measured'), whether that is enough (None: nobody knows), and the limit."""

    what: str
    target: str
    reached: str
    is_met: bool | None
    limit: str


def verdicts(found: Sequence[Line]) -> list[Verdict]:
    """All targets that this benchmark can measure."""
    return [*(_of_ratio(target, found) for target in TARGETS), *_of_growth(found), _of_bytes(found)]


def _of_ratio(target: Target, found: Sequence[Line]) -> Verdict:
    rows = f", of {target.rows:,} rows" if target.rows else ""
    changes = f", {target.changes:,} changes" if target.changes else ""
    what = f"{target.track}, {target.keys}{changes}{rows}, against {target.against}"
    ratio = next((line.ratio for line in found if _is_of(target, line) and line.ratio is not None), None)
    asked = f"≥ {target.least:g}x"
    if ratio is None:
        return Verdict(what, asked, "not measured", None, target.limit)
    is_met = ratio.median >= target.least and ratio.low > 1
    return Verdict(what, asked, shown(ratio), is_met, target.limit)


def _is_of(target: Target, line: Line) -> bool:
    case = line.case
    same = (case.track, case.keys, line.system) == (target.track, target.keys, target.against)
    return same and target.rows in (0, case.rows) and target.changes in (0, case.changes)


def _of_growth(found: Sequence[Line]) -> list[Verdict]:
    made = []
    for keys, most in GROWTH.items():
        ours = growth(found, keys).get(OURS, [])
        sizes = [line.case.rows for line in ours]
        b = figures.exponent(sizes, [line.seconds for line in ours])
        is_known = len(set(sizes)) > 1
        told = f"{b:.2f} from {min(sizes):,} to {max(sizes):,} rows" if is_known else "not measured"
        made.append(Verdict(f"T2, growth with {keys} keys", f"≤ {most:g}", told, b <= most if is_known else None, "0"))
    return made


def _of_bytes(found: Sequence[Line]) -> Verdict:
    ours = [line.written for line in found if line.system == OURS and line.written is not None]
    told = f"{max(ours):.2f} at most" if ours else "not measured"
    return Verdict("T2, write amplification", f"≤ {WRITTEN:g}", told, max(ours) <= WRITTEN if ours else None, "1")


def shown(ratio: Ratio) -> str:
    """``3.2x (2.9 to 3.4)``."""
    return f"{ratio.median:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"
