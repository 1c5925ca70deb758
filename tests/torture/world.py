"""A lake, a target and their configuration, on which runs start and die: in the tests' process or in their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from replicator import assemble, failpoints, settings
from replicator.failpoints import Killed
from replicator.operate import maintain, purge
from replicator.session import BRIEF_JVM
from replicator.settings import Settings
from replicator.stages import pipeline
from replicator.stages.pipeline import Line, Pipeline
from tests.torture.feed import FileStream, to_kafka, to_objects
from tests.torture.origin import CUSTOMERS, ORDERS, SALES, SOURCE_OF, Origin
from tests.torture.reaper import Reaper, Toll

REPOSITORY = Path(__file__).resolve().parents[2]
LATER_MS = 2_000_000_000_000
"""A time at which every delete is old."""
LAYERS = ("bronze", "silver", "gold", "publish", "upkeep")
"""What an own process of the tests does, in this order; ``upkeep`` is a purge and OPTIMIZE with VACUUM."""

_ENVIRONMENT = """
lake: {{root: {lake}}}
kafka: {{bootstrap_servers: "{kafka}"}}
spark: {{spark.master: "local[2]", spark.driver.extraJavaOptions: {jvm}}}
formats: [{formats}]
{targets}
"""
_TARGET = "targets: {{warehouse: {{host: {0.host}, port: {0.port}, database: {0.database}, user: {0.user}, password: \
{0.password}, sslmode: disable}}}}"
_SHOP = """
name: shop
tables:
  shop.customers: {{keys: [id], columns: {{id: int, name: string}}{customers}}}
  shop.orders:
    {{keys: [id], columns: {{id: int, customer: int, total: int}}, stored_as_scd_type: 2, purge_after: 1 day}}
"""
_TILL = """
name: till
objects: {folder}
tables:
  till.sales: {{keys: [id], columns: {{id: int, ordered: int, amount: int}}{sales}}}
"""
_BUYERS_SQL = "SELECT id AS buyer, name FROM {customers}\n"
_BUYERS = """
description: One row per customer.
key: [buyer]
inputs: {customers: shop/shop.customers}
columns: {buyer: {type: integer, nullable: false, description: Key.}, name: {type: text, description: Name.}}
publish: {target: warehouse, schema: torture, table: dim_buyers}
"""
_SALES_SQL = """
SELECT s.id AS sale, s.ordered AS ordered, o.customer AS customer, s.amount AS amount, o.total AS total, c.name AS name
FROM {sales} AS s
LEFT JOIN {orders} AS o ON o.id = s.ordered
LEFT JOIN {customers} AS c ON c.id = o.customer
"""
_SALES = """
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


