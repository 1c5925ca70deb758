"""The eight tables as Python sees them: columns with their types, and the primary key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from infra.sources.shape import Shape

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
