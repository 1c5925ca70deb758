"""``replicator demo-source``: sample databases. They are in the project's checkout and not in the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer

from replicator.errors import ConfigError

app = typer.Typer(help="Fill a database with a sample.", no_args_is_help=True)

_CHECKOUT = Path(__file__).resolve().parents[2]
_PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}
"""Options are passed to the module that loads the sample; there ``-h`` is the host."""


@app.callback()
def demo_source() -> None:
    """Keep ``load`` a subcommand: without a callback, Typer would merge a single command into its group."""


@app.command(context_settings=_PASS_THROUGH)
def load(context: typer.Context) -> None:
    """Create Northwind (PostgreSQL) or Classic Models (MariaDB, MySQL) in a database; `--help` lists the options."""
    if not (_CHECKOUT / "infra" / "sources" / "load.py").is_file():
        raise ConfigError(
            "The sample databases are in the project's checkout, not in the package.",
            where=str(_CHECKOUT),
            fix="Clone it, run `make env` there, and use the replicator of its .venv.",
        )
    process = subprocess.run([sys.executable, "-m", "infra.sources.load", *context.args], cwd=_CHECKOUT, check=False)
    if process.returncode:
        raise typer.Exit(process.returncode)
