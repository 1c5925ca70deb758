"""Deletes of keys that no row of a target can have: a number that is too large for its column, a text that is no date,
a character that the server lacks. Such a row was refused, or never came; it is gone all the same, and the others go on.

The server fails at one among many, and says at most that it does: they are looked for then, and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator.sinks.postgres import copytext

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

_DELETE = b"\tdelete"
"""How a line of one ends."""

_COMMA = sql.SQL(", ")
_DROP_UNCONVERTIBLE = sql.SQL(
    "DECLARE place tid; BEGIN "
    "FOR place IN SELECT s.ctid FROM {staging} s WHERE s._op = 'delete' LOOP "
    "BEGIN PERFORM {keys} FROM {staging} s WHERE s.ctid = place; "
    "EXCEPTION WHEN data_exception THEN DELETE FROM {staging} s WHERE s.ctid = place; END; "
    "END LOOP; END"
)


def drop_unreadable(lines: bytes | memoryview, codec: str) -> bytes:
    """Lines of rows with their ``_op`` at the end, without the deletes of which a server of this encoding cannot read
    the key.
    """
    every = bytes(lines).split(b"\n")
    kept = (line for line in every if not line.endswith(_DELETE) or copytext.find_unreadable(line, codec) is None)
    return b"\n".join(kept)


def drop_unconvertible(cursor: Cursor, staging: sql.Identifier, keys: Sequence[sql.Composable]) -> None:
    """Take the staged deletes away of which the server cannot make these ``keys``, values over the staging table s."""
    body = _DROP_UNCONVERTIBLE.format(staging=staging, keys=_COMMA.join(keys))
    cursor.execute(sql.SQL("DO {}").format(sql.Literal(body.as_string(cursor))))
