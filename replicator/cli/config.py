"""``replicator config``: what this installation is told, and by whom."""

from __future__ import annotations

import dataclasses

import typer

from replicator.cli import options
from replicator.cli.console import print_json, print_table

app = typer.Typer(help="Show the configuration and where each value came from.", no_args_is_help=True)


@app.callback()
def config() -> None:
    """Show the configuration and where each value came from."""


@app.command()
def show(env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None, as_json: options.Json = False) -> None:
    """Print every value with its file and line, secrets masked."""
    shown = list(options.settings(env, conf).shown())
    if as_json:
        print_json([dataclasses.asdict(value) for value in shown])
    else:
        print_table(["key", "value", "from"], [(value.key, value.value, value.origin) for value in shown])
