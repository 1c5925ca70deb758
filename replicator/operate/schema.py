"""The schema changes that the next silver run would make, and how the present schema of a table came to be."""

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
"""A column that records with a new column lack: dropped at the source, or renamed to the new one."""

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
    """One schema change that unread records require. ``table`` is ``<source>/<database or schema>.<table>``; ``then``
    is what the next run does, one of the constants above; ``why`` explains a stop, else it is empty.
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
    """One column of a silver table: its stored name, its name at the source, its Spark type, its position in the key
    (from 0; None: not a key column).
    """

    column: str
    name: str
    type: str
    key: int | None


@dataclass(frozen=True)
class TableSchema:
    """The schema of one silver table and its history: each change with its ``_seq``, oldest first; ``approved`` lists
    the changes that an operator has approved.
    """

    table: str
    columns: tuple[StoredColumn, ...]
    changes: tuple[tuple[str, ColumnChange], ...]
    approved: tuple[ColumnChange, ...]


def pending_changes(
    spark: SparkSession, sources: Sequence[Refinement], table: str | None = None
) -> list[PendingChange]:
    """Return the changes that unread records would make to the schema of every table, or of one. Nothing is written.

    Raises ConfigError when no source has such a table, or several have.
    """
    found: list[PendingChange] = []
    wanted = None if table is None else _resolve(spark, sources, table)
    for at in sources:
        if wanted is None or wanted[0] is at:
            for name, plan in silver.preview(spark, at, None if wanted is None else wanted[1]).items():
                found.extend(
                    _list_pending(f"{at.source.name}/{name}", at.source.declaration(name).schema_changes, plan)
                )
    return found


def approve(spark: SparkSession, sources: Sequence[Refinement], table: str) -> list[ColumnChange]:
    """Approve exactly the changes of a table that its policy withholds now, and return them; the next run makes them.

    A second call finds nothing to approve. Raises as :func:`pending_changes`, and whatever else stops the table.
    """
    at, name = _resolve(spark, sources, table)
    plan = silver.preview(spark, at, name).get(name)
    if isinstance(plan, ReplicatorError):
        raise plan
    withheld = [change for change in plan.withheld if change.can_be_approved] if plan is not None else []
    if withheld:
        path, ledger = _ledger(spark, at, name)
        at.control.put(path, ledger.with_approved(withheld).value())
    return withheld


def describe(spark: SparkSession, sources: Sequence[Refinement], table: str) -> TableSchema:
    """Return the schema of one table. Raises as :func:`pending_changes`."""
    at, name = _resolve(spark, sources, table)
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


def _resolve(spark: SparkSession, sources: Sequence[Refinement], table: str) -> tuple[Refinement, str]:
    """Return the source and the table that ``[<source>/]<database or schema>.<table>``, or the last part, names. Raises
    ConfigError.
    """
    source, slash, name = table.rpartition("/")
    candidates = [at for at in sources if not slash or at.source.name == source]
    found = [(at, name) for at in candidates if _has_table(spark, at, name)] or _by_last_part(spark, candidates, name)
    if not found:
        known = [each.table for each in pause.list_tables(spark, sources)]
        raise ConfigError(f"no source has delivered a table {table!r} yet{suggest_table(table, known)}")
    if len(found) > 1:
        matches = ", ".join(f"{at.source.name}/{each}" for at, each in found)
        raise ConfigError(f"{table!r} matches several tables", fix=f"Choose one: {matches}.")
    return found[0]


def _by_last_part(spark: SparkSession, sources: Sequence[Refinement], name: str) -> list[tuple[Refinement, str]]:
    tables = ((at, each.name) for at in sources for each in pause.list_tables(spark, [at]))
    return [(at, table) for at, table in tables if table.rpartition(".")[2] == name and _has_table(spark, at, table)]


def _has_table(spark: SparkSession, at: Refinement, table: str) -> bool:
    """Whether silver has the table, or the next run would create it."""
    stored = at.silver.version(spark, at.lake.silver(at.source.name, table)) is not None
    return stored or table in silver.preview(spark, at, table)


def _list_pending(table: str, policy: str, plan: evolve.Plan | ReplicatorError) -> list[PendingChange]:
    if isinstance(plan, ReplicatorError):
        return [PendingChange(table, "key", "", "", "", STOPS, plan.what)]
    pending = [_pending_change(table, change, APPLIED) for change in plan.changes]
    pending += [
        PendingChange(table, DROPPED, names.decode(column), plan.layout.types[column], "", KEPT)
        for column in plan.dropped
    ]
    return pending + [_pending_change(table, change, _consequence(change, policy)) for change in plan.withheld]


def _consequence(change: ColumnChange, policy: str) -> str:
    if policy == "freeze":
        return IN_BRONZE if change.kind == ADDED else DEAD_LETTERS
    return APPROVAL if change.can_be_approved else STOPS


def _pending_change(table: str, change: ColumnChange, then: str) -> PendingChange:
    why = str(change) if then == STOPS else ""
    return PendingChange(table, change.kind, names.decode(change.column), change.before, change.after, then, why)
