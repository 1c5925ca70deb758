"""Is the target equal to the source? By content, with the source's own SQL, independent of the pipeline.

:func:`compare` is pure and knows nothing of databases; :func:`check_star` compares the three star tables of a live
source with a live Postgres. A difference names keys and columns, never values.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pymysql.cursors
from psycopg2.extras import RealDictCursor

from infra.sources.classicmodels.load import quoted
from infra.sources.classicmodels.shapes import SHAPES
from replicator.names import quote_postgres

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from psycopg2.extensions import connection as PostgresConnection

    Record = Mapping[str, Any]
    Key = tuple[Any, ...]

STAR_SCHEMA = "classicmodels_star_schema"


@dataclass(frozen=True)
class Difference:
    """What tells ``actual`` from ``expected``. Keys are in the order in which the rows came.

    ``missing``: keys that only ``expected`` has; ``unexpected``: only ``actual``; ``repeated``: more than once in
    either; ``different``: key -> the columns whose value or type is not the same.
    """

    expected_rows: int
    actual_rows: int
    missing: tuple[Key, ...] = ()
    unexpected: tuple[Key, ...] = ()
    repeated: tuple[Key, ...] = ()
    different: Mapping[Key, tuple[str, ...]] | None = None

    @property
    def equal(self) -> bool:
        """Both sides hold the same rows."""
        return not (self.missing or self.unexpected or self.repeated or self.different)

    def __str__(self) -> str:
        if self.equal:
            return f"{self.actual_rows} rows, equal"
        told = {"missing": self.missing, "unexpected": self.unexpected, "repeated": self.repeated}
        parts = [f"{len(keys)} {what} (first: {keys[0]})" for what, keys in told.items() if keys]
        if self.different:
            key, columns = next(iter(self.different.items()))
            parts.append(f"{len(self.different)} different (first: {key} in {', '.join(columns)})")
        return f"{self.actual_rows} rows, {self.expected_rows} expected: " + "; ".join(parts)


def compare(expected: Iterable[Record], actual: Iterable[Record], key: Sequence[str]) -> Difference:
    """Compare two sets of rows by key, in the columns of the expected rows.

    A value is the same when type and value are: 1 is not True, not 1.0 and not Decimal(1); Decimal("1.10") is
    Decimal("1.1"). Columns that only the actual row has are ignored; one that it lacks is different. Raises KeyError
    when a row has no ``key`` column.
    """
    wanted, found = list(expected), list(actual)
    wanted_by_key, found_by_key = _by_key(wanted, key), _by_key(found, key)
    different = {
        at: columns
        for at, record in wanted_by_key.items()
        if at in found_by_key and (columns := _unlike(record, found_by_key[at]))
    }
    counts = [Counter(_key(record, key) for record in records) for records in (wanted, found)]
    return Difference(
        expected_rows=len(wanted),
        actual_rows=len(found),
        missing=tuple(at for at in wanted_by_key if at not in found_by_key),
        unexpected=tuple(at for at in found_by_key if at not in wanted_by_key),
        repeated=tuple(dict.fromkeys(at for count in counts for at, times in count.items() if times > 1)),
        different=different,
    )


def check_star(
    source: pymysql.Connection,
    target: PostgresConnection,
    *,
    database: str = "classicmodels",
    schema: str = STAR_SCHEMA,
) -> dict[str, Difference]:
    """Star table -> how Postgres differs from what the source says now; ``updated_at`` is left out.

    Each side is read in one consistent transaction of its own; neither connection may have one open.
    """
    expected, actual = star_of_source(source, database), star_of_target(target, schema)
    return {table: compare(expected[table], actual[table], star.key) for table, star in STAR.items()}


def star_of_source(source: pymysql.Connection, database: str = "classicmodels") -> dict[str, list[dict[str, Any]]]:
    """The rows that the three star tables must have, computed by the source server from its eight tables."""
    return _read_source(source, {table: star.query(database) for table, star in STAR.items()})


def star_of_target(target: PostgresConnection, schema: str = STAR_SCHEMA) -> dict[str, list[dict[str, Any]]]:
    """The rows that the three star tables have in Postgres, in the columns that the source can tell."""
    with target, target.cursor(cursor_factory=RealDictCursor) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        rows = {}
        for table, star in STAR.items():
            cursor.execute(
                f"SELECT {', '.join(map(quote_postgres, star.columns))} FROM {quote_postgres(schema, table)}"
            )
            rows[table] = [dict(record) for record in cursor.fetchall()]
    return rows


def tables_of_source(source: pymysql.Connection, database: str = "classicmodels") -> dict[str, list[dict[str, Any]]]:
    """The source's eight tables as they are now: table -> its rows; the keys are in ``SHAPES``."""
    queries = {
        table: f"SELECT {', '.join(map(quoted, shape.columns))} FROM {quoted(database)}.{quoted(table)}"
        for table, shape in SHAPES.items()
    }
    return _read_source(source, queries)


