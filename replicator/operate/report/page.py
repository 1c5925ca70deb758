"""Render a report as one HTML file that needs no network: style, scripts, plotly and all figures are embedded.

Data from the lake can become neither markup nor script: the template escapes every text, the JSON of the charts has no
``<``, and the page's own content security policy lets the browser run only the two scripts of this module, by their
hashes, and load nothing.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import jinja2
from plotly.offline import get_plotlyjs

from replicator import __version__
from replicator.operate.progress.table_status import TableStatus
from replicator.operate.report import formatting, health_charts, sales_charts, star_charts
from replicator.operate.report.chart import Chart, display_name
from replicator.operate.report.collect import Report
from replicator.operate.report.palette import DARK, LIGHT, Palette
from replicator.operate.report.sales import COLUMNS as SALES_COLUMNS
from replicator.operate.report.star import COLUMNS as STAR_COLUMNS
from replicator.operate.runs import Run

_PACKAGE = __name__.rpartition(".")[0]


def html(report: Report) -> str:
    """Return the whole page."""
    environment = _environment()
    drawn = {"light": drawings(report, LIGHT), "dark": drawings(report, DARK)}
    scripts = [_script(get_plotlyjs()), _script(_text(environment, "page.js"))]
    return environment.get_template("page.html").render(
        report=report,
        version=__version__,
        about={chart.name: chart.about for chart in drawn["light"]},
        drawings={theme: [_drawing(chart) for chart in charts] for theme, charts in drawn.items()},
        colours={"light": asdict(LIGHT), "dark": asdict(DARK)},
        style=_text(environment, "page.css"),
        scripts=scripts,
        hashes=[_hash(script) for script in scripts],
        most=sales_charts.MAJORITY,
        sales_columns=sorted(SALES_COLUMNS),
        star_models=sorted(STAR_COLUMNS),
    )


def drawings(report: Report, palette: Palette) -> list[Chart]:
    """Return the charts of the parts that the report has."""
    found = []
    if report.sales is not None:
        found += sales_charts.build(report.sales, palette)
    if report.star is not None:
        found += star_charts.build(report.star, palette)
    if report.health.batches.buckets:
        found.append(health_charts.build_batches(report.health.batches, palette))
    return found


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    formatters = (
        formatting.number,
        formatting.counted,
        formatting.money,
        formatting.percent,
        formatting.moment,
        formatting.from_ms,
        formatting.span,
    )
    environment.filters |= {each.__name__: each for each in formatters}
    environment.filters |= {
        "named": display_name,
        "sum_of": _sum_of,
        "stopped": _stopped,
        "position": _position,
        "written_at": _written_at,
    }
    return environment


def _position(standing: TableStatus) -> str:
    """Return a table's version, or why it has none; nothing for a position in the source's order, which is not for
    people.
    """
    return formatting.NOTHING if standing.layer in {"silver", "history"} else standing.position


def _written_at(text: str) -> str:
    """Format a time that a run has recorded in ISO 8601."""
    return formatting.moment(datetime.fromisoformat(text))


def _sum_of(run: Run, stage: str, count: str) -> int:
    """Return a count of a run in one stage, summed over all tables."""
    return sum(getattr(entry, count) for entry in run.entries if entry.stage == stage)


def _stopped(run: Run) -> str:
    """Return the tables that were stopped at the end of a run."""
    return ", ".join(f"{entry.stage} {entry.table}" for entry in run.entries if entry.error) or formatting.NOTHING


def _text(environment: jinja2.Environment, name: str) -> str:
    """Return a file of the template unchanged."""
    source, _, _ = environment.loader.get_source(environment, name)  # type: ignore[union-attr]
    return source


def _script(text: str) -> str:
    """Return a script as a browser reads it from a page. Raises ValueError for one that would end its element."""
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError("a script cannot stand inside a page")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _drawing(chart: Chart) -> Mapping[str, Any]:
    return {"name": chart.name, "figure": chart.figure}
