"""In-memory tables: a ``TableFormat`` for tests and experiments, held to the same contract as the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from uuid import uuid4

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names, time_travel
from replicator.errors import TableMissing, VersionMissing
from replicator.jvm import gateway
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Applied, Arrival, CommittedVersion, Evolution, Maintained, Progress, Table, TableDetail
from replicator.transforms import merge
from replicator.transforms.columns.reshape import apply_evolution
from replicator.transforms.comparison.comparable import comparable


@dataclass
class _Stored:
    """All versions of one table; version n is ``versions[n]``. Those before ``begins`` cannot be read: they had other
    columns, or maintenance has expired them.
    """

    identity: str
    schema: T.StructType
    partition_by: tuple[str, ...] = ()
    begins: int = 0
    versions: list[list[Row]] = field(default_factory=list)
    moments: list[CommittedVersion] = field(default_factory=list)
    progress: dict[str, int] = field(default_factory=dict)


class MemoryFormat:
    """``TableFormat`` over a dict keyed by location. Everything is lost with the object."""

    def __init__(self, *, fence: Fence = UNFENCED) -> None:
        self._tables: dict[str, _Stored] = {}
        self._fence = fence

    def read(self, spark: SparkSession, table: Table, version: int | None = None) -> DataFrame:
        """All rows, deleted ones included, at a version or the newest."""
        stored = self._tables.get(table.location)
        if stored is None:
            raise TableMissing.of(table)
        if version is not None and version < stored.begins:
            raise VersionMissing(f"version {version} of table {table.name} is no longer retained", where=table.location)
        return gateway.create_frame(spark, stored.versions[-1 if version is None else version], stored.schema)

    def version(self, spark: SparkSession, table: Table) -> int | None:  # noqa: ARG002
        """The newest version, None if the table is missing."""
        stored = self._tables.get(table.location)
        return None if stored is None else len(stored.versions) - 1

    def version_at(self, spark: SparkSession, table: Table, when: int | datetime) -> CommittedVersion:  # noqa: ARG002
        """The version at a time by this process's clock."""
        stored = self._tables.get(table.location)
        if stored is None:
            raise TableMissing.of(table)
        return time_travel.select(table, stored.moments[stored.begins :], when, time_travel.RETENTION_HINT)

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:  # noqa: ARG002
        """Tables whose location is directly below the folder."""
        inside = {place.removeprefix(f"{folder}/") for place in self._tables if place.startswith(f"{folder}/")}
        return tuple(sorted(place for place in inside if "/" not in place))

    def detail(self, spark: SparkSession, table: Table) -> TableDetail:  # noqa: ARG002
        """Partitioned as the table was created."""
        stored = self._tables.get(table.location)
        if stored is None:
            raise TableMissing.of(table)
        return TableDetail("memory", partition_by=stored.partition_by)

    def size(self, spark: SparkSession, table: Table) -> int:  # noqa: ARG002
        """An estimate in bytes: a hundred per row."""
        stored = self._tables.get(table.location)
        return 0 if stored is None else 100 * len(stored.versions[-1])

    def count(self, spark: SparkSession, table: Table) -> int:  # noqa: ARG002
        """The rows of the newest version."""
        stored = self._tables.get(table.location)
        if stored is None:
            raise TableMissing.of(table)
        return len(stored.versions[-1])

    def arrivals(self, spark: SparkSession, table: Table, after: int, upto: int) -> list[Arrival] | None:  # noqa: ARG002
        """One per appended row."""
        return [Arrival(partition, version, 100) for _, partition, version in self._appended(table, after, upto)]

    def append_only_since(self, spark: SparkSession, table: Table, after: int, upto: int) -> int:  # noqa: ARG002
        """The oldest readable version, or ``after`` if that is later."""
        return min(max(after, self._tables[table.location].begins), upto)

    def added(
        self, spark: SparkSession, table: Table, after: Mapping[tuple[str, ...], int], upto: int
    ) -> DataFrame | None:
        """The rows that each version appended to the one before."""
        appended = self._appended(table, min(after.values()), upto)
        rows = [row for row, partition, version in appended if version > after.get(partition, upto)]
        return gateway.create_frame(spark, rows, self._tables[table.location].schema)

    def _appended(self, table: Table, after: int, upto: int) -> Iterator[tuple[Row, tuple[str, ...], int]]:
        versions = self._tables[table.location].versions
        for version in range(after + 1, upto + 1):
            for row in versions[version][len(versions[version - 1]) if version else 0 :]:
                yield row, tuple(str(row[column]) for column in table.partition_by), version

    def identity(self, spark: SparkSession, table: Table) -> str | None:  # noqa: ARG002
        """A random id, assigned when the table is created."""
        stored = self._tables.get(table.location)
        return None if stored is None else stored.identity

    def commit_id(self, spark: SparkSession, table: Table, version: int) -> str | None:  # noqa: ARG002
        """The version's commit time as text."""
        stored = self._tables.get(table.location)
        known = () if stored is None else stored.moments[version : version + 1]
        return next((str(each.at) for each in known), None)

    def changed_keys(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """Keys of the rows that are only in one of the two versions, or differ between them."""
        if after < self._tables[table.location].begins:
            return None
        old, new = self.read(spark, table, after), self.read(spark, table, upto)
        values = [
            comparable(F.col(names.quote_spark(each.name)), each.dataType).alias(each.name) for each in new.schema
        ]
        one, other = old.select(*values), new.select(*values)
        return one.exceptAll(other).union(other.exceptAll(one)).select(*map(names.quote_spark, table.keys)).distinct()

    def changed_rows(self, spark: SparkSession, table: Table, after: int, upto: int) -> DataFrame | None:
        """The rows at ``upto`` of :meth:`changed_keys`."""
        keys = self.changed_keys(spark, table, after, upto)
        return None if keys is None else self.read(spark, table, upto).join(keys, list(table.keys), "left_semi")

    def append(self, rows: DataFrame, table: Table, progress: Progress | None) -> Applied:
        """Add rows; do nothing if the table has this progress already."""
        stored = self._open(rows, table)
        if self._is_applied(stored, progress):
            return Applied(0, 0, 0, len(stored.versions) - 1)
        added = rows.select(*map(names.quote_spark, stored.schema.names)).collect()
        self._commit(stored, (stored.versions[-1] if stored.versions else []) + added, progress)
        return Applied(len(added), 0, 0, len(stored.versions) - 1)

    def apply(self, changes: DataFrame, table: Table, progress: Progress) -> Applied:
        """Merge changes into the rows by the rule of ``transforms/merge.py``."""
        if table.location not in self._tables:
            return self.append(changes, table, progress)
        stored = self._tables[table.location]
        if self._is_applied(stored, progress):
            return Applied(0, 0, 0, len(stored.versions) - 1)
        joined = merge.merge_rows(self.read(changes.sparkSession, table), changes, table.keys)
        return self._replace(stored, joined.collect(), table, progress)

    def put(self, difference: DataFrame, table: Table, progress: Progress, *, repeats: bool = False) -> Applied:  # noqa: ARG002 - all rows are compared
        """Apply the difference; rows equal to the stored ones change nothing."""
        rows = difference.where(F.col("_op") == "upsert").drop("_op")
        if table.location not in self._tables:
            return self.append(rows, table, progress)
        stored = self._tables[table.location]
        if self._is_applied(stored, progress):
            return Applied(0, 0, 0, len(stored.versions) - 1)
        keys, columns = (list(map(names.quote_spark, each)) for each in (table.keys, stored.schema.names))
        kept = self.read(rows.sparkSession, table).join(difference.select(*keys), list(table.keys), "left_anti")
        result = kept.select(*columns).unionByName(rows)
        return self._replace(stored, result.select(*columns).collect(), table, progress)

    def replace(self, rows: DataFrame, table: Table, progress: Progress) -> Applied:
        """Replace rows and schema; earlier versions become unreadable."""
        if table.location not in self._tables:
            return self.append(rows, table, progress)
        stored = self._tables[table.location]
        if self._is_applied(stored, progress):
            return Applied(0, 0, 0, len(stored.versions) - 1)
        found = rows.collect()
        self._fence.check()
        stored.schema, stored.partition_by, stored.begins = rows.schema, table.partition_by, len(stored.versions)
        self._commit(stored, found, progress)
        return Applied(len(found), 0, 0, stored.begins)

    def drop(self, spark: SparkSession, table: Table) -> None:  # noqa: ARG002
        """Remove the table and all its versions."""
        self._tables.pop(table.location, None)

    def evolve(self, spark: SparkSession, table: Table, evolution: Evolution) -> None:
        """Reshape the newest rows in place."""
        stored = self._tables[table.location]
        evolved = apply_evolution(self.read(spark, table), evolution)
        self._fence.check()
        stored.schema = evolved.schema
        stored.versions = [evolved.collect()] * len(stored.versions)

    def progress(self, spark: SparkSession, table: Table, input: str) -> Progress | None:  # noqa: A002, ARG002
        """The progress of one input as of the newest version."""
        stored = self._tables.get(table.location)
        version = None if stored is None else stored.progress.get(input)
        return None if version is None else Progress(input, version)

    def inputs(self, spark: SparkSession, table: Table) -> Mapping[str, int]:  # noqa: ARG002
        """The progress of every input."""
        stored = self._tables.get(table.location)
        return {} if stored is None else dict(stored.progress)

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:  # noqa: ARG002
        """Make versions that were replaced more than ``keep_hours`` ago unreadable; there are no files to count."""
        stored = self._tables.get(table.location)
        if stored is None:
            raise TableMissing.of(table)
        before = datetime.now(timezone.utc) - timedelta(hours=keep_hours)
        stored.begins = max(stored.begins, sum(moment.at <= before for moment in stored.moments[1:]))
        return Maintained(0, 0, 0, 0)

    def _open(self, rows: DataFrame, table: Table) -> _Stored:
        return self._tables.setdefault(table.location, _Stored(str(uuid4()), rows.schema, table.partition_by))

    def _is_applied(self, stored: _Stored, progress: Progress | None) -> bool:
        return progress is not None and stored.progress.get(progress.input, -1) >= progress.version

    def _commit(self, stored: _Stored, rows: list[Row], progress: Progress | None) -> None:
        self._fence.check()
        now = datetime.now(timezone.utc)
        after = stored.moments[-1].at + timedelta(microseconds=1) if stored.moments else now
        stored.moments.append(CommittedVersion(len(stored.versions), max(now, after)))
        stored.versions.append(rows)
        if progress is not None:
            stored.progress[progress.input] = progress.version

    def _replace(self, stored: _Stored, rows: list[Row], table: Table, progress: Progress) -> Applied:
        before = {tuple(row[key] for key in table.keys): row for row in stored.versions[-1]}
        after = {tuple(row[key] for key in table.keys): row for row in rows}
        self._commit(stored, rows, progress)
        return Applied(
            inserted=len(after.keys() - before.keys()),
            updated=sum(1 for key in after.keys() & before.keys() if after[key] != before[key]),
            deleted=len(before.keys() - after.keys()),
            version=len(stored.versions) - 1,
        )
