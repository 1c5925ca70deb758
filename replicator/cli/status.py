"""``replicator status``: rows, last position and lag of every table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from replicator.cli import console, options

if TYPE_CHECKING:
    from replicator.operate.status import Standing

_COLUMNS = ("layer", "table", "rows", "position", "lag events", "lag seconds")


def status(
    context: typer.Context,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Where every table stands, and how far behind the layer before it."""
    from replicator import assemble
    from replicator.operate.status import standings
    from replicator.session import session

    settings = options.settings(env, conf, lake)
    spark = session(settings, debug=options.debugging(context), brief=True)
    found = standings(spark, assemble.surroundings(spark, settings))
    if as_json:
        console.print_json([asdict(standing) for standing in found])
    elif found:
        console.print_table(_COLUMNS, [_row(standing) for standing in found])
    else:
        console.narrate(f"There are no tables in {settings.lake.root} yet.")


def _row(standing: Standing) -> list[str | None]:
    table = f"{standing.table} (paused)" if standing.paused else standing.table
    cells = (standing.layer, table, standing.rows, standing.position, standing.lag_events)
    seconds = None if standing.lag_seconds is None else f"{standing.lag_seconds:.1f}"
    return [*(None if cell is None else str(cell) for cell in cells), seconds]
