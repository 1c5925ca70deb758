"""Two charts of sales: revenue by customer, and quantity against revenue per line. Figures become floats only here."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import plotly.graph_objects as go

from replicator.operate.report.chart import Chart, build_chart, display_name, escape_name, label, layout
from replicator.operate.report.formatting import money, number, percent, rounded
from replicator.operate.report.palette import Palette, text_on
from replicator.operate.report.sales import Customer, Sales

LARGEST, MAJORITY, PROMISING = 3, 20, 5
"""The number of customers that are highlighted as the largest, summed up, and highlighted as promising."""

_SMALLEST_LABEL = 0.02
_LARGEST_DOT = 38
_CLOSE_ACROSS, _CLOSE_UPWARDS = Decimal("0.3"), Decimal("0.05")


def build(sales: Sales, palette: Palette) -> list[Chart]:
    """Return the charts of revenue by customer and of quantity against revenue per line."""
    largest = ", ".join(
        f"{display_name(customer.id)} {money(customer.revenue)}" for customer in sales.customers[:LARGEST]
    )
    promising = ", ".join(display_name(customer.id) for customer in sales.promising(PROMISING, LARGEST))
    return [
        build_chart(
            "revenue-by-customer",
            f"Pie chart of revenue by customer. The largest: {largest}. "
            f"The top {min(MAJORITY, len(sales.customers))} have {percent(sales.share(MAJORITY))} of all revenue.",
            _pie(sales, palette),
        ),
        build_chart(
            "quantity-and-revenue",
            "Scatter chart with a dot per customer: average quantity per line across, average revenue per line "
            f"upwards, as large as the customer has orders. Few orders, high-priced items: {promising}.",
            _scatter(sales, palette),
        ),
    ]


def _pie(sales: Sales, palette: Palette) -> go.Figure:
    majority = sales.customers[:MAJORITY]
    others = sales.total.customers - len(majority)
    slices = [_slice(customer, sales) for customer in majority]
    colours = [palette.first if index < LARGEST else palette.first_soft for index in range(len(majority))]
    if others:
        rest = sales.total.revenue - sales.largest_revenue(MAJORITY)
        slices.append((f"{number(others)} others", float(rest), _hover(f"{number(others)} others", rest, sales)))
        colours.append(palette.rest)
    total = sum(value for _, value, _ in slices) or 1
    texts = [text if value / total >= _SMALLEST_LABEL else "" for text, value, _ in slices]
    pie = go.Pie(
        labels=[str(index) for index in range(len(slices))],
        values=[max(value, 0) for _, value, _ in slices],
        text=texts,
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
    figure = go.Figure(pie, layout(palette))
    figure.add_annotation(text=centre, showarrow=False, font={"size": 20})
    return figure.update_layout(showlegend=False, margin={"t": 12, "b": 12, "l": 12, "r": 12})


def _slice(customer: Customer, sales: Sales) -> tuple[str, float, str]:
    return label(customer.id), float(customer.revenue), _hover(escape_name(customer.id), customer.revenue, sales)


def _hover(name: str, revenue: Decimal, sales: Sales) -> str:
    share = percent(revenue / sales.total.revenue) if sales.total.revenue else percent(None)
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
            _dots("few orders, high-priced items", promising, palette.second, palette, scale, _sides(promising)),
        ],
        layout(palette),
    )
    figure.update_layout(margin={"r": 48})
    figure.update_xaxes(title={"text": "average quantity per line", "standoff": 12}, rangemode="tozero")
    figure.update_yaxes(title={"text": "average revenue per line", "standoff": 12}, rangemode="tozero")
    return figure


def _dots(
    name: str, customers: Sequence[Customer], colour: str, palette: Palette, scale: float, sides: Sequence[str] = ()
) -> go.Scatter:
    """Return the dots of some customers, labelled if ``sides`` gives the side of each label."""
    return go.Scatter(
        name=name,
        x=[float(rounded(customer.average_quantity, 2)) for customer in customers],
        y=[float(rounded(customer.average_revenue, 2)) for customer in customers],
        text=[label(customer.id) for customer in customers],
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
    """Return the side of each dot's label: left, but right where a dot of similar height is close on the left."""
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
        f"<b>{escape_name(customer.id)}</b><br>revenue {money(customer.revenue)}<br>"
        f"{number(customer.orders)} orders, {number(customer.lines)} lines<br>"
        f"per line: {number(customer.average_quantity, 2)} pieces, {money(customer.average_revenue)}"
    )
