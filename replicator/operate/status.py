"""The status of every table and target of a lake, and its lag behind the source, computed by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from replicator.errors import BronzeReplaced
from replicator.formats import control
from replicator.lake import Lake
from replicator.operate.progress import kafka_lag, layers
from replicator.operate.progress.attempts import Attempts
from replicator.operate.progress.survey import Tally
from replicator.operate.progress.table_status import TableStatus
from replicator.operate.progress.waiting import Waiting, waiting
from replicator.protocols import Control, Sink, Source, TableFormat
from replicator.spec import Model, Progress, Table
from replicator.stages.ingest import gaps, landing
from replicator.stages.ingest.landing import ObjectIngestion
from replicator.stages.refinement import Refinement
from replicator.stages.tick import transaction_cut
from replicator.transforms import history, merge


@dataclass(frozen=True)
class StatusInputs:
    """The inputs of ``status``: the lake and its tables' format, the control rows, the Kafka ``readers`` and object
    ``intakes`` by source, the configured models, their sinks by name, and silver's ``refinements`` by source.
    """

    lake: Lake
    format: TableFormat
    control: Control
    readers: Mapping[str, Source]
    intakes: Mapping[str, ObjectIngestion]
    models: tuple[Model, ...]
    sinks: Mapping[str, Sink]
    refinements: Mapping[str, Refinement] = field(default_factory=dict)


def list_statuses(spark: SparkSession, at: StatusInputs) -> list[TableStatus]:
    """Return the status of every table of the lake and of every target, in the order of the layers."""
    return layers.list_statuses(SparkSurvey(spark, at))


def try_statuses(spark: SparkSession, at: StatusInputs, attempts: Attempts) -> list[TableStatus]:
    """Return the statuses of the tables that can be read; ``attempts`` records the failures of the others."""
    inspections = layers.inspections(SparkSurvey(spark, at))
    found = [attempts.try_(f"{inspection.layer} {inspection.table}", inspection.take) for inspection in inspections]
    return [each for some in found for each in some or ()]


@dataclass(frozen=True)
class SparkSurvey:
    """``Survey`` by Spark, through the protocols of tables, sources and targets."""

    spark: SparkSession
    at: StatusInputs

    @property
    def lake(self) -> Lake:
        """The lake whose tables are surveyed."""
        return self.at.lake

    @property
    def facts(self) -> Control:
        """The lake's control rows."""
        return self.at.control

    @property
    def models(self) -> Sequence[Model]:
        """The configured gold models."""
        return self.at.models

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """The configured sinks by name."""
        return self.at.sinks

    def folders(self, folder: str) -> Sequence[str]:
        """Return the folders that the file system lists."""
        return control.list_folders(self.spark, folder)

    def tables(self, folder: str) -> Sequence[str]:
        """Return the tables of every format."""
        return self.at.format.tables(self.spark, folder)

    def version(self, table: Table) -> int | None:
        """Return the version from the table's format."""
        return self.at.format.version(self.spark, table)

    def identity(self, table: Table) -> str | None:
        """Return the id from the table's format."""
        return self.at.format.identity(self.spark, table)

    def progress(self, table: Table, application: str) -> Progress | None:
        """Return the progress from the table's format."""
        return self.at.format.progress(self.spark, table, application)

    def records(self, table: Table, time: str = "timestamp") -> Tally:
        """Count the records in one Spark job."""
        return self._tally(table, newest=F.unix_millis(F.max(time)))

    def rows(self, table: Table) -> Tally:
        """Count silver's rows in one Spark job."""
        lacks = F.exists(F.map_values("_column_seq"), merge.is_unknown)
        return self._tally(table, ~F.col("_deleted"), F.max("_seq"), F.max("_source_ts_ms"), lacks)

    def intervals(self, table: Table) -> Tally:
        """Count a history's intervals in one Spark job."""
        return self._tally(table, history.is_interval(), F.max("_seq"), F.max("_source_ts_ms"))

    def model(self, table: Table) -> Tally:
        """Count a gold table's rows in one Spark job."""
        kinds = dict(self.at.format.read(self.spark, table).dtypes)
        is_time = kinds.get("updated_at") == "timestamp"
        return self._tally(table, newest=F.unix_millis(F.max("updated_at")) if is_time else None)

    def backlog(self, source: str) -> int | None:
        """Return the number of objects not yet read, or of records below Kafka's end offsets that bronze lacks."""
        return self._unread_objects(self.at.intakes[source]) if source in self.at.intakes else self._kafka_lag(source)

    def waiting(self, source: str) -> Waiting | None:
        """Return the transactions that wait in a configured source; None for a source that is not configured."""
        at = self.at.refinements
        return waiting(self.spark, at[source]) if source in at else None

    def added(self, source: str, after: Mapping[str, int], upto: int, waits: Waiting | None) -> int | None:
        """Count the records in one Spark job over the files of those commits."""
        places: dict[tuple[str, ...], int] = {(topic,): version for topic, version in after.items()}
        found = self.at.format.added(self.spark, self.at.lake.bronze(source), places, upto) if places else None
        if found is None:
            return None if places else 0
        return (found if waits is None else transaction_cut.exclude_waiting(found, waits.cut)).count()

    def _tally(
        self,
        table: Table,
        is_shown: Column | None = None,
        seq: Column | None = None,
        newest: Column | None = None,
        lacks: Column | None = None,
    ) -> Tally:
        shown = F.lit(True) if is_shown is None else is_shown
        nothing = F.lit(None)
        [row] = (
            self.at.format.read(self.spark, table)
            .agg(
                F.coalesce(F.sum(shown.cast("int")), F.lit(0)).alias("rows"),
                F.coalesce(F.sum((~shown).cast("int")), F.lit(0)).alias("hidden"),
                (nothing if seq is None else seq).alias("seq"),
                (nothing if newest is None else newest).alias("newest"),
                F.count(F.when(shown & (F.lit(False) if lacks is None else lacks), 1)).alias("unknown"),
            )
            .collect()
        )
        return Tally(row["rows"], row["hidden"], row["seq"] or "", row["newest"], row["unknown"])

    def _unread_objects(self, intake: ObjectIngestion) -> int | None:
        """Return the number of objects that bronze lacks; None when bronze was replaced. Raises Unreachable."""
        try:
            return landing.count_waiting(self.spark, intake)
        except BronzeReplaced:
            return None

    def _kafka_lag(self, source: str) -> int | None:
        """Return the number of Kafka records that bronze lacks; None for a source without Kafka. Raises Unreachable."""
        reader = self.at.readers.get(source)
        if reader is None:
            return None
        ends = reader.end_offsets(self.spark)
        rows = self.at.format.read(self.spark, self.at.lake.bronze(source))
        reached = rows.groupBy("topic", "partition").agg(F.max("offset").alias("o")).collect()
        have = {(row["topic"], row["partition"]): row["o"] + 1 for row in reached}
        skipped = gaps.load(self.facts, self.lake.gaps(source))
        return kafka_lag.count_unread(ends, have, lambda: reader.first_offsets(self.spark), skipped)
