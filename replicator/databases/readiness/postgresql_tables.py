"""Readiness of PostgreSQL's tables: what identifies a row, what the role may read, what never reaches the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replicator.databases.readiness import signal_table
from replicator.databases.readiness.finding import ADVICE, FIX, OK, Finding, no_primary_key, quote_table
from replicator.names import quote_postgres
from replicator.spec import Connector
from replicator.spec.connectors import BINARY, TIMES

_PARTITIONS = (
    "(SELECT array_agg(pn.nspname || '.' || p.relname ORDER BY t.at) FROM {function}(c.oid) WITH ORDINALITY {of} "
    "JOIN pg_class p ON p.oid = t.relid JOIN pg_namespace pn ON pn.oid = p.relnamespace WHERE {which})"
)
_PARTS = _PARTITIONS.format(
    function="pg_partition_tree", of="t(relid, parent, isleaf, level, at)", which="t.isleaf AND t.level > 0"
)
_ANCESTORS = _PARTITIONS.format(function="pg_partition_ancestors", of="t(relid, at)", which="p.oid <> c.oid")
_COLUMNS_OF = (
    "(SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid "
    "AND a.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND i.{which})"
)
_CASE_TWINS = (
    "(SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid "
    "AND a.attnum > 0 AND NOT a.attisdropped AND EXISTS (SELECT FROM pg_attribute b WHERE b.attrelid = c.oid "
    "AND b.attnum > 0 AND NOT b.attisdropped AND b.attnum <> a.attnum AND lower(b.attname) = lower(a.attname)))"
)
_CHILDREN = (
    "(SELECT array_agg(hn.nspname || '.' || h.relname ORDER BY h.relname) FROM pg_inherits i JOIN pg_class h "
    "ON h.oid = i.inhrelid JOIN pg_namespace hn ON hn.oid = h.relnamespace WHERE i.inhparent = c.oid "
    "AND c.relkind = 'r')"
)
_LARGE = (
    "(SELECT json_object_agg(a.attname, format_type(t.oid, NULL) ORDER BY a.attnum) FROM pg_attribute a "
    "JOIN pg_type d ON d.oid = a.atttypid JOIN pg_type t ON t.oid = CASE d.typtype WHEN 'd' THEN d.typbasetype "
    "ELSE d.oid END LEFT JOIN pg_type e ON e.oid = t.typelem WHERE a.attrelid = c.oid AND a.attnum > 0 "
    "AND NOT a.attisdropped AND a.attstorage <> 'p' AND (t.oid = 'bytea'::regtype OR t.typcategory = 'A' "
    "AND e.typtype IN ('b', 'e', 'r')))"
)
"""Columns with values that may be stored out of line, and their types: bytes and arrays, of domains the base type."""
_MARKED_ARRAYS = frozenset(
    {"bigint[]", "character varying[]", "character[]", "integer[]", "json[]", "jsonb[]", "text[]", "uuid[]"}
)
"""Arrays for which the connector has a placeholder (debezium.md E2)."""
_UNCAPTURED_ARRAYS = frozenset({"interval[]", "money[]"})
"""Arrays that the connector leaves out of every record."""
_UNMARKED: Mapping[str, tuple[str, frozenset[str]]] = {
    "bytea": (BINARY, frozenset({"base64"})),
    "bytea[]": (BINARY, frozenset({"base64", "hex"})),
    "date[]": (TIMES, frozenset({"connect", "isostring"})),
}
"""The modes of a setting in which the connector sends NULL in place of an unchanged large value of a type."""
_ONLY = (
    "config: {{snapshot.select.statement.overrides: {name}, "
    "snapshot.select.statement.overrides.{name}: SELECT * FROM ONLY {name}}} -- of the connector, in the source's file"
)
QUERY = f"""
SELECT n.nspname || '.' || c.relname AS name, c.relpersistence = 'u' AS unlogged,
       c.relreplident::text AS identity, c.relrowsecurity AS row_security,
       c.relforcerowsecurity AS forced, {_COLUMNS_OF.format(which="indisprimary")} AS key,
       coalesce((SELECT i.indimmediate FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), true) AS immediate,
       {_COLUMNS_OF.format(which="indisreplident")} AS index,
       {_LARGE} AS large,
       pg_has_role(r.oid, c.relowner, 'USAGE') AS owned, has_schema_privilege(r.oid, n.oid, 'USAGE') AS entered,
       has_table_privilege(r.oid, c.oid, 'SELECT') AS readable,
       has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') AS writable,
       has_table_privilege(r.oid, c.oid, 'INSERT') AS insertable,
       {_CASE_TWINS} AS alike, {_CHILDREN} AS children, {_PARTS} AS parts, {_ANCESTORS} AS ancestors
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_roles r ON r.rolname = %(user)s
 WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%%' ORDER BY 1
