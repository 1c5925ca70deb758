"""``replicator lease``: show which driver writes a lake, and revoke its lease."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from replicator.cli import console, options
from replicator.errors import ConfigError
from replicator.spelling import suggest

app = typer.Typer(help="Leases of the drivers that write the lake.", no_args_is_help=True)

_COLUMNS = ("stage", "held by", "since", "token")


@app.command()
def show(
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Show the present or last holder of the lease of each stage."""
    from replicator import assemble
    from replicator.lake import Lake
    from replicator.operate.lock import WORDS, read_leases
    from replicator.stages.run_report import CANONICAL, STAGES

    settings = options.settings(env, conf, lake)
    found = read_leases(Lake(settings.lake.root), (*STAGES, CANONICAL, WORDS), assemble.lease_options(settings))
    if as_json:
        console.print_json([asdict(each) for each in found])
    elif found:
        rows = [(e.stage, "nobody" if e.free else str(e.holder), e.since, str(e.token)) for e in found]
        console.print_table(_COLUMNS, rows)
    else:
        console.narrate("No stage has written this lake yet.")


@app.command("break")
def break_(
    stage: Annotated[str, typer.Argument(help="bronze, silver, gold, publish, canonical or words.", metavar="STAGE")],
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
) -> None:
    """Take a stage's lease from its holder, which cannot commit anything from then on."""
    from replicator import assemble
    from replicator.lake import Lake
    from replicator.operate.lock import WORDS, break_lease
    from replicator.stages.run_report import CANONICAL, STAGES

    known = (*STAGES, CANONICAL, WORDS)
    if stage not in known:
        raise ConfigError(f"unknown stage {stage!r}{suggest(stage, known)}")
    settings = options.settings(env, conf, lake)
    previous = break_lease(Lake(settings.lake.root), stage, assemble.lease_options(settings))
    console.narrate(
        f"{stage} is not held." if previous is None else f"{stage} was held by {previous.holder}; it is free now."
    )
