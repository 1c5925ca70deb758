"""``replicator tables``: pause tables, and resume them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli import console, options, spark_fallback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from replicator.operate.pause import SilverTable, TableState
    from replicator.settings import Settings

app = typer.Typer(help="Which tables are replicated, and which are paused.", no_args_is_help=True)

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
    """List the silver tables, and since when each is paused."""
    settings = options.settings(env, conf, lake)
    _print(options.select_by_source(source, list_tables(context, settings)), as_json=as_json)


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
    """Pause tables: their records still go to bronze and wait there. This takes effect in a run in progress."""
    from replicator.operate import pause as operate

    def paused(places: Sequence[SilverTable]) -> list[TableState]:
        return operate.pause(places, datetime.now(timezone.utc).isoformat(timespec="seconds"))

    _print(_change(context, options.settings(env, conf, lake), source, tables, paused), as_json=as_json)


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
    """Resume tables where they were paused, with the next run or the next new records."""
    from replicator.operate import pause as operate

    _print(_change(context, options.settings(env, conf, lake), source, tables, operate.resume), as_json=as_json)


def _change(
    context: typer.Context,
    settings: Settings,
    source: str | None,
    tables: Sequence[str],
    change: Callable[[Sequence[SilverTable]], list[TableState]],
) -> list[TableState]:
    """Pause or resume tables under the lock of operators, and return their new states."""
    from replicator import assemble
    from replicator.lake import Lake
    from replicator.operate import pause as operate
    from replicator.operate.lock import operator_lock

    spark, sources = options.open_sources(context, settings, source, brief=True)
    places = operate.find_tables(spark, sources, tables)
    with operator_lock(Lake(settings.lake.root), assemble.lease_options(settings)) as fence:
        return change(operate.with_fence(places, fence))


def list_tables(context: typer.Context, settings: Settings) -> dict[str, list[TableState]]:
    """Return the tables of each source, by its name: those in silver, those of a topic that was read, and the declared
    ones.
    """
    return spark_fallback.answer(lambda: _without_spark(settings), lambda: _by_spark(context, settings))


def _without_spark(settings: Settings) -> dict[str, list[TableState]]:
    from replicator import assemble_without_spark
    from replicator.operate import pause as operate

    survey = assemble_without_spark.arrow_survey(settings, options.store(settings))
    return {
        each.name: operate.list_source_tables(survey, each) for each in assemble_without_spark.sources(settings, survey)
    }


def _by_spark(context: typer.Context, settings: Settings) -> dict[str, list[TableState]]:
    from replicator.operate import pause as operate

    spark, sources = options.open_sources(context, settings, brief=True)
    return {each.source.name: operate.list_tables(spark, [each]) for each in sources}


def _print(found: Sequence[TableState], *, as_json: bool) -> None:
    if as_json:
        console.print_json([asdict(each) for each in found])
    elif found:
        console.print_table(_COLUMNS, [[each.table, each.paused or ""] for each in found])
    else:
        console.narrate("There are no tables yet.")
