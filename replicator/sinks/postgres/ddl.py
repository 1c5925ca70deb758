"""Schema, target tables and staging tables: made when missing, compared when there."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator.errors import ConfigError, TargetRefused
from replicator.sinks.postgres.columns import Carried
from replicator.sinks.postgres.types import PostgresType, parse_type
from replicator.spec import Model, Target

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

_LONGEST = 63  # bytes; Postgres cuts longer names silently, and two tables become one (reliability.md N-2)
_STAGING = "_replicator_staging_"
_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def target_of(model: Model) -> Target:
    """Where a model is served. Raises ConfigError when it has no target or Postgres would cut a name."""
    if model.target is None:
        raise ConfigError("the model has no publish target", where=model.name)
    for name in (model.target.schema, model.target.table, *(column.name for column in model.columns)):
        if not 0 < len(name.encode()) <= _LONGEST or "\0" in name:
            what = f"{name!r} is empty, longer than {_LONGEST} bytes, or holds a NUL: Postgres cannot keep it"
            raise ConfigError(what, where=model.name)
    return model.target


def create_schema(cursor: Cursor, schema: str) -> None:
    """Make the schema if it is missing; asked first, because the sink's role need not have the right to."""
    cursor.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,))
    if cursor.fetchone() is None:
        cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))


def prepare_target(cursor: Cursor, model: Model) -> None:
    """Make the model's table if it is missing. Raises TargetRefused when it is there and has other columns."""
    target = target_of(model)
    there = _columns(cursor, target.schema, target.table)
    if not there:
        cursor.execute(_create_target(model, target))
        return
    for column in model.columns:
        wanted = str(parse_type(column.type))
        found = there.get(column.name)
        if found != wanted:
            fault = f"is {found}, not {wanted}" if found else f"is missing ({wanted})"
            what = f"column {column.name} of table {target.schema}.{target.table} {fault}."
            raise TargetRefused(
                what, where=model.name, mend="Alter the table, or drop it together with its ledger row."
            )


def prepare_staging(cursor: Cursor, model: Model, columns: Sequence[Carried]) -> sql.Identifier:
    """The empty staging table of a model: kept between runs, made anew when its columns are no longer the same."""
    target = target_of(model)
    wanted = {carried.staged_as: carried.staged_type for carried in columns} | {"_op": "text", "_batch": "text"}
    name = sql.Identifier(target.schema, staging_name(model.name))
    there = _columns(cursor, target.schema, staging_name(model.name))
    if there == wanted:
        cursor.execute(sql.SQL("TRUNCATE {}").format(name))
        return name
    cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))
    typed = [sql.SQL("{} {}").format(sql.Identifier(each), sql.SQL(kind)) for each, kind in wanted.items()]
    cursor.execute(sql.SQL("CREATE UNLOGGED TABLE {} ({})").format(name, sql.SQL(", ").join(typed)))
    return name


def staging_name(model: str) -> str:
    """Named by the model; by its hash when that would be too long."""
    name = _STAGING + model
    return name if len(name.encode()) <= _LONGEST else _STAGING + sha256(model.encode()).hexdigest()[:32]


def _columns(cursor: Cursor, schema: str, table: str) -> dict[str, str]:
    """Column names of a table and their types as Postgres prints them; empty when there is no such table."""
    cursor.execute(_COLUMNS, (schema, table))
    return dict(cursor.fetchall())


def _create_target(model: Model, target: Target) -> sql.Composed:
    lines = [
        _column(column.name, parse_type(column.type), column.nullable and column.name not in model.key)
        for column in model.columns
    ]
    key = sql.SQL(", ").join(sql.Identifier(each) for each in model.key)
    lines.append(sql.SQL("PRIMARY KEY ({})").format(key))
    body = sql.SQL(", ").join(lines)
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(sql.Identifier(target.schema, target.table), body)


def _column(name: str, kind: PostgresType, nullable: bool) -> sql.Composed:
    ending = sql.SQL("" if nullable else " NOT NULL")
    return sql.SQL("{} {}{}").format(sql.Identifier(name), sql.SQL(str(kind)), ending)
