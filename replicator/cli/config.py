"""``replicator config``: the configuration of this installation, and where each value comes from."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Annotated

import typer

from replicator.cli import options
from replicator.cli.console import print_json, print_table

app = typer.Typer(help="The configuration, where each value came from, and its JSON Schemas.", no_args_is_help=True)


class Kind(str, Enum):
    """The kinds of YAML files."""

    settings = "settings"
    source = "source"
    model = "model"
    feed = "feed"
    declare = "declare"


@app.command()
def show(env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None, as_json: options.Json = False) -> None:
    """Print every setting with its file and line; secrets are masked."""
    shown = list(options.settings(env, conf).describe())
    if as_json:
        print_json([dataclasses.asdict(value) for value in shown])
    else:
        print_table(["key", "value", "from"], [(value.key, value.value, value.origin) for value in shown])


@app.command()
def schema(
    kind: Annotated[
        Kind,
        typer.Argument(
            help="settings: base.yaml and <env>.yaml; source: conf/sources; model: conf/models; feed: conf/canonical; "
            "declare: the file of --declare.",
            metavar="KIND",
        ),
    ],
) -> None:
    """Print the JSON Schema of one kind of YAML file, for completion and checks in editors."""
    from replicator.config import yamlschema

    print_json(yamlschema.build(kind.value))
