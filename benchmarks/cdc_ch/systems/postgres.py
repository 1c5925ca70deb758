"""T5: a batch of changed rows, prepared, into a table of PostgreSQL: our sink, and what people write instead.

Each system has a server of its own, whose work is counted as the system's; it is told nothing but to be small.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.csv as pc
import pyarrow.parquet as pq
from psycopg2.extras import execute_values
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.cdc_ch import process
from benchmarks.cdc_ch.contender import Case, Contender
from benchmarks.cdc_ch.systems import blog, engine, ours
from benchmarks.cdc_ch.tables import WIDE
from infra.local import Stack
from replicator.protocols import Difference
from replicator.sinks.postgres import PostgresConnection, PostgresSink
from replicator.spec import Model, ModelColumn, Progress, Target

MODEL = Model(
    WIDE.name,
    "",
    {},
    WIDE.keys,
    tuple(ModelColumn(name, kind, nullable=name not in WIDE.keys) for name, kind in WIDE.postgres),
    target=Target("warehouse", "bench", WIDE.name),
)
_NAMES = ", ".join(WIDE.names)
_DDL = ", ".join(f"{name} {kind}" for name, kind in WIDE.postgres)
_UPSERT = f"ON CONFLICT ({', '.join(WIDE.keys)}) DO UPDATE SET " + ", ".join(
    f"{name} = EXCLUDED.{name}" for name in WIDE.names if name not in WIDE.keys
)


def made(work: Path, heap: str, kind: str) -> Contender:
    """One of the ways: ``ours``, ``jdbc``, ``copy``, ``rows``."""
    if kind == "ours":
        return _Ours(work, ours.spark(heap))
    if kind == "jdbc":
        return _Jdbc(work, blog.spark(heap, tuned=False))
    return _Copy(work) if kind == "copy" else _Rows(work)


class Served(Contender):
    """``start.wide`` is the table that every run starts from, ``bench.wide`` the one that it changes."""

    def __init__(self, work: Path) -> None:
        self._place = work / "server"
        self._stack = Stack(self._place)
        own = self._stack.up(["postgres"], owner=os.getpid()).postgres
        self._at = PostgresConnection(own.host, own.port, own.database, own.user, own.password, sslmode="disable")

    def about(self) -> Mapping[str, Any]:
        """Versions of server and client."""
        with self._session() as session:
            return {"postgresql": session.server_version, "psycopg2": version("psycopg2-binary")}

    def start(self, case: Case, home: Path) -> None:  # noqa: ARG002 - the server keeps it
        """The table that runs start from."""
        with self._session() as session, session.cursor() as cursor:
            cursor.execute(
                f"DROP SCHEMA IF EXISTS start CASCADE; CREATE SCHEMA start; CREATE TABLE start.wide ({_DDL})"
            )
            for file in sorted(Path(case.target).glob("*.parquet")):
                cursor.copy_expert(f"COPY start.wide ({_NAMES}) FROM STDIN CSV", _csv(file, WIDE.names))
            self._make(cursor)

    def arrive(self, case: Case, home: Path, batch: int) -> None:  # noqa: ARG002 - the server keeps it
        """The table as it was, and its statistics known."""
        with self._session() as session, session.cursor() as cursor:
            cursor.execute(f"TRUNCATE bench.wide; INSERT INTO bench.wide ({_NAMES}) SELECT {_NAMES} FROM start.wide")
        with closing(self._at.open()) as session:
            session.autocommit = True
            with session.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE bench.wide")

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the server has it
        """By COPY."""
        (out / WIDE.name).mkdir()
        file = out / WIDE.name / "all.csv"
        with self._session() as session, session.cursor() as cursor, file.open("wb") as written:
            cursor.copy_expert(f"COPY (SELECT {_NAMES} FROM bench.wide) TO STDOUT CSV", written)
        kinds = {name: WIDE.duck(name) for name in WIDE.names}
        with duckdb.connect() as db:
            rows = f"SELECT * FROM read_csv('{file}', header = false, columns = {kinds})"
            db.execute(f"COPY ({rows}) TO '{out}/{WIDE.name}/all.parquet' (FORMAT parquet)")

    def servers(self) -> Sequence[int]:
        """The one whose child answers."""
        with self._session() as session:
            return [process.parent(session.info.backend_pid)]

    def close(self) -> None:
        """The server stops."""
        self._stack.down()

    def _make(self, cursor: Any) -> None:
        cursor.execute("CREATE SCHEMA IF NOT EXISTS bench")
        cursor.execute(f"CREATE TABLE IF NOT EXISTS bench.wide ({_DDL}, PRIMARY KEY ({', '.join(WIDE.keys)}))")

    @contextmanager
    def _session(self) -> Iterator[Any]:
        """A transaction."""
        with closing(self._at.open()) as session, session:
            yield session


class _Ours(engine.OnSpark, Served):
    """The sink. A complete first difference makes the table and the ledger."""

    def __init__(self, work: Path, spark: SparkSession) -> None:
        super().__init__(work)
        self._spark, self._sink, self._version = spark, PostgresSink(self._at), 0

    def start(self, case: Case, home: Path) -> None:
        super().start(case, home)
        self._publish(f"{case.target}/*.parquet", F.lit("upsert"), complete=True)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        operation = F.when(F.col("op") == "d", "delete").otherwise("upsert")
        self._publish(f"{case.input}/changes.parquet", operation, complete=False)
        return {}

    def _publish(self, files: str, operation: Any, *, complete: bool) -> None:
        self._version += 1
        rows = self._spark.read.parquet(files).select(*WIDE.names, operation.alias("_op"))
        self._sink.publish([Difference(MODEL, rows, Progress("gold", self._version), complete=complete)])

    def _make(self, cursor: Any) -> None:
        """The sink does, and refuses a table that it has not made."""


class _Jdbc(engine.OnSpark, Served):
    """Spark's JDBC writer into a staging table, as its documentation shows it, then an upsert on the server."""

    def __init__(self, work: Path, spark: SparkSession) -> None:
        super().__init__(work)
        self._spark = spark

    def about(self) -> Mapping[str, Any]:
        return {**super().about(), "spark": self._spark.version}

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        at = self._at
        jdbc = {"driver": "org.postgresql.Driver", "user": at.user, "password": at.password}
        rows = self._spark.read.parquet(f"{case.input}/changes.parquet").drop("lsn")
        url = f"jdbc:postgresql://{at.host}:{at.port}/{at.database}"
        rows.write.jdbc(url, "bench.staged", mode="overwrite", properties=jdbc)
        with self._session() as session, session.cursor() as cursor:
            _take(cursor, "bench.staged")
        return {}


