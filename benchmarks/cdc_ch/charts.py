"""The plots of a report, as plotly's figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from benchmarks.cdc_ch import figures, summary
from benchmarks.cdc_ch.contender import APPLY, REFINE
from benchmarks.cdc_ch.driver import LATER
from benchmarks.cdc_ch.summary import Line
from benchmarks.cdc_ch.sweep import LATEST, UNIFORM
from benchmarks.cdc_ch.systems import OURS
from replicator.operate.report.chart import Chart, build_chart, layout
from replicator.operate.report.palette import LIGHT

# ours in the page's first colour, the others as Okabe and Ito tell colours apart, and three more; systems that no plot
# has together share one
_APART = {
    "#E69F00": ("B0", "B7 sink"),
    "#D55E00": ("B1",),
    "#009E73": ("B4",),
    "#CC79A7": ("B5",),
    "#56B4E9": ("B8", "rebuild"),
    "#000000": ("B2 mor", "B7 jdbc"),
    "#7A5195": ("B2 cow", "B7 copy"),
    "#8C564B": ("B2 bucket", "B7 rows"),
    "#999999": ("B3", "ours marks"),
}
COLOURS = {OURS: LIGHT.first, **{name: colour for colour, names in _APART.items() for name in names}}


def drawings(found: Sequence[Line]) -> list[Chart]:
    """Those for which there are figures."""
    good = [line for line in found if not line.problem]
    made = [_bars(track, [line for line in good if line.case.track == track]) for track in _tracks(good)]
    for keys in (UNIFORM, LATEST):
        made += _over_sizes(keys, summary.growth(good, keys))
    made += _over_changes(summary.widths(good))
    made += _amplification([line for line in good if line.case.track == APPLY])
    made += _phases([line for line in good if line.case.track == REFINE])
    made += _queries([line for line in good if line.case.track == REFINE])
    return made + _batches([line for line in good if line.series])


def of_flows(flows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """T6: the lag over time, and where a pass's time goes."""
    good = [flow for flow in flows if not flow["problem"]]
    if not good:
        return []
    figure, colours = go.Figure(layout=layout(LIGHT)), [LIGHT.first, *_APART]
    for flow, colour in zip(good, colours, strict=False):
        series = flow["series"]
        at, most = [each["at"] for each in series], [each["most"] for each in series]
        figure.add_scatter(name=f"{flow['rate']:,} a second", x=at, y=most, mode="lines", line_color=colour)
    figure.update_xaxes(title_text="second of sending")
    figure.update_yaxes(title_text="seconds until it is in PostgreSQL", type="log")
    about = "Of the rows that were last changed in a second, how long the slowest took; the first seconds do not count."
    return [build_chart("T6: lag over time", about, figure), _passes(good)]


def _passes(flows: Sequence[Mapping[str, Any]]) -> Chart:
    figure, names = go.Figure(layout=layout(LIGHT)), [f"{flow['rate']:,} a second" for flow in flows]
    for stage, colour in zip(LATER, (LIGHT.first, *_APART), strict=False):
        found = [[each.get(stage, 0.0) for each in flow["passes"]] or [0.0] for flow in flows]
        figure.add_bar(name=stage, x=names, y=[statistics.median(each) for each in found], marker_color=colour)
    figure.update_layout(barmode="stack")
    figure.update_yaxes(title_text="seconds")
    return build_chart("T6: what a pass spends", "Median seconds by stage; bronze streams beside them.", figure)


def _tracks(found: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line.case.track for line in found))


def _bars(track: str, found: Sequence[Line]) -> Chart:
    figure = go.Figure(layout=layout(LIGHT))
    for system in dict.fromkeys(line.system for line in found):
        own = [line for line in found if line.system == system]
        figure.add_bar(
            name=system,
            x=[line.case.name.partition(", ")[2] for line in own],
            y=[line.seconds for line in own],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [line.most - line.seconds for line in own],
                "arrayminus": [line.seconds - line.least for line in own],
            },
            marker_color=COLOURS[system],
        )
    figure.update_yaxes(title_text="seconds", type="log")
    return build_chart(
        f"{track}: seconds", "Median seconds of each system; the lines reach from least to most.", figure
    )


