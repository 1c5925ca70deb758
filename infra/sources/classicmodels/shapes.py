"""The eight tables as Python sees them: columns with their types, and the primary key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

Value = int | str | Decimal | date | bytes | None
Row = tuple[Value, ...]
Rows = Mapping[str, tuple[Row, ...]]
"""Table name -> its rows; values in the order of the table's columns."""


@dataclass(frozen=True)
class Shape:
    """One table: the Python type of each column in DDL order (NULL is always None), and the primary key."""

    columns: Mapping[str, type]
    key: tuple[str, ...]

    def record(self, row: Row) -> dict[str, Value]:
        """The row with its column names."""
        return dict(zip(self.columns, row, strict=True))

    def row(self, record: Mapping[str, Value]) -> Row:
        """The record's values in column order; a column that it does not name is NULL."""
        return tuple(record.get(column) for column in self.columns)


SHAPES: Mapping[str, Shape] = {
    "productlines": Shape(
        {"productLine": str, "textDescription": str, "htmlDescription": str, "image": bytes}, ("productLine",)
    ),
    "products": Shape(
        {
            "productCode": str,
            "productName": str,
            "productLine": str,
            "productScale": str,
            "productVendor": str,
            "productDescription": str,
            "quantityInStock": int,
            "buyPrice": Decimal,
            "MSRP": Decimal,
        },
        ("productCode",),
    ),
    "offices": Shape(
        {
            "officeCode": str,
            "city": str,
            "phone": str,
            "addressLine1": str,
            "addressLine2": str,
            "state": str,
            "country": str,
            "postalCode": str,
            "territory": str,
        },
        ("officeCode",),
    ),
    "employees": Shape(
        {
            "employeeNumber": int,
            "lastName": str,
            "firstName": str,
            "extension": str,
            "email": str,
            "officeCode": str,
            "reportsTo": int,
            "jobTitle": str,
        },
        ("employeeNumber",),
    ),
    "customers": Shape(
        {
            "customerNumber": int,
            "customerName": str,
            "contactLastName": str,
            "contactFirstName": str,
            "phone": str,
            "addressLine1": str,
            "addressLine2": str,
            "city": str,
            "state": str,
            "postalCode": str,
            "country": str,
            "salesRepEmployeeNumber": int,
            "creditLimit": Decimal,
        },
        ("customerNumber",),
    ),
    "payments": Shape(
        {"customerNumber": int, "checkNumber": str, "paymentDate": date, "amount": Decimal},
        ("customerNumber", "checkNumber"),
    ),
    "orders": Shape(
        {
            "orderNumber": int,
            "orderDate": date,
            "requiredDate": date,
            "shippedDate": date,
            "status": str,
            "comments": str,
            "customerNumber": int,
        },
        ("orderNumber",),
    ),
    "orderdetails": Shape(
        {
            "orderNumber": int,
            "productCode": str,
            "quantityOrdered": int,
            "priceEach": Decimal,
            "orderLineNumber": int,
        },
        ("orderNumber", "productCode"),
    ),
}
"""Tables in the order in which foreign keys allow them to be filled."""
