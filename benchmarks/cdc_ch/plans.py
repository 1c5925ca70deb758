"""What is measured at each size: S in minutes, M and L for a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cdc_ch import dataset, star, sweep
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, GOLD, PUBLISH, REFINE, SOAK, Case
from benchmarks.cdc_ch.dataset import Parameters
from benchmarks.cdc_ch.star import Star
from benchmarks.cdc_ch.sweep import LATEST, UNIFORM, Sweep
from benchmarks.cdc_ch.tpcc import Scale

ROW_BYTES = 130
"""Of a row of the synthetic table, uncompressed."""


@dataclass(frozen=True)
class Plan:
    """The inputs of every track; each case is warmed up ``warmups`` times and then measured ``repeats`` times."""

    trade: Parameters
    streams: tuple[Parameters, ...]
    sweeps: tuple[Sweep, ...]
    stars: tuple[Star, ...]
    published: tuple[Sweep, ...]
    soak: Parameters
    warmups: int
    repeats: int


def _streams(events: int) -> tuple[Parameters, ...]:
    return tuple(Parameters(events, per_key=per_key) for per_key in (1, 4))


def _growth(rows: tuple[int, ...], changes: int) -> tuple[Sweep, ...]:
    return tuple(Sweep(count, changes, keys) for keys in (UNIFORM, LATEST) for count in rows)


def _published(rows: int, changes: tuple[int, ...]) -> tuple[Sweep, ...]:
    return tuple(Sweep(rows, count, mix="half") for count in changes)


def _widths(rows: int, changes: tuple[int, ...]) -> tuple[Sweep, ...]:
    return tuple(Sweep(rows, count, UNIFORM) for count in changes)


def _stars(*lines: int) -> tuple[Star, ...]:
    return tuple(Star(count, latest=latest) for latest in (False, True) for count in lines)


PLANS = {
    "S": Plan(
        Parameters(100_000),
        _streams(100_000)[1:],
        _growth((250_000,), 10_000),
        _stars(200_000),
        _published(200_000, (20_000,)),
        Parameters(2_000, batches=20),
        warmups=1,
        repeats=3,
    ),
    "M": Plan(
        Parameters(2_000_000, Scale(4, 1_000, 20_000)),
        _streams(2_000_000),
        (*_growth((250_000, 1_000_000, 4_000_000, 16_000_000), 10_000), *_widths(4_000_000, (1_000, 100_000))),
        _stars(1_000_000, 4_000_000, 16_000_000),
        _published(1_000_000, (10_000, 200_000, 2_000_000)),
        Parameters(100_000, per_key=4, batches=500),
        warmups=2,
        repeats=7,
    ),
    "L": Plan(
        Parameters(10_000_000, Scale(10, 3_000, 100_000)),
        _streams(10_000_000),
        (*_growth((4_000_000, 16_000_000, 64_000_000), 10_000), *_widths(16_000_000, (100_000, 1_000_000))),
        _stars(16_000_000, 64_000_000),
        _published(4_000_000, (200_000, 2_000_000)),
        Parameters(1_000_000, Scale(4, 1_000, 20_000), batches=500),
        warmups=2,
        repeats=7,
    ),
}


def cases(plan: Plan, tracks: list[str], home: Path, tell: Callable[[str], None]) -> Iterator[Case]:
    """The cases of some tracks, their inputs made below ``home`` where they are not there yet."""
    for parameters in [plan.trade, *plan.streams] if COLLAPSE in tracks else []:
        tell(f"the data of {parameters.name}")
        yield _of_events(COLLAPSE, parameters, home)
    for each in plan.sweeps if APPLY in tracks else []:
        tell(f"the data of {each.name}")
        yield _of_sweep(APPLY, each, home)
    if REFINE in tracks:
        tell(f"the data of {plan.trade.name}")
        yield _of_events(REFINE, plan.trade, home)
    for shop in plan.stars if GOLD in tracks else []:
        tell(f"the data of {shop.name}")
        yield _of_star(shop, home)
    for each in plan.published if PUBLISH in tracks else []:
        tell(f"the data of {each.name}")
        yield _of_sweep(PUBLISH, each, home)

    if SOAK in tracks:
        tell(f"the data of {plan.soak.name}")
        yield _of_events(SOAK, plan.soak, home)


def _of_sweep(track: str, each: Sweep, home: Path) -> Case:
    folder = sweep.made(each, home)
    name = f"{track}, {each.changes:,} changes, {each.keys}, of {each.rows:,} rows"
    size = each.changes * ROW_BYTES
    return Case(track, name, str(folder), str(home / each.target), each.rows, each.changes, each.keys, size)


def _of_star(each: Star, home: Path) -> Case:
    name = f"{GOLD}, {each.changes:,} changed lines, {each.keys}, of {each.lines:,}"
    folder = str(star.made(each, home))
    return Case(GOLD, name, folder, rows=each.lines, changes=each.changes, keys=each.keys)


def _of_events(track: str, parameters: Parameters, home: Path) -> Case:
    made = dataset.made(parameters, home)
    told = json.loads((made.folder / "meta.json").read_text())
    what = "TPC-C" if parameters.per_key is None else f"{parameters.per_key} of each key"
    batches = 1 if track == COLLAPSE else parameters.batches
    parts = f" in {batches} batches" if batches > 1 else ""
    name = f"{track}, {told['records']:,} events{parts}, {what}"
    return Case(
        track, name, str(made.folder), rows=told["snapshot"], changes=told["records"], keys=what, bytes=told["bytes"],
        batches=batches,
    )  # fmt: skip


def shortened(plan: Plan, warmups: int | None, repeats: int | None) -> Plan:
    """With other counts, where they are given."""
    return replace(
        plan,
        warmups=plan.warmups if warmups is None else warmups,
        repeats=plan.repeats if repeats is None else repeats,
    )


def value(plan: Plan) -> dict[str, Any]:
    """As JSON, seeds included."""
    return asdict(plan)
