"""DuckDB in this process: no JVM, no server. It shows the tables as Spark does, and only those that a query names.

They are views over the lake's files, or private copies of streams that can be read only once; so no query can change
the lake. DuckDB has no access to other files, the network or the process's variables either.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from replicator.catalog import delta_scan, extras, hudi_scan, tables
from replicator.catalog.as_of import AsOf
from replicator.catalog.read_errors import translate_read_errors
from replicator.catalog.store import SPARK_HINT
from replicator.errors import ConfigError, ReplicatorError, VersionMissing, first_line
from replicator.transforms.user_view import describe_view

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa
    from pyarrow.fs import FileSystem

    from replicator.catalog.store import Store
    from replicator.lake import Lake
    from replicator.protocols.engine import Answer, Dialect
    from replicator.spec import CommittedVersion, Table

_BATCH = 10_000
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
_UNKNOWN_TABLE = "Catalog Error: Table with name "
_READ_FAILED = "reading the stream registered as"
"""Part of DuckDB's message if Arrow could not read the lake: the query is not at fault then."""

_SETTINGS = (
    "TimeZone = 'UTC'",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",
)
"""No Python variable is a table, no file and no network address is accessible, and no query can change that. The order
is significant.
"""


class DuckdbEngine:
    """``Engine`` on DuckDB for one lake, as of ``when`` or as it is now. A table is opened once, at the version that it
    has at that time.
    """

    dialect: Dialect = "duckdb"
    guards_itself = False

    def __init__(self, store: Store, lake: Lake, when: int | datetime | None = None) -> None:
        self._duckdb = extras.load("duckdb")
        self._store = store
        self._files: FileSystem = store.files()
        self._listing = tables.LakeListing(store, self._files, lake)
        self._silver = self._listing.silver()
        self._past = AsOf(when, self._moment)
        # for queries that exceed the memory; it lives as long as the connection
        self._spill = tempfile.TemporaryDirectory(prefix="replicator-sql-", ignore_cleanup_errors=True)
        self._connection: Any = self._duckdb.connect()
        self._connection.execute("SET temp_directory = ?", [self._spill.name])
        for setting in _SETTINGS:
            self._connection.execute(f"SET {setting}")
        self._opened: set[str] = set()

    @property
    def databases(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """The databases of silver."""
        return tables.databases(self._silver)

    def ask(self, query: str, limit: int | None) -> Answer:
        """Run one query; its rows are computed as they are read."""
        from replicator.catalog.arrow_texts import ArrowAnswer  # noqa: PLC0415 - on demand, with pyarrow

        known = tables.views_for(query, self._silver, self._listing.gold())
        if _SHOW_TABLES.fullmatch(query):
            # DuckDB would list only opened tables, by their internal names
            query = f"SELECT unnest([{', '.join(map(_literal, sorted(known)))}]::VARCHAR[]) AS name"
        else:
            self._open_named(query, known)
        rows = self._asked(query, known, _BATCH if limit is None else max(1, min(_BATCH, limit)))
        return ArrowAnswer(_translated(rows))

    def summary(self) -> str | None:
        """The versions that were read, if older ones were requested."""
        return self._past.summary()

    def _open_named(self, query: str, known: Mapping[str, Table]) -> None:
        tables.refuse_case_conflict(known, query)
        for name, table in known.items():
            is_wanted = name not in self._opened and tables.is_named(name, query)
            if is_wanted and self._past.resolve(name, table, partial(self._open, name)):
                self._opened.add(name)

    def _asked(self, query: str, known: Mapping[str, Table], batch: int) -> Any:
        try:
            return self._connection.sql(query).to_arrow_reader(batch)
        except self._duckdb.CatalogException as error:
            if _UNKNOWN_TABLE not in str(error):  # a function or a type: DuckDB's suggestions are of that kind
                raise ConfigError(_error_line(error)) from error
            self._past.explain(first_line(error))
            known_names = ", ".join(sorted(known)) or "no tables in this lake yet"
            raise ConfigError(first_line(error), fix=f"Available: {known_names}.") from error
        except self._duckdb.Error as error:
            raise _query_error(error) from error

    def _moment(self, table: Table, when: int | datetime) -> CommittedVersion:
        if self._listing.kind(table.location) == "hudi":
            raise VersionMissing(
                f"{table.name} is in Hudi: its older versions cannot be read here",
                where=table.location,
                fix=SPARK_HINT,
            )
        with translate_read_errors(table):
            return delta_scan.resolve_version(self._store, self._files, table, when)

    def _open(self, name: str, table: Table, version: int | None) -> None:
        with translate_read_errors(table):
            if self._listing.kind(table.location) == "hudi":
                self._open_hudi(name, table)
            else:
                self._open_delta(name, table, version)

    def _open_delta(self, name: str, table: Table, version: int | None) -> None:
        rows = delta_scan.scan(self._store, self._files, table.location, version)
        stored = f"{name} at rest"
        self._connection.register(stored, rows)
        self._connection.execute(f"CREATE TEMP VIEW {_quote(name)} AS {_select(stored, rows.schema.names)}")

    def _open_hudi(self, name: str, table: Table) -> None:
        rows = hudi_scan.scan(self._store, table.location)
        self._connection.register("arriving", rows)
        self._connection.execute(f"CREATE TEMP TABLE {_quote(name)} AS {_select('arriving', rows.schema.names)}")
        self._connection.unregister("arriving")


def _translated(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows, which DuckDB computes as they are read: what fails then is translated, too."""
    import pyarrow as pa  # noqa: PLC0415 - on demand

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except (OSError, pa.ArrowException) as error:
            raise _query_error(error) from error

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _query_error(error: Exception) -> ReplicatorError:
    """The error of a query that failed: by its own fault, or because a table cannot be read."""
    if _READ_FAILED in str(error):
        return ReplicatorError(f"a table cannot be read: {first_line(error)}", fix=SPARK_HINT)
    return ConfigError(_error_line(error))


def _select(source: str, stored: Sequence[str]) -> str:
    """The query that shows a stored table to users."""
    view = describe_view(stored)
    columns = ", ".join(f"{_quote(column)} AS {_quote(name)}" for column, name in view.columns)
    where = "" if view.condition is None else f" WHERE {view.condition}"
    return f"SELECT {columns} FROM {_quote(source)}{where}"  # noqa: S608 - names are quoted


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _error_line(error: Exception) -> str:
    """DuckDB's message in one line, with its suggestions, and without the query."""
    return " ".join(str(error).split("\nLINE ", 1)[0].split())
