"""What the configuration of a world says, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replicator.jvm.jvm_options import SHORT_LIVED
from tests.torture import people

_ENVIRONMENT = """
lake: {{root: {lake}}}
kafka: {{bootstrap_servers: "{kafka}"}}
spark: {{spark.master: "local[2]", spark.driver.extraJavaOptions: {jvm}}}
formats: [{formats}]
silver: {{tables_at_once: {at_once}}}
{targets}
"""
_TARGET = "targets: {{warehouse: {{host: {0.host}, port: {0.port}, database: {0.database}, user: {0.user}, password: \
{0.password}, sslmode: disable}}}}"
_SHOP = """
name: shop
hash_key: {hash_key}
{consistency}
tables:
  shop.customers: {{keys: [id], columns: {{id: int, name: string}}{customers}}}
  shop.orders:
    {{keys: [id], columns: {{id: int, customer: int, total: int}}, stored_as_scd_type: 2, purge_after: 1 day}}
{people}"""
_TILL = """
name: till
objects: {folder}
tables:
  till.sales: {{keys: [id], columns: {{id: int, ordered: int, amount: int}}{sales}}}
"""
_BUYERS_SQL = "SELECT id AS buyer, name{more} FROM {{customers}}\n"
_BUYERS = """
description: One row per customer.
key: [buyer]
inputs: {{customers: shop/shop.customers}}
columns:
  buyer: {{type: integer, nullable: false, description: Key.}}
  name: {{type: text, description: Name.}}
{more}
publish: {{target: warehouse, schema: torture, table: dim_buyers}}
"""
_SALES_SQL = """
SELECT s.id AS sale, s.ordered AS ordered, o.customer AS customer, s.amount AS amount, o.total AS total, c.name AS name
FROM {sales} AS s
LEFT JOIN {orders} AS o ON o.id = s.ordered
LEFT JOIN {customers} AS c ON c.id = o.customer
"""
_FACT_SALES = """
description: One row per sale; refreshed in the rows that are touched, unlike dim_buyers, which is compared whole.
key: [sale]
inputs: {sales: till/till.sales, orders: shop/shop.orders, customers: shop/shop.customers}
lineage: {sales: [sale], orders: [ordered], customers: [customer]}
columns:
  sale: {type: integer, nullable: false, description: Key.}
  ordered: {type: integer, description: The order.}
  customer: {type: integer, description: Of the order.}
  amount: {type: integer, description: Pieces.}
  total: {type: integer, description: Of the order.}
  name: {type: text, description: Of the buyer.}
references: [dim_buyers]
publish: {target: warehouse, schema: torture, table: fact_sales}
"""


def sources(
    *, lake: Path, objects: Path, kafka: str, postgres: Any, mixed: bool, whole: bool, at_once: int, with_people: bool
) -> dict[str, str]:
    """The environment and both sources, by file; with people also the feed of them."""
    elsewhere = "" if kafka else "bootstrap_servers: memory\n"
    feeds = {"canonical/people.yaml": people.FEED + elsewhere} if with_people else {}
    shop = {
        "hash_key": people.HASH_KEY,
        "people": people.TABLE if with_people else "",
        "customers": ", format: hudi" if mixed else "",
        "consistency": "consistency: transaction" if whole else "",
    }
    return feeds | {
        "base.yaml": "",
        "torture.yaml": _ENVIRONMENT.format(
            lake=lake,
            kafka=kafka,
            jvm=SHORT_LIVED,
            formats="delta, hudi" if mixed else "delta",
            at_once=at_once,
            targets="" if postgres is None else _TARGET.format(postgres),
        ),
        "sources/shop.yaml": _SHOP.format(**shop),
        "sources/till.yaml": _TILL.format(folder=objects, sales=", format: [delta, hudi]" if mixed else ""),
    }


def models(grown: int) -> dict[str, str]:
    """Both models, the dimension with so many columns more, by file."""
    numbers = range(1, grown + 1)
    more = "".join(f", id + {n} AS more{n}" for n in numbers)
    told = "\n".join(f"  more{n}: {{type: integer, nullable: false, description: One more.}}" for n in numbers)
    return {
        "models/dim_buyers.sql": _BUYERS_SQL.format(more=more),
        "models/dim_buyers.yaml": _BUYERS.format(more=told),
        "models/fact_sales.sql": _SALES_SQL,
        "models/fact_sales.yaml": _FACT_SALES,
    }
