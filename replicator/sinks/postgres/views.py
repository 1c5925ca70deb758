"""Views that read a column prevent a change of its type: they are dropped, and recreated as they were.

All of this happens in the caller's transaction: no reader sees the schema without them. Nothing is dropped by CASCADE,
so unknown dependents (a function that returns a view's rows, a rule of another table) make Postgres refuse, and stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator.errors import TargetRefused

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

# dependents of the columns, and theirs, the most distant last; limited, since rules may be cyclic
_DEPENDENTS = """
    WITH RECURSIVE dependent (oid, depth) AS (
        SELECT r.ev_class, 1 FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
        WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
            AND d.refobjid = %(table)s AND d.refobjsubid = ANY (%(columns)s) AND r.ev_class <> d.refobjid
        UNION
        SELECT r.ev_class, dependent.depth + 1 FROM dependent
        JOIN pg_depend d ON d.refobjid = dependent.oid AND d.refclassid = 'pg_class'::regclass
        JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
        WHERE r.ev_class <> dependent.oid AND dependent.depth < 50
    )
    SELECT c.oid, format('%%I.%%I', n.nspname, c.relname), c.relkind::text, c.relpersistence::text,
        CASE WHEN NOT pg_has_role(c.relowner, 'USAGE') THEN pg_get_userbyid(c.relowner) END
    FROM dependent JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace
    GROUP BY 1, 2, 3, 4, 5 ORDER BY max(dependent.depth), 2
"""
_OWNER = "ALTER VIEW {name} OWNER TO {owner}"
# every statement that a view needs after CREATE VIEW, except for its rights, in a valid order
_BELONGINGS = """
    SELECT statement FROM (
        SELECT 1, 0, format('ALTER VIEW %%s ALTER COLUMN %%I SET DEFAULT %%s', %(name)s, a.attname,
            pg_get_expr(d.adbin, d.adrelid))
        FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        WHERE d.adrelid = %(oid)s
      UNION ALL
        SELECT 2, 0, format('COMMENT ON VIEW %%s IS %%L', %(name)s, obj_description(%(oid)s, 'pg_class'))
        WHERE obj_description(%(oid)s, 'pg_class') IS NOT NULL
      UNION ALL
        SELECT 3, a.attnum, format('COMMENT ON COLUMN %%s.%%I IS %%L', %(name)s, a.attname,
            col_description(a.attrelid, a.attnum))
        FROM pg_attribute a WHERE a.attrelid = %(oid)s AND col_description(a.attrelid, a.attnum) IS NOT NULL
      UNION ALL
        SELECT 4, 0, pg_get_ruledef(r.oid) FROM pg_rewrite r WHERE r.ev_class = %(oid)s AND r.rulename <> '_RETURN'
      UNION ALL
        SELECT 5, 0, pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE t.tgrelid = %(oid)s AND NOT t.tgisinternal
    ) AS belongings (kind, place, statement) ORDER BY kind, place, statement
"""
_REVOKES = """
    SELECT DISTINCT format('REVOKE ALL ON %%s FROM %%s', %(name)s,
        CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END)
    FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) g WHERE c.oid = %(name)s::regclass
"""
_GRANTS = """
    SELECT format('GRANT %%s%%s ON %%s TO %%s%%s', g.privilege_type, g.column_list, %(name)s,
        CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
        CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM (
        SELECT each.*, '' FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) each
        WHERE c.oid = %(oid)s
      UNION ALL
        SELECT each.*, format(' (%%I)', a.attname) FROM pg_attribute a, aclexplode(a.attacl) each
        WHERE a.attrelid = %(oid)s AND a.attacl IS NOT NULL
    ) AS g (grantor, grantee, privilege_type, is_grantable, column_list)
"""


@dataclass(frozen=True)
class _View:
    """A view and the statements that recreate it: the view with its owner, then its dependent objects and rights."""

    name: str
    made: Sequence[str]
    belongings: Sequence[str]


@contextmanager
def drop_and_recreate(cursor: Cursor, model: str, table: int, columns: Sequence[int]) -> Iterator[None]:
    """Drop the views that read these columns (numbers of the catalog) for the duration of the block; afterwards they
    are recreated with definition, options, owner, rights, comments, defaults, rules and triggers.

    Raises TargetRefused, about *model*, for what cannot be recreated this way: materialized views, temporary ones, and
    those of an owner whose role this one cannot assume.
    """
    found = [_read_view(cursor, *each) for each in _dependents(cursor, model, table, columns)] if columns else []
    for view in reversed(found):
        cursor.execute(f"DROP VIEW {view.name}")
    yield
    for view in found:
        for statement in view.made:
            cursor.execute(statement)
        for statement in (*_fetch_statements(cursor, _REVOKES, {"name": view.name}), *view.belongings):
            cursor.execute(statement)


def _dependents(cursor: Cursor, model: str, table: int, columns: Sequence[int]) -> list[tuple[int, str]]:
    """Views that read the columns, directly or through others: oid and quoted name, each after those that it reads."""
    cursor.execute(_DEPENDENTS, {"table": table, "columns": list(columns)})
    found = cursor.fetchall()
    for _, name, kind, persistence, owner in found:
        if kind != "v" or persistence == "t":
            what = f"{name} reads a column that must be widened, and is not a view that can be recreated."
            fix = "Drop it (a materialized view, a temporary view, a table's rule), publish, and recreate it."
            raise TargetRefused(what, where=model, fix=fix)
        if owner is not None:
            what = f"{name} reads a column that must be widened, and belongs to {owner}, so it cannot be recreated."
            fix = (
                f"Have {owner} drop it, publish, and have it recreated; or make the target's user a member of {owner}."
            )
            raise TargetRefused(what, where=model, fix=fix)
    return [(oid, name) for oid, name, *_ in found]


def _read_view(cursor: Cursor, oid: int, name: str) -> _View:
    cursor.execute(
        "SELECT pg_get_viewdef(oid), array_to_string(reloptions, ', '), quote_ident(pg_get_userbyid(relowner)) "
        "FROM pg_class WHERE oid = %s",
        (oid,),
    )
    definition, options, owner = cursor.fetchone() or ("", "", "")
    made = f"CREATE VIEW {name}{f' WITH ({options})' if options else ''} AS {definition}"
    place = {"name": name, "oid": oid}
    belongings = [*_fetch_statements(cursor, _GRANTS, place), *_fetch_statements(cursor, _BELONGINGS, place)]
    return _View(name, (made, _OWNER.format(name=name, owner=owner)), belongings)


def _fetch_statements(cursor: Cursor, query: str, values: dict[str, object]) -> list[str]:
    cursor.execute(query, values)
    return [text for (text,) in cursor.fetchall()]
