"""The input of T2 and T5: a table of N rows, d prepared changes of it, and what it must be afterwards.

```
<home>/<target>/<n>.parquet         rows sorted by key, ROWS_PER_FILE in each file
<home>/<name>/meta.json
              changes.parquet       one change per key: the row, ``op`` (``u`` or ``d``) and ``lsn``
              state/wide.parquet    the rows behind them: the oracle
```
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.cdc_ch.tables import WIDE

VERSION = 1
ROWS_PER_FILE = 500_000
"""Some 20 MB of the synthetic table: every lake begins with files of so many rows (performance.md section 6)."""

UNIFORM, ZIPF, LATEST = "uniform", "zipf", "latest"
MIXES = {"insert": (0.0, 0.0), "mixed": (0.75, 0.05), "half": (0.5, 0.0), "update": (1.0, 0.0), "delete": (0.5, 0.5)}
"""The shares of updates and of deletes; what is left is inserted behind the greatest key."""

_ROW = """
    {id} AS id, CAST({m} % 97 AS INTEGER) AS kind, CAST({m} % 100003 AS INTEGER) AS amount,
    CAST(CAST({m} % 10000019 AS DECIMAL(18,2)) / 100 AS DECIMAL(12,2)) AS price,
    make_timestamp(1767225600000000 + CAST({m} % 31536000000000 AS BIGINT)) AS stamp,
    'name ' || lpad(CAST({m} AS VARCHAR), 19, '0') AS name,
    ['Aachen','Bergen','Coimbra','Dijon','Esbjerg','Firenze','Gdansk','Heraklion']
        [CAST({m} % 8 AS INTEGER) + 1] AS city,
    md5(CAST({m} AS VARCHAR)) AS note
"""


@dataclass(frozen=True)
class Sweep:
    """``rows`` in the table and ``changes`` of so many keys, chosen ``uniform``, ``zipf`` (0.99) or from the ``latest``
    hundredth of the keys.
    """

    rows: int
    changes: int
    keys: str = UNIFORM
    mix: str = "mixed"
    seed: int = 20261123

    @property
    def name(self) -> str:
        """Of the folder: parameters that differ have another."""
        return f"sweep-{self.rows}-{self.changes}-{self.keys}-{_digest(asdict(self))}"

    @property
    def target(self) -> str:
        """Of the folder of the table, which all sweeps of so many rows share."""
        return f"target-{self.rows}-{_digest({'rows': self.rows})}"


def made(sweep: Sweep, home: Path) -> Path:
    """Its folder below ``home``, from there if it was made before."""
    folder = home / sweep.name
    if not (folder / "meta.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "state").mkdir(parents=True)
        _make(sweep, folder, _target(sweep, home))
        written = folder / "meta.json.new"
        written.write_text(json.dumps(asdict(sweep)))
        written.rename(folder / "meta.json")
    return folder


def chosen(sweep: Sweep) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The keys of updates and of deletes: different ones, all below ``rows``."""
    updates, deletes = (round(share * sweep.changes) for share in MIXES[sweep.mix])
    count, rng = updates + deletes, np.random.default_rng(sweep.seed)
    if count > sweep.rows:
        raise ValueError(f"{count} of {sweep.rows} keys cannot change")
    if sweep.keys == LATEST:
        pool = min(sweep.rows, max(sweep.rows // 100, 2 * count))
        keys = sweep.rows - 1 - rng.choice(pool, count, replace=False)
    elif sweep.keys == ZIPF:
        keys = _zipf(sweep.rows, count, rng)
    else:
        keys = rng.choice(sweep.rows, count, replace=False)
    keys = rng.permutation(keys)
    return keys[:updates], keys[updates:]


def _zipf(rows: int, count: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Different keys drawn with a probability that falls with their rank to the power of 0.99; ranks lie all over the
    table.
    """
    weights = np.cumsum(1 / np.arange(1, rows + 1) ** 0.99)
    ranks = np.empty(0, dtype=np.int64)
    while len(ranks) < count:
        drawn = np.searchsorted(weights, rng.random(2 * count) * weights[-1])
        _, first = np.unique(np.concatenate([ranks, drawn]), return_index=True)
        ranks = np.concatenate([ranks, drawn])[np.sort(first)]
    return rng.permutation(rows)[ranks[:count]]


def _digest(parameters: Mapping[str, Any]) -> str:
    told = json.dumps({"version": VERSION, "duckdb": duckdb.__version__, **parameters}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _target(sweep: Sweep, home: Path) -> Path:
    folder, unfinished = home / sweep.target, home / f"{sweep.target}.new"
    if not folder.exists():
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        with duckdb.connect(config={"threads": 2}) as db:
            for number, start in enumerate(range(0, sweep.rows, ROWS_PER_FILE)):
                rows = f"SELECT {_row('range', 0)} FROM range({start}, {min(start + ROWS_PER_FILE, sweep.rows)})"
                _save(db, rows, unfinished / f"{number:04}.parquet")
        unfinished.rename(folder)
    return folder


def _make(sweep: Sweep, folder: Path, target: Path) -> None:
    updates, deletes = chosen(sweep)
    inserts = np.arange(sweep.rows, sweep.rows + sweep.changes - len(updates) - len(deletes))
    ids = np.concatenate([updates, inserts, deletes])
    ops = np.concatenate([np.full(len(ids) - len(deletes), "u"), np.full(len(deletes), "d")])
    order = np.random.default_rng(sweep.seed + 1).permutation(len(ids))
    with duckdb.connect(config={"threads": 2}) as db:
        db.register("picked", {"id": ids[order], "op": ops[order], "lsn": np.arange(len(ids)) * 180 + 1_000})
        _save(db, f"SELECT {_row('picked.id', 1)}, op, lsn FROM picked", folder / "changes.parquet")
        kept = f"SELECT * FROM '{target}/*.parquet' WHERE id NOT IN (SELECT id FROM picked)"
        new = f"SELECT {', '.join(WIDE.names)} FROM '{folder}/changes.parquet' WHERE op = 'u'"
        _save(db, f"{kept} UNION ALL {new}", folder / "state" / "wide.parquet")


def _row(number: str, version: int) -> str:
    mixed = f"((CAST({number} AS HUGEINT) * 2654435761987 + {version} * 40503765431) % 9223372036854775783)"
    return _ROW.format(id=f"CAST({number} AS BIGINT)", m=mixed)


def _save(db: duckdb.DuckDBPyConnection, query: str, file: Path) -> None:
    db.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
