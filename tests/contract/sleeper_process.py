"""A driver with a Spark of its own that falls asleep between its last look at the lease and the commit, once per lake.

Told by one argument, JSON: ``roots`` of lakes, ``endpoint`` of S3, ``seconds`` that a lease lasts, how ``postgres`` is
reached and which ``schema`` there is its own. Out come lines: ``ready``, when each lake has its first batch, then the
class and text of the error that each later attempt ended with, or ``written``; and what came of a publication in the
midst of which it slept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from replicator import failpoints, settings
from replicator.errors import LeaseLost
from replicator.formats.delta import DeltaFormat
from replicator.formats.fencing import FencedFormat
from replicator.lake import Lake
from replicator.operate.lock import LeaseOptions, exclusive
from replicator.protocols import Difference, Fence, Unfenced
from replicator.session import session
from replicator.sinks.postgres import PostgresConnection, PostgresSink
from replicator.spec import Model, ModelColumn, Progress, Target, Token
from tests.builders import made
from tests.contract.s3_keys import keys

STAGES = ("publish", "silver")


@dataclass(frozen=True)
class Drowsy:
    """``Fence`` of a process that is stopped right after it was let through."""

    inner: Fence

    @property
    def token(self) -> Token | None:
        return self.inner.token

    def check(self) -> None:
        self.inner.check()
        os.kill(os.getpid(), signal.SIGSTOP)

    def refuse_if_lost(self) -> None:
        self.inner.refuse_if_lost()


def doze(point: str) -> None:
    """Watch a publisher that is stopped, once, when it holds the schema's lock and has staged."""
    if point == "publish.model_staged":
        failpoints.arm(None)
        os.kill(os.getpid(), signal.SIGSTOP)


def rows(spark: SparkSession, version: int, who: str) -> DataFrame:
    """What a writer appends as one batch."""
    return made(spark, [(version, who)], "version INT, who STRING")


def difference(spark: SparkSession, schema: str, version: int, who: str) -> Difference:
    """What a writer publishes, the whole table."""
    columns = (ModelColumn("id", "integer"), ModelColumn("who", "text"))
    model = Model("star", "", {}, ("id",), columns, target=Target("warehouse", schema, "star"))
    changed = made(spark, [(1, who, "upsert")], "id INT, who STRING, _op STRING")
    return Difference(model, changed, Progress("gold", version), complete=True)


def append(spark: SparkSession, root: str, fence: Fence, version: int) -> None:
    """One batch, by a format that looks at the fence right before its commit only."""
    DeltaFormat(fence=fence).append(rows(spark, version, "sleeper"), Lake(root).silver("s", "t.x"), at(version))


def at(version: int) -> Progress:
    """The progress that comes with a batch."""
    return Progress("bronze", version)


def main() -> None:
    told = json.loads(sys.argv[1])
    s3 = keys(told["endpoint"])
    with ExitStack() as held:
        terms = LeaseOptions(told["seconds"], s3=s3)
        fences = {root: held.enter_context(exclusive(Lake(root), STAGES, terms)) for root in told["roots"]}
        quick = {"spark.master": "local[1]", "spark.sql.shuffle.partitions": "1"}
        bare = settings.bare(told["roots"][0])
        spark = session(bare.model_copy(update={"s3": s3, "spark": quick}), brief=True)
        for root, fence in fences.items():
            append(spark, root, fence, 0)
        tell("ready")
        for root, fence in fences.items():
            tell(attempt(partial(append, spark, root, Drowsy(fence), 1)))
        for root, fence in fences.items():
            table = Lake(root).silver("s", "t.x")
            late = FencedFormat(DeltaFormat(), fence)
            tell(attempt(partial(late.append, rows(spark, 2, "sleeper"), table, at(2))))
        publish(spark, told, next(iter(fences.values())))


def publish(spark: SparkSession, told: dict[str, Any], fence: Fence) -> None:
    """As who asks the lease, then as who was let through before it was lost; then asleep with the schema's lock."""
    connection = PostgresConnection(**told["postgres"])
    late = difference(spark, told["schema"], 9, "sleeper")
    for each in (fence, Unfenced(fence.token)):
        tell(attempt(partial(PostgresSink(connection, fence=each).publish, [late])))
    hasty = PostgresConnection(**told["postgres"], options={"idle_in_transaction_session_timeout": "2s"})
    with failpoints.watched(doze):
        tell(f"{PostgresSink(hasty).publish([late])}")


def attempt(act: Callable[[], Any]) -> str:
    try:
        act()
    except Exception as error:  # noqa: BLE001 - the caller judges
        return f"{type(error).__name__} {error}".splitlines()[0]
    return "written"


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except LeaseLost:
        tell("LeaseLost at the end")
