"""The model against the table that is there: what to add, widen and loosen, or why not (types.md section 8)."""

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
    """What a table lacks to be as its model says; columns in the model's order.

    ``loosened`` may be NULL from now on; ``altered_values``: an old type had rounded, or filled up with blanks. Columns
    that the model does not have stay as they are, and a NOT NULL that only the model has is not added: the scan would
    lock the table.
    """

    added: tuple[ModelColumn, ...] = ()
    widened: tuple[ModelColumn, ...] = ()
    loosened: tuple[str, ...] = ()
    altered_values: bool = False

    @property
    def need_full_publish(self) -> bool:
        """Whether rows that are there already lack values, or do not read as in gold."""
        return bool(self.added) or self.altered_values


def plan_changes(model: Model, target: Target, present: Relation) -> Changes:
    """How the table becomes the model's. Raises TargetRefused, naming the column and both types, where it cannot."""
    place = f"{target.schema}.{target.table}"
    if not present.is_table:
        raise TargetRefused(f"{place} is no table.", where=model.name, mend="Give the model a table of its own.")
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
    """Alter the table in place, views that read a widened column included; nothing happens without changes.

    Returns the new columns that may not be NULL: :func:`set_not_null` them once all rows are there. Raises
    TargetRefused.
    """
    wanted = plan_changes(model, target, present)
    parts = list(_alterations(present, wanted))
    if not parts:
        return ()
    altered = sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(target.schema, target.table), _COMMA.join(parts))
    if not present.owned:
        what = f"table {target.schema}.{target.table} is another role's, and lacks what model {model.name} has."
        mend = f"Have its owner run this, then publish again: {altered.as_string(cursor)}"
        raise TargetRefused(what, where=model.name, mend=mend)
    numbers = [present.columns[column.name].number for column in wanted.widened]
    with views.drop_and_recreate(cursor, model.name, present.oid, numbers):
        cursor.execute(altered)
    return tuple(column.name for column in wanted.added if not column.nullable)


def set_not_null(cursor: Cursor, target: Target, columns: Sequence[str]) -> None:
    """Forbid NULL in columns that were added, once their values are there."""
    parts = [sql.SQL("ALTER COLUMN {} SET NOT NULL").format(sql.Identifier(name)) for name in columns]
    if parts:
        table = sql.Identifier(target.schema, target.table)
        cursor.execute(sql.SQL("ALTER TABLE {} {}").format(table, _COMMA.join(parts)))


def write_comments(cursor: Cursor, model: Model, target: Target, present: Relation) -> None:
    """The model's descriptions as comments, where they differ and this role may write them; an empty one takes nothing
    away.
    """
    if not present.owned:
        return
    table = sql.Identifier(target.schema, target.table)
    if model.description and present.comment != model.description:
        cursor.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(model.description)))
    for column in model.columns:
        held = present.columns.get(column.name)
        if column.description and (held is None or held.comment != column.description):
            name = sql.Identifier(target.schema, target.table, column.name)
            cursor.execute(sql.SQL("COMMENT ON COLUMN {} IS {}").format(name, sql.Literal(column.description)))


def row_checked_constraints(model: Model, present: Relation) -> tuple[str, ...]:
    """Constraints that rows in the order of the key can violate half-way (reliability.md F-P7), by name."""
    return tuple(name for name, columns in present.strict.items() if columns != frozenset(model.key))


def _is_widened(model: Model, column: ModelColumn, place: str, present: Relation) -> bool:
    """Whether the column is there with a type that the model's includes."""
    held, wanted = present.columns.get(column.name), parse_type(column.type)
    if held is None or held.type == str(wanted):
        return False
    if not _holds(wanted, held.type):
        what = (
            f"column {column.name} of table {place} is {held.type}, not {wanted}, which cannot hold all of its values."
        )
        mend = f"Declare {held.type} or what is wider in the model, or alter the table."
        if _parse_known_type(held.type) is None:
            mend = f"No model can have {held.type}: alter the table."
        raise TargetRefused(what, where=model.name, mend=mend)
    return True


def _holds(wanted: PostgresType, there: str) -> bool:
    known = _parse_known_type(there)
    return known is not None and wanted.holds(known)


def _parse_known_type(there: str) -> PostgresType | None:
    """A type of the table as one that models can have."""
    try:
        return parse_type(there)
    except ConfigError:
        return None


def _drops_not_null(model: Model, column: ModelColumn, present: Relation) -> bool:
    held = present.columns.get(column.name)
    return held is not None and not held.nullable and column.nullable and column.name not in model.key


def _refuse_without_key(model: Model, place: str, present: Relation) -> None:
    """Rows are written by ON CONFLICT, which takes a unique key that is checked at once."""
    key, columns = frozenset(model.key), ", ".join(model.key)
    if key in present.unique:
        return
    mend = "Drop the table: the next publish makes it anew."
    if key in present.deferrable:
        what = f"the unique key of table {place} on {columns} is DEFERRABLE: rows cannot be written by it."
        raise TargetRefused(what, where=model.name, mend=f"Make it NOT DEFERRABLE. Or: {mend[0].lower()}{mend[1:]}")
    what = f"table {place} has no unique key on {columns}, the key of model {model.name}."
    raise TargetRefused(what, where=model.name, mend=mend)


def _refuse_extra_not_null(model: Model, place: str, present: Relation) -> None:
    own = {column.name for column in model.columns}
    for name, held in present.columns.items():
        if name not in own and not held.nullable and not held.filled:
            what = f"column {name} of table {place} may not be NULL, has no default, and model {model.name} lacks it."
            raise TargetRefused(what, where=model.name, mend="Drop it or its NOT NULL, or give it a default.")


def _refuse_hidden(model: Model, target: Target, present: Relation) -> None:
    """What a role does not see it cannot delete, and Postgres says nothing of it."""
    if present.hidden_from is None:
        return
    table, role = names.quote_postgres(target.schema, target.table), names.quote_postgres(present.hidden_from)
    policy = names.quote_postgres(f"replicator_{present.hidden_from}")
    mend = (
        f"As the owner of the table run: CREATE POLICY {policy} ON {table} TO {role} USING (true) WITH CHECK (true); "
        f"-- or, where other policies are restrictive: ALTER ROLE {role} BYPASSRLS; "
        "-- then `replicator verify` tells whether deleted rows stayed there"
    )
    what = f"row level security may hide rows of table {table} from {present.hidden_from}, which cannot delete those."
    raise TargetRefused(what, where=model.name, mend=mend)


def _alterations(present: Relation, wanted: Changes) -> Iterator[sql.Composed]:
    for column in wanted.added:
        kind = sql.SQL(str(parse_type(column.type)))
        yield sql.SQL("ADD COLUMN {} {}").format(sql.Identifier(column.name), kind)
    for column in wanted.widened:
        yield _widening(column, present.columns[column.name])
    for name in wanted.loosened:
        yield sql.SQL("ALTER COLUMN {} DROP NOT NULL").format(sql.Identifier(name))


def _widening(column: ModelColumn, held: RelationColumn) -> sql.Composed:
    kind = sql.SQL(str(parse_type(column.type)))
    altered = sql.SQL("ALTER COLUMN {} TYPE {}").format(sql.Identifier(column.name), kind)
    return altered + sql.SQL(f" COLLATE {held.collation}") if held.collation else altered
