"""Consistent snapshots of PostgreSQL: a read-only REPEATABLE READ transaction, rows through a server-side cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg2
from psycopg2 import errorcodes, sql
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.database_snapshots import DatabaseColumn, RangeFilter, ValueFilter, missing_table
from replicator.databases import column_codecs, postgresql_connection
from replicator.databases.column_codecs import ColumnCodec
from replicator.errors import TableStopped, Unreachable
from replicator.spec import Login

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Session

# how values and types are written must not depend on defaults of the server or the role; between two statements the
# session waits for Spark
_SESSION = (
    "-c TimeZone=UTC -c DateStyle=ISO,YMD -c IntervalStyle=postgres -c search_path=pg_catalog -c bytea_output=hex "
    "-c extra_float_digits=3 -c quote_all_identifiers=off -c idle_in_transaction_session_timeout=10min"
)
_POSITION = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text"
_COLUMNS = """
SELECT a.attname,
       CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
                      ELSE format_type(a.atttypid, a.atttypmod) END,
       NOT a.attnotnull
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
 WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum
"""
_PRINTED = "CASE WHEN {} IS NOT NULL THEN format('%s', {}) END"
_TEXTS = frozenset(
    {"text", "character varying", "character", "bpchar", "name", "uuid", "inet", "cidr", "macaddr", "macaddr8", "xml",
     "ltree", "tsvector", "citext", "enum", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"}
)  # fmt: skip
_NUMBERS = {"smallint": 2, "integer": 4, "bigint": 8, "numeric": 0, "money": 0}
"""Bytes of the types of whole numbers; 0 for other numbers."""
_DATE_PATTERN = r"^[0-9]{4}-[^B]*$"
_CONNECTION_ERRORS = ("08", "53", "57P0")
"""Error classes that concern the server: connections, resources, shutdown."""
_TRANSIENT_ERRORS = (errorcodes.SERIALIZATION_FAILURE, errorcodes.LOCK_NOT_AVAILABLE)
"""Errors that a retry may cure: a standby cancelled the query to continue replay, or a lock was not available."""
_LIMITS = {
    errorcodes.QUERY_CANCELED: "statement_timeout",
    "25P04": "transaction_timeout",
}
"""Limits of a session, by the SQLSTATE that reports one as reached."""
_INFINITIES = {"infinity": "9999-12-31 23:59:59.999999", "-infinity": "0001-01-01 00:00:00"}


class PostgresSnapshot:
    """``DatabaseSnapshot`` in one transaction of a session."""

    def __init__(self, session: Session, where: str) -> None:
        self.session, self._where = session, where
        session.set_session(isolation_level="REPEATABLE READ", readonly=True, autocommit=False)
        with self._translate_errors("the end of the log"), session.cursor() as cursor:
            cursor.execute(_POSITION)
            self.position = str((cursor.fetchone() or ("0/0",))[0])
        high, low = self.position.split("/")
        self._reached = f"{(int(high, 16) << 32) + int(low, 16):016x}"

    def columns(self, table: str) -> Sequence[DatabaseColumn]:
        """The table's columns with their types as ``format_type`` writes them; a domain's is its base type."""
        schema, _, name = table.partition(".")
        with self._translate_errors(table), self.session.cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s)", (sql.Identifier(schema, name).as_string(cursor),))
            if cursor.fetchone() == (None,):
                raise missing_table(table, self._where)
            cursor.execute(_COLUMNS, (sql.Identifier(schema, name).as_string(cursor),))
            return [DatabaseColumn(*row) for row in cursor.fetchall()]

    def codec(self, column: DatabaseColumn, kind: T.DataType) -> ColumnCodec | None:
        """The codec from the column to that Spark type; None if there is none."""
        return codec_for(column.type, kind)

    def rows(
        self,
        table: str,
        texts: Sequence[tuple[str, str]],
        among: ValueFilter | None,
        chunk: int,
        within: RangeFilter | None = None,
    ) -> Iterator[list[tuple[str | None, ...]]]:
        """Rows of column texts, in chunks: the table's own rows, without those of tables that inherit from it."""
        query = sql.SQL("SELECT {} FROM {}").format(_select_list(texts), self._own(table))
        if among is not None:
            keys, values = among
            query += sql.SQL(" WHERE ({}) IN {}").format(_select_list(keys), sql.Literal(tuple(map(tuple, values))))
        elif within is not None:
            query += sql.SQL(" WHERE ") + _in_intervals(*within)
        with self._translate_errors(table), self.session.cursor(f"verify_{uuid4().hex}") as cursor:
            cursor.execute(query)
            while found := cursor.fetchmany(chunk):
                yield found

    def _own(self, table: str) -> sql.Composable:
        """The table without its children, whose changes come under their own names. A partitioned table includes its
        partitions: it has no other rows.
        """
        schema, _, name = table.partition(".")
        named = sql.Identifier(schema, name)
        with self._translate_errors(table), self.session.cursor() as cursor:
            cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", (named.as_string(cursor),))
            return named if cursor.fetchone() == ("p",) else sql.SQL("ONLY ") + named

    def is_after(self, seq: Column) -> Column:
        """Whether a change's commit, or its own record, is beyond the end of the write-ahead log at the snapshot."""
        return (F.substring(seq, 9, 16) > self._reached) | (F.substring(seq, 25, 16) > self._reached)

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except psycopg2.Error as error:
            raise _failure(error, what, self._where) from None


