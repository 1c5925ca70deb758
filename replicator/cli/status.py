"""``replicator status``: rows, last position and lag of every table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from replicator.cli import advice, console, options, spark_fallback

if TYPE_CHECKING:
    from replicator.operate.progress.attempts import UnreadableTable
    from replicator.operate.progress.table_status import TableStatus
    from replicator.settings import Settings

_COLUMNS = ("layer", "table", "rows", "position", "lag events", "lag seconds")


def status(
    context: typer.Context,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Show the progress of each table, and its lag behind the layer before it.

    A table that cannot be read is named on stderr, and the exit code is 1.
    """
    settings = options.settings(env, conf, lake)
    found, troubles = spark_fallback.answer(
        lambda: (_without_spark(settings), ()), lambda: _by_spark(context, settings)
    )
    if as_json:
        console.print_json([asdict(standing) for standing in found])
    elif found:
        console.print_table(_COLUMNS, [_row(standing) for standing in found])
    elif not troubles:
        console.narrate(f"There are no tables in {settings.lake.root} yet.")
    for incomplete in (each for each in found if each.unknown):
        console.narrate(_describe_unknown(incomplete), style="yellow")
    for model in _unconfigured_models(settings, found) if lake is None else ():
        console.narrate(_describe_leftover(settings, model), style="yellow")
    for trouble in troubles:
        console.narrate(f"{trouble.table} cannot be read: {trouble.reason}", style="red")
    if troubles:
        raise typer.Exit(1)


def _without_spark(settings: Settings) -> list[TableStatus]:
    from replicator import assemble_without_spark
    from replicator.operate.progress.arrow_survey import list_statuses

    return list_statuses(assemble_without_spark.arrow_survey(settings, options.store(settings)))


def _by_spark(context: typer.Context, settings: Settings) -> tuple[list[TableStatus], tuple[UnreadableTable, ...]]:
    from replicator import assemble
    from replicator.operate import status as by_spark
    from replicator.operate.progress.attempts import Attempts
    from replicator.session import session

    spark = session(settings, debug=options.is_debug(context), brief=True)
    attempts = Attempts()
    found = by_spark.try_statuses(spark, assemble.status_inputs(spark, settings), attempts)
    return found, tuple(attempts.failures.values())


def _row(standing: TableStatus) -> list[str | None]:
    table = f"{standing.table} (paused)" if standing.paused else standing.table
    cells = (standing.layer, table, standing.rows, standing.position, standing.lag_events)
    seconds = None if standing.lag_seconds is None else f"{standing.lag_seconds:.1f}"
    return [*(None if cell is None else str(cell) for cell in cells), seconds]


def _unconfigured_models(settings: Settings, found: list[TableStatus]) -> list[str]:
    """Return the gold tables that no model of the configuration describes."""
    described = {model.name for model in settings.models}
    return [each.table for each in found if each.layer == "gold" and each.table not in described]


def _describe_leftover(settings: Settings, model: str) -> str:
    from replicator.lake import Lake

    folder = Lake(settings.lake.root).gold(model).location
    return (
        f"gold {model}: no file describes this model any longer; its table and its published rows stay as they "
        f"are. Restore its file, or stop all drivers and remove the folder {folder}."
    )


def _describe_unknown(standing: TableStatus) -> str:
    rows = "1 row lacks" if standing.unknown == 1 else f"{standing.unknown} rows lack"
    return (
        f"{standing.table}: {rows} a value that no record has supplied (NULL, listed in _column_seq) until one does; "
        f"{advice.command('rebuild', standing.table)} looks for it in all of bronze."
    )
