"""The flags that verbs share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator import settings as configuration

if TYPE_CHECKING:
    from replicator.settings import Settings

Env = Annotated[
    str, typer.Option("--env", envvar="REPLICATOR_ENV", help="Which <env>.yaml is laid over base.yaml.", metavar="NAME")
]
Conf = Annotated[
    Optional[Path],  # noqa: UP045 - typer on Python 3.10 reads this at run time
    typer.Option("--conf", help="The configuration folder; $REPLICATOR_CONF, else ./conf.", metavar="DIR"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
LakeRoot = Annotated[
    Optional[str],  # noqa: UP045 - as above
    typer.Option("--lake", help="A lake to use without any configuration.", metavar="DIR"),
]
DEFAULT_ENV = "local"


class Rows(str, Enum):
    """How ``sql`` prints rows."""

    table = "table"
    csv = "csv"
    json = "json"


def settings(env: str, conf: Path | None, lake: str | None = None) -> Settings:
    """The configuration of an environment, or with *lake* the defaults over that lake."""
    return configuration.load(conf, env) if lake is None else configuration.bare(lake)


def debugging(context: typer.Context) -> bool:
    """Whether ``--debug`` was given, before or after the verb."""
    return bool(getattr(context.find_root().obj, "debug", False))
