"""A Delta table without a JVM: delta-rs reads the log, pyarrow the files.

delta-rs has its own reader, but it interprets Spark's INT96 timestamps as nanoseconds: times before 1677 or after 2262
silently become other times. pyarrow is set to read microseconds.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from replicator import damage, time_travel
from replicator.catalog import extras
from replicator.catalog.store import SPARK_HINT
from replicator.errors import ConfigError, ReplicatorError, VersionMissing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyarrow import dataset
    from pyarrow.fs import FileSystem

    from replicator.catalog.store import Store
    from replicator.spec import CommittedVersion, Table

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
_SUPPORTED_FEATURES = {"deletionVectors", "timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"}


def scan(store: Store, files: FileSystem, location: str, version: int | None = None) -> dataset.Dataset:
    """Return all rows of a version, by default the newest, with the columns as stored; only the log and files with
    deleted rows are read at once. Raises ReplicatorError for a table with unsupported features.
    """
    from pyarrow import dataset  # noqa: PLC0415 - on demand, as all of this module

    table = open_table(store, location, version)
    refuse_unsupported(table, location)
    fragments = list(_fragments(table, files, store.path(location)))
    selections = selection_vectors(table)
    schema = _schema(table)
    plain = [fragment for name, fragment in fragments if name not in selections]
    undeleted = dataset.FileSystemDataset(plain, schema, _format(), files)
    remaining = [
        drop_deleted(fragment.to_table(schema=schema), selections[name])
        for name, fragment in fragments
        if name in selections
    ]
    return dataset.dataset([undeleted, dataset.dataset(remaining)]) if remaining else undeleted


def resolve_version(store: Store, files: FileSystem, table: Table, when: int | datetime) -> CommittedVersion:
    """Return the selected version, all of whose files still exist. Raises VersionMissing; ConfigError for a time if
    Delta keeps commit times elsewhere than in the times of its log's files.
    """
    from pyarrow import fs  # noqa: PLC0415 - as above

    path = store.path(table.location)
    if (
        isinstance(when, datetime)
        and open_table(store, table.location).metadata().configuration.get(_IN_COMMIT_TIMESTAMPS) == "true"
    ):
        raise ConfigError(
            f"{table.name} stores commit times inside its commits", where=table.location, fix="Give a version."
        )
    log = files.get_file_info(fs.FileSelector(f"{path}/_delta_log"))
    known = time_travel.list_delta_versions(
        (each.base_name, each.mtime_ns // 1_000_000) for each in log if each.mtime_ns is not None
    )
    found = time_travel.select(table, known, when, time_travel.RETENTION_HINT)
    if found.version == known[-1].version:
        return found
    paths = [f"{path}/{relative}" for relative, _ in _actions(open_table(store, table.location, found.version))]
    if any(each.type is fs.FileType.NotFound for each in files.get_file_info(paths)):
        what = f"{time_travel.describe(found)} of {table.name} no longer has all of its files"
        raise VersionMissing(
            what,
            where=table.location,
            fix=f"{time_travel.RETENTION_HINT} `--engine spark` reports the oldest one kept.",
        )
    return found


def open_table(store: Store, location: str, version: int | None = None) -> Any:
    """Return the table as opened by delta-rs, which reads its log. Raises ReplicatorError for a truncated commit, and
    for a path that delta-rs would misinterpret.
    """
    deltalake = extras.load("deltalake")
    escape = _ESCAPE.search(store.path(location))
    if escape is not None:
        what = f"the table's path contains {escape.group()}, which is read as a different character"
        raise ReplicatorError(what, where=location, fix=SPARK_HINT)
    try:
        return deltalake.DeltaTable(store.url(location), version, storage_options=store.options())
    except deltalake.exceptions.DeltaError:
        torn = _find_torn_commit(store, location)
        if torn is None:
            raise
        message = f"{damage.TORN_COMMIT}: {torn}"
        raise ReplicatorError(message, where=location, fix=damage.repair_hint(message)) from None


def _find_torn_commit(store: Store, location: str) -> str | None:
    """The commit of the log that is not JSON; None also if the log cannot be read."""
    log, files = f"{location}/_delta_log", store.files()

    def text(name: str) -> str:
        with files.open_input_stream(store.path(f"{log}/{name}")) as stream:
            return str(stream.readall(), "utf-8")

    try:
        name = damage.find_torn_commit(store.names(files, log), text)
    except (OSError, ReplicatorError):
        return None
    return None if name is None else f"{log}/{name}"


def refuse_unsupported(table: Any, location: str) -> None:
    """Raise ReplicatorError, naming the feature, if the files contain anything but the rows and deleted rows."""
    protocol = table.protocol()
    unknown = {*(protocol.reader_features or ())} - _SUPPORTED_FEATURES
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        unknown.add("columnMapping")
    if unknown:
        needed = ", ".join(sorted(unknown))
        raise ReplicatorError(f"reading this Delta table needs {needed}", where=location, fix=SPARK_HINT)


def _schema(table: Any) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return pa.schema(table.schema().to_arrow()).remove_metadata()


def _format() -> dataset.ParquetFileFormat:
    from pyarrow import dataset  # noqa: PLC0415 - as above

    return dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")


def _fragments(table: Any, files: FileSystem, path: str) -> Iterator[tuple[str, dataset.Fragment]]:
    """Every file of the table: its name, and the fragment to read it."""
    for relative, action in _actions(table):
        where = _partition(action.get("partition") or {})
        yield relative.rpartition("/")[2], _format().make_fragment(f"{path}/{relative}", files, where)


def _actions(table: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every file of the table: its path below the table, and its entry in the log."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    added = pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()
    wanted = [column for column in ("path", "partition") if column in added.column_names]
    for action in added.select(wanted).to_pylist():
        yield unquote(action["path"]), action  # paths in the log are URL-encoded


def _partition(values: Mapping[str, Any]) -> Any:
    """A file's partition values, which are not in the file, as an expression."""
    from pyarrow import dataset  # noqa: PLC0415 - as above

    expression: Any = None
    for column, value in values.items():
        field = dataset.field(column)
        one = field.is_null() if value is None else field == value
        expression = one if expression is None else expression & one
    return expression


def selection_vectors(table: Any) -> dict[str, pa.BooleanArray]:
    """Return, for each file with deleted rows, by its name, which rows are left; the vector may end after the last
    deleted row.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    vectors = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all()  # pa.table() imports pandas
    named = zip(vectors["filepath"].to_pylist(), vectors["selection_vector"], strict=True)
    return {unquote(path).rpartition("/")[2]: selection.values for path, selection in named}


def drop_deleted(rows: pa.Table, selection: pa.BooleanArray, first: int = 0) -> pa.Table:
    """Return those of a file's rows, beginning with row number ``first``, that are not deleted."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    mask = selection[first : first + rows.num_rows]
    return pa.concat_tables([rows.slice(0, len(mask)).filter(mask), rows.slice(len(mask))])
