"""The ledger: the version of its gold table to which each table of a schema was published, and the last writer of each
lake; written in the transaction of the rows.

Column ``input`` has, separated by blanks, the gold table's id, the commit that made that version, the oid of the table
that was written, and the columns that it had, as JSON: by name the number and the type of each in the table (decision
0092). Rows of earlier releases have only the first one or two of these, or names alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator.spec import OWN_TABLES, Model, Progress, Target, Token

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

TABLE = f"{OWN_TABLES}ledger"
_WRITERS = f"{OWN_TABLES}writers"
TABLES = (TABLE, _WRITERS)

_CREATE = sql.SQL(
    "CREATE TABLE IF NOT EXISTS {} (table_name text PRIMARY KEY, model text NOT NULL, input text NOT NULL, "
    "version bigint NOT NULL, published_at timestamptz NOT NULL DEFAULT clock_timestamp())"
)
# for table c; in all statements with names, values are literals: with parameters a percent sign in a name counts as one
_COLUMNS = sql.SQL(
    "(SELECT json_object_agg(a.attname, json_build_array(a.attnum, format_type(a.atttypid, a.atttypmod))) "
    "FROM pg_attribute a WHERE a.attrelid = c.oid AND {})"
)
_PRESENT = _COLUMNS.format(sql.SQL("a.attnum > 0"))
_AMONG = sql.SQL("a.attname = ANY ({})")
_READ = sql.SQL(
    "SELECT table_name, input, version, c.oid::text, {} FROM {} l LEFT JOIN "
    "(pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = {}) ON c.relname = l.table_name "
    "WHERE table_name = ANY ({}) ORDER BY table_name"
)
_WRITE = sql.SQL(
    "INSERT INTO {} (table_name, model, input, version) SELECT c.relname, {}, concat_ws(' ', {}, c.oid, {}), {} "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {} AND c.relname = {} "
    "ON CONFLICT (table_name) DO UPDATE "
    "SET model = EXCLUDED.model, input = EXCLUDED.input, version = EXCLUDED.version, published_at = clock_timestamp()"
)
_INVALIDATE = sql.SQL(
    "UPDATE {} SET input = concat_ws(' ', split_part(input, ' ', 1), split_part(input, ' ', 2), '0') "
    "WHERE table_name = {}"
)
"""No table has the oid 0."""
_CREATE_WRITERS = sql.SQL("CREATE TABLE IF NOT EXISTS {} (lake text PRIMARY KEY, token bigint NOT NULL)")
_COMMENT = sql.SQL("COMMENT ON TABLE {} IS {}")
_COMMENTS = {
    TABLE: "Kept by replicator: which version of which gold table each table here has. A table without a row is "
    "sent in full.",
    _WRITERS: "Kept by replicator: the last writer of each lake that publishes here. Earlier ones are refused.",
}
_RECORD_TOKEN = sql.SQL(
    "INSERT INTO {} AS known (lake, token) VALUES ({}, {}) ON CONFLICT (lake) DO UPDATE SET token = EXCLUDED.token "
    "WHERE known.token <= EXCLUDED.token RETURNING token"
)


def create(cursor: Cursor, schema: str) -> None:
    """Create the ledger of a schema if it is missing, with comments for people who inspect the schema."""
    for name, statement in ((TABLE, _CREATE), (_WRITERS, _CREATE_WRITERS)):
        if not exists(cursor, schema, name):
            table = sql.Identifier(schema, name)
            cursor.execute(statement.format(table))
            cursor.execute(_COMMENT.format(table, sql.Literal(_COMMENTS[name])))


def exists(cursor: Cursor, schema: str, table: str = TABLE) -> bool:
    """Whether the schema has a ledger that this role can see."""
    cursor.execute("SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s", (schema, table))
    return cursor.fetchone() is not None


def record_token(cursor: Cursor, schema: str, token: Token) -> bool:
    """Record a writer's token, if no greater one of its lake is recorded; return whether it was. Others wait for the
    transaction to end.
    """
    values = sql.Literal(token.lake), sql.Literal(token.number)
    cursor.execute(_RECORD_TOKEN.format(sql.Identifier(schema, _WRITERS), *values))
    return cursor.fetchone() is not None


def read(cursor: Cursor, schema: str, models: Mapping[str, Model], *, lock: bool = False) -> dict[str, Progress]:
    """Return the ledger's progress by model name, for models given by table; with ``lock`` the rows are locked until
    the transaction ends. A row counts for the table even if another model was published to it before, or the model to
    another table meanwhile.

    Omitted are tables without a row, those whose name belongs to another table now, and those with a column of their
    model that was not published, or was recreated or altered since: it may have old values, or none.
    """
    rows = _rows(cursor, schema, list(models), lock=lock)
    return {models[each.table].name: each.progress for each in rows if each.is_of(models[each.table])}


def read_last(cursor: Cursor, target: Target) -> Progress | None:
    """Return the last recorded progress of a table, whatever was changed since."""
    return next((each.progress for each in _rows(cursor, target.schema, [target.table])), None)


def write(cursor: Cursor, target: Target, model: Model, progress: Progress) -> None:
    """Record that a model's table is at ``progress`` once this transaction commits."""
    origin = sql.Literal(f"{progress.input} {progress.commit or ''}")
    columns = _COLUMNS.format(_AMONG.format(sql.Literal([column.name for column in model.columns])))
    values = (sql.Literal(model.name), origin, columns, sql.Literal(progress.version))
    where = (sql.Literal(target.schema), sql.Literal(target.table))
    cursor.execute(_WRITE.format(sql.Identifier(target.schema, TABLE), *values, *where))


def invalidate(cursor: Cursor, target: Target) -> None:
    """Record that a table may have other rows than were published: as for another table of its name, :func:`read` omits
    it, while :func:`read_last` still has its row. Waits for a publisher that holds the row.
    """
    cursor.execute(_INVALIDATE.format(sql.Identifier(target.schema, TABLE), sql.Literal(target.table)))


def covers(recorded: Progress | None, wanted: Progress) -> bool:
    """Whether the recorded progress includes the wanted one."""
    return recorded is not None and recorded.covers(wanted)


@dataclass(frozen=True)
class _Row:
    """A row of the ledger. ``is_same``: the table is the one that was published to; None if the row does not record
    that. ``columns``: number and type of the published columns by name (None if not recorded); None if the row does not
    record columns. ``present``: the existing columns.
    """

    table: str
    progress: Progress
    is_same: bool | None
    columns: Mapping[str, object] | None
    present: Mapping[str, object]

    def is_of(self, model: Model) -> bool:
        """Whether the table has all columns of the model as they were published."""
        return self.is_same is not False and all(self._has(column.name) for column in model.columns)

    def _has(self, column: str) -> bool:
        if self.columns is None:
            return True
        return column in self.columns and self.columns[column] in (None, self.present.get(column))


def _rows(cursor: Cursor, schema: str, tables: list[str], *, lock: bool = False) -> Iterator[_Row]:
    query = _READ.format(_PRESENT, sql.Identifier(schema, TABLE), sql.Literal(schema), sql.Literal(tables))
    cursor.execute(query + sql.SQL(" FOR UPDATE OF l") if lock else query)
    for table, origin, version, oid, present in cursor.fetchall():
        identity, commit, oid_then, columns = (*origin.split(" ", 3), *[""] * 3)[:4]
        is_same = oid_then == oid if oid_then else None
        known = json.loads(columns) if columns else None
        published = dict.fromkeys(known) if isinstance(known, list) else known
        yield _Row(table, Progress(identity, version, commit or None), is_same, published, present or {})