def _over_sizes(keys: str, systems: Mapping[str, Sequence[Line]]) -> list[Chart]:
    if not any(len(own) > 1 for own in systems.values()):
        return []
    figure = go.Figure(layout=layout(LIGHT))
    for system, own in systems.items():
        sizes, seconds = [line.case.rows for line in own], [line.seconds for line in own]
        name = f"{system}, b = {figures.exponent(sizes, seconds):.2f}"
        figure.add_scatter(name=name, x=sizes, y=seconds, mode="lines+markers", line_color=COLOURS[system])
    figure.update_xaxes(title_text="rows of the table", type="log")
    figure.update_yaxes(title_text="seconds", type="log")
    about = "Time of the same number of changes over the size of the table, with the exponent that fits it."
    return [build_chart(f"T2: growth with the table, {keys} keys", about, figure)]


def _over_changes(systems: Mapping[str, Sequence[Line]]) -> list[Chart]:
    if not any(len(own) > 1 for own in systems.values()):
        return []
    figure = go.Figure(layout=layout(LIGHT))
    for system, own in systems.items():
        changes, seconds = [line.case.changes for line in own], [line.seconds for line in own]
        figure.add_scatter(name=system, x=changes, y=seconds, mode="lines+markers", line_color=COLOURS[system])
    figure.update_xaxes(title_text="changed rows", type="log")
    figure.update_yaxes(title_text="seconds", type="log")
    rows = next(iter(systems.values()))[0].case.rows
    return [build_chart("T2: growth with the changes", f"Time over changed rows, of a table of {rows:,} rows.", figure)]


def _amplification(found: Sequence[Line]) -> list[Chart]:
    if not found:
        return []
    figure = go.Figure(layout=layout(LIGHT))
    for system in dict.fromkeys(line.system for line in found):
        own = sorted(
            (line for line in found if line.system == system), key=lambda line: line.case.changes / line.case.rows
        )
        shares = [line.case.changes / line.case.rows for line in own]
        written = [line.written for line in own]
        texts = [line.case.name for line in own]
        figure.add_scatter(name=system, x=shares, y=written, text=texts, mode="markers", marker_color=COLOURS[system])
    figure.update_xaxes(title_text="share of rows that change", type="log")
    figure.update_yaxes(title_text="bytes written / bytes changed", type="log")
    return [build_chart("T2: write amplification", "Bytes in new files for each byte of changed rows.", figure)]


def _phases(found: Sequence[Line]) -> list[Chart]:
    with_phases = [line for line in found if line.phases]
    if not with_phases:
        return []
    figure = go.Figure(layout=layout(LIGHT))
    for table in dict.fromkeys(table for line in with_phases for table in line.phases or ()):
        systems = [line.system for line in with_phases]
        figure.add_bar(name=table, x=systems, y=[(line.phases or {}).get(table, 0.0) for line in with_phases])
    rest = [max(0.0, line.seconds - sum((line.phases or {}).values())) for line in with_phases]
    figure.add_bar(name="before and between", x=[line.system for line in with_phases], y=rest, marker_color=LIGHT.rest)
    figure.update_layout(barmode="stack")
    figure.update_yaxes(title_text="seconds")
    return [build_chart("T3: what a batch spends", "Seconds by table, and what no table's work is.", figure)]


def _queries(found: Sequence[Line]) -> list[Chart]:
    asked = [line for line in found if line.queries]
    if not asked:
        return []
    figure = go.Figure(layout=layout(LIGHT))
    for line in asked:
        seconds = line.queries or {}
        figure.add_bar(name=line.system, x=list(seconds), y=list(seconds.values()), marker_color=COLOURS[line.system])
    figure.update_yaxes(title_text="seconds", type="log")
    about = "Median seconds of queries over what a run left, each asked once, by the engine of the system."
    return [build_chart("T3: queries behind a batch", about, figure)]


def _batches(found: Sequence[Line]) -> list[Chart]:
    if not found:
        return []
    figure = go.Figure(layout=layout(LIGHT))
    for line in found:
        name = f"{line.system}, last tenth {figures.degradation(line.series):.2f}x the first"
        figure.add_scatter(name=name, y=list(line.series), mode="lines", line_color=COLOURS[line.system])
    figure.update_xaxes(title_text="batch")
    figure.update_yaxes(title_text="seconds", type="log")
    return [
        build_chart("T7: batch after batch", "Seconds of each small batch; maintenance is done between some.", figure)
    ]
