"""``replicator runs``: what the last runs did, or what one run did with each table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from replicator.operate.runs import Run

_RUNS = ("run", "command", "started", "ended", "rows in", "applied", "dead-lettered", "stopped tables")
_COUNTS = ("passes", "rows in", "applied", "superseded", "dead-lettered", "ignored")
_ENTRIES = ("stage", "table", *_COUNTS, "seconds", "error")


def runs(
    context: typer.Context,
    run: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="A run: what it did with each table.", metavar="[RUN]"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many runs.", min=1)] = 20,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """The last runs and what became of the records that they read."""
    from replicator import assemble
    from replicator.session import session

    settings = options.settings(env, conf, lake)
    spark = session(settings, debug=options.debugging(context), brief=True)
    kept = assemble.runs(spark, settings)
    if run is not None:
        _print_one(kept.read(run), run, as_json=as_json)
        return
    found = kept.last(limit)
    if as_json:
        console.print_json([asdict(each) for each in found])
    elif found:
        console.print_table(_RUNS, [_row(each) for each in found])
    else:
        console.narrate(f"No run of {settings.lake.root} did anything yet.")


def _print_one(found: Run | None, run: str, *, as_json: bool) -> None:
    if found is None:
        raise ConfigError(f"there is no run {run!r}", mend="`replicator runs` lists those that there are.")
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
