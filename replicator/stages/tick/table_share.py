"""The share of one table in a tick: which records belong to it and how they are read."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.errors import TableStopped
from replicator.spec import BY_POSITION, Declaration, Progress, Table
from replicator.stages.refinement import Refinement
from replicator.stages.tick import normalization, routing
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.epochs import Epochs
from replicator.stages.tick.routing import BEGINNING, Routes
from replicator.transforms import changes
from replicator.transforms.columns.layout import Layout, stored_names


@dataclass(frozen=True)
class TableShare:
    """The work of one table in one tick: its groups of the survey, and the version of bronze that it reaches.

    ``retried_rejects`` is given if the records are not new but were read before, such as dead letters that are retried.
    Then the progress in bronze does not change, and records that still cannot be applied are appended to the list, one
    frame per call. ``marks`` is given if some change ranks below an earlier one of its own transaction: see
    ``changes.with_seq``. ``has_place_ties``: records at one place may have come from several partitions (Q11).
    ``regained`` names columns that are still unknown in the stored rows and that these records fill. ``released``: some
    records may not be new to bronze but new to a table that has already read all of bronze: they waited for
    transactions that need not be complete any more, or belonged to another table.
    """

    spark: SparkSession
    at: Refinement
    routes: Routes
    new_records: NewRecords
    name: str
    groups: tuple[Row, ...]
    retried_rejects: list[DataFrame] | None = None
    epochs: Epochs = field(default_factory=Epochs)
    marks: Column | None = None
    has_place_ties: bool = False
    regained: frozenset[str] = frozenset()
    released: bool = False

    @property
    def upto(self) -> int:
        """The version of bronze that the table reaches with this tick."""
        return self.new_records.upto

    @property
    def progress(self) -> Progress:
        """The progress that the table's commit records."""
        return self.progress_of(self.table)

    def progress_of(self, table: Table) -> Progress:
        """Return the progress that a commit of the table, or of its history, records. Retries use an input of their
        own, so that nothing a tick relies on changes. So do records released to a table that has already read all of
        bronze: a commit with the same progress would be skipped as done.
        """
        silver, bronze = self.at.silver, self.routes.bronze
        done = silver.progress(self.spark, table, bronze) if self.released else None
        if self.retried_rejects is None and (done is None or done.version < self.upto):
            return Progress(bronze, self.upto)
        version = silver.version(self.spark, table)
        return Progress(f"{bronze}/dead letters", 0 if version is None else version + 1)

    @property
    def is_from_start(self) -> bool:
        """Whether every topic of the table is read from its beginning."""
        starts = (self.new_records.after.get(topic, BEGINNING) for topic in self.routes.topics(self.name))
        return self.retried_rejects is None and all(start == BEGINNING for start in starts)

    @property
    def is_begun(self) -> bool:
        """Whether the table does not exist and is read only from after records that were all dead letters or
        truncates.
        """
        settled = self.at.state.caught_up
        return (
            self.retried_rejects is None
            and not self.is_from_start
            and settled is not None
            and self.name in settled.unwritten
        )

    @property
    def table(self) -> Table:
        """The silver table, without its keys."""
        return self.at.lake.silver(self.at.source.name, self.name)

    def declared_table(self, layout: Layout) -> Table:
        """Return the silver table as declared. Raises TableStopped for a partition column that it does not have."""
        partition_columns = stored_names(self.declaration.partition_by, layout.types)
        missing = next((part for part in partition_columns if part not in layout.types), None)
        if missing is not None:
            raise TableStopped(
                f"the table has no partition column {names.decode(missing)}",
                where=self.table.name,
                fix="Correct `partition_by` in conf/sources.",
            )
        declared = self.declaration
        return replace(
            self.table,
            keys=layout.keys,
            partition_by=partition_columns,
            format=declared.format,
            merge_on_read=declared.merge_on_read,
        )

    def target(self, layout: Layout) -> Table:
        """Return the same with the properties that are stored with the table."""
        order = self.at.source.order(self.name)
        properties = (("replicator.sequence_by", order),) if order != BY_POSITION else ()
        return replace(
            self.declared_table(layout), complete=self.name not in self.routes.partial, properties=properties
        )

    @property
    def declaration(self) -> Declaration:
        """The user's declaration of the table."""
        return self.at.source.declaration(self.name)

    @property
    def rows(self) -> list[Row]:
        """Groups of records that may change a row."""
        return [group for group in self.groups if group["rule"] is None and group["reason"] is None]

    @property
    def count(self) -> int:
        """The number of those records."""
        return sum(group["count"] for group in self.rows)

    def described(self, records: DataFrame) -> AbstractContextManager[DataFrame]:
        """Describe bronze records of the table's topics, with their epoch; persisted while the context is open."""
        topics = self.routes.topics(self.name)
        with_epoch = records.withColumn("epoch", self.epochs.column(topics))
        return normalization.describe_history(with_epoch, self.at.source, is_unusual=self.any("shape"))

    def routed(self, records: DataFrame) -> DataFrame:
        """Return described records of the table's topics, each read in its topic's mode and with what orders the
        table.
        """
        source = self.at.source
        by_time = [self.name] if source.by_time(self.name) else []
        return routing.apply_modes(records, self.routes, source, by_time=by_time)

    def any(self, flag: str) -> bool:
        """Return whether some group of rows has the flag."""
        return any(group[flag] for group in self.rows)

    def changes_in(self, records: DataFrame) -> DataFrame:
        """Select the records that may change a row of this table from all records of its topics."""
        topics = self.routes.topics(self.name)
        if self.any("has_snapshot") and any(len(self.routes.tables.get(topic, ())) > 1 for topic in topics):
            records = changes.with_passed_position(records)
        usable = F.col("rule").isNull() & F.col("reason").isNull()
        return records.where(F.col("topic").isin(*topics) & usable & (F.col("table") == self.name))

    def rejects_in(self, records: DataFrame) -> DataFrame:
        """Select the records that cannot be applied to any table and are counted to this one."""
        homes = [topic for topic in self.routes.topics(self.name) if self.routes.home(topic) == self.name]
        return records.where(F.col("topic").isin(*homes) & F.col("reason").isNotNull())

    def stored(self) -> StructType | None:
        """Return the columns of the silver table; None before its first batch."""
        silver = self.at.silver
        if silver.version(self.spark, self.table) is None:
            return None
        return silver.read(self.spark, self.table).schema