class PostgresDatabase:
    """``Database`` over sessions that ``open_`` creates."""

    def __init__(self, open_: Callable[[], Session], where: str) -> None:
        self._open, self.where = open_, where

    @contextmanager
    def read_snapshot(self) -> Iterator[PostgresSnapshot]:
        """A snapshot of the current state."""
        with closing(self._open()) as session:
            yield PostgresSnapshot(session, self.where)


def source(login: Login) -> PostgresDatabase:
    """The database of a source."""
    where = f"{login.host}:{login.port}/{login.dbname}"
    settings: dict[str, Any] = {"connect_timeout": 10, "application_name": "replicator verify", "options": _SESSION}
    settings |= {"host": login.host, "port": login.port, "dbname": login.dbname, "user": login.user}
    settings |= {"sslmode": login.sslmode}

    def session() -> Session:
        found: Session = postgresql_connection.connect(
            where, postgresql_connection.SOURCE, password=login.password or None, **settings
        )
        return found

    return PostgresDatabase(session, where)


def codec_for(type_: str, kind: T.DataType) -> ColumnCodec | None:
    """The codec from a PostgreSQL type to a Spark type; None if the conversion is unknown or inexact (types.md Y6)."""
    base = type_.partition("(")[0] + type_.partition(")")[2]
    if base in _NUMBERS:
        value = "{}::numeric" if base == "money" else "{}"
        return column_codecs.number(f"{value}::text", kind, value, _NUMBERS[base])
    if isinstance(kind, T.StringType):
        return _as_text(base)
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        is_exact = base == "real" or (base == "double precision" and isinstance(kind, T.DoubleType))
        return column_codecs.cast("{}::text", kind) if is_exact else None
    if isinstance(kind, (T.ArrayType, T.MapType)):
        return _as_nested(base, kind)
    one = _CODECS.get((base, type(kind)))
    return None if isinstance(kind, T.BooleanType) and base == "bit" and type_ not in ("bit", "bit(1)") else one


def _temporal(sql_: str, kind: T.DataType, zone: str = "") -> ColumnCodec:
    """The codec of a date or a timestamp of the years 1 to 9999, or an infinite one."""
    return ColumnCodec(
        sql_,
        lambda text: F.concat(column_codecs.matching(_replace_infinities(text), _DATE_PATTERN), F.lit(zone)).cast(kind),
        may_not_fit=True,
    )


def _replace_infinities(text: Column) -> Column:
    """The text with infinities replaced by the first and last moment that silver can hold (types.md section 4)."""
    for word, moment in _INFINITIES.items():
        text = F.when(text == word, moment).otherwise(text)
    return text


_BITS = ColumnCodec("{}::text", lambda text: F.conv(text, 2, 10).cast("bigint"))
"""The codec of up to 63 bits as the number that they are in the connector's events."""

