"""Schema, target tables and staging tables: created if missing, altered if they differ from their model."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator.errors import ConfigError, TargetMoved, TargetRefused
from replicator.sinks.postgres.evolve import apply, plan_changes, row_checked_constraints, write_comments
from replicator.sinks.postgres.introspection import read_relation
from replicator.sinks.postgres.types import PostgresType, parse_type
from replicator.spec import OWN_TABLES, Model, Target

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

    from replicator.sinks.postgres.columns import StagedColumn

LOG = logging.getLogger(__name__)

_LONGEST = 63  # bytes; Postgres cuts longer names silently, and two tables become one (reliability.md N-2)
_OPERATION = "_op"
_FILLFACTOR = 90
"""The percentage of a page that is filled with new rows: an updated row then fits beside the old one, and no index has
to be updated (decision 0062).
"""


def target_of(model: Model) -> Target:
    """Return the target of a model. Raises ConfigError if it has none, if Postgres would truncate a name, or if a name
    is reserved for the sink.
    """
    if model.target is None:
        raise ConfigError("the model has no publish target", where=model.name)
    for name in (model.target.schema, model.target.table, *(column.name for column in model.columns)):
        if not 0 < len(name.encode()) <= _LONGEST or "\0" in name:
            what = f"{name!r} is empty, longer than {_LONGEST} bytes, or holds a NUL: Postgres cannot store it"
            raise ConfigError(what, where=model.name)
    if model.target.table.startswith(OWN_TABLES):
        raise ConfigError(f"table name {model.target.table} is reserved for publishing", where=model.name)
    if any(column.name.casefold() == _OPERATION for column in model.columns):
        raise ConfigError(f"column name {_OPERATION} is reserved for publishing", where=model.name)
    return model.target


def by_schema(models: Iterable[Model]) -> Mapping[str, dict[str, Model]]:
    """Models by target schema and table, with schemas in order of name."""
    found: dict[str, dict[str, Model]] = {}
    for model in sorted(models, key=lambda each: target_of(each).schema):
        target = target_of(model)
        found.setdefault(target.schema, {})[target.table] = model
    return found


def create_schema(cursor: Cursor, schema: str) -> None:
    """Create the schema if it is missing. Existence is checked first, because the sink's role need not have the right
    to create one.
    """
    cursor.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,))
    if cursor.fetchone() is None:
        cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))


def needs_full_publish(cursor: Cursor, model: Model) -> bool:
    """Whether every row is needed: the table is missing, lacks columns, has rounded values, or can never be the
    model's.
    """
    target = target_of(model)
    present = read_relation(cursor, target)
    try:
        return present is None or plan_changes(model, target, present).need_full_publish
    except TargetRefused:
        return True


def prepare_target(cursor: Cursor, model: Model, *, complete: bool) -> bool:
    """Return whether every row is needed. A missing table is created and rolled back, in a session that otherwise
    commits each statement: if its rows are refused later, nothing is left that would have to be altered.

    Raises TargetRefused if the existing table can never be the model's, TargetMoved if it lacks what only a complete
    publish can fill.
    """
    target = target_of(model)
    present = read_relation(cursor, target)
    needs_all_rows = present is None or plan_changes(model, target, present).need_full_publish
    if needs_all_rows and not complete:
        what = (
            f"table {target.schema}.{target.table} does not match model {model.name} yet: a partial publication is "
            "not enough."
        )
        raise TargetMoved(what, where=model.name, fix="Run publish again: it sends the whole model then.")
    if present is None:
        _dry_run(cursor, _create_target(model, target))
    return needs_all_rows


def warn_of_constraints(cursor: Cursor, model: Model) -> None:
    """Log which constraints of the model's table may be violated temporarily by rows in the order of the key (F-P7)."""
    present = read_relation(cursor, target_of(model))
    strict = row_checked_constraints(model, present) if present else ()
    if strict:
        LOG.warning(
            "target_constraints model=%s checked_row_by_row=%s: rows are written in key order, which may violate "
            "these in between: make them DEFERRABLE, or drop them",
            model.name,
            ", ".join(strict),
        )


def evolve_target(cursor: Cursor, model: Model, *, complete: bool) -> tuple[str, ...]:
    """Create the model's table, or alter it to match the model, with its comments. Returns new columns that must become
    NOT NULL. Raises TargetMoved if the table was dropped and only a complete publish can fill a new one.
    """
    target = target_of(model)
    present = read_relation(cursor, target)
    if present is None and complete:
        cursor.execute(_create_target(model, target))
        present = read_relation(cursor, target)
    if present is None:
        what = f"table {target.schema}.{target.table} was dropped in the meantime."
        raise TargetMoved(what, where=model.name, fix="Run publish again.")
    new = apply(cursor, model, target, present)
    write_comments(cursor, model, target, present)
    return new


def create_staging(cursor: Cursor, number: int, columns: Sequence[StagedColumn]) -> sql.Identifier:
    """Create an empty staging table, private to the session and one per ``number``: no other session sees it, it is not
    written to the server's WAL, and it ends with the session in every case.
    """
    name = sql.Identifier("pg_temp", f"replicator_staging_{number}")
    typed = {each.staged_as: each.staged_type for each in columns} | {_OPERATION: "text"}
    body = [sql.SQL("{} {}").format(sql.Identifier(each), sql.SQL(kind)) for each, kind in typed.items()]
    cursor.execute(sql.SQL("CREATE TEMPORARY TABLE {} ({})").format(name, sql.SQL(", ").join(body)))
    return name


def _dry_run(cursor: Cursor, statement: sql.Composed) -> None:
    session = cursor.connection
    session.autocommit = False
    try:
        cursor.execute(statement)
    finally:
        session.rollback()
        session.autocommit = True


def _create_target(model: Model, target: Target) -> sql.Composed:
    lines = [
        _column(column.name, parse_type(column.type), column.nullable and column.name not in model.key)
        for column in model.columns
    ]
    key = sql.SQL(", ").join(sql.Identifier(each) for each in model.key)
    lines.append(sql.SQL("PRIMARY KEY ({})").format(key))
    body = sql.SQL(", ").join(lines)
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({}) WITH (fillfactor = {})").format(
        sql.Identifier(target.schema, target.table), body, sql.Literal(_FILLFACTOR)
    )


def _column(name: str, kind: PostgresType, nullable: bool) -> sql.Composed:
    ending = sql.SQL("" if nullable else " NOT NULL")
    return sql.SQL("{} {}{}").format(sql.Identifier(name), sql.SQL(str(kind)), ending)
