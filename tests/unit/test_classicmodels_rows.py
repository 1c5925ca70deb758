"""The generated rows of the sample source: counts, keys, odd values, and the same rows everywhere."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from infra.sources.classicmodels.load import original_rows
from infra.sources.classicmodels.rows import generate
from infra.sources.classicmodels.shapes import SHAPES
from infra.sources.shape import Rows

ORIGINALS = Path(__file__).resolve().parents[3] / "shared" / "data" / "birt"
COUNTS = {
    "customers": 122,
    "employees": 23,
    "offices": 7,
    "orders": 326,
    "orderdetails": 2996,
    "payments": 273,
    "productlines": 7,
    "products": 110,
}
REFERENCES = (
    ("products", "productLine", "productlines", "productLine"),
    ("employees", "officeCode", "offices", "officeCode"),
    ("employees", "reportsTo", "employees", "employeeNumber"),
    ("customers", "salesRepEmployeeNumber", "employees", "employeeNumber"),
    ("payments", "customerNumber", "customers", "customerNumber"),
    ("orders", "customerNumber", "customers", "customerNumber"),
    ("orderdetails", "orderNumber", "orders", "orderNumber"),
    ("orderdetails", "productCode", "products", "productCode"),
)


@pytest.fixture(scope="module", params=["generated", "another seed", "original"])
def rows(request: pytest.FixtureRequest) -> Rows:
    if request.param == "original":
        if not ORIGINALS.is_dir():
            pytest.skip("the original rows are not beside the project")
        return original_rows(ORIGINALS)
    return generate() if request.param == "generated" else generate(7)


@pytest.fixture(scope="module")
def tables(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    return {table: [shape.record(row) for row in rows[table]] for table, shape in SHAPES.items()}


@pytest.fixture(scope="module")
def generated() -> dict[str, list[dict[str, Any]]]:
    rows = generate()
    return {table: [shape.record(row) for row in rows[table]] for table, shape in SHAPES.items()}


def test_every_table_has_its_number_of_rows(tables: dict[str, list[dict[str, Any]]]) -> None:
    """3,864 rows, told by table in the scenario."""
    assert {table: len(records) for table, records in tables.items()} == COUNTS


def test_primary_keys_are_unique_and_never_null(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Also for a database that compares text without case and without trailing blanks."""
    for table, shape in SHAPES.items():
        keys = [tuple(str(record[column]).casefold().rstrip() for column in shape.key) for record in tables[table]]
        assert len(set(keys)) == len(keys), table
        assert all(record[column] is not None for record in tables[table] for column in shape.key)


