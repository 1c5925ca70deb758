"""The shadow of a silver table: the table built again beside the original, from all of bronze, by the silver stage
itself.

A control row, written before anything else, records which table is rebuilt and what is read for it. The shadow's own
commit records that it is complete: it has applied bronze up to the pinned version. A rebuild that was killed at any
point therefore leaves a shadow that can be resumed or removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from replicator import __version__, failpoints
from replicator.errors import BronzeReplaced, TableMissing, TableStopped
from replicator.lake import Shadow
from replicator.spec import Table
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from replicator.stages.table import transform_origins
from replicator.stages.tick import routing, schema_ledger, transaction_cut
from replicator.stages.tick.schema_ledger import Ledger
from replicator.stages.tick.source_state import SourceState
from replicator.transforms.columns.layout import stored_names


@dataclass(frozen=True)
class Rebuild:
    """One rebuild of a silver table. ``at`` is the present lake, ``shadow`` the location of the shadow. Bronze, with
    the id ``bronze``, is read up to version ``upto``; ``identity`` and ``version`` are those of the table when the
    rebuild began. ``column`` is the only column that is rebuilt, by its name at the source; None for all.
    """

    at: Refinement
    shadow: Refinement
    name: str
    bronze: str
    upto: int
    identity: str
    version: int
    column: str | None = None

    @property
    def table(self) -> Table:
        """The present table."""
        return self.at.lake.silver(self.at.source.name, self.name)

    @property
    def shadow_table(self) -> Table:
        """The shadow of the table."""
        return self.shadow.lake.silver(self.at.source.name, self.name)

    @property
    def history(self) -> Table | None:
        """The table's history; None if it has none."""
        has = self.at.source.declaration(self.name).has_history
        return self.at.lake.history(self.at.source.name, self.name) if has else None

    @property
    def shadow_history(self) -> Table:
        """The shadow of the history."""
        return self.shadow.lake.history(self.at.source.name, self.name)

    def row(self) -> dict[str, Any]:
        """The control row of this rebuild."""
        return {
            "source": self.at.source.name,
            "table": self.name,
            "bronze": self.bronze,
            "upto": self.upto,
            "identity": self.identity,
            "version": self.version,
            "column": self.column,
            "made_as": self._made_as(),
        }

    def _made_as(self) -> str:
        """Return a hash of everything else that determines the rebuilt rows: replicator version, declarations, epochs,
        approved schema changes.
        """
        source = self.at.source
        epochs = self.at.control.get(self.at.lake.epochs(source.name))
        ledger = self.at.control.get(self.at.lake.schema(source.name, self.name)) or {}
        shown = self.at.control.get(self.at.lake.cut(source.name))
        parts = (
            source.declaration(self.name),
            source.order(self.name),
            source.placeholder,
            source.latin1_bytes,
            shown,
            transform_origins.fingerprint(source, source.declaration(self.name)),
        )
        text = repr((__version__, parts, source.reading, epochs, ledger.get("approved")))
        return hashlib.sha256(text.encode()).hexdigest()


def begin(spark: SparkSession, at: Refinement, name: str, column: str | None) -> Rebuild:
    """Begin the rebuild of a table: resume the interrupted one if nothing has changed since, otherwise start a new one
    on the current bronze.

    Raises TableMissing; BronzeReplaced if bronze is missing or is an older copy; TableStopped if the table has another
    format than the declared one, or it is not known which transactions may be shown.
    """
    _refuse_other_format(spark, at, name)
    aside = replace(at, lake=Shadow(at.lake.root, at.source.name, name), state=SourceState(), dead_letter_share=1.0)
    bronze, table = at.lake.bronze(at.source.name), at.lake.silver(at.source.name, name)
    identity, upto = at.bronze.identity(spark, bronze), at.bronze.version(spark, bronze)
    if identity is None or upto is None:
        raise BronzeReplaced("there is no bronze to build the table from", where=table.name)
    _refuse_older_bronze(spark, at, name, identity, upto)
    upto = _visible_version(at, identity, upto)
    identity_of_table, version = at.silver.identity(spark, table), at.silver.version(spark, table)
    if identity_of_table is None or version is None:
        raise TableMissing("the table was never written", where=table.name, fix="`replicator run silver` builds it.")
    new = Rebuild(at, aside, name, identity, upto, identity_of_table, version, column)
    row = at.control.get(at.lake.rebuild(at.source.name, name))
    if row is not None:
        old = replace(new, upto=row["upto"], version=row["version"])
        if old.row() == row and (is_swapped(spark, old) or _is_resumable(spark, old, new)):
            return old
    at.control.remove(at.lake.rebuild(at.source.name, name))
    _remove(spark, new)
    at.control.put(at.lake.rebuild(at.source.name, name), new.row())
    failpoints.hit("rebuild.begun")
    return new


def _is_resumable(spark: SparkSession, old: Rebuild, new: Rebuild) -> bool:
    """Whether the shadow of an interrupted rebuild is complete and the table has not changed since. The same must hold
    for its history: a run that was killed may have committed to the history and not yet to the table.
    """
    if old.version != new.version or not is_made(spark, old):
        return False
    read = None if old.history is None else old.at.silver.progress(spark, old.history, old.bronze)
    return read is None or read.version <= old.upto


