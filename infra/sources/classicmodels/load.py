"""Puts Classic Models rows into a MariaDB or MySQL server."""

from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql

from infra.sources.classicmodels.shapes import SHAPES
from infra.sources.shape import Row, Rows, Value
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from infra.local.endpoints import Database

DATABASE = "classicmodels"
_DDL = Path(__file__).with_name("ddl.sql")


def log_in(server: Database) -> pymysql.Connection:
    """A connection to MariaDB or MySQL without autocommit, in no database; the caller closes it."""
    return pymysql.connect(
        host=server.host, port=server.port, user=server.user, password=server.password, charset="utf8mb4"
    )


def load(
    connection: pymysql.Connection,
    rows: Rows,
    database: str = DATABASE,
    *,
    replace: bool = True,
    tell: Callable[[int], None] = lambda _: None,
) -> int:
    """Create the database, fill it in one transaction. Returns the number of rows; ``tell`` hears of each table's.

    Without ``replace`` ConfigError is raised when it is there, else it is dropped first: a second call ends in the same
    tables. The connection needs the right to create databases; it is left in ``database`` with nothing pending. What
    the server refuses is raised as pymysql.Error, and nothing of the database is left then.
    """
    name = quoted(database)
    with closing(connection.cursor()) as cursor:
        _make_room(cursor, database, replace=replace)
        try:
            cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
            return _filled(connection, cursor, database, rows, tell)
        except Exception:
            with suppress(Exception):  # the first error says more
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")
            raise


def original_rows(folder: Path) -> Rows:
    r"""The rows of the BIRT edition from its CSV files (header, ``\N`` = NULL), typed like the generated ones."""
    return {table: _read(folder / f"{table}.csv", table) for table in SHAPES}


def quoted(name: str) -> str:
    """An identifier for MariaDB and MySQL."""
    return "`" + name.replace("`", "``") + "`"


def _make_room(cursor: pymysql.cursors.Cursor, database: str, *, replace: bool) -> None:
    if not replace:
        cursor.execute("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", [database])
        if cursor.fetchone():
            told = f"the database {database} is there already"
            raise ConfigError(told, fix="Drop it, or name another.")
    cursor.execute(f"DROP DATABASE IF EXISTS {quoted(database)}")


def _filled(
    connection: pymysql.Connection,
    cursor: pymysql.cursors.Cursor,
    database: str,
    rows: Rows,
    tell: Callable[[int], None],
) -> int:
    connection.select_db(database)
    for statement in _DDL.read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            cursor.execute(statement)
    connection.begin()
    written = 0
    for table in SHAPES:
        written += _insert(cursor, table, rows[table])
        tell(len(rows[table]))
    connection.commit()
    return written


def _insert(cursor: pymysql.cursors.Cursor, table: str, rows: tuple[Row, ...]) -> int:
    columns = SHAPES[table].columns
    names = ", ".join(quoted(column) for column in columns)
    places = ", ".join(["%s"] * len(columns))
    cursor.executemany(f"INSERT INTO {quoted(table)} ({names}) VALUES ({places})", rows)
    return len(rows)


def _read(file: Path, table: str) -> tuple[Row, ...]:
    shape = SHAPES[table]
    with file.open(encoding="utf-8", newline="") as text:
        records = list(csv.DictReader(text))
    return tuple(tuple(_typed(record[column], kind) for column, kind in shape.columns.items()) for record in records)


def _typed(text: str, kind: type) -> Value:
    if text == r"\N":
        return None
    if kind is Decimal:
        return Decimal(text).quantize(Decimal("0.01"))
    if kind is date:
        return date.fromisoformat(text)
    return int(text) if kind is int else text
