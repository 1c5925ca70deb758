"""The model compared to the existing table: what to add, widen and loosen, or why that is impossible (types.md section
8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg2 import sql

from replicator import names
from replicator.errors import ConfigError, TargetRefused
from replicator.sinks.postgres import views
from replicator.sinks.postgres.introspection import Relation, RelationColumn
from replicator.sinks.postgres.types import PostgresType, parse_type
from replicator.spec import Model, ModelColumn, Target

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor

_COMMA = sql.SQL(", ")


@dataclass(frozen=True)
class Changes:
    """The changes that make a table match its model; columns in the model's order.

    ``nullable`` columns become nullable; ``altered_values`` says that an old type had rounded, or padded with blanks.
    Columns that the model does not have stay as they are, and a NOT NULL that only the model has is not added: the scan
    would lock the table.
    """

    added: tuple[ModelColumn, ...] = ()
    widened: tuple[ModelColumn, ...] = ()
    nullable: tuple[str, ...] = ()
    altered_values: bool = False

    @property
    def need_full_publish(self) -> bool:
        """Whether existing rows lack values, or differ from gold."""
        return bool(self.added) or self.altered_values


def plan_changes(model: Model, target: Target, present: Relation) -> Changes:
    """Return the changes that make the table the model's. Raises TargetRefused, naming the column and both types, if
    that is impossible.
    """
    place = f"{target.schema}.{target.table}"
    if not present.is_table:
        raise TargetRefused(f"{place} is not a table.", where=model.name, fix="Give the model a table of its own.")
    _refuse_hidden(model, target, present)
    widened = tuple(column for column in model.columns if _is_widened(model, column, place, present))
    _refuse_without_key(model, place, present)
    _refuse_extra_not_null(model, place, present)
    return Changes(
        tuple(column for column in model.columns if column.name not in present.columns),
        widened,
        tuple(column.name for column in model.columns if _drops_not_null(model, column, present)),
        any(parse_type(present.columns[column.name].type).alters_values for column in widened),
    )


def apply(cursor: Cursor, model: Model, target: Target, present: Relation) -> tuple[str, ...]:
    """Alter the table in place, recreating views that read a widened column; does nothing if there are no changes.

    Returns the new columns that must become NOT NULL: call :func:`set_not_null` for them once all rows are written.
    Raises TargetRefused.
    """
    wanted = plan_changes(model, target, present)
    parts = list(_alterations(present, wanted))
    if not parts:
        return ()
    altered = sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(target.schema, target.table), _COMMA.join(parts))
    if not present.owned:
        what = (
            f"table {target.schema}.{target.table} belongs to another role and lacks columns or types of model "
            f"{model.name}."
        )
        fix = f"Have its owner run this, then publish again: {altered.as_string(cursor)}"
        raise TargetRefused(what, where=model.name, fix=fix)
    numbers = [present.columns[column.name].number for column in wanted.widened]
    with views.drop_and_recreate(cursor, model.name, present.oid, numbers):
        cursor.execute(altered)
    return tuple(column.name for column in wanted.added if not column.nullable)


def set_not_null(cursor: Cursor, target: Target, columns: Sequence[str]) -> None:
    """Forbid NULL in added columns once their values are written."""
    parts = [sql.SQL("ALTER COLUMN {} SET NOT NULL").format(sql.Identifier(name)) for name in columns]
    if parts:
        table = sql.Identifier(target.schema, target.table)
        cursor.execute(sql.SQL("ALTER TABLE {} {}").format(table, _COMMA.join(parts)))


def write_comments(cursor: Cursor, model: Model, target: Target, present: Relation) -> None:
    """Write the model's descriptions as comments, where they differ and this role may write them; an empty description
    removes nothing.
    """
    if not present.owned:
        return
    table = sql.Identifier(target.schema, target.table)
    if model.description and present.comment != model.description:
        cursor.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(model.description)))
    for column in model.columns:
        existing = present.columns.get(column.name)
        if column.description and (existing is None or existing.comment != column.description):
            name = sql.Identifier(target.schema, target.table, column.name)
            cursor.execute(sql.SQL("COMMENT ON COLUMN {} IS {}").format(name, sql.Literal(column.description)))


def row_checked_constraints(model: Model, present: Relation) -> tuple[str, ...]:
    """Names of constraints that rows in the order of the key can violate temporarily (reliability.md F-P7)."""
    return tuple(name for name, columns in present.strict.items() if columns != frozenset(model.key))


def _is_widened(model: Model, column: ModelColumn, place: str, present: Relation) -> bool:
    """Whether the column exists with another type that the model's type includes."""
    old, wanted = present.columns.get(column.name), parse_type(column.type)
    if old is None or old.type == str(wanted):
        return False
    if not _holds(wanted, old.type):
        what = (
            f"column {column.name} of table {place} is {old.type}, not {wanted}, which cannot hold all of its values."
        )
        fix = f"Declare {old.type} or a wider type in the model, or alter the table."
        if _parse_known_type(old.type) is None:
            fix = f"Models do not support {old.type}: alter the table."
        raise TargetRefused(what, where=model.name, fix=fix)
    return True


