"""How those without Spark read what they left in Delta: by delta-rs' own engine, which knows deletion vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from benchmarks.cdc_ch import reads
from benchmarks.cdc_ch.tables import Kept


def asked(query: str, table: Callable[[str], DeltaTable]) -> Iterable[Sequence[Any]]:
    """The rows of a query over tables by their names."""
    names, engine = reads.sources(query), QueryBuilder()
    for name in names:
        engine.register(name, table(name))
    rows = pa.table(engine.execute(query.format(**{name: name for name in names})))
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def saved(kept: DeltaTable, table: Kept, out: Path) -> None:
    """All rows, where the gate reads them."""
    (out / table.name).mkdir()
    rows = QueryBuilder().register("t", kept).execute(f"SELECT {', '.join(table.names)} FROM t")
    pq.write_table(pa.table(rows), out / table.name / "all.parquet")
