"""The tables of TPC-C as their columns are declared, written on the wire, and kept; and the few of T2 and T4.

A row is a list of values in the order of its columns: whole numbers, texts, None; money in cents and rates in
ten-thousandths, so that sums are exact; times in microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

MONEY, RATE, TIME = "decimal(12,2)", "decimal(4,4)", "micro_timestamp"
SPARSE = "text"
"""A text that may be NULL: a ``string`` always is one."""
_DIVISORS = {MONEY: 100, RATE: 10_000}
_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    SPARSE: pa.string(),
    MONEY: pa.decimal128(12, 2),
    RATE: pa.decimal128(4, 4),
    TIME: pa.timestamp("us"),
}
_POSTGRES = {"int": "integer", "string": "text", TIME: "timestamp"}
_SPARK = {TIME: "TIMESTAMP_NTZ", SPARSE: "STRING"}
_DUCK = {"int": "INTEGER", "string": "VARCHAR", SPARSE: "VARCHAR", TIME: "TIMESTAMP"}


@dataclass(frozen=True)
class Kept:
    """A table: ``columns`` are (name, kind), of which the first ``width`` are its key; kinds are ``int``, ``bigint``,
    ``string``, SPARSE, MONEY, RATE and TIME.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    width: int

    @property
    def keys(self) -> tuple[str, ...]:
        """The key's columns."""
        return tuple(name for name, _ in self.columns[: self.width])

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def schema(self) -> pa.Schema:
        """As Arrow has it."""
        return pa.schema([(name, _ARROW[kind]) for name, kind in self.columns])

    @property
    def declared(self) -> tuple[tuple[str, str], ...]:
        """(column, logical type) as a source's file declares it where ``decimal.handling.mode`` is ``string``."""
        return tuple((name, kind.replace("decimal(", "decimal_string(")) for name, kind in self.columns)

    @property
    def postgres(self) -> tuple[tuple[str, str], ...]:
        """(column, PostgreSQL's type)."""
        return tuple((name, _POSTGRES.get(kind, kind.replace("decimal", "numeric"))) for name, kind in self.columns)

    def spark(self, name: str) -> str:
        """Spark's type of a column."""
        kind = dict(self.columns)[name]
        return _SPARK.get(kind, kind.upper())

    def duck(self, name: str) -> str:
        """DuckDB's type of a column."""
        kind = dict(self.columns)[name]
        return _DUCK.get(kind, kind.upper())

    def on_wire(self, name: str) -> str:
        """What a column is in an event's JSON: ``string``, ``int`` or ``bigint``."""
        kind = dict(self.columns)[name]
        return "bigint" if kind == TIME else "string" if kind in (*_DIVISORS, SPARSE) else kind

    def batch(self, rows: Sequence[Sequence[Any]]) -> pa.Table:
        """Rows as Arrow has them, with real decimals and times."""
        values = zip(*rows, strict=True) if rows else [()] * len(self.columns)
        arrays = [_array(kind, column) for (_, kind), column in zip(self.columns, values, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def writer(self) -> Callable[[Sequence[Any]], str]:
        """What makes a row's JSON, without spaces."""
        written = [_written(kind) for _, kind in self.columns]
        template = "{" + ",".join(f'"{name}":{_slot(kind)}' for name, kind in self.columns) + "}"
        return lambda row: template % tuple([w(v) if w else v for w, v in zip(written, row, strict=True)])

    def key_writer(self) -> Callable[[Sequence[Any]], str]:
        """What makes the JSON of a row's key."""
        template = "{" + ",".join(f'"{name}":%s' for name in self.keys) + "}"
        width = self.width
        return lambda row: template % tuple(row[:width])


def decimal_text(value: int, divisor: int = 100) -> str:
    """A number of hundredths, or of other parts, as PostgreSQL writes it."""
    places = len(str(divisor)) - 1
    return f"{value / divisor:.{places}f}"


def _slot(kind: str) -> str:
    return '"%s"' if kind == "string" or kind in _DIVISORS else "%s"


def _written(kind: str) -> Callable[[Any], Any] | None:
    if kind == "string":
        return None
    if kind in _DIVISORS:
        divisor = _DIVISORS[kind]
        return lambda value: decimal_text(value, divisor)
    if kind == SPARSE:
        return lambda value: "null" if value is None else f'"{value}"'
    return lambda value: "null" if value is None else value


def _array(kind: str, values: Sequence[Any]) -> pa.Array:
    if kind in _DIVISORS:
        divisor = _DIVISORS[kind]
        return pa.array([Decimal(decimal_text(value, divisor)) for value in values], _ARROW[kind])
    return pa.array(values, _ARROW[kind])


def _of(name: str, width: int, columns: str) -> Kept:
    kinds = {"i": "int", "l": "bigint", "s": "string", "m": MONEY, "r": RATE, "t": TIME}
    pairs = [column.split(":") for column in columns.split()]
    return Kept(name, tuple((column, kinds[kind]) for column, kind in pairs), width)


WAREHOUSE = _of("warehouse", 1, "w_id:i w_name:s w_street:s w_city:s w_state:s w_zip:s w_tax:r w_ytd:m")
DISTRICT = _of(
    "district", 2, "d_w_id:i d_id:i d_name:s d_street:s d_city:s d_state:s d_zip:s d_tax:r d_ytd:m d_next_o_id:i"
)
CUSTOMER = _of(
    "customer",
    3,
    "c_w_id:i c_d_id:i c_id:i c_first:s c_middle:s c_last:s c_street:s c_city:s c_state:s c_zip:s c_phone:s c_since:t "
    "c_credit:s c_credit_lim:m c_discount:r c_balance:m c_ytd_payment:m c_payment_cnt:i c_delivery_cnt:i c_data:s",
)
HISTORY = _of("history", 1, "h_id:l h_c_id:i h_c_d_id:i h_c_w_id:i h_d_id:i h_w_id:i h_date:t h_amount:m h_data:s")
NEWORDER = _of("neworder", 3, "no_w_id:i no_d_id:i no_o_id:i")
ORDERS = _of("orders", 3, "o_w_id:i o_d_id:i o_id:i o_c_id:i o_entry_d:t o_carrier_id:i o_ol_cnt:i o_all_local:i")
ORDERLINE = _of(
    "orderline",
    4,
    "ol_w_id:i ol_d_id:i ol_o_id:i ol_number:i ol_i_id:i ol_supply_w_id:i ol_delivery_d:t ol_quantity:i ol_amount:m "
    "ol_dist_info:s",
)
ITEM = _of("item", 1, "i_id:i i_im_id:i i_name:s i_price:m i_data:s")
STOCK = _of(
    "stock",
    2,
    "s_w_id:i s_i_id:i s_quantity:i "
    + " ".join(f"s_dist_{number:02}:s" for number in range(1, 11))
    + " s_ytd:i s_order_cnt:i s_remote_cnt:i s_data:s",
)
TPCC = {
    table.name: table for table in (WAREHOUSE, DISTRICT, CUSTOMER, HISTORY, NEWORDER, ORDERS, ORDERLINE, ITEM, STOCK)
}
"""TPC-C's tables; ``history`` has a number for a key, which TPC-C leaves out and a captured table needs."""

GROWN_CUSTOMER = Kept(CUSTOMER.name, (*CUSTOMER.columns, ("c_tier", SPARSE)), CUSTOMER.width)
"""Customers behind a change of their schema: older rows have no tier."""

WIDE = _of("wide", 1, "id:l kind:i amount:i price:m stamp:t name:s city:s note:s")
"""The synthetic table: 8 columns, about 130 bytes a row."""

LINES = _of("lines", 1, "line:l order_id:l product:i quantity:i price:m")
PURCHASES = _of("purchases", 1, "order_id:l customer:i placed:t")
PRODUCTS = _of("products", 1, "product:i cost:m name:s")
FACT = _of("fact", 1, "line_key:l order_key:l customer:i placed:t product_key:i quantity:i price:m profit:m")
"""T4's tables, and what is made of them."""

FACT_SALES = _of(
    "fact_sales",
    4,
    "w_id:i d_id:i o_id:i line:i customer:i item:i entered:t carrier:i delivered:t quantity:i amount:m",
)
DIM_CUSTOMER = _of(
    "dim_customer",
    3,
    "w_id:i d_id:i customer:i first_name:s last_name:s credit:s balance:m payments:i since:t",
)
DIM_STOCK = _of("dim_stock", 2, "w_id:i item:i name:s price:m quantity:i sold:i orders:i")
"""What T6 serves."""

KNOWN = TPCC | {table.name: table for table in (WIDE, LINES, PURCHASES, PRODUCTS, FACT)}


def of_columns(name: str, columns: Sequence[str]) -> Kept:
    """The table of this name with these columns: known, or grown."""
    return GROWN_CUSTOMER if (name, tuple(columns)) == (CUSTOMER.name, GROWN_CUSTOMER.names) else KNOWN[name]
