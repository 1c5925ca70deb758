"""The eleven tables as Python sees them: columns with their types, and the primary key. ``real`` is a Decimal here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from infra.sources.shape import Shape

_COMPANY = ("company_name", "contact_name", "contact_title", "address", "city", "region", "postal_code", "country")
_REACHED_BY = ("phone", "fax")


def _texts(*names: str) -> dict[str, type]:
    return dict.fromkeys(names, str)


SHAPES: Mapping[str, Shape] = {
    "categories": Shape(
        {"category_id": int, **_texts("category_name", "description"), "picture": bytes}, ("category_id",)
    ),
    "suppliers": Shape({"supplier_id": int, **_texts(*_COMPANY, *_REACHED_BY, "homepage")}, ("supplier_id",)),
    "products": Shape(
        {
            "product_id": int,
            "product_name": str,
            "supplier_id": int,
            "category_id": int,
            "quantity_per_unit": str,
            "unit_price": Decimal,
            "units_in_stock": int,
            "units_on_order": int,
            "reorder_level": int,
            "discontinued": int,
        },
        ("product_id",),
    ),
    "region": Shape({"region_id": int, "region_description": str}, ("region_id",)),
    "territories": Shape({**_texts("territory_id", "territory_description"), "region_id": int}, ("territory_id",)),
    "employees": Shape(
        {
            "employee_id": int,
            **_texts("last_name", "first_name", "title", "title_of_courtesy"),
            "birth_date": date,
            "hire_date": date,
            **_texts("address", "city", "region", "postal_code", "country", "home_phone", "extension"),
            "photo": bytes,
            "notes": str,
            "reports_to": int,
            "photo_path": str,
        },
        ("employee_id",),
    ),
    "employee_territories": Shape({"employee_id": int, "territory_id": str}, ("employee_id", "territory_id")),
    "customers": Shape(_texts("customer_id", *_COMPANY, *_REACHED_BY), ("customer_id",)),
    "shippers": Shape({"shipper_id": int, **_texts("company_name", "phone")}, ("shipper_id",)),
    "orders": Shape(
        {
            "order_id": int,
            "customer_id": str,
            "employee_id": int,
            "order_date": date,
            "required_date": date,
            "shipped_date": date,
            "ship_via": int,
            "freight": Decimal,
            **_texts("ship_name", "ship_address", "ship_city", "ship_region", "ship_postal_code", "ship_country"),
        },
        ("order_id",),
    ),
    "order_details": Shape(
        {"order_id": int, "product_id": int, "unit_price": Decimal, "quantity": int, "discount": Decimal},
        ("order_id", "product_id"),
    ),
}
"""Tables in the order in which foreign keys allow them to be filled."""