class _Copy(Served):
    """COPY into a temporary table, then an upsert, in one transaction."""

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        with self._session() as session, session.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE staged (LIKE bench.wide, op text) ON COMMIT DROP")
            given = _csv(Path(case.input) / "changes.parquet", (*WIDE.names, "op"))
            cursor.copy_expert(f"COPY staged ({_NAMES}, op) FROM STDIN CSV", given)
            _take(cursor, "staged")
        return {}


class _Rows(Served):
    """Statements of a thousand rows each, with ``execute_values``."""

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        changes = pq.read_table(f"{case.input}/changes.parquet").drop_columns(["lsn"])
        rows = list(zip(*(column.to_pylist() for column in changes.columns), strict=True))
        with self._session() as session, session.cursor() as cursor:
            upserts = [row[:-1] for row in rows if row[-1] != "d"]
            execute_values(cursor, f"INSERT INTO bench.wide ({_NAMES}) VALUES %s {_UPSERT}", upserts, page_size=1000)
            deletes = [row[:1] for row in rows if row[-1] == "d"]
            gone = "DELETE FROM bench.wide t USING (VALUES %s) AS s (id) WHERE t.id = s.id"
            execute_values(cursor, gone, deletes, page_size=1000)
        return {}


def _take(cursor: Any, staged: str) -> None:
    cursor.execute(f"DELETE FROM bench.wide t USING {staged} s WHERE s.op = 'd' AND t.id = s.id")
    cursor.execute(f"INSERT INTO bench.wide ({_NAMES}) SELECT {_NAMES} FROM {staged} WHERE op <> 'd' {_UPSERT}")


def _csv(file: Path, names: tuple[str, ...]) -> io.BytesIO:
    """Rows as COPY reads them."""
    written = io.BytesIO()
    pc.write_csv(pq.read_table(file, columns=list(names)), written, pc.WriteOptions(include_header=False))
    written.seek(0)
    return written