@dataclass(frozen=True)
class Star:
    """A star table as the source sees it.

    ``columns``: its column -> the expression on the source; ``tables``: the joins (``{db}`` is the database).
    """

    key: tuple[str, ...]
    columns: Mapping[str, str]
    tables: str

    def query(self, database: str) -> str:
        """The rows that the table must have, computed by the source."""
        columns = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in self.columns.items())
        return f"SELECT {columns} FROM {self.tables.format(db=quoted(database))}"


STAR: Mapping[str, Star] = {
    "dim_customers": Star(
        ("customer_key",),
        {
            "customer_key": "c.customerNumber",
            "customer_name": "c.customerName",
            "customer_last_name": "c.contactLastName",
            "customer_first_name": "c.contactFirstName",
            "phone": "c.phone",
            "address_line_1": "c.addressLine1",
            "address_line_2": "c.addressLine2",
            "postal_code": "c.postalCode",
            "city": "c.city",
            "state": "c.state",
            "country": "c.country",
            "creditlimit": "c.creditLimit",
        },
        "{db}.customers c",
    ),
    "dim_products": Star(
        ("product_key",),
        {
            "product_key": "p.productCode",
            "product_name": "p.productName",
            "product_line": "p.productLine",
            "product_scale": "p.productScale",
            "product_vendor": "p.productVendor",
            "product_description": "p.productDescription",
            "product_line_description": "l.textDescription",
        },
        "{db}.products p JOIN {db}.productlines l ON l.productLine = p.productLine",
    ),
    "fact_orders": Star(
        ("order_key", "order_line_key", "customer_key", "product_key"),
        {
            "order_key": "o.orderNumber",
            "order_line_key": "d.orderLineNumber",
            "customer_key": "o.customerNumber",
            "product_key": "d.productCode",
            "order_date": "o.orderDate",
            "order_required_date": "o.requiredDate",
            "order_shipped_date": "o.shippedDate",
            "quantity_ordered": "d.quantityOrdered",
            "product_price": "d.priceEach",
            "profit": "(d.priceEach - p.buyPrice) * d.quantityOrdered",
        },
        "{db}.orders o JOIN {db}.orderdetails d ON d.orderNumber = o.orderNumber"
        " JOIN {db}.products p ON p.productCode = d.productCode",
    ),
}
"""Columns and joins of scenarios.md section 6, without ``updated_at``."""


def _read_source(source: pymysql.Connection, queries: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """One consistent snapshot of all the queries, as new as this call."""
    rows = {}
    with closing(source.cursor(pymysql.cursors.DictCursor)) as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        for name, query in queries.items():
            cursor.execute(query)
            rows[name] = list(cursor.fetchall())
    source.rollback()
    return rows


def _by_key(records: Iterable[Record], key: Sequence[str]) -> dict[Key, Record]:
    return {_key(record, key): record for record in records}


def _key(record: Record, key: Sequence[str]) -> Key:
    return tuple(record[column] for column in key)


_ABSENT = object()


def _unlike(wanted: Record, found: Record) -> tuple[str, ...]:
    return tuple(column for column, value in wanted.items() if not _same(value, found.get(column, _ABSENT)))


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)
