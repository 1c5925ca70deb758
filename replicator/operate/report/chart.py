"""What all charts share: their frame in the colours of a palette, and names as plotly shows them unread.

Names come from the data, and plotly reads tags and entities in every text: each goes through :func:`escape_name`.
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
    """A chart as plotly's JSON, and what it shows in a sentence for those who do not see it."""

    name: str
    about: str
    figure: Any


def build_chart(name: str, about: str, figure: go.Figure) -> Chart:
    """A chart of plotly as the page embeds it."""
    return Chart(name, about, json.loads(figure.to_json()))


def layout(palette: Palette) -> dict[str, Any]:
    """The frame of a chart, which stands on the page's own ground."""
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
    """A name that may be missing."""
    return "(none)" if name is None else name


def escape_name(name: str | None) -> str:
    """A name as plotly shows it unread; it knows no entities of quotes."""
    return escape(display_name(name), quote=False)


def label(name: str | None) -> str:
    """As much of a name as a chart has room for; hovering and the tables have all of it."""
    whole = display_name(name)
    return escape_name(
        whole if len(whole) <= _LONGEST_LABEL else f"{whole[: _LONGEST_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
