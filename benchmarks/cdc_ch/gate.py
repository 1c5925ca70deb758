"""The correctness gate: what a system left is compared with the oracle; a wrong result has no time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from benchmarks.cdc_ch import reads
from benchmarks.cdc_ch.contender import COLLAPSE, Case
from benchmarks.cdc_ch.reads import Answer
from benchmarks.cdc_ch.tables import KNOWN, Kept, of_columns


def problems(case: Case, exported: Path) -> list[str]:
    """A sentence for each table that is not as the oracle says; none where all are."""
    oracle = Path(case.input)
    with _opened() as db:
        if case.track == COLLAPSE:
            return [told for table in _touched(db, oracle) for told in _collapsed(db, table, oracle, exported)]
        files = sorted((oracle / "state").glob("*.parquet"))
        tables = [of_columns(file.stem, pq.read_schema(file).names) for file in files]
        found = []
        for table in tables:
            wanted = f"SELECT * FROM '{oracle}/state/{table.name}.parquet'"
            found += _differing(db, table, table.names, wanted, _rows(exported, table))
        return found


def wrong_answers(case: Case, answers: Mapping[str, Answer]) -> list[str]:
    """A sentence for each query whose answer is not what the oracle's rows give."""
    wanted = {name: oracles_answer(case.input, query) for name, query in reads.of(case).items()}
    return [f"{name}: the answer is wrong" for name, given in answers.items() if given != wanted[name]]


@cache
def oracles_answer(oracle: str, query: str) -> Answer:
    """Of a folder's rows, which never change: computed once."""
    files = {name: f"'{oracle}/state/{name}.parquet'" for name in reads.sources(query)}
    with _opened() as db:
        return reads.answer(db.sql(query.format(**files)).fetchall())


def differing(table: Kept, wanted: str, given: str) -> list[str]:
    """The same of one table, by queries for what it should hold and what it holds."""
    with _opened() as db:
        return _differing(db, table, table.names, wanted, given)


def _touched(db: duckdb.DuckDBPyConnection, oracle: Path) -> list[Kept]:
    files = sorted((oracle / "touched").glob("*.parquet"))
    counts = {file.stem: db.sql(f"SELECT count(*) FROM '{file}'").fetchall()[0][0] for file in files}
    return [KNOWN[name] for name, count in counts.items() if count]


def _collapsed(db: duckdb.DuckDBPyConnection, table: Kept, oracle: Path, exported: Path) -> list[str]:
    keys, touched = ", ".join(table.keys), f"'{oracle}/touched/{table.name}.parquet'"
    live = f"SELECT s.* FROM '{oracle}/state/{table.name}.parquet' s SEMI JOIN {touched} t USING ({keys})"
    found, rows = [], _rows(exported, table)
    found += _differing(db, table, table.names, live, f"SELECT * FROM ({rows}) WHERE NOT deleted")
    gone = f"SELECT {keys} FROM {touched} WHERE deleted"
    return found + _differing(db, table, table.keys, gone, f"SELECT {keys} FROM ({rows}) WHERE deleted")


def _rows(exported: Path, table: Kept) -> str:
    return f"SELECT * FROM '{exported}/{table.name}/*.parquet'"


def _differing(
    db: duckdb.DuckDBPyConnection, table: Kept, names: tuple[str, ...], wanted: str, given: str
) -> list[str]:
    """By count and a sum of hashes; where these differ, row by row."""
    typed = ", ".join(f'CAST("{name}" AS {table.duck(name)}) AS "{name}"' for name in names)
    quoted = ", ".join(f'"{name}"' for name in names)
    sides = [f"SELECT {typed} FROM ({side})" for side in (wanted, given)]
    try:
        sums = [f"SELECT count(*), sum(CAST(hash({quoted}) AS HUGEINT)) FROM ({side})" for side in sides]
        if _oracles(sums[0]) == db.sql(sums[1]).fetchall():
            return []
        lacking, odd = (
            db.sql(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()[0][0]
            for one, other in (sides, sides[::-1])
        )
    except duckdb.Error as error:
        return [f"{table.name}: {str(error).splitlines()[0]}"]
    return [f"{table.name}: {lacking} rows are missing, {odd} are not the source's"]


@cache
def _oracles(query: str) -> list[tuple[int, int]]:
    """Of a file that never changes: computed once."""
    with _opened() as db:
        return db.sql(query).fetchall()


def _opened() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    return db
