"""Figures -> charts of plotly, in the colours of a palette. Numbers are floats here and nowhere before.

Names come from the data: plotly reads tags and entities in every text, so each is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from typing import Any

import plotly.graph_objects as go

from replicator.operate.report.health import Timeline
from replicator.operate.report.palette import Palette, text_on
from replicator.operate.report.sales import Customer, Sales
from replicator.operate.report.star import Part, Star
from replicator.operate.report.written import money, number, percent, rounded, span

LARGEST, MAJORITY, PROMISING, COUNTRIES = 3, 20, 5, 10
"""How many customers stand out as the largest, are summed up, look promising; how many countries are drawn."""

_SMALLEST_LABEL = 0.02
_LARGEST_DOT = 38
_CLOSE_ACROSS, _CLOSE_UPWARDS = Decimal("0.3"), Decimal("0.05")


@dataclass(frozen=True)
class Chart:
    """A chart as plotly's JSON, and what it shows in a sentence for those who do not see it."""

    name: str
    about: str
    figure: Any


def of_sales(sales: Sales, palette: Palette) -> list[Chart]:
    """Who brings the revenue, and who buys dear items."""
    largest = ", ".join(f"{named(customer.id)} {money(customer.revenue)}" for customer in sales.customers[:LARGEST])
    promising = ", ".join(named(customer.id) for customer in sales.promising(PROMISING, LARGEST))
    return [
        Chart(
            "revenue-by-customer",
            f"Pie chart of revenue by customer. The largest: {largest}. "
            f"The top {MAJORITY} have {percent(sales.share(MAJORITY))} of all revenue.",
            _json(_pie(sales, palette)),
        ),
        Chart(
            "quantity-and-revenue",
            "Scatter chart with a dot per customer: average quantity per line across, average revenue per line "
            f"upwards, as large as the customer has orders. Few orders, dear items: {promising}.",
            _json(_scatter(sales, palette)),
        ),
    ]


def of_star(star: Star, palette: Palette) -> list[Chart]:
    """Revenue and profit by product line, by month, by country."""
    best = named(star.product_lines[0].name) if star.product_lines else ""
    first = named(star.countries[0].name) if star.countries else ""
    return [
        Chart(
            "product-lines",
            f"Bar chart of revenue and profit by product line; {best} is the largest.",
            _json(_bars(star.product_lines, palette)),
        ),
        Chart("months", "Line chart of revenue and profit by month.", _json(_months(star.months, palette))),
        Chart(
            "countries",
            f"Bar chart of revenue and profit of the largest countries; {first} is the first.",
            _json(_bars(star.countries[:COUNTRIES], palette)),
        ),
    ]


def of_batches(timeline: Timeline, palette: Palette) -> Chart:
    """When records came in."""
    return Chart(
        "batches",
        f"Bar chart of records written into bronze, per {span(timeline.width)}.",
        _json(_batches(timeline, palette)),
    )


def named(name: str | None) -> str:
    """A name that may be missing."""
    return "(none)" if name is None else name


def _plain(name: str | None) -> str:
    """A name as plotly shows it unread; it knows no entities of quotes."""
    return escape(named(name), quote=False)


def _pie(sales: Sales, palette: Palette) -> go.Figure:
    majority, others = sales.customers[:MAJORITY], sales.customers[MAJORITY:]
    slices = [_slice(customer, sales) for customer in majority]
    colours = [palette.first if at < LARGEST else palette.first_soft for at in range(len(majority))]
    if others:
        rest = sales.revenue - sales.largest_revenue(MAJORITY)
        slices.append((f"{len(others)} others", float(rest), _hover(f"{len(others)} others", rest, sales)))
        colours.append(palette.rest)
    whole = sum(value for _, value, _ in slices) or 1
    labels = [label if value / whole >= _SMALLEST_LABEL else "" for label, value, _ in slices]
    pie = go.Pie(
        labels=[str(at) for at in range(len(slices))],
        values=[max(value, 0) for _, value, _ in slices],
        text=labels,
        customdata=[hover for _, _, hover in slices],
        hovertemplate="%{customdata}<extra></extra>",
        textinfo="text",
        textposition="inside",
        insidetextorientation="auto",
        marker={"colors": colours, "line": {"color": palette.card, "width": 2}},
        insidetextfont={"size": 11, "color": [text_on(colour, palette) for colour in colours]},
        hole=0.5,
        sort=False,
        direction="clockwise",
    )
    centre = f"<b>{percent(sales.share(len(majority)))}</b><br>top {len(majority)}"
    layout = _layout(palette)
    layout["annotations"] = [{"text": centre, "showarrow": False, "font": {"size": 20, "color": palette.ink}}]
    layout["margin"] = {"t": 12, "b": 12, "l": 12, "r": 12}
    return go.Figure(pie, layout | {"showlegend": False})


