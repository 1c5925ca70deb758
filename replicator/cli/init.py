"""``replicator init``: create a new project folder."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from replicator.cli import console
from replicator.errors import ConfigError

_CAPTURE = """\
  replicator connect check    check that the database is ready to be captured
  replicator connect apply    register the connector with Kafka Connect
"""
_PREFIX = re.compile(r"(?![.]+$)[A-Za-z0-9._-]{1,200}")


class Kinds(str, Enum):
    """The kinds of databases that a connector captures."""

    postgresql = "postgresql"
    mysql = "mysql"
    mariadb = "mariadb"
    sqlserver = "sqlserver"
    oracle = "oracle"


def init(
    folder: Annotated[Path, typer.Argument(help="The project's folder; created if missing.", metavar="DIR")],
    source: Annotated[
        str, typer.Option("--source", help="The topic.prefix of the Debezium connector.", metavar="NAME")
    ],
    kind: Annotated[
        Optional[Kinds],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--kind", help="The source's database, for a connector that `connect apply` registers."),
    ] = None,
) -> None:
    """Create a project: a valid configuration and one job per stage for spark-submit. Overwrites nothing."""
    from replicator.config import scaffold

    if not _PREFIX.fullmatch(source):
        raise ConfigError(
            f"--source {source!r} is not a valid topic.prefix",
            fix="Use letters, digits, dots, hyphens and underscores, not dots alone.",
        )
    files = {folder / path: text for path, text in scaffold.render_project(source, kind and kind.value).items()}
    existing = next((path for path in files if path.exists()), None)
    if existing is not None:
        raise ConfigError(
            "the file already exists", where=str(existing), fix="Give another folder; nothing was written."
        )
    for path, text in files.items():
        _write(path, text)
        console.print_text(str(path))
    console.narrate(_next_steps(folder, source if kind is not None else None))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the file cannot be written: {error.strerror}", where=str(path)) from error


def _next_steps(folder: Path, captured: str | None) -> str:
    """Return what to do next; ``captured`` is the source whose file describes a connector."""
    conf, source, steps = folder / "conf", "", ""
    if captured is not None:
        source, steps = f",\nand the database and its login in {conf / 'sources' / captured}.yaml", _CAPTURE
    return f"""
Set the addresses of Kafka and of the lake in {conf / "base.yaml"}{source}. Then, in {folder}:

  replicator validate         check the configuration
{steps}  replicator doctor           check that everything a run needs is available
  replicator run              update bronze and silver of all tables; --continuous keeps running
  replicator status           show how far every table is

Gold models are files in conf/models: a SELECT, and a YAML file with its key, inputs, columns and checks."""
