"""Puts Northwind rows, and the outbox that follows them, into a database of PostgreSQL."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2
from psycopg2 import sql
from psycopg2.extras import execute_values

from infra.sources.northwind.shapes import SHAPES
from infra.sources.northwind.trade import LATER
from infra.sources.shape import Row, Rows, Value
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection
    from psycopg2.extensions import cursor as Cursor

    from infra.local.endpoints import Database

SCHEMA = "datalake"
OUTBOX = f"{SCHEMA}.cdc_events"

_FOLDER = Path(__file__).parent


def log_in(server: Database) -> Connection:
    """A connection to PostgreSQL; the caller closes it."""
    return psycopg2.connect(
        host=server.host, port=server.port, user=server.user, password=server.password, dbname=server.database
    )


def load(
    connection: Connection,
    rows: Rows,
    *,
    follow_deletes: bool = False,
    replace: bool = False,
    tell: Callable[[int], None] = lambda _: None,
) -> int:
    """Tables, rows, outbox and publication in one transaction. Returns the number of rows, without the outbox's;
    ``tell`` hears of those of each table.

    The schema becomes the search path of this session and of the database, which the login must own. The connection has
    nothing pending, before and after. ``follow_deletes`` adds triggers by which the outbox sees deletes. ``replace``
    removes what an earlier call made; without it ConfigError is raised when the schema is there. What the server
    refuses is raised as psycopg2.Error; whatever is raised, nothing has changed.
    """
    scripts = ["outbox.sql", *(["outbox_deletes.sql"] if follow_deletes else [])]
    with connection, connection.cursor() as cursor:
        _make_room(cursor, replace=replace)
        _script(cursor, "ddl.sql")
        written = 0
        for table in SHAPES:
            written += _insert(cursor, table, rows[table])
            tell(len(rows[table]))
        for script in scripts:
            _script(cursor, script)
    return written


def original_rows(folder: Path) -> Rows:
    r"""The published rows from their CSV files (header, ``\N`` = NULL), typed like the generated ones.

    Without the order that the scenario inserts live. Raises ConfigError where a file or a column is missing.
    """
    read = {table: _read(folder / f"{table}.csv", table) for table in SHAPES}
    early = {table: tuple(row for row in read[table] if row[0] != LATER) for table in ("orders", "order_details")}
    return read | early


def _make_room(cursor: Cursor, *, replace: bool) -> None:
    schema = sql.Identifier(SCHEMA)
    cursor.execute("SELECT current_database(), to_regnamespace(%s) IS NOT NULL", [SCHEMA])
    database, is_there = cursor.fetchone() or ("", False)
    if is_there and not replace:
        raise ConfigError(
            f"the schema {SCHEMA} is there already", where=database, fix="Drop it, or name another database."
        )
    cursor.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(schema))
    cursor.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
    cursor.execute(sql.SQL("SET search_path = {}").format(schema))
    cursor.execute(sql.SQL("ALTER DATABASE {} SET search_path = {}").format(sql.Identifier(database), schema))


def _script(cursor: Cursor, name: str) -> None:
    cursor.execute((_FOLDER / name).read_text(encoding="utf-8"))


def _insert(cursor: Cursor, table: str, rows: tuple[Row, ...]) -> int:
    columns = sql.SQL(", ").join(map(sql.Identifier, SHAPES[table].columns))
    statement = sql.SQL("INSERT INTO {} ({}) VALUES %s").format(sql.Identifier(table), columns)
    # one statement per table: employees name each other, and references are looked at behind the last row
    execute_values(cursor, statement, rows, page_size=len(rows))
    return len(rows)


def _read(file: Path, table: str) -> tuple[Row, ...]:
    shape = SHAPES[table]
    try:
        with file.open(encoding="utf-8", newline="") as text:
            records = list(csv.DictReader(text))
    except OSError as error:
        raise ConfigError(f"the rows of {table} cannot be read: {error.strerror}", where=str(file)) from error
    missing = [column for record in records[:1] for column in shape.columns if column not in record]
    if missing:
        raise ConfigError(f"the rows of {table} lack {', '.join(missing)}", where=str(file))
    return tuple(tuple(_typed(record[column], kind) for column, kind in shape.columns.items()) for record in records)


def _typed(text: str, kind: type) -> Value:
    if text == r"\N":
        return None
    if kind is Decimal:
        return Decimal(text)
    if kind is date:
        return date.fromisoformat(text)
    if kind is bytes:
        return bytes.fromhex(text.removeprefix(r"\x"))
    return int(text) if kind is int else text
