"""The parts that all charts share: the layout in the colours of a palette, and the escaping of names.

Names come from the data, and plotly interprets tags and entities in every text: each name goes through
:func:`escape_name`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go

from replicator.operate.report.palette import Palette

_LONGEST_LABEL = 24


@dataclass(frozen=True)
class Chart:
    """A chart as plotly's JSON, with a sentence that describes it for readers who cannot see it."""

    name: str
    about: str
    figure: Any


def build_chart(name: str, about: str, figure: go.Figure) -> Chart:
    """Return a plotly chart in the form that the page embeds."""
    return Chart(name, about, json.loads(figure.to_json()))


def layout(palette: Palette) -> dict[str, Any]:
    """Return the layout of a chart, with a transparent background."""
    lines: dict[str, Any] = dict.fromkeys(("gridcolor", "linecolor", "zerolinecolor"), palette.line)
    axis = lines | {"automargin": True, "title": {"font": {"size": 13}}}
    return {
        "template": "none",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": palette.ink},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"t": 44, "b": 44, "l": 56, "r": 16},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hoverlabel": {"bgcolor": palette.card, "bordercolor": palette.line, "font": {"color": palette.ink}},
        "xaxis": axis,
        "yaxis": axis,
        "uniformtext": {"minsize": 9, "mode": "hide"},
    }


def display_name(name: str | None) -> str:
    """Return a name, or ``(none)`` where it is missing."""
    return "(none)" if name is None else name


def escape_name(name: str | None) -> str:
    """Return a name escaped for plotly, which does not know entities of quotes."""
    return escape(display_name(name), quote=False)


def label(name: str | None) -> str:
    """Return a name shortened to the space in a chart; tooltips and tables have the full name."""
    full_name = display_name(name)
    return escape_name(
        full_name if len(full_name) <= _LONGEST_LABEL else f"{full_name[: _LONGEST_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
