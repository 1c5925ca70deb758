"""The chart of batches by time."""

from __future__ import annotations

import plotly.graph_objects as go

from replicator.operate.report.chart import Chart, build_chart, layout
from replicator.operate.report.formatting import number, span
from replicator.operate.report.health import Timeline
from replicator.operate.report.palette import Palette


def build_batches(timeline: Timeline, palette: Palette) -> Chart:
    """Return a bar chart of the records written to bronze by time."""
    return build_chart(
        "batches",
        f"Bar chart of records written into bronze, per {span(timeline.width)}.",
        _batches(timeline, palette),
    )


def _batches(timeline: Timeline, palette: Palette) -> go.Figure:
    bars = go.Bar(
        x=[bucket.since.strftime("%Y-%m-%d %H:%M:%S") for bucket in timeline.buckets],
        y=[bucket.records for bucket in timeline.buckets],
        width=timeline.width.total_seconds() * 1000 * 0.9,
        offset=0,
        marker={"color": palette.first},
        customdata=[f"{number(bucket.records)} records in {bucket.batches} batches" for bucket in timeline.buckets],
        hovertemplate="%{x}<br>%{customdata}<extra></extra>",
    )
    figure = go.Figure(bars, layout(palette))
    figure.update_xaxes(type="date")
    figure.update_layout(margin={"t": 8})
    figure.update_yaxes(title={"text": "records", "standoff": 12}, rangemode="tozero")
    return figure
