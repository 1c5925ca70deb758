"""A silver table made once more beside itself, from the whole of bronze, by the very stage that keeps it.

A control row says what is read and for what; it is written before anything else. That the shadow is complete stands in
its own commit: it has applied bronze up to the pinned version. So whoever is killed leaves a shadow that is gone on
with, or one that is removed.
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
    """One rebuild of a silver table: ``at`` is where the table is, ``aside`` where it is made once more. ``bronze`` is
    read up to the version ``upto``; ``identity`` and ``version`` are the table's when the rebuild began. ``column`` is
    the only one that is taken over, by its name at the source; None: all of it.
    """

    at: Refinement
    aside: Refinement
    name: str
    bronze: str
    upto: int
    identity: str
    version: int
    column: str | None = None

    @property
    def table(self) -> Table:
        """The table as it is."""
        return self.at.lake.silver(self.at.source.name, self.name)

    @property
    def made(self) -> Table:
        """The table made once more."""
        return self.aside.lake.silver(self.at.source.name, self.name)

    @property
    def history(self) -> Table | None:
        """The table's history; None where it keeps none."""
        has = self.at.source.declaration(self.name).has_history
        return self.at.lake.history(self.at.source.name, self.name) if has else None

    @property
    def made_history(self) -> Table:
        """Its history made once more."""
        return self.aside.lake.history(self.at.source.name, self.name)

    def row(self) -> dict[str, Any]:
        """As a control row."""
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
        """What else decides what the table becomes."""
        source = self.at.source
        since = self.at.control.get(self.at.lake.epochs(source.name))
        ledger = self.at.control.get(self.at.lake.schema(source.name, self.name)) or {}
        shown = self.at.control.get(self.at.lake.cut(source.name))
        decides = (
            source.declaration(self.name),
            source.order(self.name),
            source.placeholder,
            source.latin1_bytes,
            shown,
            transform_origins.fingerprint(source, source.declaration(self.name)),
        )
        told = repr((__version__, decides, source.reading, since, ledger.get("approved")))
        return hashlib.sha256(told.encode()).hexdigest()


def begin(spark: SparkSession, at: Refinement, name: str, column: str | None) -> Rebuild:
    """The rebuild of a table: the one that was interrupted if all is as it was, else a new one over bronze as it is.

    Raises TableMissing, BronzeReplaced without bronze or with an older copy of it, TableStopped where the table lies in
    another format than the declared one.
    """
    _refuse_other_format(spark, at, name)
    aside = replace(at, lake=Shadow(at.lake.root, at.source.name, name), reached=SourceState(), dead_letter_share=1.0)
    bronze, table = at.lake.bronze(at.source.name), at.lake.silver(at.source.name, name)
    identity, upto = at.bronze.identity(spark, bronze), at.bronze.version(spark, bronze)
    if identity is None or upto is None:
        raise BronzeReplaced("there is no bronze to build the table from", where=table.name)
    _refuse_older_bronze(spark, at, name, identity, upto)
    upto = _visible_version(at, identity, upto)
    its, version = at.silver.identity(spark, table), at.silver.version(spark, table)
    if its is None or version is None:
        raise TableMissing("the table was never written", where=table.name, mend="`replicator run silver` builds it.")
    new = Rebuild(at, aside, name, identity, upto, its, version, column)
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
    """Whether the shadow of an interrupted rebuild is complete, and the table as it was; so is its history, unless a
    run has told it more and died before it told the table.
    """
    if old.version != new.version or not is_made(spark, old):
        return False
    read = None if old.history is None else old.at.silver.progress(spark, old.history, old.bronze)
    return read is None or read.version <= old.upto


def is_made(spark: SparkSession, rebuild: Rebuild) -> bool:
    """Whether the shadow is complete."""
    progress = rebuild.at.silver.progress(spark, rebuild.made, rebuild.bronze)
    return progress is not None and progress.version == rebuild.upto


def is_swapped(spark: SparkSession, rebuild: Rebuild) -> bool:
    """Whether the table has taken its rows over from the shadow."""
    progress = rebuild.at.silver.progress(spark, rebuild.table, swap_input(rebuild))
    return progress is not None and progress.version > rebuild.version


