"""What T6 serves: TPC-C's sales as a star in PostgreSQL, kept by the product from nine replicated tables.

``fact_sales`` has a row per order line, with its order; ``dim_customer`` one per customer; ``dim_stock`` one per
warehouse and item. Beside what is compared each row has ``updated_at``: when the newest of what it is made of was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.cdc_ch.contender import CORES
from benchmarks.cdc_ch.records import SCHEMA, SOURCE
from benchmarks.cdc_ch.tables import DIM_CUSTOMER, DIM_STOCK, FACT_SALES, TPCC, Kept
from infra.local import Endpoints

ENV, TARGET, TARGET_SCHEMA = "flow", "warehouse", "star"
SENT = "updated_at"
_BASE = Path(__file__).resolve().parents[2] / "conf" / "base.yaml"


@dataclass(frozen=True)
class Served:
    """A model: the columns that are compared, what each is in a query over ``inputs`` (alias -> table), how these are
    joined, and by which columns an affected row is found.
    """

    table: Kept
    selected: str
    inputs: Mapping[str, str]
    joined: str
    lineage: Mapping[str, tuple[str, ...]]

    def oracle(self, state: Path) -> str:
        """What it must hold, for DuckDB, where ``state`` has the source's tables."""
        places = {name: f"'{state}/{name}.parquet'" for name in self.inputs.values()}
        return f"SELECT {self.selected} FROM {self.joined.format(**places)}"

    @property
    def sql(self) -> str:
        """As the product gets it."""
        times = [f"{alias}._source_ts_ms" for alias in self.inputs]
        newest = f"greatest({', '.join(times)})" if len(times) > 1 else times[0]
        return f"SELECT {self.selected}, timestamp_millis({newest}) AS {SENT} FROM {self.joined}\n"

    @property
    def keys(self) -> Mapping[str, Any]:
        """The model's file."""
        columns: dict[str, Any] = {name: {"type": kind} for name, kind in self.table.postgres}
        return {
            "key": list(self.table.keys),
            "inputs": {name: f"{SOURCE}/{SCHEMA}.{name}" for name in self.inputs.values()},
            "lineage": {name: list(found) for name, found in self.lineage.items()},
            "columns": columns | {SENT: {"type": "timestamp(3)"}},
            "publish": {"target": TARGET, "schema": TARGET_SCHEMA, "table": self.table.name},
        }


STAR = (
    Served(
        FACT_SALES,
        "l.ol_w_id AS w_id, l.ol_d_id AS d_id, l.ol_o_id AS o_id, l.ol_number AS line, o.o_c_id AS customer, "
        "l.ol_i_id AS item, o.o_entry_d AS entered, o.o_carrier_id AS carrier, l.ol_delivery_d AS delivered, "
        "l.ol_quantity AS quantity, l.ol_amount AS amount",
        {"l": "orderline", "o": "orders"},
        "{orderline} l JOIN {orders} o ON o.o_w_id = l.ol_w_id AND o.o_d_id = l.ol_d_id AND o.o_id = l.ol_o_id",
        {"orderline": ("w_id", "d_id", "o_id", "line"), "orders": ("w_id", "d_id", "o_id")},
    ),
    Served(
        DIM_CUSTOMER,
        "c.c_w_id AS w_id, c.c_d_id AS d_id, c.c_id AS customer, c.c_first AS first_name, c.c_last AS last_name, "
        "c.c_credit AS credit, c.c_balance AS balance, c.c_payment_cnt AS payments, c.c_since AS since",
        {"c": "customer"},
        "{customer} c",
        {"customer": ("w_id", "d_id", "customer")},
    ),
    Served(
        DIM_STOCK,
        "s.s_w_id AS w_id, s.s_i_id AS item, i.i_name AS name, i.i_price AS price, s.s_quantity AS quantity, "
        "s.s_ytd AS sold, s.s_order_cnt AS orders",
        {"s": "stock", "i": "item"},
        "{stock} s JOIN {item} i ON i.i_id = s.s_i_id",
        {"stock": ("w_id", "item"), "item": ("item",)},
    ),
)


def configured(home: Path, at: Endpoints, heap: str) -> Path:
    """The folder of the configuration, as a user would write it: the product's defaults, and where everything is."""
    own = at.postgres
    place = {"host": own.host, "port": own.port, "database": own.database, "sslmode": "disable"}
    login = {"kind": "postgres", "user": own.user, "password": own.password}
    environment = {
        "lake": {"root": str(home / "lake")},
        "kafka": {"bootstrap_servers": at.kafka},
        "targets": {TARGET: place | login},
        "spark": {"spark.master": f"local[{CORES}]", "spark.driver.memory": heap},
    }
    tables = {f"{SCHEMA}.{table.name}": {"columns": dict(table.declared)} for table in TPCC.values()}
    conf = home / "conf"
    for folder in ("sources", "models"):
        (conf / folder).mkdir(parents=True)
    (conf / "base.yaml").write_text(_BASE.read_text())
    _write(conf / f"{ENV}.yaml", environment)
    _write(conf / "sources" / f"{SOURCE}.yaml", {"name": SOURCE, "tables": tables})
    for model in STAR:
        _write(conf / "models" / f"{model.table.name}.yaml", model.keys)
        (conf / "models" / f"{model.table.name}.sql").write_text(model.sql)
    return conf


def _write(file: Path, value: Mapping[str, Any]) -> None:
    file.write_text(yaml.safe_dump(value, sort_keys=False))
