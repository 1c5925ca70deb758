"""Four queries in the manner of CH-benCHmark over the tables that a run left: what its way of writing costs readers.

They are aggregates that every engine answers alike: sums and counts, whose order a key decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from string import Formatter
from typing import Any

from benchmarks.cdc_ch.contender import REFINE, SOAK, Case, tables

Answer = list[list[str]]

_LINES_OF_ORDER = "l.ol_w_id = o.o_w_id AND l.ol_d_id = o.o_d_id AND l.ol_o_id = o.o_id"
QUERIES = {
    "Q1": "SELECT ol_number, count(*) AS lines, sum(ol_quantity) AS quantity, sum(ol_amount) AS amount "
    "FROM {orderline} WHERE ol_delivery_d > TIMESTAMP '2020-01-01 00:00:00' GROUP BY ol_number ORDER BY ol_number",
    "Q6": "SELECT count(*) AS lines, sum(ol_amount) AS amount FROM {orderline} WHERE ol_quantity BETWEEN 1 AND 5 "
    "AND ol_delivery_d >= TIMESTAMP '2020-01-01 00:00:00' AND ol_delivery_d < TIMESTAMP '2030-01-01 00:00:00'",
    "Q12": "SELECT o.o_ol_cnt, sum(CASE WHEN o.o_carrier_id <= 2 THEN 1 ELSE 0 END) AS soon, "
    "sum(CASE WHEN o.o_carrier_id > 2 THEN 1 ELSE 0 END) AS late "
    f"FROM {{orders}} o JOIN {{orderline}} l ON {_LINES_OF_ORDER} "
    "WHERE o.o_entry_d <= l.ol_delivery_d GROUP BY o.o_ol_cnt ORDER BY o.o_ol_cnt",
    "Q18": "SELECT o.o_w_id, o.o_d_id, o.o_id, c.c_id, c.c_last, o.o_ol_cnt, sum(l.ol_amount) AS amount "
    "FROM {customer} c JOIN {orders} o ON c.c_w_id = o.o_w_id AND c.c_d_id = o.o_d_id AND c.c_id = o.o_c_id "
    f"JOIN {{orderline}} l ON {_LINES_OF_ORDER} "
    "GROUP BY o.o_w_id, o.o_d_id, o.o_id, c.c_id, c.c_last, o.o_ol_cnt HAVING sum(l.ol_amount) > 200 "
    "ORDER BY amount DESC, o.o_w_id, o.o_d_id, o.o_id LIMIT 100",
}
"""Pricing of delivered lines, a forecast, late orders by their number of lines, and great orders with their customers;
tables stand in braces.
"""


def of(case: Case) -> Mapping[str, str]:
    """Those that a case's tables can answer: none where the tables are not TPC-C's."""
    if case.track not in (REFINE, SOAK):
        return {}
    held = {table.name for table in tables(case)}
    return {name: query for name, query in QUERIES.items() if set(sources(query)) <= held}


def sources(query: str) -> list[str]:
    """The tables that it reads."""
    return list(dict.fromkeys(name for _, name, _, _ in Formatter().parse(query) if name))


def answer(rows: Iterable[Sequence[Any]]) -> Answer:
    """Values as texts: 5.00 and 5 are the same number, whichever type an engine gives a sum."""
    return [[_text(value) for value in row] for row in rows]


def _text(value: Any) -> str:
    is_number = isinstance(value, (int, float, Decimal))
    return f"{Decimal(str(value)).normalize():f}" if is_number else str(value)
