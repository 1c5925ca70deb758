"""Charts of revenue and profit by product line, month and country. Figures become floats only here."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from replicator.operate.report.chart import Chart, build_chart, display_name, escape_name, label, layout
from replicator.operate.report.formatting import money
from replicator.operate.report.palette import Palette
from replicator.operate.report.star import Part, Star

COUNTRIES = 10
"""The number of countries that are drawn at most; the table has all."""


def build(star: Star, palette: Palette) -> list[Chart]:
    """Return the charts of revenue and profit by product line, by month and by country."""
    best = display_name(star.product_lines[0].name) if star.product_lines else ""
    first = display_name(star.countries[0].name) if star.countries else ""
    return [
        build_chart(
            "product-lines",
            f"Bar chart of revenue and profit by product line; {best} is the largest.",
            _bars(star.product_lines, palette),
        ),
        build_chart("months", "Line chart of revenue and profit by month.", _months(star.months, palette)),
        build_chart(
            "countries",
            f"Bar chart of revenue and profit of the largest countries; {first} is the first.",
            _bars(star.countries[:COUNTRIES], palette),
        ),
    ]


def _bars(parts: Sequence[Part], palette: Palette) -> go.Figure:
    """Return grouped bars, the first part on top."""
    places = list(range(len(parts)))
    figure = go.Figure(
        [
            go.Bar(
                name=name,
                y=places,
                x=values,
                orientation="h",
                marker={"color": colour},
                customdata=[
                    f"<b>{escape_name(part.name)}</b><br>{name} {text}" for part, text in zip(parts, texts, strict=True)
                ],
                hovertemplate="%{customdata}<extra></extra>",
            )
            for name, colour, values, texts in _series(parts, palette)
        ],
        layout(palette) | {"barmode": "group", "bargap": 0.3},
    )
    figure.update_layout(margin={"b": 28})
    figure.update_xaxes(tickformat="~s", rangemode="tozero")
    labels = [label(part.name) for part in parts]
    figure.update_yaxes(autorange="reversed", showgrid=False, zeroline=False, tickvals=places, ticktext=labels)
    return figure


def _months(parts: Sequence[Part], palette: Palette) -> go.Figure:
    dated = [part for part in parts if part.name is not None]
    months = [f"{part.name}-01" for part in dated]
    figure = go.Figure(
        [
            go.Scatter(
                name=name,
                x=months,
                y=values,
                mode="lines+markers",
                line={"color": colour, "width": 2.5},
                marker={"size": 5},
                customdata=texts,
            )
            for name, colour, values, texts in _series(dated, palette)
        ],
        layout(palette) | {"hovermode": "x unified"},
    )
    figure.update_traces(hovertemplate="%{customdata}")
    figure.update_xaxes(type="date", hoverformat="%B %Y")
    figure.update_yaxes(tickformat="~s", rangemode="tozero")
    return figure


def _series(parts: Sequence[Part], palette: Palette) -> list[tuple[str, str, list[float], list[str]]]:
    return [
        ("revenue", palette.first, [float(part.revenue) for part in parts], [money(part.revenue) for part in parts]),
        ("profit", palette.second, [float(part.profit) for part in parts], [money(part.profit) for part in parts]),
    ]
