"""A report as a page of HTML with its plots, and as text. The script of plotly lies beside the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
from plotly.offline import get_plotlyjs

from benchmarks.cdc_ch import charts, summary, targets
from benchmarks.cdc_ch.summary import Line
from replicator.operate.report.palette import LIGHT


def write(report: Mapping[str, Any], folder: Path) -> None:
    """``index.html`` and ``plotly.min.js``."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found = summary.lines(report)
    flows = report.get("flows", [])
    drawings = [*charts.drawings(found), *charts.of_flows(flows)]
    told = environment.get_template("page.html").render(
        report=report,
        cases=_by_case(found),
        flows=flows,
        verdicts=[*targets.verdicts(found), targets.of_flows(flows)],
        shown=targets.shown,
        busy=summary.BUSY,
        drawings=drawings,
        figures=json.dumps([drawing.figure for drawing in drawings]).replace("<", "\\u003c"),
        colours=asdict(LIGHT),
    )
    (folder / "index.html").write_text(told, encoding="utf-8")
    (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")


def text(report: Mapping[str, Any]) -> str:
    """A line per system and case."""
    head = f"{'':10} {'median':>9} {'least':>9} {'most':>9} {'per s':>11} {'CPU s':>8} {'MiB':>6}  ours is faster by\n"
    made = []
    for name, found in _by_case(summary.lines(report)).items():
        made += [f"\n{name}\n", head, *map(_row, found)]
    return "".join([*made, "\n", *map(_flow, report.get("flows", []))]) + "\n"


def _flow(flow: Mapping[str, Any]) -> str:
    if flow["problem"]:
        return f"T6, {flow['rate']:,} a second: no figures: {flow['problem']}\n"
    lag, cores = flow["lag"], ", ".join(f"{name} {used:.2f}" for name, used in flow["cores"].items())
    late = (
        f"not held (the lag grew by {lag['growth']:.3f} s a second, the last was there after {flow['drained']:.0f} s)"
    )
    held = "held" if flow["is_held"] else late
    return (
        f"T6, {flow['rate']:,} a second for {flow['seconds']:.0f} s: {held}; lag p50 {lag['p50']:.1f} p95 "
        f"{lag['p95']:.1f} p99 {lag['p99']:.1f} most {lag['most']:.1f} s; {flow['served']:,.0f} a second served; "
        f"cores: {cores}; bronze {flow['batches']} batches in {flow['files']} files\n"
    )


def _row(line: Line) -> str:
    if line.problem:
        return f"{line.system:10} no time: {line.problem}\n"
    busy = f"  others used {line.others:.0%} of the machine" if line.others > summary.BUSY else ""
    ratio = "" if line.ratio is None else targets.shown(line.ratio) + ("" if line.ratio.is_sure else ", maybe chance")
    return (
        f"{line.system:10} {line.seconds:9.2f} {line.least:9.2f} {line.most:9.2f} {line.per_second:11,.0f} "
        f"{line.cpu:8.1f} {line.rss >> 20:6}  {ratio}{busy}\n"
    )


def _by_case(found: list[Line]) -> dict[str, list[Line]]:
    cases: dict[str, list[Line]] = {}
    for line in found:
        cases.setdefault(line.case.name, []).append(line)
    return cases
