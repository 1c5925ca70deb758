"""``replicator report``: the contents and the state of the lake, as one HTML page."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.catalog import extras
from replicator.cli import atomic_file, console, options
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from replicator.operate.report.collect import Report
    from replicator.settings import Settings


def report(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.", metavar="FILE")] = Path(
        "report.html"
    ),
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page: sales, the star schema and the state of the pipeline. It can be viewed without a network."""
    page = extras.load("replicator.operate.report.page", "report")  # a missing extra is reported before any query
    if not output.parent.is_dir() or output.is_dir():
        raise ConfigError(f"{output} cannot be written", fix="Give --output FILE in an existing folder.")
    found = _collect(context, options.settings(env, conf, lake))
    atomic_file.write_atomically(output, lambda path: _write(path, page.html(found)))
    for trouble in found.failures:
        console.narrate(f"{trouble.table}: {trouble.reason}", style="red")
    if as_json:
        troubles = [{"table": trouble.table, "why": trouble.reason} for trouble in found.failures]
        console.print_json({"page": str(output), "troubles": troubles})
    else:
        console.print_text(str(output))
    if found.failures:
        raise typer.Exit(1)


def _write(path: Path, html: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(html)


def _collect(context: typer.Context, settings: Settings) -> Report:
    from replicator import assemble
    from replicator.operate.report import collect
    from replicator.session import session
    from replicator.spec import SourceSpec

    spark = session(settings, debug=options.is_debug(context), brief=True)
    sources = assemble.refinements(spark, settings, SourceSpec("", ""))
    inputs = collect.ReportInputs(assemble.status_inputs(spark, settings), sources, assemble.runs(spark, settings))
    return collect.report(spark, inputs, datetime.now(timezone.utc))
