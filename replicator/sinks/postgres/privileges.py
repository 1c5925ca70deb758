"""The rights that a role needs in the database: to write at all, to stage, and to publish some models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from replicator import names
from replicator.sinks.postgres import ddl, ledger

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

    from replicator.spec import Model

_MAY_STAGE = "SELECT has_database_privilege(current_database(), 'TEMP'), current_database(), current_user"

_READS = "SELECT current_setting('transaction_read_only') = 'on', pg_is_in_recovery(), current_user"

# for a missing schema only the right to create it is checked; a right to some columns counts as one to the table,
# since only these may be written
_IN_SCHEMA = """
    SELECT n.oid IS NULL, has_database_privilege(current_database(), 'CREATE'),
        ARRAY(SELECT of FROM unnest(ARRAY['USAGE', 'CREATE']) AS each(of) WHERE NOT has_schema_privilege(n.oid, of)),
        (
            SELECT json_object_agg(c.relname, ARRAY(
                SELECT of FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS each(of)
                WHERE NOT CASE of WHEN 'DELETE' THEN has_table_privilege(c.oid, of)
                    ELSE has_any_column_privilege(c.oid, of) END
            ))
            FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY (%(tables)s)
                AND c.relkind IN ('r', 'p')
        ),
        current_user
    FROM (SELECT %(schema)s AS name) AS wanted LEFT JOIN pg_namespace n ON n.nspname = wanted.name
"""


def read_only_problem(cursor: Cursor) -> tuple[str, str] | None:
    """The problem and its remedy if the server takes no writes of this role; None if it does."""
    cursor.execute(_READS)
    is_read_only, is_standby, role = cursor.fetchone() or (False, False, "")
    if not is_read_only:
        return None
    if is_standby:
        return "it is a standby, which does not accept writes.", "Set the target's `host` to its primary."
    fix = f"ALTER ROLE {names.quote_postgres(role)} RESET default_transaction_read_only; or wherever else it is set."
    return f"it does not accept writes from role {role}.", fix


def missing_to_publish(cursor: Cursor, models: Sequence[Model]) -> Iterator[tuple[str, str]]:
    """Yield each problem and its remedy for publishing these models; evaluated lazily, one after the other."""
    if (missing := missing_temporary(cursor)) is not None:
        yield missing
    for schema, tables in ddl.by_schema(models).items():
        if (missing := missing_in_schema(cursor, schema, [*ledger.TABLES, *tables])) is not None:
            yield missing


def missing_to_read(cursor: Cursor, models: Sequence[Model]) -> Iterator[tuple[str, str]]:
    """As :func:`missing_to_publish`, for only reading the ledgers and tables of these models."""
    for schema, tables in ddl.by_schema(models).items():
        _, _, on_schema, on_tables, role = _query_privileges(cursor, schema, [ledger.TABLE, *tables])
        to_read = {table: [right for right in lacks if right == "SELECT"] for table, lacks in (on_tables or {}).items()}
        missing = _describe_missing(role, schema, [right for right in on_schema if right == "USAGE"], to_read)
        if missing is not None:
            yield missing


def missing_temporary(cursor: Cursor) -> tuple[str, str] | None:
    """The problem and its remedy if this role may not create temporary tables, which rows are staged in (decision
    0045); None if it may.
    """
    cursor.execute(_MAY_STAGE)
    may, database, role = cursor.fetchone() or (False, "", "")
    if may:
        return None
    grant = f"GRANT TEMPORARY ON DATABASE {names.quote_postgres(database)} TO {names.quote_postgres(role)};"
    what = f"role {role} may not create temporary tables in database {database}, which stage the rows."
    return what, f"As the owner of the database run: {grant}"


def missing_in_schema(cursor: Cursor, schema: str, tables: Sequence[str]) -> tuple[str, str] | None:
    """The problem and its remedy if this role may not create those of the tables that are missing, or not write to the
    others; None if it may.
    """
    is_missing, may_make, on_schema, on_tables, role = _query_privileges(cursor, schema, tables)
    user, place = names.quote_postgres(role), names.quote_postgres(schema)
    if is_missing:
        what = f"role {role} may not create schema {schema}, which does not exist."
        return (
            None
            if may_make
            else (what, f"As the owner of the database run: CREATE SCHEMA {place} AUTHORIZATION {user};")
        )
    existing: Mapping[str, Sequence[str]] = on_tables or {}
    if existing.keys() >= set(tables):
        on_schema = [right for right in on_schema if right != "CREATE"]
    return _describe_missing(role, schema, on_schema, existing)


def missing_on_tables(cursor: Cursor, schema: str, tables: Sequence[str]) -> tuple[str, str] | None:
    """As :func:`missing_in_schema` for existing tables; to be called before rows are staged for them."""
    *_, on_tables, role = _query_privileges(cursor, schema, tables)
    return _describe_missing(role, schema, (), on_tables or {})


def _query_privileges(cursor: Cursor, schema: str, tables: Sequence[str]) -> tuple[Any, ...]:
    cursor.execute(_IN_SCHEMA, {"schema": schema, "tables": list(tables)})
    return cursor.fetchone() or (False, True, [], None, "")


def _describe_missing(
    role: str, schema: str, on_schema: Sequence[str], on_tables: Mapping[str, Sequence[str]]
) -> tuple[str, str] | None:
    lacks = list(_list_grants(names.quote_postgres(schema), on_schema, on_tables))
    if not lacks:
        return None
    what = f"role {role} may not {_describe_actions(schema, on_schema, on_tables)}."
    return what, f"As their owner run: {' '.join(f'GRANT {each} TO {names.quote_postgres(role)};' for each in lacks)}"


def _list_grants(place: str, on_schema: Sequence[str], on_tables: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """``<rights> ON <object>`` for each object."""
    if on_schema:
        yield f"{', '.join(on_schema)} ON SCHEMA {place}"
    for table, rights in sorted(on_tables.items()):
        if rights:
            yield f"{', '.join(rights)} ON {place}.{names.quote_postgres(table)}"


def _describe_actions(schema: str, on_schema: Iterable[str], on_tables: Mapping[str, Sequence[str]]) -> str:
    phrases = {"USAGE": f"use schema {schema}", "CREATE": f"create tables in schema {schema}"}
    actions = [phrases[right] for right in on_schema]
    actions += [f"{' and '.join(rights)} in {schema}.{table}" for table, rights in sorted(on_tables.items()) if rights]
    return ", ".join(actions)
