"""The short sweep: a run dies at every point of the pipeline, goes on, and all layers equal the source (P3)."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from infra.local import Stack
from replicator.failpoints import POINTS
from replicator.operate.rebuilding.rebuild_result import EQUAL
from tests.builders import exact_session
from tests.torture.compare import differences, unlike_rebuilt
from tests.torture.origin import Origin
from tests.torture.reaper import ELSEWHERE, once_each
from tests.torture.world import LAYERS, World

pytestmark = [pytest.mark.stack, pytest.mark.spark]

SEED = 20261122
AT_FIRST = ("control.", "silver.routes_saved")
"""Points to die at in the first batch. Routes are learned there only; a control row that is cut off in the second batch
is that of its schema change, which is then found to be there and not written again.
"""
LATER = sorted(name for name in POINTS if not name.startswith((*AT_FIRST, *ELSEWHERE, "rebuild.")))


@pytest.fixture
def world() -> Iterator[World]:
    """A lake on disk and a PostgreSQL of its own."""
    folder = Path(tempfile.mkdtemp(prefix="replicator-sweep-"))
    servers = Stack(folder / "stack")
    try:
        at = servers.up(["postgres"], owner=os.getpid())
        yield World(folder, Origin(SEED), postgres=at.postgres, rebuilds=("orders",))
    finally:
        servers.down()
        shutil.rmtree(folder, ignore_errors=True)


def climb(spark: SparkSession, world: World, layers: Iterable[str], spared: Collection[str]) -> int:
    """Take a batch through all layers, dying once at every other point on the way, all but the first time while
    recovering from the death before; the number of deaths. Layers come one after the other: to find that those before
    have nothing new takes a second each time.
    """
    due, deaths = once_each(spared), 0
    for layer in layers:
        while world.run(spark, due, (layer,), recovering=deaths > 0):
            deaths += 1
    return deaths


def test_every_layer_equals_the_source_wherever_a_run_died(spark: SparkSession, world: World, capsys: Any) -> None:
    """P3, K-M3: every registered point is hit and killed, in a first batch, which makes the tables, in a second one, or
    while damaged tables are rebuilt; a rebuild more finds nothing to do.
    """
    quick = exact_session(spark)
    some = random.Random(SEED).sample(LATER, len(LATER) // 2)
    for layers, spared in ((LAYERS[:-1], some), (LAYERS, world.toll.kills)):
        world.feed()
        assert climb(spark, world, layers, spared)
        assert differences(quick, world) == []
    assert unlike_rebuilt(quick, world) == []
    world.damage(spark)
    assert climb(spark, world, ("rebuild",), world.toll.kills)
    assert world.run(spark, layers=("rebuild",)) is None
    assert {each.verdict for each in world.rebuilt} == {EQUAL}
    climb(spark, world, ("gold", "publish"), world.toll.kills)  # one model moves: no other takes a point from it
    assert differences(quick, world) == []
    with capsys.disabled():
        print(f"\nseed {SEED}\n{world.toll.table()}")  # noqa: T201 - for people
    assert world.toll.never_hit(but=ELSEWHERE) == []
    assert all(world.toll.kills[name] for name in world.toll.hits)


def test_a_process_group_that_is_killed_leaves_what_the_next_driver_fixes(spark: SparkSession, world: World) -> None:
    """The same with SIGKILL of the driver and its JVM, each during the recovery from the one before; the last one is
    fixed by the tests' own process.
    """
    world.feed()
    assert world.run(spark, layers=("bronze",)) is None
    for point in ("silver.history_kept", "publish.before_commit"):
        assert world.driver(point, "run", "silver", "gold", "publish"), point
    assert world.run(spark, layers=("silver", "gold", "publish")) is None
    assert differences(exact_session(spark), world) == []