def _slice(customer: Customer, sales: Sales) -> tuple[str, float, str]:
    name = _plain(customer.id)
    return name, float(customer.revenue), _hover(name, customer.revenue, sales)


def _hover(name: str, revenue: Any, sales: Sales) -> str:
    share = percent(revenue / sales.revenue) if sales.revenue else percent(None)
    return f"<b>{name}</b><br>{money(revenue)}<br>{share} of revenue"


def _scatter(sales: Sales, palette: Palette) -> go.Figure:
    largest, promising = sales.customers[:LARGEST], sales.promising(PROMISING, LARGEST)
    rest = [customer for customer in sales.customers[LARGEST:] if customer not in promising]
    most = max((customer.orders for customer in sales.customers), default=1)
    scale = 2 * most / _LARGEST_DOT**2
    figure = go.Figure(
        [
            _dots("other customers", rest, palette.rest, palette, scale),
            _dots(f"the {LARGEST} largest", largest, palette.first, palette, scale, ["middle right"] * len(largest)),
            _dots("few orders, dear items", promising, palette.second, palette, scale, _sides(promising)),
        ],
        _layout(palette),
    )
    figure.update_layout(margin={"r": 48})
    figure.update_xaxes(title={"text": "average quantity per line", "standoff": 12}, rangemode="tozero")
    figure.update_yaxes(title={"text": "average revenue per line", "standoff": 12}, rangemode="tozero")
    return figure


def _dots(
    name: str, customers: Sequence[Customer], colour: str, palette: Palette, scale: float, sides: Sequence[str] = ()
) -> go.Scatter:
    """Dots, with their names where ``sides`` says on which side each has it."""
    return go.Scatter(
        name=name,
        x=[float(rounded(customer.average_quantity, 2)) for customer in customers],
        y=[float(rounded(customer.average_revenue, 2)) for customer in customers],
        text=[_plain(customer.id) for customer in customers],
        customdata=[_figures(customer) for customer in customers],
        hovertemplate="%{customdata}<extra></extra>",
        mode="markers+text" if sides else "markers",
        textposition=list(sides) or None,
        cliponaxis=False,
        textfont={"color": palette.ink, "size": 12},
        marker={
            "size": [customer.orders for customer in customers],
            "sizemode": "area",
            "sizeref": scale,
            "sizemin": 3,
            "color": colour,
            "opacity": 0.85 if sides else 0.55,
            "line": {"color": palette.card, "width": 1},
        },
    )


def _sides(customers: Sequence[Customer]) -> list[str]:
    """Where the name of each dot goes: left of it, but right where a dot about as high is close by on the left."""
    wide = max((customer.average_quantity for customer in customers), default=Decimal(1)) * _CLOSE_ACROSS
    high = max((customer.average_revenue for customer in customers), default=Decimal(1)) * _CLOSE_UPWARDS
    sides = []
    for customer in customers:
        steps = [
            customer.average_quantity - other.average_quantity
            for other in customers
            if other is not customer and abs(other.average_revenue - customer.average_revenue) < high
        ]
        sides.append("middle right" if any(0 < step < wide for step in steps) else "middle left")
    return sides


def _figures(customer: Customer) -> str:
    return (
        f"<b>{_plain(customer.id)}</b><br>revenue {money(customer.revenue)}<br>"
        f"{number(customer.orders)} orders, {number(customer.lines)} lines<br>"
        f"per line: {number(customer.average_quantity, 2)} pieces, {money(customer.average_revenue)}"
    )


def _bars(parts: Sequence[Part], palette: Palette) -> go.Figure:
    """Grouped bars, the first part on top."""
    names = [_plain(part.name) for part in parts]
    figure = go.Figure(
        [
            go.Bar(name=name, y=names, x=values, orientation="h", marker={"color": colour}, customdata=texts)
            for name, colour, values, texts in _series(parts, palette)
        ],
        _layout(palette) | {"barmode": "group", "bargap": 0.3},
    )
    figure.update_traces(hovertemplate="<b>%{y}</b><br>%{fullData.name} %{customdata}<extra></extra>")
    figure.update_layout(margin={"b": 28})
    figure.update_xaxes(tickformat="~s", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category", automargin=True)
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
        _layout(palette) | {"hovermode": "x unified"},
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
    figure = go.Figure(bars, _layout(palette))
    figure.update_xaxes(type="date")
    figure.update_layout(margin={"t": 8})
    figure.update_yaxes(title={"text": "records", "standoff": 12}, rangemode="tozero")
    return figure


def _layout(palette: Palette) -> dict[str, Any]:
    axis = dict.fromkeys(("gridcolor", "linecolor", "zerolinecolor"), palette.line)
    axis |= {"automargin": True, "title": {"font": {"size": 13}}}
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


def _json(figure: go.Figure) -> Any:
    return json.loads(figure.to_json())
