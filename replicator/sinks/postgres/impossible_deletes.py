"""Deletes of keys that no row of a target can have: a number too large for its column, a text that is not a date, a
character that the server lacks. Such a row was refused or never written, so its delete is already fulfilled, and the
other deletes continue.

The server fails at one such key among many and at most reports the failure, so they are searched for only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator.sinks.postgres import copytext

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

_DELETE = b"\tdelete"
"""The end of a delete's line."""

_COMMA = sql.SQL(", ")
_DROP_UNCONVERTIBLE = sql.SQL(
    "DECLARE place tid; BEGIN "
    "FOR place IN SELECT s.ctid FROM {staging} s WHERE s._op = 'delete' LOOP "
    "BEGIN PERFORM {keys} FROM {staging} s WHERE s.ctid = place; "
    "EXCEPTION WHEN data_exception THEN DELETE FROM {staging} s WHERE s.ctid = place; END; "
    "END LOOP; END"
)


def drop_unreadable(lines: bytes | memoryview, codec: str) -> bytes:
    """Return lines of rows, which end with their ``_op``, without those deletes whose key a server of this encoding
    cannot read.
    """
    every = bytes(lines).split(b"\n")
    remaining = (line for line in every if not line.endswith(_DELETE) or copytext.find_unreadable(line, codec) is None)
    return b"\n".join(remaining)


def drop_unconvertible(cursor: Cursor, staging: sql.Identifier, keys: Sequence[sql.Composable]) -> None:
    """Remove the staged deletes for which the server cannot compute these ``keys``, expressions over the staging table
    s.
    """
    body = _DROP_UNCONVERTIBLE.format(staging=staging, keys=_COMMA.join(keys))
    cursor.execute(sql.SQL("DO {}").format(sql.Literal(body.as_string(cursor))))
