"""PostgreSQL as of one moment: a REPEATABLE READ transaction that only reads, rows through a cursor of the server."""

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

# nothing of the server's or the role's defaults may take part in how values and types are written, and between two
# statements it is Spark that is waited for
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
    {"text", "character varying", "character", "name", "uuid", "inet", "cidr", "macaddr", "macaddr8", "xml", "ltree",
     "tsvector", "citext", "enum", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"}
)  # fmt: skip
_NUMBERS = {"smallint": 2, "integer": 4, "bigint": 8, "numeric": 0, "money": 0}
"""Those that are whole with their bytes."""
_DATE_PATTERN = r"^[0-9]{4}-[^B]*$"
_CONNECTION_ERRORS = ("08", "53", "57P0")
"""Classes of errors that are about the server: connections, room, shutdown."""
_TRANSIENT_ERRORS = (errorcodes.SERIALIZATION_FAILURE, errorcodes.LOCK_NOT_AVAILABLE)
"""A standby that had to go on with what it replays, or a lock: the same may go well in a moment."""
_LIMITS = {
    errorcodes.QUERY_CANCELED: "statement_timeout",
    "25P04": "transaction_timeout",
}
"""Limits of a session, by how the server says that one was reached."""
_INFINITIES = {"infinity": "9999-12-31 23:59:59.999999", "-infinity": "0001-01-01 00:00:00"}


class PostgresSnapshot:
    """``Glance`` in one transaction of a session."""

    def __init__(self, session: Session, where: str) -> None:
        self.session, self._where = session, where
        session.set_session(isolation_level="REPEATABLE READ", readonly=True, autocommit=False)
        with self._translate_errors("the end of the log"), session.cursor() as cursor:
            cursor.execute(_POSITION)
            self.position = str((cursor.fetchone() or ("0/0",))[0])
        high, low = self.position.split("/")
        self._reached = f"{(int(high, 16) << 32) + int(low, 16):016x}"

    def columns(self, table: str) -> Sequence[DatabaseColumn]:
        """The table's columns with their types as ``format_type`` writes them; a domain's are those it is made of."""
        schema, _, name = table.partition(".")
        with self._translate_errors(table), self.session.cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s)", (sql.Identifier(schema, name).as_string(cursor),))
            if cursor.fetchone() == (None,):
                raise missing_table(table, self._where)
            cursor.execute(_COLUMNS, (sql.Identifier(schema, name).as_string(cursor),))
            return [DatabaseColumn(*row) for row in cursor.fetchall()]

    def told(self, held: DatabaseColumn, kind: T.DataType) -> ColumnCodec | None:
        """How a value of the column becomes one of that type of Spark's."""
        return codec_for(held.type, kind)

    def rows(
        self,
        table: str,
        texts: Sequence[tuple[str, str]],
        among: ValueFilter | None,
        chunk: int,
        within: RangeFilter | None = None,
    ) -> Iterator[list[tuple[str | None, ...]]]:
        """The texts of the columns, row by row in chunks: of its own rows, not of tables that inherit from it."""
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
        """The table without its children, whose changes come under their own names; one with partitions has no other
        rows than theirs.
        """
        schema, _, name = table.partition(".")
        named = sql.Identifier(schema, name)
        with self._translate_errors(table), self.session.cursor() as cursor:
            cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", (named.as_string(cursor),))
            return named if cursor.fetchone() == ("p",) else sql.SQL("ONLY ") + named

    def later(self, seq: Column) -> Column:
        """A change whose commit, or its own record, stands behind what the write-ahead log had at this moment."""
        return (F.substring(seq, 9, 16) > self._reached) | (F.substring(seq, 25, 16) > self._reached)

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except psycopg2.Error as error:
            raise _failure(error, what, self._where) from None


class PostgresDatabase:
    """``Database`` over sessions that somebody else opens."""

    def __init__(self, open_: Callable[[], Session], where: str) -> None:
        self._open, self.where = open_, where

    @contextmanager
    def read_snapshot(self) -> Iterator[PostgresSnapshot]:
        """A look at this moment."""
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
    """How a value of a PostgreSQL type becomes one of Spark's; None where nobody can say (types.md Y6)."""
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
    return None if one is None or (base == "bit" and type_ not in ("bit", "bit(1)")) else one


def _temporal(sql_: str, kind: T.DataType, zone: str = "") -> ColumnCodec:
    """A date or a time of the years 1 to 9999, or an endless one."""
    return ColumnCodec(
        sql_,
        lambda text: F.concat(column_codecs.matching(_replace_infinities(text), _DATE_PATTERN), F.lit(zone)).cast(kind),
        may_not_fit=True,
    )


def _replace_infinities(text: Column) -> Column:
    """Endless dates and times as the first and the last moment that silver has (types.md section 4)."""
    for word, moment in _INFINITIES.items():
        text = F.when(text == word, moment).otherwise(text)
    return text


_CODECS: dict[tuple[str, type[T.DataType]], ColumnCodec] = {
    ("boolean", T.BooleanType): column_codecs.cast("{}::text", T.BooleanType()),
    ("bit", T.BooleanType): ColumnCodec("{}::text", lambda text: text == "1"),
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
    """Columns as their texts: pairs of a name and a pattern."""
    return sql.SQL(", ").join(_with_name(pattern, sql.Identifier(name)) for name, pattern in texts)


def _in_intervals(column: tuple[str, str], intervals: Sequence[tuple[Any, Any]]) -> sql.Composable:
    """Whether a column is in one of the intervals."""
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
        mend = "Run again; where it ends so each time, a `transaction_timeout` of the user that reads may be why."
        return Unreachable(f"PostgreSQL broke off while {what} was read", where=where, mend=mend)
    if state in _TRANSIENT_ERRORS:
        mend = "Run again; where a standby does so often, a longer `max_standby_streaming_delay` helps."
        return Unreachable(f"PostgreSQL broke off while {what} was read (SQLSTATE {state})", where=where, mend=mend)
    known = error.diag.message_primary if state.startswith("42") or state in _LIMITS else None
    reason = f": {known}" if known else ""
    told = f"PostgreSQL refuses to read {what} (SQLSTATE {state}){reason}"
    return TableStopped(told, where=where, mend=_mend(state))


def _mend(state: str) -> str | None:
    if state in _LIMITS:
        limit = _LIMITS[state]
        return f"Give the user that reads a longer one (ALTER ROLE ... SET {limit} = '1h'), or compare a `--sample`."
    return "Grant the user that reads SELECT of it." if state == errorcodes.INSUFFICIENT_PRIVILEGE else None
