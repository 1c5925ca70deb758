"""What performance.md section 8 asks, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cdc_ch import figures
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, GOLD, PUBLISH, REFINE
from benchmarks.cdc_ch.figures import Ratio
from benchmarks.cdc_ch.summary import Line, growth
from benchmarks.cdc_ch.sweep import LATEST, UNIFORM
from benchmarks.cdc_ch.systems import OURS


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
    Target(GOLD, "latest", 16_000_000, "rebuild", 10.0, "rows that change, once"),
    Target(PUBLISH, UNIFORM, 0, "B7 rows", 3.0, "186,000 rows/s (COPY, then MERGE)", 200_000),
    Target(PUBLISH, UNIFORM, 0, "B7 jdbc", 2.0, "186,000 rows/s (COPY, then MERGE)", 200_000),
)
GROWTH = {LATEST: 0.15, UNIFORM: 0.5}
"""The exponent of T2's time over the size of the table, at most."""

WRITTEN = 3.0
"""Bytes written per byte of changed rows, at most."""

DEGRADATION = 1.2
"""The last tenth of many small batches to the first, at most."""

RATE, LAG = 22_400, 10.0
"""Events a second from Kafka to PostgreSQL, and seconds that 99 of 100 rows take at most."""


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
    return [*(_of_ratio(target, found) for target in TARGETS), *_of_growth(found), _of_bytes(found), _of_soak(found)]


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


def _of_soak(found: Sequence[Line]) -> Verdict:
    ours = next((line for line in found if line.system == OURS and line.series), None)
    what, asked = "T7, degradation", f"≤ {DEGRADATION:g}"
    if ours is None:
        return Verdict(what, asked, "not measured", None, "1")
    reached = figures.degradation(ours.series)
    kept = f"; files behind upkeep {', '.join(map(str, ours.kept))}" if ours.kept else ""
    told = f"{reached:.2f} over {len(ours.series)} batches, {ours.files} files, upkeep {ours.upkeep:.0f} s{kept}"
    return Verdict(what, asked, told, reached <= DEGRADATION, "1")


def of_flows(flows: Sequence[Mapping[str, Any]]) -> Verdict:
    """T6: the highest rate that was held, with its lag."""
    what, asked = f"T6, {RATE:,} events a second from Kafka to PostgreSQL", f"held, p99 lag ≤ {LAG:g} s"
    limit = "150,000 events/s for bronze and silver alone"
    held = [flow for flow in flows if not flow["problem"] and flow["is_held"]]
    if not flows:
        return Verdict(what, asked, "not measured", None, limit)
    if not held:
        return Verdict(what, asked, "no rate was held", False, limit)
    best = max(held, key=lambda flow: int(flow["rate"]))
    p99 = best["lag"]["p99"]
    told = f"{best['rate']:,} a second held for {best['seconds']:.0f} s, p99 lag {p99:.1f} s"
    return Verdict(what, asked, told, best["rate"] >= RATE and p99 <= LAG, limit)


def shown(ratio: Ratio) -> str:
    """``3.2x (2.9 to 3.4)``."""
    return f"{ratio.median:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"
