"""How long a gold model takes incrementally and in full, for one change of its inputs, side by side.

    python benchmarks/gold_refresh.py --lines 200000 --share 0.01 --share 0.3

makes a lake of its own: order lines, orders (ten lines each) and 1,000 products, of which product 0 has a twentieth of
all lines. A model of the lines with both looked up is kept twice, once incrementally, whatever is affected, and once in
full. Every change is followed by both; what they leave must be equal. ``--share`` changes that share of the lines, all
over the table; ``--product`` changes product 0.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import session, settings
from replicator.formats.control import JsonControl
from replicator.formats.delta import DeltaFormat
from replicator.jvm import jvm_options
from replicator.lake import Lake
from replicator.spec import INCREMENTAL, Model, ModelColumn, Progress
from replicator.stages import gold
from replicator.stages.gold import RefreshResult
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.columns.layout import Layout, with_column_metadata

PRODUCTS = 1_000
TABLES = {
    "lines": ({"line": "int", "order_id": "int", "product": "string", "quantity": "int", "price": "decimal(10,2)"}, 1),
    "orders": ({"order_id": "int", "customer": "int", "placed": "date"}, 1),
    "products": ({"product": "string", "cost": "decimal(10,2)", "text": "string"}, 1),
}
SQL = """
SELECT d.line AS line_key, o.order_id AS order_key, o.customer, o.placed, p.product AS product_key, d.quantity, d.price,
  CAST((d.price - p.cost) * d.quantity AS DECIMAL(12,2)) AS profit,
  timestamp_millis(greatest(o._source_ts_ms, d._source_ts_ms, p._source_ts_ms)) AS updated_at
FROM {lines} d JOIN {orders} o ON o.order_id = d.order_id LEFT JOIN {products} p ON p.product = d.product
"""
FACT = Model(
    name="incremental",
    sql=SQL,
    inputs={name: f"shop/db.{name}" for name in TABLES},
    key=("line_key",),
    columns=(ModelColumn("line_key", "integer", nullable=False),),
    lineage={"lines": ("line_key",), "orders": ("order_key",), "products": ("product_key",)},
    refresh=INCREMENTAL,
)
WHOLE = replace(FACT, name="full", lineage={}, refresh="full")


@dataclass
class Shop:
    """The lake, and how many batches silver took."""

    spark: SparkSession
    at: Warehouse
    lines: int
    batches: int = 0

    def take(self, name: str, ids: DataFrame) -> None:
        """Rows of a table by their number, ``id``, as of this batch."""
        self.batches += 1
        columns, keys = TABLES[name]
        values = {"lines": self._line, "orders": self._order, "products": self._product}[name]()
        system = {"_seq": F.lit(f"{self.batches:020}"), "_deleted": F.lit(False), "_source_ts_ms": F.lit(self.batches)}
        system |= {"_column_seq": F.lit(None).cast("map<string,string>")}
        rows = ids.select(*[v.cast(columns[c]).alias(c) for c, v in values.items()])
        rows = rows.withColumns(system | {"_source_ts_ms": F.lit(self.batches).cast("bigint")})
        table = replace(self.at.lake.silver("shop", f"db.{name}", tuple(columns)[:keys]), complete=True)
        changes = with_column_metadata(rows, Layout(columns, table.keys))
        self.at.silver.apply(changes, table, Progress("bronze", self.batches))

    def _line(self) -> dict[str, Column]:
        often = F.when(F.col("id") % 20 == 0, 0).otherwise(F.hash("id") % PRODUCTS)
        product = F.concat(F.lit("P"), F.abs(often))
        price = (F.abs(F.hash(F.col("id") + 1)) % 10_000) / 100
        quantity = F.abs(F.hash(F.col("id") + self.batches)) % 90
        order = (F.col("id") / 10).cast("int")
        return {"line": F.col("id"), "order_id": order, "product": product, "quantity": quantity, "price": price}

    def _order(self) -> dict[str, Column]:
        placed = F.date_add(F.lit("2026-01-01").cast("date"), (F.col("id") % 365).cast("int"))
        return {"order_id": F.col("id"), "customer": F.abs(F.hash("id")) % 5_000, "placed": placed}

    def _product(self) -> dict[str, Column]:
        cost = (F.abs(F.hash(F.col("id") + self.batches)) % 5_000) / 100
        return {"product": F.concat(F.lit("P"), F.col("id")), "cost": cost, "text": F.repeat(F.lit("words "), 20)}

    def refreshed(self, model: Model, full_share: float) -> RefreshResult:
        """One model brought up to date."""
        [built] = gold.refresh(self.spark, [model], replace(self.at, full_share=full_share, full_bytes=0))
        if built.error is not None:
            raise built.error
        return built

    def rows(self, model: Model) -> DataFrame:
        """What a model's table holds."""
        return self.at.gold.read(self.spark, self.at.lake.gold(model.name))


def filled(spark: SparkSession, folder: str, lines: int) -> Shop:
    """A lake with all rows, and both models built."""
    tables = DeltaFormat()
    shop = Shop(spark, Warehouse(tables, tables, JsonControl(spark), Lake(folder)), lines)
    for name, count in {"lines": lines, "orders": lines // 10 + 1, "products": PRODUCTS}.items():
        shop.take(name, spark.range(count))
    for model in (FACT, WHOLE):
        shop.refreshed(model, 2.0)
    return shop


def size(shop: Shop) -> int:
    """Bytes of the inputs."""
    return sum(shop.at.silver.size(shop.spark, shop.at.lake.silver("shop", f"db.{name}")) for name in TABLES)


def compared(shop: Shop, what: str, *, first: bool) -> str:
    """Both ways of following the change that was made, one after the other, and their figures."""
    order = (FACT, WHOLE) if first else (WHOLE, FACT)
    built = {model.name: shop.refreshed(model, 2.0) for model in order}
    one, other = shop.rows(FACT), shop.rows(WHOLE)
    if not one.exceptAll(other).isEmpty() or one.count() != other.count():
        raise AssertionError(what)
    quick, whole = built[FACT.name], built[WHOLE.name]
    affected = quick.affected or 0
    return (
        f"{what:>12} {shop.lines:>9,} {affected:>9,} {quick.rows:>9,} {affected / shop.lines:>6.1%}"
        f" {quick.seconds:>8.1f} {whole.rows:>9,} {whole.seconds:>8.1f}"
    )


def main() -> None:
    """Prints a line per change: the second of two rounds counts, the first one warms up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--share", type=float, action="append", default=[])
    parser.add_argument("--product", action="store_true")
    parser.add_argument("--rounds", type=int, default=2)
    told = parser.parse_args()
    quick = {"spark.master": "local[2]", "spark.driver.memory": "2g"}
    quick["spark.driver.extraJavaOptions"] = jvm_options.SHORT_LIVED
    spark = session.session(settings.bare(None).model_copy(update={"spark": quick, "formats": ("delta",)}))
    sys.stdout.write("      change     lines  affected  computed  share  seconds full rows  seconds\n")
    with tempfile.TemporaryDirectory(prefix="gold-refresh-") as folder:
        shop = filled(spark, folder, told.lines)
        sys.stdout.write(f"inputs: {size(shop):,} bytes\n")
        for number in range(told.rounds):
            for share in told.share:
                step = max(1, round(1 / share))
                shop.take("lines", spark.range(0, told.lines, step))
                sys.stdout.write(compared(shop, f"{share:.1%}", first=number % 2 == 0) + "\n")
            if told.product:
                shop.take("products", spark.range(1))
                sys.stdout.write(compared(shop, "one product", first=number % 2 == 0) + "\n")
            sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
