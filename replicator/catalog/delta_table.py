"""The current state of a Delta table without a JVM, and without pyarrow's datasets, whose import alone takes longer
than an answer: versions and progress from the log, a few columns of all rows from the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from replicator import restores
from replicator.catalog import delta_scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyarrow.fs import FileSystem

    from replicator.catalog.store import Store

_THREADS = 8
_ROWS = 1 << 16

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class DataFile:
    """A file of the table: its path below the table, and its statistics in the log, such as ``num_records``,
    ``max.<column>``.
    """

    path: str
    stats: Mapping[str, Any]
    live_rows: pa.BooleanArray | None

    @property
    def rows(self) -> int | None:
        """The number of rows; None if the log alone does not tell."""
        return None if self.live_rows is not None else self.stats.get("num_records")

    def has_exact_stats(self, *columns: str) -> bool:
        """Whether :attr:`rows`, and :meth:`max_value` of those columns, can be relied on without reading the rows."""

        def told(column: str) -> bool:
            nulls = self.stats.get(f"null_count.{column}")
            return nulls is not None and (nulls == self.rows or self.max_value(column) is not None)

        return self.rows is not None and all(map(told, columns))

    def max_value(self, column: str) -> Any:
        """The greatest value, None if all are NULL; a time in microseconds."""
        return self.stats.get(f"max.{column}")


class DeltaTable:
    """The newest version, opened once. Raises the errors of delta-rs and pyarrow, and ReplicatorError for an
    unsupported table.
    """

    def __init__(self, store: Store, files: FileSystem, location: str) -> None:
        self._files = files
        self._path = store.path(location)
        self._table = delta_scan.open_table(store, location)
        self._location = location

    @property
    def version(self) -> int:
        """The number of the version."""
        return int(self._table.version())

    @cached_property
    def doubt(self) -> str | None:
        """Why :meth:`progress` is unreliable; None if it is reliable. After a RESTORE, the log has the progress from
        before it until a later commit records another. If the last commit is empty, as after a power failure on a local
        disk, delta-rs uses Delta's checksum file, which contains what was lost with that commit.
        """
        lines = cache(self._lines)
        if lines(self.version) == []:
            return f"the last commit of the table is empty: {_commit_file(self.version)}"
        is_restored = restores.find_pending_restore(map(lines, range(self.version, -1, -1))) is not None
        return "the table was restored to an older version" if is_restored else None

    @property
    def identity(self) -> str:
        """Delta's own table id."""
        return str(self._table.metadata().id)

    def progress(self, application: str) -> int | None:
        """The version of the ``txn`` action of that app id."""
        found = self._table.transaction_version(application)
        return None if found is None else int(found)

    def kind(self, column: str) -> pa.DataType | None:
        """A column's type, None if there is no such column."""
        import pyarrow as pa  # noqa: PLC0415 - on demand, as all of this module

        schema = pa.schema(self._table.schema().to_arrow())
        return schema.field(column).type if column in schema.names else None

    def parts(self, *columns: str) -> list[DataFile]:
        """Return every file of the table, with its partition values and the statistics of those columns."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        delta_scan.refuse_unsupported(self._table, self._location)
        left = delta_scan.selection_vectors(self._table)
        actions_table = pa.RecordBatchReader.from_stream(self._table.get_add_actions(flatten=True)).read_all()
        statistics = {"path", "num_records", *(f"{what}.{c}" for what in ("null_count", "min", "max") for c in columns)}
        wanted = [name for name in actions_table.column_names if name in statistics or name.startswith("partition.")]
        actions = microseconds(actions_table.select(wanted)).to_pylist()
        paths = [unquote(action["path"]) for action in actions]  # paths in the log are URL-encoded
        return [DataFile(p, action, left.get(p.rpartition("/")[2])) for p, action in zip(paths, actions, strict=True)]

    def each(
        self, parts: Iterable[DataFile], columns: Sequence[str], compute: Callable[[DataFile, pa.Table], Part]
    ) -> list[Part]:
        """Return what ``compute`` returns for the live rows of some files, in parallel, one result per batch of rows.
        Only those columns are read; times are in microseconds.
        """

        def of(part: DataFile) -> list[Part]:
            return [compute(part, rows) for rows in self._rows(part, columns)]

        with ThreadPoolExecutor(_THREADS) as pool:
            return [one for every in pool.map(of, parts) for one in every]

    def added(self, after: Mapping[str, int], upto: int) -> int | None:
        """Return the number of rows that commits after a partition's version and up to ``upto`` appended to the
        partitions of ``after``. None if those commits have left the log. For append-only tables with one partition
        column.
        """
        wanted = range(min(after.values(), default=upto) + 1, upto + 1)
        with ThreadPoolExecutor(_THREADS) as pool:
            found = list(pool.map(self._commit, wanted))
        rows = 0
        for version, commit in zip(wanted, found, strict=True):
            if commit is None:
                return None
            for file in commit:
                [partition] = file["partitionValues"].values()
                if file["dataChange"] and version > after.get(partition, upto):
                    rows += self._counted(file)
        return rows

    def _commit(self, version: int) -> list[Mapping[str, Any]] | None:
        """The files that a commit added."""
        lines = self._lines(version)
        return None if lines is None else [action["add"] for action in map(json.loads, lines) if "add" in action]

    def _lines(self, version: int) -> list[str] | None:
        """The actions of a commit, as lines of its file; None if it has left the log."""
        try:
            with self._files.open_input_stream(f"{self._path}/_delta_log/{_commit_file(version)}") as stream:
                return list(filter(None, str(stream.readall(), "utf-8").split("\n")))
        except FileNotFoundError:
            return None

    def _counted(self, file: Mapping[str, Any]) -> int:
        row_count = json.loads(file.get("stats") or "{}").get("numRecords")
        if row_count is not None:
            return int(row_count)
        with self._opened(unquote(file["path"])) as parquet:
            return int(parquet.metadata.num_rows)

    def _rows(self, part: DataFile, columns: Sequence[str]) -> Iterator[pa.Table]:
        import pyarrow as pa  # noqa: PLC0415 - as above

        first = 0
        with self._opened(part.path) as parquet:
            known = parquet.schema_arrow.names
            present = [column for column in columns if column in known] or known[:1]
            for batch in parquet.iter_batches(_ROWS, columns=present):
                rows = microseconds(pa.Table.from_batches([batch]))
                yield rows if part.live_rows is None else delta_scan.drop_deleted(rows, part.live_rows, first)
                first += batch.num_rows

    def _opened(self, path: str) -> Any:
        from pyarrow import parquet  # noqa: PLC0415 - as above

        source = self._files.open_input_file(f"{self._path}/{path}")
        return parquet.ParquetFile(source, coerce_int96_timestamp_unit="us")


def _commit_file(version: int) -> str:
    return f"{version:020d}.json"


def microseconds(rows: pa.Table) -> pa.Table:
    """Return the same rows with times as numbers of microseconds since 1970, UTC: pyarrow's conversion to Python's
    times imports pandas, and has a limited range.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    for index, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            exact = rows.column(index).cast(pa.timestamp("us", field.type.tz), safe=False)
            rows = rows.set_column(index, field.name, exact.cast(pa.int64()))
    return rows