_CODECS: dict[tuple[str, type[T.DataType]], ColumnCodec] = {
    ("boolean", T.BooleanType): column_codecs.cast("{}::text", T.BooleanType()),
    ("bit", T.BooleanType): ColumnCodec("{}::text", lambda text: text == "1"),
    ("bit", T.LongType): _BITS,
    ("bit varying", T.LongType): _BITS,
    ("bytea", T.BinaryType): column_codecs.hex_bytes("encode({}, 'hex')"),
    ("date", T.DateType): _temporal("{}::text", T.DateType()),
    ("timestamp without time zone", T.TimestampNTZType): _temporal("{}::text", T.TimestampNTZType()),
    ("timestamp without time zone", T.TimestampType): _temporal("{}::text", T.TimestampType(), "Z"),
    ("timestamp with time zone", T.TimestampNTZType): _temporal("({} AT TIME ZONE 'UTC')::text", T.TimestampNTZType()),
    ("timestamp with time zone", T.TimestampType): _temporal("({} AT TIME ZONE 'UTC')::text", T.TimestampType(), "Z"),
    ("time without time zone", T.LongType): column_codecs.cast(
        "(extract(epoch FROM {}) * 1000000)::bigint::text", T.LongType()
    ),
}


def _as_text(base: str) -> ColumnCodec | None:
    if base in ("json", "jsonb"):
        return column_codecs.json_text("{}::text")
    if base.rpartition(".")[2] == "hstore":
        return column_codecs.json_text("{}::json::text")
    return (
        column_codecs.cast(_PRINTED, T.StringType(), f'({_PRINTED}) COLLATE "C"')
        if base.rpartition(".")[2] in _TEXTS
        else None
    )


def _as_nested(base: str, kind: T.ArrayType | T.MapType) -> ColumnCodec | None:
    if isinstance(kind, T.MapType):
        return column_codecs.from_json("{}::json::text", kind) if base.rpartition(".")[2] == "hstore" else None
    element = base.removesuffix("[]")
    exact = {
        "smallint",
        "integer",
        "bigint",
        "boolean",
        "real",
        "double precision",
        "text",
        "character varying",
        "uuid",
    }
    fits = element in exact or (element == "numeric" and isinstance(kind.elementType, T.DecimalType))
    return column_codecs.from_json("to_json({})::text", kind) if fits and base.endswith("[]") else None


def _select_list(texts: Sequence[tuple[str, str]]) -> sql.Composable:
    """The select list for pairs of a column's name and the pattern of its text."""
    return sql.SQL(", ").join(_with_name(pattern, sql.Identifier(name)) for name, pattern in texts)


def _in_intervals(column: tuple[str, str], intervals: Sequence[tuple[Any, Any]]) -> sql.Composable:
    """The condition that a column is in one of the intervals."""
    value = _with_name(column[1], sql.Identifier(column[0]))
    ends = [[(">", low), ("<=", high)] for low, high in intervals]
    every = [
        sql.SQL(" AND ").join(
            [
                sql.SQL("TRUE"),
                *[value + sql.SQL(f" {sign} ") + sql.Literal(end) for sign, end in each if end is not None],
            ]
        )
        for each in ends
    ]
    return sql.SQL("({})").format(sql.SQL(" OR ").join([sql.SQL("FALSE"), *every]))


def _with_name(pattern: str, name: sql.Identifier) -> sql.Composable:
    first, *others = (sql.SQL(piece) for piece in pattern.split("{}"))
    whole: sql.Composable = first
    for piece in others:
        whole = whole + name + piece
    return whole


def _failure(error: psycopg2.Error, what: str, where: str) -> Unreachable | TableStopped:
    state = error.pgcode
    if state is None or state.startswith(_CONNECTION_ERRORS):
        fix = "Run again; if it fails each time, a `transaction_timeout` of the reading user may be the cause."
        return Unreachable(f"PostgreSQL interrupted the read of {what}", where=where, fix=fix)
    if state in _TRANSIENT_ERRORS:
        fix = "Run again; if a standby does so often, a longer `max_standby_streaming_delay` helps."
        return Unreachable(f"PostgreSQL interrupted the read of {what} (SQLSTATE {state})", where=where, fix=fix)
    known = error.diag.message_primary if state.startswith("42") or state in _LIMITS else None
    reason = f": {known}" if known else ""
    message = f"PostgreSQL refused to read {what} (SQLSTATE {state}){reason}"
    return TableStopped(message, where=where, fix=_fix(state))


def _fix(state: str) -> str | None:
    if state in _LIMITS:
        limit = _LIMITS[state]
        return f"Set a longer one for the reading user (ALTER ROLE ... SET {limit} = '1h'), or compare a `--sample`."
    return "Grant the reading user SELECT on it." if state == errorcodes.INSUFFICIENT_PRIVILEGE else None
