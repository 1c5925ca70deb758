"""``replicator runs``: what the last runs did, or what one run did with each table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options, spark_fallback
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from replicator.operate.runs import Run, Runs
    from replicator.settings import Settings

_RUNS = ("run", "command", "started", "ended", "rows in", "applied", "dead-lettered", "stopped tables")
_COUNTS = ("passes", "rows in", "applied", "superseded", "dead-lettered", "ignored")
_ENTRIES = ("stage", "table", *_COUNTS, "seconds", "error")


def runs(
    context: typer.Context,
    run: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="A run: what it did with each table.", metavar="[RUN]"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many runs.", min=1)] = 20,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """List the last runs and what became of the records they read."""
    settings = options.settings(env, conf, lake)
    found = _load(context, settings, run, limit)
    if run is not None:
        _print_one(next(iter(found), None), run, as_json=as_json)
        return
    if as_json:
        console.print_json([asdict(each) for each in found])
    elif found:
        console.print_table(_RUNS, [_row(each) for each in found])
    else:
        console.narrate(f"No run has changed anything in {settings.lake.root} yet.")


def _load(context: typer.Context, settings: Settings, run: str | None, limit: int) -> list[Run]:
    """Return the newest ``limit`` runs, or the run with that id if it exists."""

    def read(log: Runs) -> list[Run]:
        if run is None:
            return log.last(limit)
        found = log.read(run)
        return [] if found is None else [found]

    return spark_fallback.answer(lambda: read(_without_spark(settings)), lambda: read(_by_spark(context, settings)))


def _without_spark(settings: Settings) -> Runs:
    from replicator import assemble_without_spark

    return assemble_without_spark.runs(settings, options.store(settings))


def _by_spark(context: typer.Context, settings: Settings) -> Runs:
    from replicator import assemble
    from replicator.session import session

    return assemble.runs(session(settings, debug=options.is_debug(context), brief=True), settings)


def _print_one(found: Run | None, run: str, *, as_json: bool) -> None:
    if found is None:
        raise ConfigError(f"run {run!r} does not exist", fix="`replicator runs` lists the existing ones.")
    if as_json:
        console.print_json(asdict(found))
        return
    rows = []
    for entry in found.entries:
        ignored = ", ".join(f"{rule} {count}" for rule, count in sorted(entry.ignored.items()))
        counts = (entry.passes, entry.read, entry.applied, entry.superseded, entry.dead_lettered)
        rows.append([entry.stage, entry.table, *map(str, counts), ignored, f"{entry.seconds:.1f}", entry.error or ""])
    console.print_table(_ENTRIES, rows)


def _row(run: Run) -> list[str]:
    silver = [entry for entry in run.entries if entry.stage == "silver"]
    counts = (
        sum(entry.read for entry in run.entries if entry.stage == "bronze"),
        sum(entry.applied for entry in silver),
        sum(entry.dead_lettered for entry in silver),
        sum(entry.error is not None for entry in run.entries),
    )
    return [run.id, run.command, run.started, run.ended or "", *map(str, counts)]
