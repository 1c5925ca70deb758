"""What the steps of one tick share: the source, the range of bronze that is read, and the epochs."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from replicator.debezium import envelope
from replicator.stages.refinement import Refinement
from replicator.stages.tick import normalization
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.epochs import Epochs


@dataclass(frozen=True)
class TickContext:
    """What one tick of one source reads: the records of ``new_records``."""

    spark: SparkSession
    at: Refinement
    new_records: NewRecords
    epochs: Epochs

    def described(self, records: DataFrame, topics: Collection[str]) -> DataFrame:
        """Describe bronze records of these topics, with their epoch."""
        return envelope.describe(self.in_epochs(records, topics), self.at.source.reading)

    def describe_any_shape(self, records: DataFrame, topics: Collection[str]) -> AbstractContextManager[DataFrame]:
        """The same for records that may have to be normalized first; persisted while the context is open."""
        return normalization.describe_history(self.in_epochs(records, topics), self.at.source, is_unusual=True)

    def in_epochs(self, records: DataFrame, topics: Collection[str]) -> DataFrame:
        """Return bronze records of these topics with their epoch."""
        return records.withColumn("epoch", self.epochs.column(topics))
