"""What the next silver run would do to each table's schema, and how the present schema came to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator import names
from replicator.errors import ConfigError, ReplicatorError
from replicator.operate import pause
from replicator.spelling import suggest_table
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from replicator.stages.tick import schema_ledger
from replicator.stages.tick.schema_ledger import Ledger
from replicator.transforms import evolve
from replicator.transforms.columns.policy import ADDED, ColumnChange
from replicator.transforms.merge import SYSTEM_COLUMNS

DROPPED = "dropped"
"""A column that records with a new column lack: gone at the source, or renamed to the new one."""

APPLIED, KEPT, APPROVAL, DEAD_LETTERS, IN_BRONZE, STOPS = (
    "applied",
    "keeps old values",
    "needs approval",
    "dead letters",
    "stays in bronze",
    "stops the table",
)


@dataclass(frozen=True)
class PendingChange:
    """One change that unread records ask for. ``table`` is ``<source>/<database or schema>.<table>``, ``then`` what the
    next run does: one of the words above; ``why`` explains a stop, else it is empty.
    """

    table: str
    change: str
    column: str
    before: str
    after: str
    then: str
    why: str = ""


@dataclass(frozen=True)
class StoredColumn:
    """One column of a silver table: its name at rest, at the source, its Spark type, its place in the key (from 0)."""

    column: str
    name: str
    type: str
    key: int | None


@dataclass(frozen=True)
class TableSchema:
    """The schema of one silver table and how it came to be: each change with its ``_seq``, oldest first."""

    table: str
    columns: tuple[StoredColumn, ...]
    changes: tuple[tuple[str, ColumnChange], ...]
    approved: tuple[ColumnChange, ...]


def pending_changes(spark: SparkSession, every: Sequence[Refinement], table: str | None = None) -> list[PendingChange]:
    """What unread records would change in every table's schema, or in that of one. Changes nothing.

    Raises ConfigError when no source has such a table, and when several have.
    """
    found: list[PendingChange] = []
    wanted = None if table is None else _resolve(spark, every, table)
    for at in every:
        if wanted is None or wanted[0] is at:
            for name, seen in silver.preview(spark, at, None if wanted is None else wanted[1]).items():
                found.extend(
                    _list_pending(f"{at.source.name}/{name}", at.source.declaration(name).schema_changes, seen)
                )
    return found


def approve(spark: SparkSession, every: Sequence[Refinement], table: str) -> list[ColumnChange]:
    """Let exactly those changes of a table pass that its policy holds back now; the next run makes them.

    A second call finds nothing to approve. Raises as :func:`pending_changes`, and what stops the table for another
    reason.
    """
    at, name = _resolve(spark, every, table)
    seen = silver.preview(spark, at, name).get(name)
    if isinstance(seen, ReplicatorError):
        raise seen
    held = [change for change in seen.withheld if change.can_be_approved] if seen is not None else []
    if held:
        path, ledger = _ledger(spark, at, name)
        at.control.put(path, ledger.with_approved(held).value())
    return held


def describe(spark: SparkSession, every: Sequence[Refinement], table: str) -> TableSchema:
    """The schema of one table. Raises as :func:`pending_changes`."""
    at, name = _resolve(spark, every, table)
    silver_table = at.lake.silver(at.source.name, name)
    columns = tuple(
        StoredColumn(
            field.name,
            field.metadata.get("name") or names.decode(field.name),
            field.dataType.simpleString(),
            field.metadata.get("key"),
        )
        for field in at.silver.read(spark, silver_table).schema
        if field.name not in SYSTEM_COLUMNS
    )
    _, ledger = _ledger(spark, at, name)
    changes = sorted(((seq, change) for change, seq in ledger.changes.items()), key=lambda pair: pair[0])
    return TableSchema(silver_table.name, columns, tuple(changes), tuple(sorted(ledger.approved, key=str)))


def _ledger(spark: SparkSession, at: Refinement, name: str) -> tuple[str, Ledger]:
    path = at.lake.schema(at.source.name, name)
    identity = at.bronze.identity(spark, at.lake.bronze(at.source.name))
    return path, schema_ledger.load(at.control, path, identity or "")


def _resolve(spark: SparkSession, every: Sequence[Refinement], table: str) -> tuple[Refinement, str]:
    """The source and table that a user means by ``[<source>/]<database or schema>.<table>``, or by its last part.
    Raises ConfigError.
    """
    source, slash, name = table.rpartition("/")
    asked = [at for at in every if not slash or at.source.name == source]
    found = [(at, name) for at in asked if _has_table(spark, at, name)] or _by_last_part(spark, asked, name)
    if not found:
        known = [each.table for each in pause.list_tables(spark, every)]
        raise ConfigError(f"no source has brought a table {table!r} yet{suggest_table(table, known)}")
    if len(found) > 1:
        several = ", ".join(f"{at.source.name}/{each}" for at, each in found)
        raise ConfigError(f"{table!r} may be any of several tables", mend=f"Name one: {several}.")
    return found[0]


def _by_last_part(spark: SparkSession, every: Sequence[Refinement], name: str) -> list[tuple[Refinement, str]]:
    tables = ((at, each.name) for at in every for each in pause.list_tables(spark, [at]))
    return [(at, table) for at, table in tables if table.rpartition(".")[2] == name and _has_table(spark, at, table)]


def _has_table(spark: SparkSession, at: Refinement, table: str) -> bool:
    """Whether silver has the table, or the next run would make it."""
    stored = at.silver.version(spark, at.lake.silver(at.source.name, table)) is not None
    return stored or table in silver.preview(spark, at, table)


def _list_pending(table: str, policy: str, seen: evolve.Plan | ReplicatorError) -> list[PendingChange]:
    if isinstance(seen, ReplicatorError):
        return [PendingChange(table, "key", "", "", "", STOPS, seen.what)]
    made = [_pending_change(table, change, APPLIED) for change in seen.changes]
    made += [PendingChange(table, DROPPED, names.decode(c), seen.layout.types[c], "", KEPT) for c in seen.dropped]
    return made + [_pending_change(table, change, _consequence(change, policy)) for change in seen.withheld]


def _consequence(change: ColumnChange, policy: str) -> str:
    if policy == "freeze":
        return IN_BRONZE if change.kind == ADDED else DEAD_LETTERS
    return APPROVAL if change.can_be_approved else STOPS


def _pending_change(table: str, change: ColumnChange, then: str) -> PendingChange:
    why = str(change) if then == STOPS else ""
    return PendingChange(table, change.kind, names.decode(change.column), change.before, change.after, then, why)
