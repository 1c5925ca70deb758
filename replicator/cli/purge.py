"""``replicator purge``: remove rows from silver whose deletion is older than their table's ``purge_after``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options
from replicator.errors import exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replicator.operate.purge import PurgeResult

_COLUMNS = ("table", "purged", "kept", "horizon")


def purge(
    context: typer.Context,
    table: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="Only this table: <database or schema>.<table>, or its last part.", metavar="[TABLE]"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be removed and remove nothing.")] = False,
    source: options.SourceName = None,
    declare: options.Declare = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Remove silver rows that were deleted at the source longer ago than their table's purge_after.

    A table that stops is named on stderr, the others are processed, and the exit code is 1.
    """
    from replicator import assemble
    from replicator.operate import purge as operate
    from replicator.operate.lock import exclusive

    declared = options.load_declarations(declare, lake)
    settings = options.settings(env, conf, lake)
    stages = () if dry_run else ("silver",)
    with exclusive(options.existing_lake(settings), stages, assemble.lease_options(settings)) as fence:
        spark, sources = options.open_sources(context, settings, source, declared, fence=fence)
        tables, now_ms = operate.select_tables(spark, sources, table), int(time.time() * 1000)
        found = [operate.attempt(spark, refinement, name, now_ms, dry=dry_run) for refinement, name in tables]
    _show(found, as_json=as_json)
    if dry_run and found:
        console.narrate("Nothing was removed: this was a dry run.", style="yellow")
    if code := exit_code([each.error for each in found if each.error is not None]):
        raise typer.Exit(code)


def _show(found: Sequence[PurgeResult], *, as_json: bool) -> None:
    """Print one line per table, and on stderr the errors that stopped some."""
    rows = [{**{c: getattr(each, c) for c in _COLUMNS}, "error": each.error and str(each.error)} for each in found]
    done = [row for row in rows if row["error"] is None]
    if as_json:
        console.print_json(rows)
    elif done:
        console.print_table(_COLUMNS, [[None if row[c] is None else str(row[c]) for c in _COLUMNS] for row in done])
    elif not rows:
        console.narrate("No table of silver declares purge_after: deleted rows stay.", style="yellow")
    for each in found:
        if each.error is not None:
            console.narrate(f"{each.table}: {each.error}", style="red")
