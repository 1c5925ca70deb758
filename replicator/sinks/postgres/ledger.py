"""The ledger: how far each model of a schema has been published, and by which writer of which lake last, written in the
transaction of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator.spec import Progress, Token

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

TABLE = "_replicator_ledger"
_WRITERS = "_replicator_writers"

_CREATE = sql.SQL(
    "CREATE TABLE IF NOT EXISTS {} (model text PRIMARY KEY, input text NOT NULL, version bigint NOT NULL, "
    "published_at timestamptz NOT NULL DEFAULT clock_timestamp())"
)
# values as literals: with parameters a percent sign in the schema's name would be one, too
_READ = sql.SQL("SELECT model, input, version FROM {} WHERE model = ANY ({}) ORDER BY model")
_FORGET = sql.SQL("DELETE FROM {} WHERE model = {}")
_WRITE = sql.SQL(
    "INSERT INTO {} (model, input, version) VALUES ({}, {}, {}) ON CONFLICT (model) DO UPDATE "
    "SET input = EXCLUDED.input, version = EXCLUDED.version, published_at = clock_timestamp()"
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


def read(cursor: Cursor, schema: str, models: Sequence[str], *, lock: bool = False) -> dict[str, Progress]:
    """What the ledger says about these models, absent ones left out; with ``lock`` held until the transaction ends."""
    query = _READ.format(sql.Identifier(schema, TABLE), sql.Literal(list(models)))
    cursor.execute(query + sql.SQL(" FOR UPDATE") if lock else query)
    return {model: Progress(source, version) for model, source, version in cursor.fetchall()}


def write(cursor: Cursor, schema: str, model: str, progress: Progress) -> None:
    """Record that a model stands at ``progress`` once this transaction commits."""
    values = (sql.Literal(each) for each in (model, progress.input, progress.version))
    cursor.execute(_WRITE.format(sql.Identifier(schema, TABLE), *values))


def forgetting(schema: str, model: str) -> sql.Composed:
    """The statement after which nothing was ever published of a model."""
    return _FORGET.format(sql.Identifier(schema, TABLE), sql.Literal(model))


def covers(recorded: Progress | None, wanted: Progress) -> bool:
    """Whether what is recorded includes what is wanted."""
    return recorded is not None and recorded.input == wanted.input and recorded.version >= wanted.version
