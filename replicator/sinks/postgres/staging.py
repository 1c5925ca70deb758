"""Staged rows of one model: handed over by COPY, taken over by set-based statements in one transaction."""

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
# of tables that inherit from the target the rows are somebody else's; a table in partitions has no rows but theirs
_OWN = sql.SQL(
    "(t.tableoid = CAST({name} AS regclass) "
    "OR (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = CAST({name} AS regclass)))"
)
# DELETE takes its rows in an order of its own: locked before in the order of the key, as upserts are, they cannot wait
# in a circle with another writer who keeps to that order
_LOCK = sql.SQL("SELECT count(*) FROM (SELECT FROM {target} t WHERE {which} ORDER BY {order} FOR UPDATE) locked")
_DELETE = sql.SQL("DELETE FROM {target} t WHERE {which}")
# xmax is 0 in a row version that this statement inserted, and not in one that it updated. Of a table in partitions
# Postgres does not tell it: there the rows that were there before are looked up, which others need not pay for
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
# an array travels as JSON of texts, so that its elements are read as Postgres reads any text of their type
_ELEMENTS = sql.SQL(
    "CASE WHEN {0} IS NOT NULL THEN ARRAY(SELECT each.element FROM jsonb_array_elements_text(CAST({0} AS jsonb)) "
    "WITH ORDINALITY AS each (element, place) ORDER BY each.place) END"
)
_UPDATE = sql.SQL("DO UPDATE SET {assign} WHERE ROW({old}) IS DISTINCT FROM ROW({new})")


@dataclass(frozen=True)
class StagedRows:
    """One difference in its staging table, which its session alone sees, and which ends with it (F-P10)."""

    difference: Difference
    table: sql.Identifier
    columns: tuple[StagedColumn, ...]

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.difference.model.name

    def write(self, session: Session, limit: float, *, readable: bool = False) -> None:
        """Hand the rows over, a piece as soon as Spark has it; between pieces the session stays awake, for which the
        server's limit is ``limit`` seconds. ``readable``: once more, without deletes of keys that it cannot read.
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
        """The first column with a text that COPY cannot read, of rows computed once more, for naming it in an error;
        None where only keys of deletes have one.
        """
        codec = _codec(session)
        with keep_alive(session, limit), translate_compute_errors(self.model):
            kept = (impossible_deletes.drop_unreadable(piece, codec) for piece in gateway.stream_texts(self._lines()))
            places = (copytext.find_unreadable(piece, codec) for piece in kept)
            place = next((each for each in places if each is not None), None)
        return None if place is None else self.columns[place].name

    def delete(self, cursor: Cursor) -> int:
        """Delete what the difference says, and every other key when it is the whole model. Returns rows deleted."""
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
        """Insert or update, in the order of the key. Returns rows inserted and rows that really changed. Raises
        TargetRefused where a key would be rounded.
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

    def misfit(self, cursor: Cursor) -> str | None:
        """The first column with a staged value that the target's type cannot hold; for naming it in an error."""
        for each in self.columns:
            if not self._fits(cursor, each):
                return each.name
        return None

    def _fits(self, cursor: Cursor, column: StagedColumn) -> bool:
        longest = column.type.arguments[0] if column.type.is_text and column.type.arguments else None
        value = self._value(column)
        if longest is not None:
            # blanks at the end do not count: Postgres itself cuts those
            misfits = sql.SQL("count(*) FILTER (WHERE char_length(rtrim({}::text, ' ')) > {})").format(
                value, sql.Literal(longest)
            )
        else:
            misfits = sql.SQL("0 * count(({})::text)").format(value)  # it fails, or there are none
        query = sql.SQL("SELECT {misfits} FROM {staging} s WHERE s._op = 'upsert'")
        cursor.execute("SAVEPOINT fits")
        try:
            cursor.execute(query.format(**self._places(), misfits=misfits))
        except psycopg2.DataError:
            cursor.execute("ROLLBACK TO SAVEPOINT fits")
            return False
        return cursor.fetchone() == (0,)

    def _refuse_rounded(self, cursor: Cursor, key: StagedColumn) -> None:
        """Rounded, it may be another row's."""
        if not key.type.is_coarse:
            return
        exact = _without_rounding(key)
        cursor.execute(_ROUNDED.format(**self._places(), rounded=self._value(key), exact=self._value(exact)))
        if cursor.fetchone() == (True,):
            what = f"column {key.name} of model {self.model} is part of its key, which {key.type} would round."
            raise TargetRefused(what, where=self.model, mend=f"Declare it as {exact.type}: its table follows.")

    def _lines(self) -> DataFrame:
        """The rows as COPY takes them."""
        values = [*((each.value, each.form) for each in self.columns), (F.col("_op"), "plain")]
        return self.difference.rows.select(copytext.to_line(values))

    def _keys(self) -> Sequence[StagedColumn]:
        by_name = {each.name: each for each in self.columns}
        return [by_name[key] for key in self.difference.model.key]

    def _value(self, column: StagedColumn) -> sql.Composable:
        """The staged value as the target's type. Never cast to a text type: a cast would cut what is too long."""
        staged = sql.SQL("s.{}").format(sql.Identifier(column.staged_as))
        if column.type.is_array:
            staged = _ELEMENTS.format(staged)
        cast = sql.SQL("CAST({} AS {})").format(staged, sql.SQL(str(column.type)))
        return staged if column.type.element.is_text else cast

    def _key_value(self, column: StagedColumn) -> sql.Composable:
        """The staged value as the target's column holds it, to be compared with: without the blanks that a CHAR does
        not count, or those that a VARCHAR has no room for. Nothing else is cut or rounded: a longer text, and a time of
        more digits, is no key of the target.
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
        """Whether a row that was written is a new one."""
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
    """Whether every staged value is one of the target's type: nothing can fail there."""
    return column.type.is_text or column.type.holds(parse_type(column.staged_type))


def _without_rounding(column: StagedColumn) -> StagedColumn:
    """The same, of which the target's type would round nothing."""
    return replace(column, type=replace(column.type, arguments=()))


def _comparable(row: str, column: StagedColumn) -> sql.Composed:
    """A column of the old or the new row, in a form that is equal only where it reads the same: json has no equality,
    an interval of a month equals one of 30 days, a number of no declared digits (jsonb has such, too) one with more
    zeros, and a collation may find texts alike.
    """
    value, element = sql.SQL(f"{row}.{{}}").format(sql.Identifier(column.name)), column.type.element
    if element.name in ("json", "jsonb", "interval") or str(element) == "numeric":
        return value + sql.SQL("::text")
    return value + sql.SQL(' COLLATE "C"') if element.is_text else value
