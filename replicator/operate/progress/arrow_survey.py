"""The status of a lake without Spark, where all tables are Delta tables on a local disk or in an object store.

Facts that only a JVM can read raise ReplicatorError: the caller then falls back to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TYPE_CHECKING, TypeVar

from replicator import names
from replicator.catalog import extras
from replicator.catalog.control_reader import StoredControlReader
from replicator.catalog.delta_table import DataFile, DeltaTable
from replicator.catalog.read_errors import translate_read_errors
from replicator.catalog.store import SPARK_HINT, Store
from replicator.catalog.tables import LakeListing
from replicator.errors import ReplicatorError, TableMissing
from replicator.lake import Lake
from replicator.offsets import TopicPartition
from replicator.operate.progress import kafka_lag, layers
from replicator.operate.progress.survey import Tally
from replicator.operate.progress.table_status import TableStatus
from replicator.protocols import ControlReader, Sink
from replicator.spec import Model, Progress, SourceSpec, Table
from replicator.stages.ingest import gaps
from replicator.transforms import row_state

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    from replicator.operate.progress.waiting import Waiting

_EMPTY = Tally(0)
_TABLES = 4

Part = TypeVar("Part")


@dataclass(frozen=True)
class ArrowSurvey:
    """``Survey`` by delta-rs and pyarrow. Each table is opened once, at the version that it has then; ``formats`` are
    the configured table formats.
    """

    lake: Lake
    store: Store
    formats: Sequence[str]
    sources: Mapping[str, SourceSpec]
    models: Sequence[Model]
    sinks: Mapping[str, Sink]
    opened: dict[str, DeltaTable | None] = field(default_factory=dict, compare=False)
    kinds: dict[str, str | None] = field(default_factory=dict, compare=False)

    @cached_property
    def facts(self) -> ControlReader:
        """The lake's control rows."""
        return StoredControlReader(self.store, self._files)

    def folders(self, folder: str) -> Sequence[str]:
        """Return the folders that the store lists."""
        return self.store.folders(self._files, folder)

    def tables(self, folder: str) -> Sequence[str]:
        """Return the folders that hold a table of a configured format. Raises ReplicatorError for a Hudi table."""
        found = {name: self._kind(f"{folder}/{name}") for name in filter(names.is_encoded, self.folders(folder))}
        return [name for name, kind in found.items() if kind is not None]

    def version(self, table: Table) -> int | None:
        """Return the version from the Delta log."""
        opened_table = self._opened(table)
        return None if opened_table is None else opened_table.version

    def identity(self, table: Table) -> str | None:
        """Return Delta's own table id."""
        opened_table = self._opened(table)
        return None if opened_table is None else opened_table.identity

    def progress(self, table: Table, application: str) -> Progress | None:
        """Return the ``txn`` action of this input. Raises ReplicatorError after a RESTORE, and where the last commit is
        empty.
        """
        opened_table = self._opened(table)
        version = None if opened_table is None else opened_table.progress(application)
        if opened_table is None or version is None:
            return None
        with translate_read_errors(table):
            doubt = opened_table.doubt
        if doubt is not None:
            raise ReplicatorError(doubt, where=table.location, fix=SPARK_HINT)
        return Progress(application, version)

    def records(self, table: Table, time: str = "timestamp") -> Tally:
        """Summarize rows by the log's file statistics, and by reading the files that lack them."""
        return self._newest(table, time)

    def rows(self, table: Table) -> Tally:
        """Summarize rows by reading four columns."""
        return self._tally(table, ("_deleted", "_seq", "_column_seq", "_source_ts_ms"), _tally_silver)

    def intervals(self, table: Table) -> Tally:
        """Summarize intervals by reading four columns."""
        return self._tally(table, ("__START_AT", "__END_AT", "_seq", "_source_ts_ms"), _tally_history)

    def model(self, table: Table) -> Tally:
        """Summarize rows as :meth:`records` does."""
        import pyarrow as pa  # noqa: PLC0415 - on demand, as all of this module

        kind = self._there(table).kind("updated_at")
        is_time = kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None
        return self._newest(table, "updated_at" if is_time else None)

    def backlog(self, source: str) -> int | None:
        """Return the number of records below Kafka's end offsets that bronze lacks; None for a source without Kafka.
        Raises Unreachable, and ReplicatorError where records come from objects.
        """
        spec = self.sources.get(source)
        if spec is None or spec.has_no_origin:
            return None
        if spec.objects:
            raise ReplicatorError(f"the records of {source} are stored in objects", where=spec.objects, fix=SPARK_HINT)
        client = extras.load("replicator.sources.librdkafka")
        kafka = spec.bootstrap_servers, spec.topics, spec.options
        ends: Mapping[TopicPartition, int] = client.end_offsets(*kafka)
        have, skipped = self.reached(self.lake.bronze(source)), gaps.load(self.facts, self.lake.gaps(source))
        return kafka_lag.count_unread(ends, have, lambda: client.first_offsets(*kafka), skipped)

    def waiting(self, source: str) -> Waiting | None:
        """Return None where no record waits. Raises ReplicatorError where some do."""
        row = self.facts.get(self.lake.cut(source)) if source in self.sources else None
        if row is None or not row["offsets"] or row["bronze"] != self.identity(self.lake.bronze(source)):
            return None
        raise ReplicatorError(f"transactions of {source} wait until they are complete", fix=SPARK_HINT)

    def added(self, source: str, after: Mapping[str, int], upto: int, waits: Waiting | None) -> int | None:
        """Return the number of added records from the log's commits."""
        bronze = self.lake.bronze(source)
        with translate_read_errors(bronze):
            return self._there(bronze).added(after, upto) if waits is None else None

    def read(self, table: Table, columns: Sequence[str], told: Callable[[DataFile, pa.Table], Part]) -> Sequence[Part]:
        """Apply ``told`` to the rows of each file of a table and return the results; only ``columns`` are read. Returns
        nothing where there is no table.
        """
        opened_table = self._opened(table)
        with translate_read_errors(table):
            return [] if opened_table is None else opened_table.each(opened_table.parts(), columns, told)

    def reached(self, table: Table) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition in bronze."""
        opened_table = self._there(table)
        with translate_read_errors(table):
            with_statistics, rest = _split_by_statistics(
                opened_table.parts("partition", "offset"), _is_of_one_partition
            )
            found = [{(_topic(p), p.max_value("partition")): p.max_value("offset") + 1} for p in with_statistics]
            found += opened_table.each(rest, ("partition", "offset"), _end_offsets)
        have: dict[TopicPartition, int] = {}
        for each in found:
            have |= {place: max(end, have.get(place, 0)) for place, end in each.items()}
        return have

    @cached_property
    def _files(self) -> FileSystem:
        return self.store.files()

    @cached_property
    def _listing(self) -> LakeListing:
        return LakeListing(self.store, self._files, self.lake)

    def _kind(self, location: str) -> str | None:
        """Return ``delta``, or None where there is no table of a configured format. Raises ReplicatorError for a Hudi
        table.
        """
        if location not in self.kinds:
            self.kinds[location] = self._listing.kind(location)
        kind = self.kinds[location]
        if kind == "hudi" and kind in self.formats:
            raise ReplicatorError("there is a Hudi table", where=location, fix=SPARK_HINT)
        return kind if kind in self.formats else None

    def _opened(self, table: Table) -> DeltaTable | None:
        if table.location not in self.opened:
            kind = self._kind(table.location)
            with translate_read_errors(table):
                opened_table = None if kind is None else DeltaTable(self.store, self._files, table.location)
            self.opened[table.location] = opened_table
        return self.opened[table.location]

    def _there(self, table: Table) -> DeltaTable:
        found = self._opened(table)
        if found is None:
            raise TableMissing.of(table)
        return found

    def _tally(self, table: Table, columns: Sequence[str], summarize: Callable[[DataFile, pa.Table], Tally]) -> Tally:
        self._there(table)
        return _sum(self.read(table, columns, summarize))

    def _newest(self, table: Table, column: str | None) -> Tally:
        """Return the number of rows, and the newest time in a column."""
        opened_table = self._there(table)
        with translate_read_errors(table):
            columns = () if column is None else (column,)
            with_statistics, rest = _split_by_statistics(
                opened_table.parts(*columns), lambda part: part.has_exact_stats(*columns)
            )
            found = [Tally(part.rows or 0, newest_ms=_ms(part.max_value(column or ""))) for part in with_statistics]
            return _sum([*found, *opened_table.each(rest, columns, lambda _, rows: _tally_times(rows, column))])


def list_statuses(survey: ArrowSurvey) -> list[TableStatus]:
    """Return ``layers.list_statuses``, several tables at a time: an object store answers parallel requests as fast as
    one.
    """
    with ThreadPoolExecutor(_TABLES) as pool:
        return [
            each
            for found in pool.map(lambda inspection: inspection.take(), layers.inspections(survey))
            for each in found
        ]


def _split_by_statistics(
    parts: Iterable[DataFile], is_sufficient: Callable[[DataFile], bool]
) -> tuple[list[DataFile], list[DataFile]]:
    """Return the files with sufficient statistics in the log, and the others."""
    files = [(is_sufficient(part), part) for part in parts]
    return [part for has_statistics, part in files if has_statistics], [
        part for has_statistics, part in files if not has_statistics
    ]


def _sum(found: Iterable[Tally]) -> Tally:
    return reduce(Tally.plus, found, _EMPTY)


def _tally_silver(_: DataFile, rows: pa.Table) -> Tally:
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    hidden = pc.sum(rows["_deleted"]).as_py() or 0
    shown = rows.num_rows - hidden - rows["_deleted"].null_count
    newest = pc.max(rows["_source_ts_ms"]).as_py()
    return Tally(shown, hidden, pc.max(rows["_seq"]).as_py() or "", newest, _count_unknown(rows))


def _count_unknown(rows: pa.Table) -> int:
    """Return the number of rows with an unknown value. Deleted rows have no column positions (M3), and nearly all other
    rows have none either, so the rest is checked one by one.
    """
    positions_by_row = (dict(entries).values() for entries in rows["_column_seq"].drop_null().to_pylist())
    return sum(any(row_state.is_unknown(place) for place in places) for places in positions_by_row)


def _tally_history(_: DataFile, rows: pa.Table) -> Tally:
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    end, start = rows["__END_AT"], rows["__START_AT"]
    shown = pc.sum(pc.or_kleene(pc.is_null(end), pc.greater(end, start))).as_py() or 0
    newest = pc.max(rows["_source_ts_ms"]).as_py()
    return Tally(shown, rows.num_rows - shown, pc.max(rows["_seq"]).as_py() or "", newest)


def _tally_times(rows: pa.Table, column: str | None) -> Tally:
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    if column is None or column not in rows.column_names:
        return Tally(rows.num_rows)
    return Tally(rows.num_rows, newest_ms=_ms(pc.max(rows[column]).as_py()))


def _ms(time: int | None) -> int | None:
    return None if time is None else time // 1000


def _is_of_one_partition(part: DataFile) -> bool:
    """Whether the log shows where the file's records end: they are of one partition and have offset statistics."""
    return part.has_exact_stats("partition", "offset") and part.max_value("partition") == part.stats.get(
        "min.partition"
    )


def _topic(part: DataFile) -> str:
    return str(part.stats["partition.topic"])


def _end_offsets(part: DataFile, rows: pa.Table) -> dict[TopicPartition, int]:
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    numbers = pc.unique(rows["partition"]).to_pylist()  # Table.group_by imports pyarrow's datasets
    last = {number: pc.max(rows["offset"].filter(pc.equal(rows["partition"], number))).as_py() for number in numbers}
    return {(_topic(part), number): offset + 1 for number, offset in last.items()}
