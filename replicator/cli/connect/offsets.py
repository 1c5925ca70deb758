"""``replicator connect offsets``: show or reset the source offsets of connectors."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from replicator.cli import advice, console, options
from replicator.cli.connect import lookup

app = typer.Typer(help="The position of a connector in its source.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(help="The connector's name.", metavar="CONNECTOR")]


@app.command()
def show(
    connector: _Name,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Show the offsets of a connector, as its plugin writes them."""
    connect = lookup.cluster(options.settings(env, conf))
    lookup.find_connectors(connect, [connector])
    found = connect.offsets(connector)
    if as_json:
        console.print_json([asdict(each) for each in found])
    elif found:
        rows = [(json.dumps(each.partition), json.dumps(each.offset)) for each in found]
        console.print_table(("partition", "offset"), rows)
    else:
        console.narrate(f"{connector} has no offsets: it starts with a snapshot.")


@app.command()
def reset(connector: _Name, env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None) -> None:
    """Delete the offsets of a stopped connector: when it is resumed, it starts from the beginning, usually with a
    snapshot.

    A snapshot does not report rows that were deleted at the source meanwhile. A replication slot of PostgreSQL keeps
    its position.
    """
    connect = lookup.cluster(options.settings(env, conf))
    lookup.find_connectors(connect, [connector])
    connect.reset_offsets(connector)
    resume = advice.command("connect", "resume", connector)
    console.narrate(f"{connector} no longer has offsets: {resume} starts it from the beginning.")
