"""The generated rows of Northwind: counts, keys, references, and the same rows everywhere."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from infra import northwind_lab
from infra.sources.northwind import load
from infra.sources.northwind.rows import generate
from infra.sources.northwind.shapes import SHAPES
from infra.sources.shape import Rows
from replicator.errors import ConfigError

ORIGINALS = Path(__file__).resolve().parents[3] / "shared" / "data" / "northwind" / "csv"
DDL = Path(load.__file__).with_name("ddl.sql").read_text(encoding="utf-8")
COUNTS = {
    "categories": 8,
    "suppliers": 29,
    "products": 77,
    "region": 4,
    "territories": 53,
    "employees": 9,
    "employee_territories": 49,
    "customers": 91,
    "shippers": 6,
    "orders": 829,
    "order_details": 2152,
}
REFERENCES = (
    ("products", "supplier_id", "suppliers"),
    ("products", "category_id", "categories"),
    ("territories", "region_id", "region"),
    ("employee_territories", "employee_id", "employees"),
    ("employee_territories", "territory_id", "territories"),
    ("orders", "customer_id", "customers"),
    ("orders", "employee_id", "employees"),
    ("order_details", "order_id", "orders"),
    ("order_details", "product_id", "products"),
)


@pytest.fixture(scope="module", params=["generated", "another seed", "original"])
def tables(request: pytest.FixtureRequest) -> dict[str, list[dict[str, Any]]]:
    if request.param == "original" and not ORIGINALS.is_dir():
        pytest.skip("the original rows are not beside the project")
    made = {"generated": generate, "another seed": lambda: generate(7)}
    rows = made[request.param]() if request.param in made else load.original_rows(ORIGINALS)
    return {table: [shape.record(row) for row in rows[table]] for table, shape in SHAPES.items()}


def test_every_table_has_its_number_of_rows(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Eleven tables, told one by one in the scenario."""
    assert {table: len(records) for table, records in tables.items()} == COUNTS


def test_primary_keys_are_unique_and_never_null(tables: dict[str, list[dict[str, Any]]]) -> None:
    """What a row is told apart by."""
    for table, shape in SHAPES.items():
        keys = [tuple(record[column] for column in shape.key) for record in tables[table]]
        assert len(set(keys)) == len(keys), table
        assert all(None not in key for key in keys), table


