"""Consistent snapshots of MariaDB and MySQL: a transaction WITH CONSISTENT SNAPSHOT, rows streamed."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.database_snapshots import DatabaseColumn, RangeFilter, ValueFilter, missing_table
from replicator.databases import column_codecs, connections
from replicator.databases.column_codecs import INTEGER_TYPES, ColumnCodec
from replicator.errors import ConfigError, TableStopped, Unreachable
from replicator.spec import Login

_COLUMNS = (
    "SELECT column_name, lower(column_type), is_nullable = 'YES' FROM information_schema.columns "
    "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
)
_CONNECTION_ERRORS = frozenset(
    {1040, 1044, 1045, 1049, 1053, 1129, 1130, 1203, 1226, 2002, 2003, 2006, 2013, 2026, 2055}
)
"""Error numbers that concern the connection: refused, broken, too many."""
_LONGER = "Set a longer {} for the reading user, or compare a `--sample`."
_GRANT = "Grant the reading user SELECT on it."
_FIXES: Mapping[Any, str] = {
    1142: _GRANT,
    1143: _GRANT,
    1969: _LONGER.format("`max_statement_time`"),
    3024: _LONGER.format("`max_execution_time`"),
}
"""What to do about errors whose messages contain names only, no values, and may therefore be shown."""


_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "inet4", "inet6", "uuid"})
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WHOLE = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8, "year": 2}
"""Bytes of the types of whole numbers."""
_DATE_PATTERN = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_ZONES: Mapping[tuple[str, type[T.DataType]], str] = {
    ("date", T.DateType): "",
    ("datetime", T.TimestampNTZType): "",
    ("timestamp", T.TimestampType): "Z",
}
"""Types of dates and timestamps with the Spark type that each can become, and the time zone suffix of its texts."""
_AS_TEXT = "CONVERT({} USING utf8mb4)"
_CAST = "CAST({} AS CHAR)"
_BIT = "CAST(CAST({} AS UNSIGNED) AS CHAR)"
_DOUBLE = "CAST({} + 0e0 AS CHAR)"  # all digits, also of a FLOAT; MySQL before 8.0.17 has no CAST AS DOUBLE
_ENDS = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
"""Statements that give the end of MySQL's log, since 8.2 and before."""


