"""B5: DuckDB reads the events' Parquet files, parses and collapses them, and merges into tables of its own file."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.cdc_ch import reads
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, CORES, Case, Contender, events, tables
from benchmarks.cdc_ch.tables import TIME, WIDE, Kept

_FILE = "tables.duckdb"
SETTINGS = {"threads": CORES, "memory_limit": "8GB", "preserve_insertion_order": False, "TimeZone": "UTC"}


def made(track: str) -> Contender:
    """One of the tracks."""
    kinds: dict[str, type[_Duck]] = {COLLAPSE: _Collapse, APPLY: _Apply}
    return kinds.get(track, _Refine)()


def opened(file: Path | str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A connection with the settings."""
    db = duckdb.connect(str(file))
    for name, value in SETTINGS.items():
        db.execute(f"SET {name} = '{value}'")
    return db


def collapsed(table: Kept, files: Sequence[str]) -> str:
    """A query of the newest change of each key: the columns and ``op``. Only what is used is parsed."""
    after = {name: _wire(table, name) for name in table.names}
    before = {name: _wire(table, name) for name in table.keys}
    parts = {"op": "VARCHAR", "after": after, "before": before, "source": {"lsn": "BIGINT"}}
    keys = ", ".join(f"coalesce(e.after.{key}, e.before.{key})" for key in table.keys)
    parsed = f"SELECT from_json(value, '{json.dumps(parts)}') AS e FROM read_parquet({list(files)})"
    return (
        f"SELECT {', '.join(_value(table, name) for name in table.names)}, e.op AS op "
        f"FROM ({parsed} WHERE value IS NOT NULL) "
        f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY e.source.lsn DESC) = 1"
    )


class _Duck(Contender):
    """``_db`` is open from when events arrive until the result was read: a run ends with its commit."""

    def __init__(self) -> None:
        self._db = opened()

    def about(self) -> Mapping[str, Any]:
        return {"duckdb": duckdb.__version__, **SETTINGS}

    def start(self, case: Case, home: Path) -> None:
        pass

    def arrive(self, case: Case, home: Path, batch: int) -> None:  # noqa: ARG002 - files are there
        if batch == 0:
            self._db.close()
            self._db = opened(home / _FILE)

    def close(self) -> None:
        self._db.close()

    def _merge(self, changes: str, table: Kept) -> None:
        same_key = " AND ".join(f"t.{key} = s.{key}" for key in table.keys)
        updates = ", ".join(f"{name} = s.{name}" for name in table.names if name not in table.keys)
        self._db.execute(
            f"MERGE INTO {table.name} t USING ({changes}) s ON {same_key} WHEN MATCHED AND s.op = 'd' THEN DELETE "
            + (f"WHEN MATCHED THEN UPDATE SET {updates} " if updates else "")
            + f"WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({', '.join(table.names)}) "
            f"VALUES ({', '.join(f's.{name}' for name in table.names)})"
        )

    def _load(self, home: Path, tables: Mapping[Kept, str]) -> None:
        with closing(opened(home / _FILE)) as db:
            for table, files in tables.items():
                db.execute(f"CREATE TABLE {table.name} AS SELECT * FROM '{files}'")

    def _save(self, tables: list[Kept], out: Path) -> None:
        for table in tables:
            (out / table.name).mkdir()
            self._db.execute(f"COPY {table.name} TO '{out}/{table.name}/all.parquet' (FORMAT parquet)")


class _Refine(_Duck):
    def start(self, case: Case, home: Path) -> None:
        self._load(home, {table: f"{case.input}/start/{table.name}.parquet" for table in tables(case)})

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - it is open
        phases = {}
        for table in tables(case):
            started = time.perf_counter()
            if files := events(case, table, batch):
                self._merge(collapsed(table, files), table)
                phases[table.name] = time.perf_counter() - started
        return phases

    def ask(self, case: Case, home: Path, query: str) -> Iterable[Sequence[Any]]:  # noqa: ARG002 - it is open
        return self._db.execute(query.format(**{name: name for name in reads.sources(query)})).fetchall()

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - it is open
        self._save(tables(case), out)


class _Collapse(_Duck):
    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - nothing is kept
        for table in tables(case):
            if files := events(case, table):
                reader = self._db.execute(collapsed(table, files)).to_arrow_reader(100_000)
                deque(reader or (), maxlen=0)
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - nothing was kept
        for table in tables(case):
            if files := events(case, table):
                (out / table.name).mkdir()
                rows = f"SELECT * EXCLUDE op, op = 'd' AS deleted FROM ({collapsed(table, files)})"
                self._db.execute(f"COPY ({rows}) TO '{out}/{table.name}/all.parquet' (FORMAT parquet)")


class _Apply(_Duck):
    def start(self, case: Case, home: Path) -> None:
        self._load(home, {WIDE: f"{case.target}/*.parquet"})

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        self._merge(f"SELECT * FROM '{case.input}/changes.parquet'", WIDE)
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the one table
        self._save([WIDE], out)


def _wire(table: Kept, name: str) -> str:
    return "BIGINT" if dict(table.columns)[name] == TIME else table.duck(name)


def _value(table: Kept, name: str) -> str:
    image = f"coalesce(e.after.{name}, e.before.{name})" if name in table.keys else f"e.after.{name}"
    return f"make_timestamp({image}) AS {name}" if dict(table.columns)[name] == TIME else f"{image} AS {name}"
