"""B8: dlt's merge into Delta by its filesystem destination. DuckDB reads, parses and collapses the events, as for B4;
Arrow hands them over, and dlt takes one load for all tables of a batch: extract, normalize, load.

It is in an environment of its own (``make bench-dlt``): its dependencies are many, and none of them ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import deltalake
import dlt
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from dlt.destinations import filesystem

from benchmarks.cdc_ch.contender import Case, Contender, events, tables
from benchmarks.cdc_ch.systems import delta_reads, duck
from benchmarks.cdc_ch.tables import Kept

_GONE = "gone"
_DATASET = "silver"
SETTINGS = {"strategy": "upsert", "deltalake_streamed_exec": False, "telemetry": False}


def made() -> Contender:
    """The one track."""
    dlt.config["runtime.dlthub_telemetry"] = False
    return _Refine()


class _Refine(Contender):
    def about(self) -> Mapping[str, Any]:
        told = {"dlt": dlt.__version__, "deltalake": deltalake.__version__, "duckdb": duckdb.__version__}
        return {**told, **SETTINGS, **duck.SETTINGS}

    def start(self, case: Case, home: Path) -> None:
        rows = ((table, pq.read_table(f"{case.input}/start/{table.name}.parquet")) for table in tables(case))
        _merged(home, [_resource(table, _marked(some)) for table, some in rows])

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:
        with closing(duck.opened()) as db:
            _merged(home, [_resource(table, _marked(some)) for table, some in _changes(db, case, batch)])
        return {}

    def upkeep(self, case: Case, home: Path) -> None:
        for table in tables(case):
            _kept(home, table.name).optimize.compact()

    def ask(self, case: Case, home: Path, query: str) -> Iterable[Sequence[Any]]:  # noqa: ARG002 - it names its tables
        return delta_reads.asked(query, lambda name: _kept(home, name))

    def export(self, case: Case, home: Path, out: Path) -> None:
        for table in tables(case):
            delta_reads.saved(_kept(home, table.name), table, out)


def _changes(db: duckdb.DuckDBPyConnection, case: Case, batch: int) -> Iterator[tuple[Kept, pa.Table]]:
    for table in tables(case):
        if files := events(case, table, batch):
            yield table, db.execute(duck.collapsed(table, files)).to_arrow_table()


def _marked(rows: pa.Table) -> pa.Table:
    """With a mark where ``op`` says that the row is gone, instead of it; rows that are there first have none."""
    if "op" not in rows.column_names:
        return rows.append_column(_GONE, pa.array([False] * len(rows)))
    gone = pa.compute.equal(rows.column("op"), "d")
    return rows.drop_columns(["op"]).append_column(_GONE, gone)


def _resource(table: Kept, rows: pa.Table) -> Any:
    return dlt.resource(
        rows,
        name=table.name,
        primary_key=list(table.keys),
        write_disposition={"disposition": "merge", "strategy": "upsert"},
        table_format="delta",
        columns={_GONE: {"hard_delete": True}},
    )


def _merged(home: Path, resources: list[Any]) -> None:
    target = filesystem(bucket_url=str(home), deltalake_streamed_exec=False)
    pipeline = dlt.pipeline("cdc_ch", str(home / "pipelines"), destination=target, dataset_name=_DATASET)
    pipeline.run(resources).raise_on_failed_jobs()


def _kept(home: Path, name: str) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(str(home / _DATASET / name))
