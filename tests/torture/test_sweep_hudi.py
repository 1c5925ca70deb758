"""The short sweep over tables in Hudi and their twins, in a session with Hudi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.failpoints import POINTS
from tests.builders import exact_session
from tests.torture.compare import differences
from tests.torture.origin import Origin
from tests.torture.reaper import once_each
from tests.torture.test_sweep import SEED
from tests.torture.world import World

pytestmark = [pytest.mark.spark, pytest.mark.hudi]

OF_HUDI = ("hudi.", "twins.")
OTHERS = tuple(name for name in POINTS if not name.startswith(OF_HUDI))


def test_hudi_and_twins_equal_the_source_wherever_a_run_died(spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    """P3, K-H: the points of Hudi and of twins are hit and killed; all of silver equals the source."""
    world = World(tmp_path, Origin(SEED), mixed=True)
    for layers in (("bronze", "silver"), ("bronze", "silver", "upkeep")):
        world.feed()
        due, deaths = once_each(OTHERS), 0
        while world.run(spark, due, layers, recovering=deaths > 0):
            deaths += 1
    assert differences(exact_session(spark), world) == []
    with capsys.disabled():
        print(f"\n{world.toll.table()}")  # noqa: T201 - for people
    assert world.toll.never_hit(but=OTHERS) == []
    assert all(world.toll.kills[name] for name in POINTS if name.startswith(OF_HUDI))