def is_made(spark: SparkSession, rebuild: Rebuild) -> bool:
    """Whether the shadow is complete."""
    progress = rebuild.at.silver.progress(spark, rebuild.shadow_table, rebuild.bronze)
    return progress is not None and progress.version == rebuild.upto


def is_swapped(spark: SparkSession, rebuild: Rebuild) -> bool:
    """Whether the table's rows have been replaced by those of the shadow."""
    progress = rebuild.at.silver.progress(spark, rebuild.table, swap_input(rebuild))
    return progress is not None and progress.version > rebuild.version


def swap_input(rebuild: Rebuild) -> str:
    """Return the input name under which the table's commit records the swap; the version is that of the table."""
    return routing.rebuild_input(rebuild.bronze)


def make(spark: SparkSession, rebuild: Rebuild) -> None:
    """Build the shadow. Approvals of schema changes apply to it too. Raises the error that stops the table, and
    TableMissing where no record in bronze makes a row of it.
    """
    at, aside, source = rebuild.at, rebuild.shadow, rebuild.at.source.name
    ledger = schema_ledger.load(at.control, at.lake.schema(source, rebuild.name), rebuild.bronze)
    if ledger != Ledger(rebuild.bronze):
        at.control.put(aside.lake.schema(source, rebuild.name), replace(ledger, left_out=frozenset()).value())
        failpoints.hit("rebuild.schema_given")
    account = silver.build_table(spark, aside, rebuild.name, rebuild.upto)
    if account is not None and account.error is not None:
        raise account.error
    if not is_made(spark, rebuild):
        raise TableMissing(
            "bronze has no record that produces a row of the table",
            where=rebuild.table.name,
            fix="A table whose rows are merged into another one by `shards` stays as it is: remove its folder once it "
            "is no longer read.",
        )
    failpoints.hit("rebuild.made")


def last_truncate(rebuild: Rebuild) -> str:
    """Return the ``_seq`` of the last TRUNCATE that the shadow applied; '' for none."""
    row = rebuild.at.control.get(rebuild.shadow.lake.truncates(rebuild.at.source.name, rebuild.name)) or {}
    return row.get("watermark") or ""


def clean(spark: SparkSession, rebuild: Rebuild) -> None:
    """Remove the rebuild: first its control row, so that a partly removed shadow is never taken for a complete one."""
    rebuild.at.control.remove(rebuild.at.lake.rebuild(rebuild.at.source.name, rebuild.name))
    failpoints.hit("rebuild.forgotten")
    _remove(spark, rebuild)


def _remove(spark: SparkSession, rebuild: Rebuild) -> None:
    at, lake, source = rebuild.at, rebuild.shadow.lake, rebuild.at.source.name
    for table in (rebuild.shadow_table, rebuild.shadow_history):
        at.silver.drop(spark, table)
    at.bronze.drop(spark, lake.dead_letters(source))
    name = rebuild.name
    for path in (lake.schema(source, name), lake.truncates(source, name), lake.origin(source, name)):
        at.control.remove(path)


def partitions(at: Refinement, name: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return those of the columns by which the table is declared to be partitioned."""
    return stored_names(at.source.declaration(name).partition_by, columns)


def _refuse_older_bronze(spark: SparkSession, at: Refinement, name: str, bronze: str, newest: int) -> None:
    """Raise BronzeReplaced if the table has read more than bronze contains: an older copy of bronze does not prove that
    rows missing from it are wrong (F-C6).
    """
    tables = at.lake.silver(at.source.name, name), at.lake.history(at.source.name, name)
    found = (at.silver.progress(spark, table, bronze) for table in tables)
    read = max((progress.version for progress in found if progress is not None), default=newest)
    if read > newest:
        raise BronzeReplaced.under_silver(at.source.name, read, newest)


def _visible_version(at: Refinement, bronze: str, newest: int) -> int:
    """Return the version of bronze up to which silver shows transactions, if transactions are applied only once they
    are complete: records that wait in silver wait in the shadow too. Raises TableStopped where that version is not
    known.
    """
    cut = transaction_cut.load(at.control, at.lake, at.source.name)
    if cut is None or cut.bronze != bronze:
        return newest
    if cut.lagging_tables is None:
        raise TableStopped(
            "which transactions may be shown is known only after a run", where=at.source.name, fix="Run silver first."
        )
    return cut.version


def _refuse_other_format(spark: SparkSession, at: Refinement, name: str) -> None:
    table, declared = at.lake.silver(at.source.name, name), at.source.declaration(name).format
    if at.silver.version(spark, table) is None or not declared:
        return
    stored = at.silver.detail(spark, table).format
    if stored != declared:
        raise TableStopped(
            f"the table is stored in the format {stored}, but {declared} is declared",
            where=table.name,
            fix="Restore the old format, or remove the table's folder in silver: the next run rebuilds it.",
        )
