"""``replicator purge``: deleted rows that are old enough leave silver."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Optional

import typer

from replicator.cli import console, options

_COLUMNS = ("table", "purged", "kept", "horizon")


def purge(
    context: typer.Context,
    table: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="Only this table: <database or schema>.<table>, or its last part.", metavar="[TABLE]"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would go, and remove nothing.")] = False,
    source: options.SourceName = None,
    declare: options.Declare = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Remove rows of silver that were deleted at the source longer ago than their table's purge_after."""
    from replicator import assemble
    from replicator.lake import Lake
    from replicator.operate import purge as operate
    from replicator.operate.lock import exclusive

    declared = options.declared(declare, lake)
    settings = options.settings(env, conf, lake)
    stages = () if dry_run else ("silver",)
    with exclusive(Lake(settings.lake.root), stages, assemble.terms(settings)) as fence:
        spark, sources = options.opened(context, settings, source, declared, fence=fence)
        tables, now_ms = operate.chosen(spark, sources, table), int(time.time() * 1000)
        found = [asdict(operate.purge(spark, at, name, now_ms, dry=dry_run)) for at, name in tables]
    if as_json:
        console.print_json(found)
    elif found:
        console.print_table(_COLUMNS, [[None if row[c] is None else str(row[c]) for c in _COLUMNS] for row in found])
    else:
        console.narrate("No table declares purge_after: deleted rows stay.", style="yellow")
    if dry_run and found:
        console.narrate("Nothing was removed: this was a dry run.", style="yellow")