def test_foreign_keys_hold(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Each reference names a row that is there, or is NULL."""
    for table, column, other, key in REFERENCES:
        known = {record[key] for record in tables[other]} | {None}
        assert {record[column] for record in tables[table]} <= known, f"{table}.{column}"


def test_values_have_the_types_of_their_columns(tables: dict[str, list[dict[str, Any]]]) -> None:
    """int, str, Decimal with two places, date; never a float."""
    for table, shape in SHAPES.items():
        for column, kind in shape.columns.items():
            values = [record[column] for record in tables[table] if record[column] is not None]
            assert {type(value) for value in values} <= {kind}, f"{table}.{column}"
            if kind is Decimal:
                assert {value.as_tuple().exponent for value in values} == {-2}, f"{table}.{column}"


def test_a_boss_comes_before_those_who_report_to_her(tables: dict[str, list[dict[str, Any]]]) -> None:
    """InnoDB checks a reference to the own table row by row."""
    seen = {None}
    for employee in tables["employees"]:
        assert employee["reportsTo"] in seen
        seen.add(employee["employeeNumber"])


def test_the_lab_finds_what_it_refers_to_and_nothing_that_it_inserts(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Employees, customer 103, line 1 of order 10100, which is not yet of customer 103; no 498, 500, 501."""
    customers = {record["customerNumber"] for record in tables["customers"]}
    assert {1165, 1504, 1621} <= {record["employeeNumber"] for record in tables["employees"]}
    assert 103 in customers
    assert not {498, 500, 501} & customers
    assert not {"S700_5000", "S700_5001"} & {record["productCode"] for record in tables["products"]}
    order = next(record for record in tables["orders"] if record["orderNumber"] == 10100)
    assert order["customerNumber"] != 103
    lines = [record["orderLineNumber"] for record in tables["orderdetails"] if record["orderNumber"] == 10100]
    assert sorted(lines) == [1, 2, 3, 4]


def test_orders_run_from_10100_to_10425_over_the_scenarios_days(tables: dict[str, list[dict[str, Any]]]) -> None:
    """326 numbers without a gap, 2003-01-06 to 2005-05-31, 14 of them without a ship date."""
    orders = tables["orders"]
    assert [record["orderNumber"] for record in orders] == list(range(10100, 10426))
    assert {min(r["orderDate"] for r in orders), max(r["orderDate"] for r in orders)} == {
        date(2003, 1, 6),
        date(2005, 5, 31),
    }
    assert sum(record["shippedDate"] is None for record in orders) == 14
    assert Counter(record["status"] for record in orders) == {
        "Shipped": 303,
        "In Process": 6,
        "Cancelled": 6,
        "On Hold": 4,
        "Resolved": 4,
        "Disputed": 3,
    }


def test_lines_are_numbered_within_their_order(tables: dict[str, list[dict[str, Any]]]) -> None:
    """(order, line number) is unique, 1 to at most 18; each order has a line."""
    lines = Counter((record["orderNumber"], record["orderLineNumber"]) for record in tables["orderdetails"])
    assert set(lines.values()) == {1}
    assert {line for _, line in lines} == set(range(1, 19))
    assert len({order for order, _ in lines}) == 326


def test_one_product_is_never_ordered_and_24_customers_never_order(tables: dict[str, list[dict[str, Any]]]) -> None:
    """109 products and 98 customers in the fact."""
    assert len({record["productCode"] for record in tables["orderdetails"]}) == 109
    assert len({record["customerNumber"] for record in tables["orders"]}) == 98


def test_product_lines_have_the_scenarios_sizes(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Ships has nine products: the lab adds two."""
    assert Counter(record["productLine"] for record in tables["products"]) == {
        "Classic Cars": 38,
        "Vintage Cars": 24,
        "Motorcycles": 13,
        "Planes": 12,
        "Trucks and Buses": 11,
        "Ships": 9,
        "Trains": 3,
    }


def test_no_line_is_sold_below_its_purchase_price(tables: dict[str, list[dict[str, Any]]]) -> None:
    """The scenario's fact has no negative profit."""
    bought = {record["productCode"]: record["buyPrice"] for record in tables["products"]}
    assert all(line["priceEach"] >= bought[line["productCode"]] for line in tables["orderdetails"])


def test_customers_have_the_scenarios_nulls_blanks_and_letters(tables: dict[str, list[dict[str, Any]]]) -> None:
    """NULL counts of section 7; 51 customers with a blank around a value; 21 that ASCII cannot write."""
    customers = tables["customers"]
    nulls = Counter(column for record in customers for column, value in record.items() if value is None)
    assert nulls == {"addressLine2": 100, "state": 73, "postalCode": 7, "salesRepEmployeeNumber": 22}
    texts = [[value for value in record.values() if isinstance(value, str)] for record in customers]
    assert sum(any(value != value.strip() for value in values) for values in texts) == 51
    assert sum(any(not value.isascii() for value in values) for values in texts) == 21


def test_texts_hold_what_breaks_careless_readers(generated: dict[str, list[dict[str, Any]]]) -> None:
    """Quotes, backslashes, line feeds, tabs, blanks at both ends, post codes with a leading zero."""
    told = "".join(record["comments"] or "" for record in generated["orders"])
    assert all(character in told for character in "\"'\\\n\t")
    first_names = [record["contactFirstName"] for record in generated["customers"]]
    assert any(name.startswith(" ") for name in first_names)
    assert any(name.endswith(" ") for name in first_names)
    assert any((record["postalCode"] or "").startswith("0") for record in generated["customers"])
    assert all(record["htmlDescription"] is record["image"] is None for record in generated["productlines"])


def test_the_same_seed_gives_the_same_rows_on_every_python() -> None:
    """Pinned: a change of the generator must be meant."""
    content = repr(dict(generate())).encode()
    assert hashlib.sha256(content).hexdigest() == "6f9f278b6eb9b23350d108d826befc67f0b7056a7cca88579922d724717e5383"
    assert generate(7) != generate()


def test_the_sums_of_the_generated_rows_are_known(generated: dict[str, list[dict[str, Any]]]) -> None:
    """What the star schema must add up to."""
    lines = generated["orderdetails"]
    bought = {record["productCode"]: record["buyPrice"] for record in generated["products"]}
    assert sum(line["quantityOrdered"] for line in lines) == 99_850
    assert sum(line["quantityOrdered"] * line["priceEach"] for line in lines) == Decimal("10362323.65")
    profit = sum(line["quantityOrdered"] * (line["priceEach"] - bought[line["productCode"]]) for line in lines)
    assert profit == Decimal("4100480.48")
    assert sum(record["amount"] for record in generated["payments"]) == Decimal("7993197.41")
    assert sum(record["creditLimit"] for record in generated["customers"]) == Decimal("5639123.60")


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the original rows are not beside the project")
def test_the_original_rows_have_the_scenarios_sums() -> None:
    """The reader of the CSV edition loses no row and no cent."""
    rows = original_rows(ORIGINALS)
    lines = [SHAPES["orderdetails"].record(row) for row in rows["orderdetails"]]
    assert sum(line["quantityOrdered"] for line in lines) == 105_516
    assert sum(line["quantityOrdered"] * line["priceEach"] for line in lines) == Decimal("9604190.61")
    assert sum(row[-1] for row in rows["payments"]) == Decimal("8853839.23")
    assert sum(row[-1] for row in rows["customers"]) == Decimal("8254400.00")