@dataclass(frozen=True)
class MysqlDatabase:
    """``Database`` of MariaDB or MySQL; ``tls`` are PyMySQL's arguments. The password is not in the repr."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """``host:port`` for messages."""
        return f"{self.host}:{self.port}"

    @contextmanager
    def read_snapshot(self) -> Iterator[MysqlSnapshot]:
        """A snapshot of the current state. Raises Unreachable, LoginRefused; ConfigError without PyMySQL, or what it
        needs.
        """
        client = _client()
        try:
            session = client.connect(
                host=self.host, port=self.port, user=self.user, password=self.password, charset="utf8mb4",
                connect_timeout=10, init_command="SET time_zone = '+00:00', sql_mode = ''", **self.tls,
            )  # fmt: skip
        except client.MySQLError as error:
            raise connections.connect_error(
                "the database", error, self.where, connections.BINLOG_LOGIN_ERRORS
            ) from None
        except RuntimeError as error:
            raise connections.missing_client_error(error, self.where) from error
        with closing(session):
            yield MysqlSnapshot(session, self.where)


class MysqlSnapshot:
    """``DatabaseSnapshot`` in one transaction of a session."""

    def __init__(self, session: Any, where: str) -> None:
        self._session, self._where = session, where
        with self._translate_errors("the server"), session.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            file, place = _binlog_end(cursor)
        self.position = f"{file}:{place}" if file else ""
        self._reached = _major_of(file, place)

    def columns(self, table: str) -> Sequence[DatabaseColumn]:
        """The table's columns with the types in its definition."""
        with self._translate_errors(table), self._session.cursor() as cursor:
            cursor.execute(_COLUMNS, table.split(".", 1))
            found = [DatabaseColumn(name, _decoded(kind), bool(nullable)) for name, kind, nullable in cursor.fetchall()]
        if not found:
            raise missing_table(table, self._where)
        return found

    def codec(self, column: DatabaseColumn, kind: T.DataType) -> ColumnCodec | None:
        """The codec from the column to that Spark type; None if there is none."""
        return codec_for(column, kind)

    def rows(
        self,
        table: str,
        texts: Sequence[tuple[str, str]],
        among: ValueFilter | None,
        chunk: int,
        within: RangeFilter | None = None,
    ) -> Iterator[list[tuple[str | None, ...]]]:
        """Rows of column texts, in chunks."""
        place = ".".join(map(_quoted, table.split(".", 1)))
        query, values = f"SELECT {_select_list(texts)} FROM {place}", list[Any]()  # noqa: S608 - names are quoted
        if among is not None:
            one = f"({', '.join(['%s'] * len(among[0]))})"
            query += f" WHERE ({_select_list(among[0])}) IN ({', '.join([one] * len(among[1]))})"
            values = [value for row in among[1] for value in row]
        elif within is not None:
            query += f" WHERE {_in_intervals(_select_list([within[0]]), within[1])}"
            values = [end for interval in within[1] for end in interval if end is not None]
        streamed = importlib.import_module("pymysql.cursors").SSCursor
        with self._translate_errors(table), self._session.cursor(streamed) as cursor:
            cursor.execute(query, values)
            while found := cursor.fetchmany(chunk):
                yield found

    def is_after(self, seq: Column) -> Column:
        """Whether a change's place in the binlog is beyond the end of the log at the snapshot."""
        return F.lit(False) if self._reached is None else F.substring(seq, 5, 20) > self._reached

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        client = _client()
        try:
            yield
        except client.MySQLError as error:
            if (error.args and error.args[0] in _CONNECTION_ERRORS) or isinstance(error, client.err.InterfaceError):
                raise Unreachable(f"{_reason(error)} while reading {what}.", where=self._where) from None
            number = error.args[0] if error.args else "?"
            reason, fix = (f": {error.args[-1]}", _FIXES[number]) if number in _FIXES else ("", None)
            message = f"the database refused to read {what} (error {number}){reason}"
            raise TableStopped(message, where=self._where, fix=fix) from None


def source(login: Login) -> MysqlDatabase:
    """The database of a source."""
    return MysqlDatabase(login.host, login.port, login.user, login.password, connections.tls_arguments(login))


def codec_for(column: DatabaseColumn, kind: T.DataType) -> ColumnCodec | None:
    """The codec from a MariaDB or MySQL column to a Spark type; None if the conversion is unknown or inexact (types.md
    Y6).
    """
    base = re.split(r"\W", column.type, maxsplit=1)[0]
    if base in _WHOLE or base == "decimal":
        return _number(column.type, base, kind)
    if isinstance(kind, T.StringType):
        return _as_text(column.type, base)
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        exact = base == "double" if isinstance(kind, T.DoubleType) else base == "float"
        return column_codecs.cast(_DOUBLE, kind) if exact else None
    if isinstance(kind, T.BinaryType):
        return column_codecs.hex_bytes("HEX({})") if base in _BYTES else None
    return _temporal(column, base, kind) or _bit_or_set(base, kind)


def _number(type_: str, base: str, kind: T.DataType) -> ColumnCodec | None:
    if isinstance(kind, T.BooleanType):
        return ColumnCodec(_CAST, lambda text: text != "0") if base == "tinyint" else None
    if base == "bigint" and "unsigned" in type_ and isinstance(kind, T.LongType):
        return ColumnCodec(_CAST, _signed)
    return column_codecs.number(_CAST, kind, size=_WHOLE.get(base, 0) * (2 if "unsigned" in type_ else 1))


def _as_text(type_: str, base: str) -> ColumnCodec | None:
    if base == "json":
        return column_codecs.json_text(_AS_TEXT)
    backslash_is_lost = base == "enum" and re.search(r",(?!')|(?<!'),", type_[5:-1]) is not None
    return (
        column_codecs.cast(_AS_TEXT, T.StringType(), f"CAST({_AS_TEXT} AS BINARY)")
        if base in _TEXTS and not backslash_is_lost
        else None
    )