@dataclass
class World:
    """``kafka``: a broker's address; without one, files stand for it. ``postgres``: where gold is published; without
    one there is no gold. ``mixed``: tables and twins in Hudi beside Delta.
    """

    folder: Path
    origin: Origin
    kafka: str = ""
    postgres: Any = None
    mixed: bool = False
    toll: Toll = field(default_factory=Toll)

    def __post_init__(self) -> None:
        self._objects, self._files = self.folder / "objects", self.folder / "files"
        for place in (self._objects, self._files, self.conf / "sources", self.conf / "models"):
            place.mkdir(parents=True)
        written = {
            "base.yaml": "",
            "torture.yaml": self._environment(),
            "sources/shop.yaml": _SHOP.format(customers=", format: hudi" if self.mixed else ""),
            "sources/till.yaml": _TILL.format(
                folder=self._objects, sales=", format: [delta, hudi]" if self.mixed else ""
            ),
        }
        if self.postgres is not None:
            written |= {"models/dim_buyers.sql": _BUYERS_SQL, "models/dim_buyers.yaml": _BUYERS}
            written |= {"models/fact_sales.sql": _SALES_SQL, "models/fact_sales.yaml": _SALES}
        for name, text in written.items():
            (self.conf / name).write_text(text)

    @property
    def conf(self) -> Path:
        """The configuration's folder."""
        return self.folder / "conf"

    @property
    def settings(self) -> Settings:
        """As a process finds them."""
        return settings.load(self.conf, "torture", {})

    @property
    def sources(self) -> dict[str, list[str]]:
        """Tables by source."""
        return {"shop": [CUSTOMERS, ORDERS], "till": [SALES]}

    def pipeline(self, spark: Any) -> Pipeline:
        """As a new process makes it: it remembers nothing."""
        made = assemble.pipeline(spark, self.settings)
        if self.kafka:
            return made
        return replace(made, ingestions=tuple(replace(each, reader=self._stream()) for each in made.ingestions))

    def feed(self) -> None:
        """The next batch of the origin, to where the pipeline reads."""
        sent = self.origin.batch()
        shop = [each for each in sent if each.topic.startswith("shop.")]
        if self.kafka:
            to_kafka(self.kafka, shop)
        else:
            self._stream().put(shop)
        to_objects(self._objects, [each for each in sent if each not in shop])

    def run(
        self,
        spark: Any,
        due: Callable[[str], bool] = lambda _: False,
        layers: Collection[str] = LAYERS,
        *,
        recovering: bool = False,
    ) -> str | None:
        """One run from start to end, or to its death; where it died."""
        reaper = Reaper(self.toll, due, recovering=recovering)
        lines: list[Line] = []
        try:
            with failpoints.watched(reaper):
                pipeline.run_once(spark, self.pipeline(spark), layers, lines.append)
                if "upkeep" in layers:
                    self._upkeep(spark)
        except Killed:
            pass
        else:
            assert reaper.died_at is None, f"somebody caught the death at {reaper.died_at}"
        assert [str(line.error) for line in lines if line.error is not None] == []
        return reaper.died_at

    def _upkeep(self, spark: Any) -> None:
        at = next(each for each in self.pipeline(spark).refinements if each.source.name == "shop")
        purge.purge(spark, at, ORDERS, LATER_MS)
        keeper = assemble.keeper(self.settings)
        for wanted in ("shop.customers", "till.sales") if self.mixed else ("till.sales",):
            chosen = maintain.chosen(keeper.tables(spark), wanted)
            done = list(maintain.maintain(spark, keeper.tables_of, chosen, 168))
            assert [str(each.error) for each in done if each.error is not None] == []

    def driver(self, failpoint: str | None, *arguments: str) -> bool:
        """``replicator`` as a process group of its own, with a point armed; whether it was killed there. Any other end
        than this and success is a failed test.
        """
        command = [str(Path(sys.executable).parent / "replicator"), *arguments, "--env", "torture"]
        variables = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        if failpoint is not None:
            variables |= {"REPLICATOR_FAILPOINT": f"{failpoint}:kill:1", "REPLICATOR_FAILPOINTS_ALLOWED": "yes"}
        done = subprocess.run(
            [*command, "--conf", str(self.conf)],
            cwd=REPOSITORY,
            env=variables,
            capture_output=True,
            text=True,
            start_new_session=True,
            timeout=900,
            check=False,
        )
        killed = failpoint is not None and done.returncode == -signal.SIGKILL
        assert killed or done.returncode == 0, (failpoint, done.returncode, done.stderr[-3000:])
        return killed

    def sigkill(self, points: Sequence[str], *arguments: str, is_over: Callable[[], bool] = lambda: False) -> list[str]:
        """Drivers one after the other, each killed at its point while it recovers from the one before, until all were
        or it ``is_over``; then one that goes on to the end. The points at which one was killed.
        """
        done: list[str] = []
        recovering = False
        for name in points:
            if is_over():
                break
            if not self.driver(name, *arguments):
                recovering = False
                continue
            done.append(name)
            for counter in (self.toll.hits, self.toll.kills, self.toll.sigkills):
                counter[name] += 1
            self.toll.recovered[name] += recovering
            recovering = True
        self.driver(None, *arguments)
        return done

    def _environment(self) -> str:
        targets = "" if self.postgres is None else _TARGET.format(self.postgres)
        formats = "delta, hudi" if self.mixed else "delta"
        return _ENVIRONMENT.format(
            lake=self.folder / "lake", kafka=self.kafka, jvm=BRIEF_JVM, formats=formats, targets=targets
        )

    def _stream(self) -> FileStream:
        return FileStream(self._files, [f"shop.{table}" for table in SOURCE_OF if SOURCE_OF[table] == "shop"])
