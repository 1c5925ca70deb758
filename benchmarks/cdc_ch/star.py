"""The input of T4: order lines with their purchases and products, some lines that changed, and the fact that they make.

```
<home>/<name>/meta.json
              start/<table>.parquet     lines, purchases (one for ten lines) and products (a thousand)
              changes/lines.parquet     lines as they are after the change, every n-th of all or the latest
              state/fact.parquet        the fact behind it: the oracle
```
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from benchmarks.cdc_ch.sweep import LATEST
from benchmarks.cdc_ch.tables import FACT, KNOWN

VERSION = 1
PRODUCTS = 1_000
NAMES = ("lines", "purchases", "products")
SQL = (
    "SELECT l.line AS line_key, o.order_id AS order_key, o.customer, o.placed, p.product AS product_key, l.quantity, "
    "l.price, CAST((l.price - p.cost) * l.quantity AS DECIMAL(12,2)) AS profit "
    "FROM {lines} l JOIN {purchases} o ON o.order_id = l.order_id LEFT JOIN {products} p ON p.product = l.product"
)
"""The fact, for DuckDB and Spark alike."""

_LINES = """
    SELECT range AS line, range // 10 AS order_id, CAST(range * 7919 % 1000 AS INTEGER) AS product,
      CAST(1 + (range * 31 + {version}) % 90 AS INTEGER) AS quantity,
      CAST(CAST(range * 104729 % 1000003 AS DECIMAL(14,2)) / 100 AS DECIMAL(12,2)) AS price
    FROM range({first}, {rows}, {step})
"""
_PURCHASES = """
    SELECT range AS order_id, CAST(range * 15485863 % 5000 AS INTEGER) AS customer,
      make_timestamp(1767225600000000 + range * 60000000) AS placed FROM range({rows} // 10 + 1)
"""
_PRODUCTS = """
    SELECT CAST(range AS INTEGER) AS product, CAST(CAST(range * 7 AS DECIMAL(12,2)) / 3 AS DECIMAL(12,2)) AS cost,
      'product ' || range AS name FROM range(1000)
"""


@dataclass(frozen=True)
class Star:
    """So many ``lines``, of which every ``step``-th changes, or as many that are the ``latest``."""

    lines: int
    step: int = 100
    latest: bool = False

    @property
    def changes(self) -> int:
        """How many lines change."""
        return -(-self.lines // self.step)

    @property
    def keys(self) -> str:
        """Which ones, in words."""
        return LATEST if self.latest else f"every {self.step}th"

    @property
    def name(self) -> str:
        """Of the folder: parameters that differ have another."""
        told = json.dumps({"version": VERSION, "duckdb": duckdb.__version__, **asdict(self)}, sort_keys=True)
        return f"star-{self.lines}-{self.step}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def made(star: Star, home: Path) -> Path:
    """Its folder below ``home``, from there if it was made before."""
    folder = home / star.name
    if not (folder / "meta.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("start", "changes", "state"):
            (folder / name).mkdir(parents=True)
        _make(star, folder)
        written = folder / "meta.json.new"
        written.write_text(json.dumps(asdict(star)))
        written.rename(folder / "meta.json")
    return folder


def _make(star: Star, folder: Path) -> None:
    queries = {
        "lines": _LINES.format(version=0, first=0, rows=star.lines, step=1),
        "purchases": _PURCHASES.format(rows=star.lines),
        "products": _PRODUCTS,
    }
    with duckdb.connect(config={"threads": 2}) as db:
        for name, query in queries.items():
            _save(db, f"SELECT {', '.join(KNOWN[name].names)} FROM ({query})", folder / "start" / f"{name}.parquet")
        changes = folder / "changes" / "lines.parquet"
        first, step = (star.lines - star.changes, 1) if star.latest else (0, star.step)
        _save(db, _LINES.format(version=1, first=first, rows=star.lines, step=step), changes)
        old = f"SELECT o.* FROM '{folder}/start/lines.parquet' o ANTI JOIN '{changes}' c USING (line)"
        inputs = {name: f"'{folder}/start/{name}.parquet'" for name in NAMES}
        inputs["lines"] = f"({old} UNION ALL SELECT * FROM '{changes}')"
        _save(db, SQL.format(**inputs), folder / "state" / f"{FACT.name}.parquet")


def _save(db: duckdb.DuckDBPyConnection, query: str, file: Path) -> None:
    db.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