def _temporal(column: DatabaseColumn, base: str, kind: T.DataType) -> ColumnCodec | None:
    """The codec of dates and times. A zero date is NULL, or 1970 in a NOT NULL column, as the connector sends it
    (types.md section 4).
    """
    zero = "NULL" if column.nullable else "'1970-01-01 00:00:00'"
    dated = f"IF(LEFT({_CAST}, 10) = '0000-00-00', {zero}, {_CAST})"
    zone = _ZONES.get((base, type(kind)))
    if zone is not None:
        return ColumnCodec(
            dated,
            lambda text: F.concat(column_codecs.matching(text, _DATE_PATTERN), F.lit(zone)).cast(kind),
            may_not_fit=True,
        )
    return ColumnCodec(_CAST, _micros) if base == "time" and isinstance(kind, T.LongType) else None


def _bit_or_set(base: str, kind: T.DataType) -> ColumnCodec | None:
    if base == "bit" and isinstance(kind, (T.BooleanType, *INTEGER_TYPES)):
        return ColumnCodec(_BIT, lambda text: text.cast("bigint").cast(kind))
    if base == "set" and isinstance(kind, T.ArrayType):
        return ColumnCodec(
            _AS_TEXT, lambda text: F.when(text == "", F.array().cast(kind)).otherwise(F.split(text, ","))
        )
    return None


def _signed(text: Column) -> Column:
    """A BIGINT UNSIGNED as in the connector's mode ``long``: negative from 2^63 on (types.md section 5)."""
    whole = text.cast("decimal(20,0)")
    wrapped = whole - F.lit("18446744073709551616").cast("decimal(20,0)")
    return F.when(whole > F.lit(9223372036854775807), wrapped).otherwise(whole).cast("bigint")


def _micros(text: Column) -> Column:
    """Microseconds of a TIME's text, e.g. ``-838:59:59.5``."""
    parts = F.split(F.regexp_replace(text, "^-", ""), "[:.]")
    seconds = (parts[0].cast("bigint") * 60 + parts[1].cast("bigint")) * 60 + parts[2].cast("bigint")
    micros = F.rpad(F.coalesce(F.get(parts, F.lit(3)), F.lit("")), 6, "0").cast("bigint")
    return F.when(text.startswith("-"), -1).otherwise(1) * (seconds * 1_000_000 + micros)


def _binlog_end(cursor: Any) -> tuple[str, str]:
    """File and position of the snapshot itself, which MariaDB reports, or of the end of MySQL's log right after it; ''
    if there is no log, or the login may not ask.
    """
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    if found:
        return found.get("binlog_snapshot_file", ""), found.get("binlog_snapshot_position", "")
    client = _client()
    for statement in _ENDS:
        with suppress(client.err.ProgrammingError, client.err.OperationalError):
            cursor.execute(statement)
            row = cursor.fetchone()
            return ("", "") if row is None else (str(row[0]), str(row[1]))
    return "", ""


def _major_of(file: str, place: str) -> str | None:
    """The end of the log as the major part of a position, see ``debezium/position.py``; None without one."""
    number = re.search(r"\.([0-9]{1,10})$", file)
    return None if number is None else f"{int(number.group(1)):08x}{int(place):012x}"


def _decoded(kind: Any) -> str:
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _quoted(name: str) -> str:
    """A quoted name for a query with parameters, whose placeholders begin with a percent sign."""
    return "`" + name.replace("`", "``").replace("%", "%%") + "`"


def _select_list(texts: Sequence[tuple[str, str]]) -> str:
    """The select list for pairs of a column's name and the pattern of its text."""
    return ", ".join(pattern.replace("{}", _quoted(name)) for name, pattern in texts)


def _in_intervals(value: str, intervals: Sequence[tuple[Any, Any]]) -> str:
    """The condition that a value is in one of the intervals, with a placeholder per end, in order."""
    ends = (
        [f"{value} {sign} %s" for sign, end in zip((">", "<="), each, strict=True) if end is not None]
        for each in intervals
    )
    return f"({' OR '.join(['FALSE', *(' AND '.join(['TRUE', *each]) for each in ends)])})"


def _reason(error: Exception) -> str:
    """The client's message; it names host and user, never the password."""
    return f"the database does not answer: {error.args[-1] if error.args else error}".rstrip(".")


def _client() -> Any:
    try:
        return importlib.import_module("pymysql")
    except ImportError as error:
        raise ConfigError("PyMySQL is not installed.", fix="pip install 'lakehouse-replicator[verify]'") from error