def swap_input(rebuild: Rebuild) -> str:
    """The input under which the table's commit records the swap; its version is the table's own."""
    return routing.rebuild_input(rebuild.bronze)


def make(spark: SparkSession, rebuild: Rebuild) -> None:
    """Make the table once more. What somebody approved of its schema holds. Raises what stops the table."""
    at, aside, source = rebuild.at, rebuild.aside, rebuild.at.source.name
    ledger = schema_ledger.load(at.control, at.lake.schema(source, rebuild.name), rebuild.bronze)
    if ledger != Ledger(rebuild.bronze):
        at.control.put(aside.lake.schema(source, rebuild.name), replace(ledger, left_out=frozenset()).value())
        failpoints.hit("rebuild.schema_given")
    done = silver.build_table(spark, aside, rebuild.name, rebuild.upto)
    if done is not None and done.error is not None:
        raise done.error
    if not is_made(spark, rebuild):
        raise TableMissing(
            "bronze has no record that makes a row of the table",
            where=rebuild.table.name,
            mend="A table whose rows go into another one by `shards` stays as it is: remove its folder once nobody "
            "reads it.",
        )
    failpoints.hit("rebuild.made")


def last_truncate(rebuild: Rebuild) -> str:
    """The last TRUNCATE that the shadow followed; '' where it followed none."""
    row = rebuild.at.control.get(rebuild.aside.lake.truncates(rebuild.at.source.name, rebuild.name)) or {}
    return row.get("watermark") or ""


def clean(spark: SparkSession, rebuild: Rebuild) -> None:
    """Forget the rebuild: first the control row, so that no part of a shadow is taken for a whole."""
    rebuild.at.control.remove(rebuild.at.lake.rebuild(rebuild.at.source.name, rebuild.name))
    failpoints.hit("rebuild.forgotten")
    _remove(spark, rebuild)


def _remove(spark: SparkSession, rebuild: Rebuild) -> None:
    at, lake, source = rebuild.at, rebuild.aside.lake, rebuild.at.source.name
    for table in (rebuild.made, rebuild.made_history):
        at.silver.drop(spark, table)
    at.bronze.drop(spark, lake.dead_letters(source))
    name = rebuild.name
    for path in (lake.schema(source, name), lake.truncates(source, name), lake.origin(source, name)):
        at.control.remove(path)


def partitions(at: Refinement, name: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Of the table's columns those by which it is declared to be partitioned."""
    return stored_names(at.source.declaration(name).partition_by, columns)


def _refuse_older_bronze(spark: SparkSession, at: Refinement, name: str, bronze: str, newest: int) -> None:
    """An older copy of bronze proves no row wrong that it does not have (F-C6)."""
    tables = at.lake.silver(at.source.name, name), at.lake.history(at.source.name, name)
    found = (at.silver.progress(spark, table, bronze) for table in tables)
    read = max((progress.version for progress in found if progress is not None), default=newest)
    if read > newest:
        raise BronzeReplaced.under_silver(at.source.name, read, newest)


def _visible_version(at: Refinement, bronze: str, newest: int) -> int:
    """The version of bronze up to which silver shows transactions, where they must be whole: what waits there waits in
    the shadow too. Raises TableStopped where that is not known.
    """
    stood = transaction_cut.load(at.control, at.lake, at.source.name)
    if stood is None or stood.bronze != bronze:
        return newest
    if stood.behind is None:
        raise TableStopped(
            "which transactions may be shown is known behind a run only", where=at.source.name, mend="Run silver first."
        )
    return stood.version


def _refuse_other_format(spark: SparkSession, at: Refinement, name: str) -> None:
    table, declared = at.lake.silver(at.source.name, name), at.source.declaration(name).format
    if at.silver.version(spark, table) is None or not declared:
        return
    there = at.silver.kept(spark, table).format
    if there != declared:
        raise TableStopped(
            f"the table lies in the format {there}, and {declared} is declared",
            where=table.name,
            mend="Set it back, or remove the table's folder in silver: the next run builds it in the other format.",
        )
