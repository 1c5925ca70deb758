"""Staged rows of one model: written by COPY, moved into the target by set-based statements in one transaction."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import psycopg2
from psycopg2 import sql
from pyspark.sql import functions as F

from replicator.errors import TargetRefused
from replicator.jvm import gateway
from replicator.protocols import Difference
from replicator.sinks.postgres import copytext, impossible_deletes
from replicator.sinks.postgres.columns import StagedColumn
from replicator.sinks.postgres.ddl import target_of
from replicator.sinks.postgres.keepalive import keep_alive
from replicator.sinks.postgres.types import parse_type
from replicator.sinks.refusals import translate_compute_errors

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Session
    from psycopg2.extensions import cursor as Cursor
    from pyspark.sql import DataFrame

_COPY = sql.SQL("COPY {} FROM STDIN (FORMAT text, ENCODING 'UTF8')")
_COMMA = sql.SQL(", ")
_AND = sql.SQL(" AND ")
_IS_DELETED = sql.SQL("EXISTS (SELECT FROM (SELECT {keys} FROM {staging} s WHERE s._op = 'delete') s WHERE {same})")
_NOT_IN_MODEL = sql.SQL(
    "NOT EXISTS (SELECT FROM (SELECT {keys} FROM {staging} s WHERE s._op = 'upsert') s WHERE {same})"
)
# rows of tables that inherit from the target are foreign; a partitioned table has only the rows of its partitions
_OWN = sql.SQL(
    "(t.tableoid = CAST({name} AS regclass) "
    "OR (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = CAST({name} AS regclass)))"
)
# DELETE visits its rows in an arbitrary order: locked before in the order of the key, as upserts are, they cannot
# deadlock with another writer that keeps to that order
_LOCK = sql.SQL("SELECT count(*) FROM (SELECT FROM {target} t WHERE {which} ORDER BY {order} FOR UPDATE) locked")
_DELETE = sql.SQL("DELETE FROM {target} t WHERE {which}")
# xmax is 0 in a row version that this statement inserted, and not in one that it updated. For a partitioned table,
# Postgres does not return it: only there are previously existing rows looked up, at a cost that others avoid
_INSERTED = sql.SQL(
    "CASE WHEN (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = CAST({name} AS regclass)) "
    "THEN NOT EXISTS (SELECT FROM {target} o WHERE {same}) ELSE t.xmax = 0 END"
)
_UPSERT = sql.SQL(
    "WITH written AS (INSERT INTO {target} AS t ({columns}) "
    "SELECT {values} FROM {staging} s WHERE s._op = 'upsert' "
    "ORDER BY {key_values} ON CONFLICT ({keys}) {action} RETURNING {inserted} AS inserted) "
    "SELECT count(*) FILTER (WHERE inserted), count(*) FILTER (WHERE NOT inserted) FROM written"
)
_ROUNDED = sql.SQL("SELECT EXISTS (SELECT FROM {staging} s WHERE s._op = 'upsert' AND {rounded} <> {exact})")
# an array travels as JSON of texts, so that Postgres parses its elements as any text of their type
_ELEMENTS = sql.SQL(
    "CASE WHEN {0} IS NOT NULL THEN ARRAY(SELECT each.element FROM jsonb_array_elements_text(CAST({0} AS jsonb)) "
    "WITH ORDINALITY AS each (element, place) ORDER BY each.place) END"
)
_UPDATE = sql.SQL("DO UPDATE SET {assign} WHERE ROW({old}) IS DISTINCT FROM ROW({new})")


@dataclass(frozen=True)
class StagedRows:
    """One difference in its staging table, which only its session sees and which ends with it (F-P10)."""

    difference: Difference
    table: sql.Identifier
    columns: tuple[StagedColumn, ...]

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.difference.model.name

    def write(self, session: Session, limit: float, *, readable: bool = False) -> None:
        """Write the rows, each chunk as soon as Spark has computed it; between chunks the session is kept alive against
        the server's limit of ``limit`` seconds. ``readable``: write again, without deletes of keys that the server
        cannot read.
        """
        texts: Iterable[bytes | memoryview] = gateway.stream_texts(self._lines())
        if readable:
            codec = _codec(session)
            texts = (impossible_deletes.drop_unreadable(each, codec) for each in texts)
            with session.cursor() as cursor:
                cursor.execute(sql.SQL("TRUNCATE {}").format(self.table))
        pieces = copytext.chunks(texts)
        while True:
            with keep_alive(session, limit), translate_compute_errors(self.model):
                piece = next(pieces, None)
            if piece is None:
                return
            with session.cursor() as cursor:
                cursor.copy_expert(_COPY.format(self.table), io.BytesIO(piece))

    def unreadable(self, session: Session, limit: float) -> str | None:
        """Return the first column with a text that COPY cannot read, from rows computed again, for naming it in an
        error; None if only keys of deletes have one.
        """
        codec = _codec(session)
        with keep_alive(session, limit), translate_compute_errors(self.model):
            readable = (
                impossible_deletes.drop_unreadable(piece, codec) for piece in gateway.stream_texts(self._lines())
            )
            places = (copytext.find_unreadable(piece, codec) for piece in readable)
            place = next((each for each in places if each is not None), None)
        return None if place is None else self.columns[place].name

    def delete(self, cursor: Cursor) -> int:
        """Delete the rows that the difference deletes, and every key that is not in it if it is the complete model.
        Returns the number of rows deleted.
        """
        if self.difference.complete or all(map(_always_fits, self._keys())):
            return self._delete(cursor)
        cursor.execute("SAVEPOINT deletes")
        try:
            return self._delete(cursor)
        except psycopg2.DataError:
            cursor.execute("ROLLBACK TO SAVEPOINT deletes")
            impossible_deletes.drop_unconvertible(cursor, self.table, [self._key_value(each) for each in self._keys()])
            return self._delete(cursor)

    def _delete(self, cursor: Cursor) -> int:
        keys = [
            sql.SQL("{} AS {}").format(self._key_value(each), sql.Identifier(each.staged_as)) for each in self._keys()
        ]
        same = [
            sql.SQL("t.{} = s.{}").format(sql.Identifier(each.name), sql.Identifier(each.staged_as))
            for each in self._keys()
        ]
        which = _NOT_IN_MODEL if self.difference.complete else _IS_DELETED
        places = self._places()
        own = _OWN.format(name=sql.Literal(places["target"].as_string(cursor)))
        places["which"] = _AND.join([own, which.format(**places, keys=_COMMA.join(keys), same=_AND.join(same))])
        places["order"] = _COMMA.join(sql.SQL("t.{}").format(sql.Identifier(each.name)) for each in self._keys())
        cursor.execute(_LOCK.format(**places))
        if cursor.fetchone() == (0,):
            return 0
        cursor.execute(_DELETE.format(**places))
        return cursor.rowcount

    def upsert(self, cursor: Cursor) -> tuple[int, int]:
        """Insert or update, in the order of the key. Returns the number of rows inserted, and of those really changed.
        Raises TargetRefused if a key would be rounded.
        """
        keys = self._keys()
        for each in keys:
            self._refuse_rounded(cursor, each)
        statement = _UPSERT.format(
            **self._places(),
            columns=_COMMA.join(sql.Identifier(each.name) for each in self.columns),
            values=_COMMA.join(self._value(each) for each in self.columns),
            key_values=_COMMA.join(self._value(each) for each in keys),
            keys=_COMMA.join(sql.Identifier(each.name) for each in keys),
            action=self._action(),
            inserted=self._inserted(cursor),
        )
        cursor.execute(statement)
        inserted, updated = cursor.fetchone() or (0, 0)
        return inserted, updated

    def find_misfit(self, cursor: Cursor) -> str | None:
        """Return the first column with a staged value that the target's type cannot hold, for naming it in an error."""
        for each in self.columns:
            if not self._fits(cursor, each):
                return each.name
        return None

    def _fits(self, cursor: Cursor, column: StagedColumn) -> bool:
        longest = column.type.arguments[0] if column.type.is_text and column.type.arguments else None
        value = self._value(column)
        if longest is not None:
            # trailing blanks do not count: Postgres itself truncates those
            misfits = sql.SQL("count(*) FILTER (WHERE char_length(rtrim({}::text, ' ')) > {})").format(
                value, sql.Literal(longest)
            )
        else:
            misfits = sql.SQL("0 * count(({})::text)").format(value)  # the cast fails, or the count is 0
        query = sql.SQL("SELECT {misfits} FROM {staging} s WHERE s._op = 'upsert'")
        cursor.execute("SAVEPOINT fits")
        try:
            cursor.execute(query.format(**self._places(), misfits=misfits))
        except psycopg2.DataError:
            cursor.execute("ROLLBACK TO SAVEPOINT fits")
            return False
        return cursor.fetchone() == (0,)

    def _refuse_rounded(self, cursor: Cursor, key: StagedColumn) -> None:
        """A rounded key may be another row's."""
        if not key.type.is_coarse:
            return
        exact = _without_rounding(key)
        cursor.execute(_ROUNDED.format(**self._places(), rounded=self._value(key), exact=self._value(exact)))
        if cursor.fetchone() == (True,):
            what = f"column {key.name} of model {self.model} is part of its key, which {key.type} would round."
            raise TargetRefused(what, where=self.model, fix=f"Declare it as {exact.type}: its table is altered.")

    def _lines(self) -> DataFrame:
        """The rows as lines for COPY."""
        values = [*((each.value, each.form) for each in self.columns), (F.col("_op"), "plain")]
        return self.difference.rows.select(copytext.to_line(values))

    def _keys(self) -> Sequence[StagedColumn]:
        by_name = {each.name: each for each in self.columns}
        return [by_name[key] for key in self.difference.model.key]

    def _value(self, column: StagedColumn) -> sql.Composable:
        """The staged value as the target's type. Never cast to a text type: a cast would truncate what is too long."""
        staged = sql.SQL("s.{}").format(sql.Identifier(column.staged_as))
        if column.type.is_array:
            staged = _ELEMENTS.format(staged)
        cast = sql.SQL("CAST({} AS {})").format(staged, sql.SQL(str(column.type)))
        return staged if column.type.element.is_text else cast

    def _key_value(self, column: StagedColumn) -> sql.Composable:
        """The staged value as the target's column stores it, for comparison: without the blanks that a CHAR ignores, or
        those that do not fit into a VARCHAR. Nothing else is truncated or rounded: a longer text, or a time with more
        digits, is not a key of the target.
        """
        kind = column.type
        value = self._value(_without_rounding(column) if kind.is_coarse else column)
        if not kind.is_text:
            return value
        text = value if column.staged_type == "text" else sql.SQL("CAST({} AS text)").format(value)
        if kind.name == "character{}":
            return sql.SQL("CAST({} AS bpchar)").format(text)
        if not kind.arguments:
            return text
        fits = sql.SQL("char_length(rtrim({}, ' ')) <= {}").format(text, sql.Literal(kind.arguments[0]))
        return sql.SQL("CASE WHEN {} THEN CAST({} AS {}) ELSE {} END").format(fits, text, sql.SQL(str(kind)), text)

    def _action(self) -> sql.Composable:
        changing = [each for each in self.columns if each.name not in self.difference.model.key]
        plain = [sql.Identifier(each.name) for each in changing]
        if not plain:
            return sql.SQL("DO NOTHING")
        return _UPDATE.format(
            assign=_COMMA.join(sql.SQL("{} = EXCLUDED.{}").format(name, name) for name in plain),
            old=_COMMA.join(_comparable("t", each) for each in changing),
            new=_COMMA.join(_comparable("EXCLUDED", each) for each in changing),
        )

    def _inserted(self, cursor: Cursor) -> sql.Composable:
        """Whether a written row is a new one."""
        target = self._places()["target"]
        names = [sql.Identifier(each.name) for each in self._keys()]
        same = _AND.join(sql.SQL("o.{0} = t.{0}").format(name) for name in names)
        return _INSERTED.format(target=target, name=sql.Literal(target.as_string(cursor)), same=same)

    def _places(self) -> dict[str, sql.Composable]:
        target = target_of(self.difference.model)
        return {
            "target": sql.Identifier(target.schema, target.table),
            "staging": self.table,
        }


def _codec(session: Session) -> str:
    return copytext.codec(session.info.parameter_status("server_encoding"))


def _always_fits(column: StagedColumn) -> bool:
    """Whether every staged value is valid for the target's type, so that no cast can fail."""
    return column.type.is_text or column.type.can_hold(parse_type(column.staged_type))


def _without_rounding(column: StagedColumn) -> StagedColumn:
    """The same column with a target type that rounds nothing."""
    return replace(column, type=replace(column.type, arguments=()))


def _comparable(row: str, column: StagedColumn) -> sql.Composed:
    """A column of the old or the new row, in a form that is equal only if both read the same: json has no equality, an
    interval of a month equals one of 30 days, a number without declared digits (also in jsonb) equals one with more
    zeros, and a collation may treat texts as equal.
    """
    value, element = sql.SQL(f"{row}.{{}}").format(sql.Identifier(column.name)), column.type.element
    if element.name in ("json", "jsonb", "interval") or str(element) == "numeric":
        return value + sql.SQL("::text")
    return value + sql.SQL(' COLLATE "C"') if element.is_text else value
