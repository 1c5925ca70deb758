"""The current state of a table of the target, read from Postgres' own catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator.spec import Target

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

# all in one query, since each costs a round trip. For an index: its columns, none if it has
# expressions or a condition, and whether it is checked at once. Rows are hidden from a role unless, for finding rows
# to read, update and delete, some policy has no condition, and no restrictive policy has one
_RELATION = """
    SELECT c.oid, c.relkind IN ('r', 'p'), pg_has_role(c.relowner, 'USAGE'), obj_description(c.oid, 'pg_class'),
    (
        SELECT json_agg(json_build_array(a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
            a.atthasdef OR a.attidentity <> '', col_description(a.attrelid, a.attnum),
            CASE WHEN a.attcollation <> t.typcollation THEN format('%%I.%%I', n.nspname, co.collname) END
        ) ORDER BY a.attnum)
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace n ON n.oid = co.collnamespace
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    ), (
        SELECT json_agg(json_build_array(ix.relname, i.indimmediate,
            CASE WHEN i.indpred IS NULL AND i.indexprs IS NULL THEN ARRAY(
                SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS each(attnum, place)
                JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = each.attnum
                WHERE each.place <= i.indnkeyatts
            ) END
        ) ORDER BY ix.relname)
        FROM pg_index i JOIN pg_class ix ON ix.oid = i.indexrelid
        WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid
    ), (
        SELECT json_agg(conname ORDER BY conname) FROM pg_constraint
        WHERE contype = 'f' AND NOT condeferrable AND c.oid IN (conrelid, confrelid)
    ),
    CASE WHEN row_security_active(c.oid) AND EXISTS (
        SELECT FROM unnest(ARRAY['r', 'w', 'd']) AS each(command) WHERE (
            SELECT bool_or(p.polpermissive AND pg_get_expr(p.polqual, p.polrelid) = 'true') IS NOT TRUE
                OR bool_or(NOT p.polpermissive AND pg_get_expr(p.polqual, p.polrelid) <> 'true')
            FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd::text IN ('*', each.command)
            AND EXISTS (SELECT FROM unnest(p.polroles) AS granted(role) WHERE role = 0 OR pg_has_role(role, 'USAGE'))
        )
    ) THEN current_user END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""


@dataclass(frozen=True)
class RelationColumn:
    """An existing column: its ``number`` in the catalog, ``type`` as Postgres prints it, ``filled`` by a default if no
    value is given, ``collation`` (quoted) if it is not the type's own.
    """

    number: int
    type: str
    nullable: bool
    filled: bool
    comment: str | None
    collation: str | None


@dataclass(frozen=True)
class Relation:
    """An existing relation. ``owned``: the session's role may alter it. ``unique``: sets of columns that ON CONFLICT
    can name. ``strict``: unique and foreign keys that are checked row by row, by name, with the columns of a plain
    unique one. ``hidden_from``: the session's role, if policies may hide rows from it. ``deferrable``: sets of columns
    that are unique only at the end of a transaction, which ON CONFLICT cannot name.
    """

    oid: int
    is_table: bool
    owned: bool
    comment: str | None
    columns: Mapping[str, RelationColumn]
    unique: tuple[frozenset[str], ...]
    strict: Mapping[str, frozenset[str] | None]
    hidden_from: str | None = None
    deferrable: tuple[frozenset[str], ...] = ()


def read_relation(cursor: Cursor, target: Target) -> Relation | None:
    """Return the relation of that name; None if there is none."""
    cursor.execute(_RELATION, (target.schema, target.table))
    found = cursor.fetchone()
    if found is None:
        return None
    oid, is_table, owned, comment, described, indexed, foreign, hidden_from = found
    columns = {name: RelationColumn(*each) for name, *each in described or ()}
    indexes = [(name, at_once, frozenset(keys) if keys else None) for name, at_once, keys in indexed or ()]
    strict = {name: keys for name, at_once, keys in indexes if at_once} | dict.fromkeys(foreign or ())
    unique = tuple(keys for _, at_once, keys in indexes if at_once and keys)
    deferrable = tuple(keys for _, at_once, keys in indexes if keys and not at_once)
    return Relation(oid, is_table, owned, comment, columns, unique, strict, hidden_from, deferrable)