"""  # noqa: S608 - made of constants


def evaluate(table: Mapping[str, Any], role: Mapping[str, Any], connector: Connector) -> Iterator[Finding]:
    """The findings of one captured table; a single OK if it passes all checks."""
    found = [*_identity(table, connector), *_shape(table, connector), *_rights(table, role, connector)]
    if table["unlogged"]:
        fix = f"ALTER TABLE {quote_table(table['name'])} SET LOGGED;"
        found.append(Finding("log", FIX, "UNLOGGED: its changes are never sent", fix, table["name"]))
    if not any(each.level == FIX for each in found):
        yield Finding("table", OK, f"key {', '.join(table['key'] or ('REPLICA IDENTITY',))}", table=table["name"])
    yield from found


def published_names(table: Mapping[str, Any], published: set[str], *, by_root: bool) -> Sequence[str]:
    """The names under which a publication sends a table's changes: each partition's own, or, ``by_root``, that of its
    topmost published ancestor. Empty if some changes are not sent.
    """
    if by_root:
        return [name for name in (table["name"], *(table["ancestors"] or ())) if name in published][-1:]
    parts = table["parts"] or [table["name"]]
    return parts if published.issuperset(parts) else []


def _identity(table: Mapping[str, Any], connector: Connector) -> Iterator[Finding]:
    name, key, identity = table["name"], table["key"], table["identity"]
    full = f"ALTER TABLE {quote_table(name)} REPLICA IDENTITY FULL;"
    if not key and identity != "i":
        said = "no primary key: rows cannot be identified" + (
            "" if identity == "f" else ", and UPDATE and DELETE fail or are not sent"
        )
        yield no_primary_key(name, quote_table(name), said, ADVICE if identity == "f" else FIX, f", and: {full}")
    elif identity == "n":
        fix = f"ALTER TABLE {quote_table(name)} REPLICA IDENTITY DEFAULT; -- or FULL"
        yield Finding("replica identity", FIX, "NOTHING: UPDATE and DELETE fail, or are not sent", fix, name)
    elif identity == "i" and key and table["index"] != key:
        said = f"an index on {', '.join(table['index'] or ())}, not on the key: deletes arrive with a wrong key"
        fix = f"ALTER TABLE {quote_table(name)} REPLICA IDENTITY DEFAULT; -- or FULL"
        yield Finding("replica identity", FIX, said, fix, name)
    elif identity == "d" and not table["immediate"]:
        yield Finding("replica identity", FIX, "its key is DEFERRABLE, which identifies no row in the log", full, name)
    elif identity in ("d", "i") and (unmarked := _unmarked_columns(table["large"] or {}, connector)):
        said = f"not FULL: large values of {', '.join(unmarked)} arrive as NULL when other columns change"
        yield Finding("replica identity", ADVICE, said, full, name)


def _unmarked_columns(large: Mapping[str, str], connector: Connector) -> list[str]:
    """The columns whose unchanged large values the connector sends as NULL instead of as a placeholder."""

    def is_unmarked(type_: str) -> bool:
        if type_ in _UNMARKED:
            setting, modes = _UNMARKED[type_]
            return connector.modes[setting] in modes
        return type_ not in _MARKED_ARRAYS | _UNCAPTURED_ARRAYS

    return [column for column, type_ in large.items() if is_unmarked(type_)]


def _shape(table: Mapping[str, Any], connector: Connector) -> Iterator[Finding]:
    """Report columns that Debezium refuses, and inheriting tables whose rows a snapshot would read."""
    name = table["name"]
    if table["alike"]:
        said = f"{', '.join(table['alike'])} differ only in case: the connector's task fails"
        column = quote_postgres(table["alike"][-1])
        fix = f"ALTER TABLE {quote_table(name)} RENAME COLUMN {column} TO …; -- or: {exclusion_fix(name)}"
        yield Finding("columns", FIX, said, fix, name)
    if table["children"] and f"snapshot.select.statement.overrides.{name}" not in connector.config:
        said = (
            f"a snapshot reads rows of {', '.join(table['children'])} too, whose changes arrive under their own names"
        )
        yield Finding("inheritance", FIX, said, _ONLY.format(name=name), name)


def exclusion_fix(name: str) -> str:
    """How to exclude a table from capture; a source has one of the two keys."""
    return f"Exclude {name} in the source's file: from `tables`, or with `except_tables`."


def _rights(table: Mapping[str, Any], role: Mapping[str, Any], connector: Connector) -> Iterator[Finding]:
    name, user = table["name"], quote_postgres(connector.user)
    if not role:
        return
    schema = quote_postgres(name.partition(".")[0])
    if not table["entered"]:
        fix = f"GRANT USAGE ON SCHEMA {schema} TO {user};"
        yield Finding("grants", FIX, f"{connector.user} may not use the schema", fix, name)
    if not table["readable"]:
        fix = f"GRANT SELECT ON {quote_table(name)} TO {user};"
        yield Finding("grants", FIX, f"{connector.user} may not read it", fix, name)
    exempt = role["rolsuper"] or role["rolbypassrls"] or (table["owned"] and not table["forced"])
    if table["row_security"] and not exempt:
        said = f"row-level security hides rows from {connector.user}: a snapshot leaves them out"
        yield Finding("row-level security", FIX, said, f"ALTER ROLE {user} BYPASSRLS;", name)
    if signal_table.is_signal_table(connector, name):
        yield from () if table["insertable"] else signal_table.check_insert(connector, name, quote_table(name), user)
    elif table["writable"] and not (table["owned"] or role["rolsuper"]):
        fix = f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {quote_table(name)} FROM {user};"
        yield Finding("grants", ADVICE, f"{connector.user} may write it, which capture never needs", fix, name)
