"""The lab on Northwind's outbox: two changes to the live source, and what must come of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from infra.lab import Statement
from infra.sources.northwind.trade import LAST, LATER, LINES, ORDERS

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from infra.sources.shape import Value


@dataclass(frozen=True)
class Held:
    """How much there is: messages of the outbox's topic, rows of outbox and silver, rows of gold's order_items."""

    messages: int
    orders: int
    items: int


@dataclass(frozen=True)
class Step:
    """One transaction on the source, and what there is afterwards when the steps before it ran in their order."""

    name: str
    statements: tuple[Statement, ...]
    held: Held


SNAPSHOT = Held(messages=len(ORDERS), orders=len(ORDERS), items=LINES)
"""Before the first step: 829 messages, all of the snapshot; 829 orders; 2,152 lines."""


def run(connection: Connection, step: Step) -> None:
    """Commit the step's statements as one transaction; when one fails nothing of the step stays.

    The connection has nothing pending and the schema in its search path, as every new one to the database has.
    """
    with connection, connection.cursor() as cursor:
        for statement in step.statements:
            cursor.execute(statement.sql, statement.parameters)


def _insert(table: str, record: Mapping[str, Value]) -> Statement:
    columns, places = ", ".join(record), ", ".join(["%s"] * len(record))
    return Statement(f"INSERT INTO {table} ({columns}) VALUES ({places})", tuple(record.values()))


def _line(product: int, unit_price: int, quantity: int) -> Statement:
    line = {"order_id": LATER, "product_id": product, "unit_price": unit_price, "quantity": quantity}
    return _insert("order_details", {**line, "discount": Decimal("0.150000006")})


STEPS = (
    Step(
        "ship order 11077",
        (Statement("UPDATE orders SET shipped_date = %s WHERE order_id = %s", (date(1998, 6, 15), LAST)),),
        Held(messages=830, orders=829, items=2152),
    ),
    Step(
        "insert order 11075 with three lines",
        (
            _insert(
                "orders",
                {
                    "order_id": LATER,
                    "customer_id": "RICSU",
                    "employee_id": 8,
                    "order_date": date(1998, 5, 6),
                    "required_date": date(1998, 6, 3),
                    "shipped_date": None,
                    "ship_via": 2,
                    "freight": Decimal("6.19000006"),
                    "ship_name": "Richter Supermarkt",
                    "ship_address": "Starenweg 5",
                    "ship_city": "Genève",
                    "ship_region": None,
                    "ship_postal_code": "1204",
                    "ship_country": "Switzerland",
                },
            ),
            _line(2, unit_price=19, quantity=10),
            _line(46, unit_price=12, quantity=30),
            _line(76, unit_price=18, quantity=2),
        ),
        Held(messages=834, orders=830, items=2155),
    ),
)
"""In the order in which they must run, each once, on a source that still has its first rows."""
