"""The lab: changes to the live source, one transaction each, and what the star schema must hold after each."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pymysql

    from infra.sources.shape import Value

SNAPSHOT: Mapping[str, int] = {"dim_customers": 122, "dim_products": 110, "fact_orders": 2996}
"""Rows of the star before the first step."""


@dataclass(frozen=True)
class Statement:
    """One SQL statement with ``%s`` for each parameter."""

    sql: str
    parameters: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Changed:
    """Rows of a star table that a step adds, rewrites and removes, told apart by the primary key in Postgres."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Step:
    """One transaction on the source.

    ``changes`` names the star tables that it touches (the others do not move); ``rows`` counts all three afterwards,
    when the steps before it ran in their order.
    """

    name: str
    statements: tuple[Statement, ...]
    changes: Mapping[str, Changed] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)


def run(connection: pymysql.Connection, step: Step) -> float:
    """Commit the step's statements as one transaction; the epoch second at which COMMIT returned.

    The connection is in the source's database with nothing pending. When a statement fails nothing of the step stays.
    """
    connection.begin()
    try:
        with closing(connection.cursor()) as cursor:
            for statement in step.statements:
                cursor.execute(statement.sql, statement.parameters)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return time.time()


def _customer(number: int, name: str, **others: Value) -> dict[str, Value]:
    return {"customerNumber": number, "customerName": name, **others}


def _ship(code: str, name: str, vendor: str, description: str, **others: Value) -> dict[str, Value]:
    ship: dict[str, Value] = {"productCode": code, "productName": name, "productLine": "Ships", "productScale": "1:700"}
    return {**ship, "productVendor": vendor, "productDescription": description, **others}


def _insert(table: str, *records: Mapping[str, Value]) -> Statement:
    columns, places = ", ".join(records[0]), ", ".join(["%s"] * len(records[0]))
    rows = ", ".join([f"({places})"] * len(records))
    values = tuple(value for record in records for value in record.values())
    return Statement(f"INSERT INTO {table} ({columns}) VALUES {rows}", values)


_NEW_CUSTOMERS = _insert(
    "customers",
    _customer(
        498,
        "Great Toys",
        contactLastName="Smith",
        contactFirstName="Jhon",
        phone="1234567",
        addressLine1="106 Linden Road Sandown",
        addressLine2="4th Floor",
        city="Singapore",
        state=None,
        postalCode=69045,  # spelled 069045 in the lab, and a number: the server stores the text 69045
        country="Singapore",
        salesRepEmployeeNumber=1621,
        creditLimit=Decimal(10000),
    ),
    _customer(
        500,
        "Games & Toys",
        contactLastName="Murphy",
        contactFirstName=" Susan",
        phone="987654321",
        addressLine1="5540 North Pendale Street",
        addressLine2="Level 2",
        city="San Francisco",
        state="CA",
        postalCode=94217,
        country="USA",
        salesRepEmployeeNumber=1165,
        creditLimit=Decimal("0.0"),
    ),
    _customer(
        501,
        "Scaled Toys Distributors, Ltd.",
        contactLastName="Young",
        contactFirstName="Mary",
        phone="212557411",
        addressLine1="4092 Furth Circle",
        addressLine2="Suite 500",
        city="NYC",
        state="NY",
        postalCode=10022,
        country="USA",
        salesRepEmployeeNumber=1504,
        creditLimit=Decimal(200000),
    ),
)
_NEW_PRODUCTS = _insert(
    "products",
    _ship(
        "S700_5000",
        "Santisima Trinidad",
        "Autoart Studio Design",
        "A ship of the line with four decks.",
        quantityInStock=500,
        buyPrice=Decimal("40.00"),
        MSRP=Decimal("75.00"),
    ),
    _ship(
        "S700_5001",
        "Couronne",
        "Unimax Art Galleries",
        "A galleon with a gilded stern.",
        quantityInStock=10,
        buyPrice=Decimal("31.20"),
        MSRP=Decimal("50.00"),
    ),
)


STEPS: tuple[Step, ...] = (
    Step(
        "insert customers 498, 500, 501",
        (_NEW_CUSTOMERS,),
        {"dim_customers": Changed(inserted=3)},
        {"dim_customers": 125, "dim_products": 110, "fact_orders": 2996},
    ),
    Step(
        "delete customer 501",
        (Statement("DELETE FROM customers WHERE customerNumber = %s", (501,)),),
        {"dim_customers": Changed(deleted=1)},
        {"dim_customers": 124, "dim_products": 110, "fact_orders": 2996},
    ),
    Step(
        "insert products S700_5000, S700_5001",
        (_NEW_PRODUCTS,),
        {"dim_products": Changed(inserted=2)},
        {"dim_customers": 124, "dim_products": 112, "fact_orders": 2996},
    ),
    Step(
        "change scale and vendor of S700_5001",
        (
            Statement(
                "UPDATE products SET productScale = %s, productVendor = %s WHERE productCode = %s",
                ("1:500", "Autoart Studio Design", "S700_5001"),
            ),
        ),
        {"dim_products": Changed(updated=1)},
        {"dim_customers": 124, "dim_products": 112, "fact_orders": 2996},
    ),
    Step(
        "move order 10100 to customer 103",
        (Statement("UPDATE orders SET customerNumber = %s WHERE orderNumber = %s", (103, 10100)),),
        {"fact_orders": Changed(inserted=4, deleted=4)},  # the customer is part of the fact's primary key
        {"dim_customers": 124, "dim_products": 112, "fact_orders": 2996},
    ),
    Step(
        "delete line 1 of order 10100",
        (Statement("DELETE FROM orderdetails WHERE orderNumber = %s AND orderLineNumber = %s", (10100, 1)),),
        {"fact_orders": Changed(deleted=1)},
        {"dim_customers": 124, "dim_products": 112, "fact_orders": 2995},
    ),
)
"""In the order in which they must run, each once, on a source that still has its first rows."""
