"""How long `verify` takes over a million rows, and whether it finds one cell: in gold, and in PostgreSQL.

``python -m benchmarks.verify_million [--rows N]`` makes silver and gold in a temporary folder and a target on a
PostgreSQL of its own, changes a cell of gold and one of the target, and prints a line per comparison.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from infra.local import Stack
from replicator import session, settings
from replicator.config.settingkeys import LakeKeys
from replicator.formats.control import JsonControl
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.operate import verify
from replicator.operate.verify import VerifyInputs, VerifyOptions
from replicator.sinks.postgres import PostgresConnection, PostgresSink
from replicator.spec import Model, ModelColumn, Progress, Target
from replicator.stages import gold, publish
from replicator.stages.models.warehouse import Warehouse

COLUMNS = {
    "id": "bigint",
    "name": "text",
    "price": "numeric(12,2)",
    "ratio": "double precision",
    "at": "timestamp",
    "note": "text",
}
MODEL = Model(
    "wide",
    "SELECT id, name, price, ratio, at, note FROM {rows}",
    {"rows": "s/bench.rows"},
    ("id",),
    tuple(ModelColumn(name, kind) for name, kind in COLUMNS.items()),
    target=Target("warehouse", "bench", "wide"),
)
SILVER = """
SELECT id, concat('name ', id) AS name, CAST(id / 3 AS DECIMAL(12,2)) AS price, CAST(id AS DOUBLE) / 7 AS ratio,
       CAST(timestamp_micros(id * 1000003) AS TIMESTAMP_NTZ) AS at, IF(id % 5 = 0, NULL, repeat('x', id % 40)) AS note,
       '0000' AS _seq, false AS _deleted, CAST(NULL AS MAP<STRING,STRING>) AS _column_seq, id AS _source_ts_ms,
       'upsert' AS _op
  FROM range({rows})
"""


def main() -> None:
    """Prints the verdicts with their seconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify_million")
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    home = Path(tempfile.mkdtemp(prefix="replicator-bench-"))
    try:
        run(home, rows)
    finally:
        Stack(home / "stack").down()
        shutil.rmtree(home, ignore_errors=True)


def run(home: Path, rows: int) -> None:
    """All of it in one folder."""
    own = Stack(home / "stack").up(["postgres"], owner=os.getpid()).postgres
    connection = PostgresConnection(own.host, own.port, own.database, own.user, own.password, sslmode="disable")
    lake = Lake(str(home / "lake"))
    keys = {"spark.master": "local[2]", "spark.driver.memory": "2g"}
    spark = session.session(settings.bare().model_copy(update={"lake": LakeKeys(root=lake.root), "spark": keys}))
    at = Warehouse(DeltaFormat(), DeltaFormat(), JsonControl(spark), lake)
    sink = PostgresSink(connection)
    at.silver.put(spark.sql(SILVER.format(rows=rows)), lake.silver("s", "bench.rows", ("id",)), Progress("bench", 1))
    errors = [done.error for done in gold.refresh(spark, [MODEL], at)]
    errors += [done.error for done in publish.publish(spark, [MODEL], at.gold, lake, sink)]
    for error in errors:
        if error is not None:
            raise error
    checks = VerifyInputs([], ("delta",), at, [MODEL], {"warehouse": sink})
    compare(spark, checks, "as it was made")
    damage(spark, at, connection, rows // 3)
    compare(spark, checks, "one cell of each changed")


def damage(spark: SparkSession, at: Warehouse, connection: PostgresConnection, key: int) -> None:
    """One cell of the target, then another of gold."""
    with closing(connection.open()) as there, there, there.cursor() as cursor:
        cursor.execute("UPDATE bench.wide SET note = 'y' WHERE id = %s", (key + 1,))
    table = replace(at.lake.gold("wide"), keys=MODEL.key)
    row = at.gold.read(spark, table).where(F.col("id") == key).withColumn("ratio", F.col("ratio") + 1e-9)
    at.gold.put(row.withColumn("_op", F.lit("upsert")), table, Progress("a mistake", 1))


def compare(spark: SparkSession, checks: VerifyInputs, what: str) -> None:
    """A line per comparison."""
    for each in verify.select_comparisons(spark, checks):
        started = time.monotonic()
        [told] = verify.verify(spark, [each], VerifyOptions())
        seconds = time.monotonic() - started
        found = told.error or f"named {list(told.named)}"
        sys.stdout.write(f"{what}: {told.layer}: {told.rows:,} rows, {seconds:.1f} s, {found}\n")


if __name__ == "__main__":
    main()
