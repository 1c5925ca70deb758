"""``replicator tables``: leave tables as they are for a while, and let them go on."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli import console, direct, options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from replicator.operate.pause import Listed, Place
    from replicator.settings import Settings

app = typer.Typer(help="Which tables are kept up to date, and which are paused.", no_args_is_help=True)

Tables = Annotated[
    list[str],
    typer.Argument(
        help="[<source>/]<database or schema>.<table>, or its last part; one or several.", metavar="TABLE..."
    ),
]
_COLUMNS = ("table", "paused since")


@app.command()
def show(
    context: typer.Context,
    source: options.SourceName = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Every table of silver, and since when it is paused."""
    settings = options.settings(env, conf, lake)
    _tell(options.chosen(source, listed(context, settings)), as_json=as_json)


@app.command()
def pause(
    context: typer.Context,
    tables: Tables,
    source: options.SourceName = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Leave tables as they are: their records go on to bronze, and wait there. A run that is under way obeys."""
    from replicator.operate import pause as operate

    def paused(places: Sequence[Place]) -> list[Listed]:
        return operate.pause(places, datetime.now(timezone.utc).isoformat(timespec="seconds"))

    _tell(_said(context, options.settings(env, conf, lake), source, tables, paused), as_json=as_json)


@app.command()
def resume(
    context: typer.Context,
    tables: Tables,
    source: options.SourceName = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Let tables go on from where they stopped, with the next run or the next new records."""
    from replicator.operate import pause as operate

    _tell(_said(context, options.settings(env, conf, lake), source, tables, operate.resume), as_json=as_json)


def _said(
    context: typer.Context,
    settings: Settings,
    source: str | None,
    tables: Sequence[str],
    change: Callable[[Sequence[Place]], list[Listed]],
) -> list[Listed]:
    """What becomes of the tables, changed while nobody else says something of a table."""
    from replicator import assemble
    from replicator.lake import Lake
    from replicator.operate import pause as operate
    from replicator.operate.lock import alone

    spark, sources = options.opened(context, settings, source, brief=True)
    places = operate.named(spark, sources, tables)
    with alone(Lake(settings.lake.root), assemble.terms(settings)) as fence:
        return change(operate.fenced(places, fence))


def listed(context: typer.Context, settings: Settings) -> dict[str, list[Listed]]:
    """Every table that silver has, that some topic has carried, or that is declared, of each source."""
    return direct.asked(lambda: _direct(settings), lambda: _by_spark(context, settings))


def _direct(settings: Settings) -> dict[str, list[Listed]]:
    from replicator import surveys
    from replicator.operate import pause as operate

    of = surveys.direct(settings, options.store(settings))
    return {each.name: operate.listed_of(of, each) for each in surveys.sources(settings, of)}


def _by_spark(context: typer.Context, settings: Settings) -> dict[str, list[Listed]]:
    from replicator.operate import pause as operate

    spark, sources = options.opened(context, settings, brief=True)
    return {at.source.name: operate.listed(spark, [at]) for at in sources}


def _tell(found: Sequence[Listed], *, as_json: bool) -> None:
    if as_json:
        console.print_json([asdict(each) for each in found])
    elif found:
        console.print_table(_COLUMNS, [[each.table, each.paused or ""] for each in found])
    else:
        console.narrate("There are no tables yet.")
