"""``replicator maintain``: compact small files and remove files that no version in use needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import console, options
from replicator.config import duration
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replicator.operate.maintain import MaintenanceResult

_COLUMNS = ("layer", "table", "files before", "files", "bytes before", "bytes", "seconds")


def maintain(
    context: typer.Context,
    table: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="Only tables of this name: as `status` prints it, or its last part.", metavar="[TABLE]"),
    ] = None,
    keep: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option("--keep", help="How long old versions stay readable, such as '7 days'.", metavar="TIME"),
    ] = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Compact small files and remove files that no version in use needs; readers see no difference."""
    from replicator import assemble
    from replicator.operate import maintain as operate
    from replicator.operate.lock import exclusive
    from replicator.session import session

    settings = options.settings(env, conf, lake)
    seconds = settings.maintenance.keep if keep is None else _seconds(keep)
    stages = ("bronze", "silver", "gold")
    with exclusive(options.existing_lake(settings), stages, assemble.lease_options(settings)) as fence:
        spark, keeper = session(settings, debug=options.is_debug(context)), assemble.lake_tables(settings, fence)
        results: list[MaintenanceResult] = []
        for each in operate.maintain(
            spark, keeper.tables_of, operate.select_tables(keeper.tables(spark), table), seconds
        ):
            results.append(each)
            if each.error is not None:
                console.narrate(f"{each.table}: {each.error}", style="red")
        for name in operate.drop_shadows(spark, keeper) if table is None else ():
            console.narrate(f"leftovers of an interrupted rebuild of {name} were removed", style="dim")
    _show(results, settings.lake.root, as_json=as_json)
    if any(each.error is not None for each in results):
        raise typer.Exit(1)


def _show(results: Sequence[MaintenanceResult], root: str, *, as_json: bool) -> None:
    rows = [_to_row(each) for each in results]
    if as_json:
        console.print_json(rows)
    elif rows:
        cells = [[row[column.replace(" ", "_")] for column in _COLUMNS] for row in rows]
        console.print_table(_COLUMNS, [[None if cell is None else str(cell) for cell in row] for row in cells])
    else:
        console.narrate(f"There are no tables in {root} yet.", style="yellow")


def _seconds(text: str) -> int:
    try:
        return int(duration.parse_seconds(text))
    except ValueError as error:
        raise ConfigError(f"--keep {text}: {error}") from error


def _to_row(each: MaintenanceResult) -> dict[str, Any]:
    files = {"files_before": None, "files": None, "bytes_before": None, "bytes": None}
    if each.result is not None:
        files = {name: getattr(each.result, name) for name in files}
    error = None if each.error is None else str(each.error)
    return {"layer": each.layer, "table": each.table, **files, "seconds": round(each.seconds, 1), "error": error}
