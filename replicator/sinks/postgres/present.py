"""What a table of the target is like now, read from Postgres' own catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator.spec import Target

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

_RELATION = """
    SELECT c.oid, c.relkind IN ('r', 'p'), pg_has_role(c.relowner, 'USAGE'), obj_description(c.oid, 'pg_class')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""
_COLUMNS = """
    SELECT a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
        a.atthasdef OR a.attidentity <> '', col_description(a.attrelid, a.attnum),
        CASE WHEN a.attcollation <> t.typcollation THEN format('%%I.%%I', n.nspname, co.collname) END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace n ON n.oid = co.collnamespace
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# the columns of a unique index, none when it has expressions or a condition; and whether it is checked at once
_UNIQUE = """
    SELECT ix.relname, i.indimmediate, CASE WHEN i.indpred IS NULL AND i.indexprs IS NULL THEN
        (SELECT array_agg(a.attname::text) FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS each(attnum, place)
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = each.attnum
            WHERE each.place <= i.indnkeyatts) END
    FROM pg_index i JOIN pg_class ix ON ix.oid = i.indexrelid
    WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid ORDER BY ix.relname
"""
_FOREIGN = """
    SELECT conname FROM pg_constraint WHERE contype = 'f' AND NOT condeferrable AND %s IN (conrelid, confrelid)
    ORDER BY conname
"""


@dataclass(frozen=True)
class Held:
    """A column that is there: ``number`` in the catalog, ``type`` as Postgres prints it, ``filled`` by a default when
    nothing is given, ``collation`` (quoted) when it is not the type's own.
    """

    number: int
    type: str
    nullable: bool
    filled: bool
    comment: str | None
    collation: str | None


@dataclass(frozen=True)
class Present:
    """A relation that is there. ``owned``: the session's role may alter it. ``unique``: sets of columns that ON
    CONFLICT can name. ``strict``: unique and foreign keys that are checked row by row, by name, with the columns of a
    plain unique one.
    """

    oid: int
    is_table: bool
    owned: bool
    comment: str | None
    columns: Mapping[str, Held]
    unique: tuple[frozenset[str], ...]
    strict: Mapping[str, frozenset[str] | None]


def look(cursor: Cursor, target: Target) -> Present | None:
    """The relation of that name; None when there is none."""
    cursor.execute(_RELATION, (target.schema, target.table))
    found = cursor.fetchone()
    if found is None:
        return None
    oid, is_table, owned, comment = found
    cursor.execute(_COLUMNS, (oid,))
    columns = {name: Held(*described) for name, *described in cursor.fetchall()}
    cursor.execute(_UNIQUE, (oid,))
    indexes = [(name, at_once, frozenset(keys) if keys else None) for name, at_once, keys in cursor.fetchall()]
    cursor.execute(_FOREIGN, (oid,))
    strict = {name: keys for name, at_once, keys in indexes if at_once} | {name: None for (name,) in cursor.fetchall()}
    unique = tuple(keys for _, at_once, keys in indexes if at_once and keys)
    return Present(oid, is_table, owned, comment, columns, unique, strict)
