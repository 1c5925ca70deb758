"""B4: delta-rs' merge. DuckDB reads, parses and collapses the events; Arrow hands them over.

``streamed_exec=False``, for then delta-rs takes the range of the changes' keys to leave files out (its own docstring).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties, __version__, write_deltalake

from benchmarks.cdc_ch.contender import APPLY, Case, Contender, events, tables
from benchmarks.cdc_ch.systems import delta_reads, duck
from benchmarks.cdc_ch.tables import WIDE, Kept

_ZSTD = WriterProperties(compression="ZSTD", compression_level=3)


def made(track: str) -> Contender:
    """One of the tracks."""
    return _Apply() if track == APPLY else _Refine()


class _DeltaRs(Contender):
    def about(self) -> Mapping[str, Any]:
        return {"deltalake": __version__, "duckdb": duckdb.__version__, "streamed_exec": False, **duck.SETTINGS}

    def _load(self, files: list[Path], table: Kept, home: Path) -> None:
        for file in files:
            write_deltalake(str(home / table.name), pq.read_table(file), mode="append", writer_properties=_ZSTD)

    def _merge(self, changes: pa.Table, table: Kept, home: Path) -> None:
        values = {name: f"s.{name}" for name in table.names}
        merge = DeltaTable(str(home / table.name)).merge(
            changes,
            " AND ".join(f"t.{key} = s.{key}" for key in table.keys),
            source_alias="s",
            target_alias="t",
            streamed_exec=False,
            writer_properties=_ZSTD,
        )
        merge = merge.when_matched_delete("s.op = 'd'").when_matched_update(values)
        merge.when_not_matched_insert(values, "s.op <> 'd'").execute()


class _Refine(_DeltaRs):
    def start(self, case: Case, home: Path) -> None:
        for table in tables(case):
            self._load([Path(case.input) / "start" / f"{table.name}.parquet"], table, home)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:
        phases = {}
        with closing(duck.opened()) as db:
            for table in tables(case):
                started = time.perf_counter()
                if files := events(case, table, batch):
                    self._merge(db.execute(duck.collapsed(table, files)).to_arrow_table(), table, home)
                    phases[table.name] = time.perf_counter() - started
        return phases

    def upkeep(self, case: Case, home: Path) -> None:
        for table in tables(case):
            DeltaTable(str(home / table.name)).optimize.compact(writer_properties=_ZSTD)

    def ask(self, case: Case, home: Path, query: str) -> Iterable[Sequence[Any]]:  # noqa: ARG002 - it names its tables
        return delta_reads.asked(query, lambda name: DeltaTable(str(home / name)))

    def export(self, case: Case, home: Path, out: Path) -> None:
        for table in tables(case):
            delta_reads.saved(DeltaTable(str(home / table.name)), table, out)


class _Apply(_DeltaRs):
    def start(self, case: Case, home: Path) -> None:
        self._load(sorted(Path(case.target).glob("*.parquet")), WIDE, home)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        self._merge(pq.read_table(f"{case.input}/changes.parquet"), WIDE, home)
        return {}

    def export(self, case: Case, home: Path, out: Path) -> None:  # noqa: ARG002 - the one table
        delta_reads.saved(DeltaTable(str(home / WIDE.name)), WIDE, out)
