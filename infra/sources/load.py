"""A sample's tables and rows in a database of yours (scenario 5): ``replicator demo-source load`` runs this module."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Optional

import psycopg2
import pymysql
import typer

from infra.local.endpoints import Database
from infra.sources.classicmodels import load as classicmodels
from infra.sources.classicmodels.rows import generate as classicmodels_rows
from infra.sources.northwind import load as northwind
from infra.sources.northwind.rows import generate as northwind_rows
from infra.sources.shape import Rows
from replicator.cli.console import narrate, row_progress
from replicator.errors import ReplicatorError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Sample(str, Enum):
    """A sample by its name."""

    northwind = "northwind"
    classicmodels = "classicmodels"


@dataclass(frozen=True)
class _Kind:
    """How a sample comes into a database: ``fill`` gets the connection and what hears of rows."""

    title: str
    port: int
    rows: Callable[[], Rows]
    log_in: Callable[[Database], Any]
    fill: Callable[[Any, Rows, Database, Callable[[int], None]], int]


_KINDS = {
    Sample.northwind: _Kind(
        "Northwind",
        5432,
        northwind_rows,
        northwind.log_in,
        lambda connection, rows, _, tell: northwind.load(connection, rows, tell=tell),
    ),
    Sample.classicmodels: _Kind(
        "Classic Models",
        3306,
        classicmodels_rows,
        classicmodels.log_in,
        lambda connection, rows, server, tell: classicmodels.load(
            connection, rows, server.database, replace=False, tell=tell
        ),
    ),
}


@app.command(context_settings={"help_option_names": ["--help"]})
def load(
    host: Annotated[str, typer.Option("--host", "-h", help="Where the server is.")],
    database: Annotated[
        str,
        typer.Option("--dbname", "-d", help="Of PostgreSQL one that is there; of MariaDB and MySQL one to be made."),
    ],
    user: Annotated[str, typer.Option("--user", "-u", help="Who owns the database, or may make it.")],
    password: Annotated[
        str, typer.Option("--password", prompt=True, hide_input=True, help="Asked for where it is not given.")
    ],
    sample: Annotated[Sample, typer.Argument(help="Northwind is for PostgreSQL.")] = Sample.northwind,
    port: Annotated[
        Optional[int],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--port", "-p", help="5432 for northwind, 3306 for classicmodels."),
    ] = None,
    create: Annotated[
        bool,
        typer.Option("--create/--no-create", prompt="To create database?", help="Asked for where it is not given."),
    ] = False,
) -> None:
    """Create a sample's tables with their rows, and Northwind's outbox, in one transaction: all of it or nothing.

    Exit code 1 with the server's words where it refuses. What is there already is left as it is.
    """
    if not create:
        narrate("Nothing is changed.")
        return
    kind = _KINDS[sample]
    try:
        count = _loaded(kind, Database(host, port or kind.port, user, password, database))
    except (psycopg2.Error, pymysql.Error, ReplicatorError) as error:
        narrate(f"error: {_words(error)}", style="red")
        raise typer.Exit(1) from error
    narrate(f"{kind.title} SQL scripts executed: {count:,} rows")


def _loaded(kind: _Kind, server: Database) -> int:
    rows = kind.rows()
    with closing(kind.log_in(server)) as connection:
        narrate("Database connection created")
        with row_progress(kind.title, lambda: [len(table) for table in rows.values()]) as work:
            return kind.fill(connection, rows, server, work.advance)


def _words(error: Exception) -> str:
    """What the server says; MariaDB's comes behind a number."""
    return str(error.args[-1] if isinstance(error, pymysql.Error) and error.args else error).strip()


if __name__ == "__main__":
    app(prog_name="replicator demo-source load")