def _holds(wanted: PostgresType, existing: str) -> bool:
    known = _parse_known_type(existing)
    return known is not None and wanted.can_hold(known)


def _parse_known_type(existing: str) -> PostgresType | None:
    """A type of the table as one that models can have; None if it is not one."""
    try:
        return parse_type(existing)
    except ConfigError:
        return None


def _drops_not_null(model: Model, column: ModelColumn, present: Relation) -> bool:
    existing = present.columns.get(column.name)
    return existing is not None and not existing.nullable and column.nullable and column.name not in model.key


def _refuse_without_key(model: Model, place: str, present: Relation) -> None:
    """Rows are written by ON CONFLICT, which needs a unique key that is checked immediately."""
    key, columns = frozenset(model.key), ", ".join(model.key)
    if key in present.unique:
        return
    fix = "Drop the table: the next publish recreates it."
    if key in present.deferrable:
        what = f"the unique key of table {place} on {columns} is DEFERRABLE: ON CONFLICT cannot use it."
        raise TargetRefused(what, where=model.name, fix=f"Make it NOT DEFERRABLE. Or: {fix[0].lower()}{fix[1:]}")
    what = f"table {place} has no unique key on {columns}, the key of model {model.name}."
    raise TargetRefused(what, where=model.name, fix=fix)


def _refuse_extra_not_null(model: Model, place: str, present: Relation) -> None:
    own = {column.name for column in model.columns}
    for name, existing in present.columns.items():
        if name not in own and not existing.nullable and not existing.filled:
            what = f"column {name} of table {place} may not be NULL, has no default, and model {model.name} lacks it."
            raise TargetRefused(what, where=model.name, fix="Drop it or its NOT NULL, or set a default.")


def _refuse_hidden(model: Model, target: Target, present: Relation) -> None:
    """A role cannot delete rows that it does not see, and Postgres does not report that."""
    if present.hidden_from is None:
        return
    table, role = names.quote_postgres(target.schema, target.table), names.quote_postgres(present.hidden_from)
    policy = names.quote_postgres(f"replicator_{present.hidden_from}")
    fix = (
        f"As the owner of the table run: CREATE POLICY {policy} ON {table} TO {role} USING (true) WITH CHECK (true); "
        f"-- or, where other policies are restrictive: ALTER ROLE {role} BYPASSRLS; "
        "-- then `replicator verify` reports whether deleted rows are still there"
    )
    what = (
        f"row-level security may hide rows of table {table} from {present.hidden_from}, which then cannot delete them."
    )
    raise TargetRefused(what, where=model.name, fix=fix)


def _alterations(present: Relation, wanted: Changes) -> Iterator[sql.Composed]:
    for column in wanted.added:
        kind = sql.SQL(str(parse_type(column.type)))
        yield sql.SQL("ADD COLUMN {} {}").format(sql.Identifier(column.name), kind)
    for column in wanted.widened:
        yield _widening(column, present.columns[column.name])
    for name in wanted.nullable:
        yield sql.SQL("ALTER COLUMN {} DROP NOT NULL").format(sql.Identifier(name))


def _widening(column: ModelColumn, existing: RelationColumn) -> sql.Composed:
    kind = sql.SQL(str(parse_type(column.type)))
    altered = sql.SQL("ALTER COLUMN {} TYPE {}").format(sql.Identifier(column.name), kind)
    return altered + sql.SQL(f" COLLATE {existing.collation}") if existing.collation else altered
