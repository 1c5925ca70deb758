"""The ledger: to which version of which gold table each table of a schema was published, and by which writer of which
lake last, written in the transaction of the rows.

Column ``input`` has the gold table's id and, behind a blank, which commit made that version; rows of earlier checkouts
have the id alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator.spec import Progress, Target, Token

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

TABLE = "_replicator_ledger"
_WRITERS = "_replicator_writers"

_CREATE = sql.SQL(
    "CREATE TABLE IF NOT EXISTS {} (table_name text PRIMARY KEY, model text NOT NULL, input text NOT NULL, "
    "version bigint NOT NULL, published_at timestamptz NOT NULL DEFAULT clock_timestamp())"
)
# values as literals: with parameters a percent sign in the schema's name would be one, too
_READ = sql.SQL("SELECT table_name, input, version FROM {} WHERE table_name = ANY ({}) ORDER BY table_name")
_FORGET = sql.SQL("DELETE FROM {} WHERE table_name = {}")
_WRITE = sql.SQL(
    "INSERT INTO {} (table_name, model, input, version) VALUES ({}, {}, {}, {}) ON CONFLICT (table_name) DO UPDATE "
    "SET model = EXCLUDED.model, input = EXCLUDED.input, version = EXCLUDED.version, published_at = clock_timestamp()"
)
_CREATE_WRITERS = sql.SQL("CREATE TABLE IF NOT EXISTS {} (lake text PRIMARY KEY, token bigint NOT NULL)")
_LET_IN = sql.SQL(
    "INSERT INTO {} AS known (lake, token) VALUES (%s, %s) ON CONFLICT (lake) DO UPDATE SET token = EXCLUDED.token "
    "WHERE known.token <= EXCLUDED.token RETURNING token"
)


def create(cursor: Cursor, schema: str) -> None:
    """Make the ledger of a schema if it is missing."""
    if not exists(cursor, schema):
        cursor.execute(_CREATE.format(sql.Identifier(schema, TABLE)))
    if not exists(cursor, schema, _WRITERS):
        cursor.execute(_CREATE_WRITERS.format(sql.Identifier(schema, _WRITERS)))


def exists(cursor: Cursor, schema: str, table: str = TABLE) -> bool:
    """Whether the schema has a ledger that this role can see."""
    cursor.execute("SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s", (schema, table))
    return cursor.fetchone() is not None


def let_in(cursor: Cursor, schema: str, token: Token) -> bool:
    """Note a writer's token until the next greater one of its lake; False where a greater one is there already. Others
    wait for the transaction to end.
    """
    cursor.execute(_LET_IN.format(sql.Identifier(schema, _WRITERS)), (token.lake, token.number))
    return cursor.fetchone() is not None


def read(cursor: Cursor, schema: str, models: Mapping[str, str], *, lock: bool = False) -> dict[str, Progress]:
    """What the ledger says about the tables of these models, which are by table: progress by model, absent ones left
    out; with ``lock`` held until the transaction ends. Of a table that another model was published to, or of a model
    that had another table meanwhile, it says how that table stands.
    """
    query = _READ.format(sql.Identifier(schema, TABLE), sql.Literal(list(models)))
    cursor.execute(query + sql.SQL(" FOR UPDATE") if lock else query)
    return {models[table]: _progress(told, version) for table, told, version in cursor.fetchall()}


def write(cursor: Cursor, target: Target, model: str, progress: Progress) -> None:
    """Record that a model's table stands at ``progress`` once this transaction commits."""
    told = progress.input if progress.commit is None else f"{progress.input} {progress.commit}"
    values = (sql.Literal(each) for each in (target.table, model, told, progress.version))
    cursor.execute(_WRITE.format(sql.Identifier(target.schema, TABLE), *values))


def forgetting(target: Target) -> sql.Composed:
    """The statement after which nothing was ever published to a table."""
    return _FORGET.format(sql.Identifier(target.schema, TABLE), sql.Literal(target.table))


def covers(recorded: Progress | None, wanted: Progress) -> bool:
    """Whether what is recorded includes what is wanted."""
    return recorded is not None and recorded.covers(wanted)


def _progress(told: str, version: int) -> Progress:
    identity, _, commit = told.partition(" ")
    return Progress(identity, version, commit or None)
