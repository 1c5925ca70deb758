"""``replicator status``: rows, last position and lag of every table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from replicator.cli import console, direct, options

if TYPE_CHECKING:
    from replicator.operate.where.attempts import Trouble
    from replicator.operate.where.standing import Standing
    from replicator.settings import Settings

_COLUMNS = ("layer", "table", "rows", "position", "lag events", "lag seconds")


def status(
    context: typer.Context,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Where every table stands, and how far behind the layer before it.

    One that cannot be read is named on stderr, and the exit code is 1.
    """
    settings = options.settings(env, conf, lake)
    found, troubles = direct.asked(lambda: (_direct(settings), ()), lambda: _by_spark(context, settings))
    if as_json:
        console.print_json([asdict(standing) for standing in found])
    elif found:
        console.print_table(_COLUMNS, [_row(standing) for standing in found])
    elif not troubles:
        console.narrate(f"There are no tables in {settings.lake.root} yet.")
    for lacking in (each for each in found if each.unknown):
        console.narrate(_lacks(lacking, options.flags(env, conf, lake)), style="yellow")
    for model in _undescribed(settings, found) if lake is None else ():
        console.narrate(_left(settings, model), style="yellow")
    for trouble in troubles:
        console.narrate(f"{trouble.table} cannot be read: {trouble.why}", style="red")
    if troubles:
        raise typer.Exit(1)


def _direct(settings: Settings) -> list[Standing]:
    from replicator import surveys
    from replicator.operate.where.direct import standings

    return standings(surveys.direct(settings, options.store(settings)))


def _by_spark(context: typer.Context, settings: Settings) -> tuple[list[Standing], tuple[Trouble, ...]]:
    from replicator import assemble
    from replicator.operate import status as by_spark
    from replicator.operate.where.attempts import Attempts
    from replicator.session import session

    spark = session(settings, debug=options.debugging(context), brief=True)
    attempts = Attempts()
    found = by_spark.tried(spark, assemble.surroundings(spark, settings), attempts)
    return found, tuple(attempts.troubles.values())


def _row(standing: Standing) -> list[str | None]:
    table = f"{standing.table} (paused)" if standing.paused else standing.table
    cells = (standing.layer, table, standing.rows, standing.position, standing.lag_events)
    seconds = None if standing.lag_seconds is None else f"{standing.lag_seconds:.1f}"
    return [*(None if cell is None else str(cell) for cell in cells), seconds]


def _undescribed(settings: Settings, found: list[Standing]) -> list[str]:
    """Gold tables of no model of the configuration."""
    described = {model.name for model in settings.models}
    return [each.table for each in found if each.layer == "gold" and each.table not in described]


def _left(settings: Settings, model: str) -> str:
    from replicator.lake import Lake

    folder = Lake(settings.lake.root).gold(model).location
    return (
        f"gold {model}: no file describes this model any more; its table, and what was published of it, stay as they "
        f"are. Bring its file back, or stop all drivers and remove the folder {folder}."
    )


def _lacks(standing: Standing, flags: str) -> str:
    rows = "1 row lacks" if standing.unknown == 1 else f"{standing.unknown} rows lack"
    return (
        f"{standing.table}: {rows} a value that no record has told (NULL, and named in _column_seq) until one does; "
        f"{options.command('rebuild', standing.table, flags=flags)} looks for it in all of bronze."
    )
