"""Puts Classic Models rows into a MariaDB or MySQL server."""

from __future__ import annotations

import csv
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from infra.sources.classicmodels.shapes import SHAPES
from infra.sources.shape import Row, Rows, Value

if TYPE_CHECKING:
    import pymysql

DATABASE = "classicmodels"
_DDL = Path(__file__).with_name("ddl.sql")


def load(connection: pymysql.Connection, rows: Rows, database: str = DATABASE) -> int:
    """Drop the database if it is there, create it, fill it in one transaction. Returns the number of rows.

    A second call ends in the same tables. The connection needs the right to create databases; it is left in
    ``database`` with nothing pending.
    """
    name = quoted(database)
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
        connection.select_db(database)
        for statement in _DDL.read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                cursor.execute(statement)
        connection.begin()
        written = sum(_insert(cursor, table, rows[table]) for table in SHAPES)
        connection.commit()
    return written


def original_rows(folder: Path) -> Rows:
    r"""The rows of the BIRT edition from its CSV files (header, ``\N`` = NULL), typed like the generated ones."""
    return {table: _read(folder / f"{table}.csv", table) for table in SHAPES}


def quoted(name: str) -> str:
    """An identifier for MariaDB and MySQL."""
    return "`" + name.replace("`", "``") + "`"


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