def test_references_name_a_row_that_is_there(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Foreign keys hold; an employee reports to another one or to nobody."""
    for table, column, other in REFERENCES:
        known = {record[SHAPES[other].key[0]] for record in tables[other]}
        assert {record[column] for record in tables[table]} <= known, f"{table}.{column}"
    employees = {record["employee_id"] for record in tables["employees"]}
    assert {record["reports_to"] for record in tables["employees"]} <= {*employees, None}


def test_values_have_the_types_of_their_columns_and_fit_them(tables: dict[str, list[dict[str, Any]]]) -> None:
    """int, str, Decimal, date, bytes; no text longer than its varchar."""
    for table, shape in SHAPES.items():
        body = re.search(rf"CREATE TABLE {table} \((.*?)\n\);", DDL, re.DOTALL).group(1)
        told = re.findall(r"^ {2}([a-z_]+) +([a-z]+)(?:\((\d+)\))?", body, re.MULTILINE)
        assert [column for column, _, _ in told] == list(shape.columns)
        for column, _, width in told:
            values = [record[column] for record in tables[table] if record[column] is not None]
            assert {type(value) for value in values} <= {shape.columns[column]}, f"{table}.{column}"
            assert not width or max(map(len, values), default=0) <= int(width), f"{table}.{column}"


def test_orders_run_from_10248_to_11077_without_the_one_that_comes_live(
    tables: dict[str, list[dict[str, Any]]],
) -> None:
    """829 numbers over the scenario's days, 20 of them not shipped yet, 11077 among those."""
    orders = tables["orders"]
    assert [order["order_id"] for order in orders] == [n for n in range(10248, 11078) if n != 11075]
    days = [order["order_date"] for order in orders]
    assert (min(days), max(days)) == (date(1996, 7, 4), date(1998, 5, 6))
    unshipped = [order["order_id"] for order in orders if order["shipped_date"] is None]
    assert len(unshipped) == 20
    assert 11077 in unshipped


def test_two_customers_never_order_and_alfki_has_six_orders(tables: dict[str, list[dict[str, Any]]]) -> None:
    """89 customers in the outbox."""
    buyers = Counter(order["customer_id"] for order in tables["orders"])
    assert {record["customer_id"] for record in tables["customers"]} - set(buyers) == {"FISSA", "PARIS"}
    ordered = [order["order_id"] for order in tables["orders"] if order["customer_id"] == "ALFKI"]
    assert ordered == [10643, 10692, 10702, 10835, 10952, 11011]


def test_every_order_has_a_line_and_the_last_has_25(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Of customer RATTC."""
    lines = Counter(line["order_id"] for line in tables["order_details"])
    assert set(lines) == {order["order_id"] for order in tables["orders"]}
    assert lines[11077] == max(lines.values()) == 25
    assert tables["orders"][-1]["customer_id"] == "RATTC"


def test_order_10248_is_as_the_scenario_reads_it(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Customer, days, employee, shipper, freight and three items."""
    order = tables["orders"][0]
    shipper = {record["shipper_id"]: record["company_name"] for record in tables["shippers"]}
    told = [order[column] for column in ("customer_id", "order_date", "required_date", "shipped_date", "employee_id")]
    assert told == ["VINET", date(1996, 7, 4), date(1996, 8, 1), date(1996, 7, 16), 5]
    assert (shipper[order["ship_via"]], order["freight"]) == ("Federal Shipping", Decimal("32.38"))
    lines = [tuple(line.values())[1:] for line in tables["order_details"] if line["order_id"] == 10248]
    assert lines == [(11, Decimal(14), 12, 0), (42, Decimal("9.8"), 10, 0), (72, Decimal("34.8"), 5, 0)]


def test_the_live_steps_find_what_they_refer_to(tables: dict[str, list[dict[str, Any]]]) -> None:
    """Customer, employee, shipper and products of the order that is inserted."""
    known = {table: {record[SHAPES[table].key[0]] for record in tables[table]} for table in SHAPES}
    insert, *lines = northwind_lab.STEPS[1].statements
    order = SHAPES["orders"].record(insert.parameters)
    assert order["customer_id"] in known["customers"]
    assert order["employee_id"] in known["employees"]
    assert order["ship_via"] in known["shippers"]
    assert order["order_id"] not in known["orders"]
    assert {line.parameters[1] for line in lines} <= known["products"]


def test_the_same_seed_gives_the_same_rows_on_every_python() -> None:
    """Pinned: a change of the generator must be meant."""
    content = repr(dict(generate())).encode()
    assert hashlib.sha256(content).hexdigest() == "7eb51efeb59be8c8ab7a44d9225ef954b665ac6b93fd855188a23d5ea31c2d69"
    assert generate(7) != generate()


def test_a_folder_without_the_rows_is_refused(tmp_path: Path) -> None:
    """What is missing is named: the file, or the column."""
    with pytest.raises(ConfigError, match=r"categories cannot be read: .*categories\.csv"):
        load.original_rows(tmp_path)
    (tmp_path / "categories.csv").write_text("category_id,category_name,picture\n1,Drinks,\\N\n")
    with pytest.raises(ConfigError, match="categories lack description"):
        load.original_rows(tmp_path)


def revenue(rows: Rows) -> Decimal | int:
    lines = [SHAPES["order_details"].record(row) for row in rows["order_details"]]
    return sum(line["unit_price"] * line["quantity"] * (1 - line["discount"]) for line in lines)


def test_the_sum_of_the_generated_lines_is_known() -> None:
    """What order_items must add up to."""
    assert revenue(generate()) == Decimal("1922490.5300")


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the original rows are not beside the project")
def test_the_original_rows_have_the_scenarios_sum() -> None:
    """The reader of the CSV edition loses no line and no cent, and leaves order 11075 out."""
    assert revenue(load.original_rows(ORIGINALS)) == Decimal("1265294.9395")
