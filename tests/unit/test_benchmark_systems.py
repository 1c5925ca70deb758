"""The benchmark's systems on Spark: what each leaves is the oracle's, ours by the product's own stages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.cdc_ch import gate, plans
from benchmarks.cdc_ch.contender import APPLY, COLLAPSE, GOLD, REFINE, Case, Contender
from benchmarks.cdc_ch.dataset import Parameters
from benchmarks.cdc_ch.plans import Plan
from benchmarks.cdc_ch.star import Star
from benchmarks.cdc_ch.sweep import Sweep

pytestmark = pytest.mark.spark

STREAM = Parameters(400, per_key=4, duplicates=0.05, disorder=0.05)
PLAN = Plan(STREAM, (), (Sweep(2_000, 200),), (Star(2_000),), (), STREAM, 0, 1)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """One of each track, small."""
    made = plans.cases(PLAN, [COLLAPSE, APPLY, REFINE, GOLD], tmp_path_factory.mktemp("inputs"), lambda _: None)
    return {case.track: case for case in made}


def played(contender: Contender, case: Case, folder: Path) -> list[str]:
    """A run as the runner has it, on the tables themselves; what the gate says."""
    home, out = folder / "home", folder / "out"
    home.mkdir()
    out.mkdir()
    contender.start(case, home)
    contender.ready(case)
    contender.arrive(case, home, 0)
    before = contender.counted()
    contender.run(case, home, 0)
    assert contender.counted()["jobs"] > before["jobs"]
    assert contender.counted()["tasks"] > before["tasks"]
    contender.export(case, home, out)
    return gate.problems(case, out)


@pytest.mark.parametrize("track", [COLLAPSE, APPLY, REFINE, GOLD])
def test_what_ours_leaves_is_the_oracles(
    spark: SparkSession, cases: dict[str, Case], track: str, tmp_path: Path
) -> None:
    """T1 and T3 are ticks of silver, T2 is the format's apply, T4 gold's refresh."""
    from benchmarks.cdc_ch.systems import ours

    assert played(ours.on(spark, track, tmp_path / "work"), cases[track], tmp_path) == []


def test_what_the_pattern_of_blogs_leaves_is_the_oracles(
    spark: SparkSession, cases: dict[str, Case], tmp_path: Path
) -> None:
    """Its order is right here, so that it has a time to be compared with."""
    from benchmarks.cdc_ch.systems import blog

    assert played(blog.on(spark, COLLAPSE, tmp_path / "work", tuned=False), cases[COLLAPSE], tmp_path) == []


@pytest.mark.hudi
@pytest.mark.parametrize(("kind", "track"), [("mor", REFINE), ("cow", APPLY), ("bucket", REFINE)])
def test_what_hudis_writer_leaves_is_the_oracles(
    spark: SparkSession, cases: dict[str, Case], kind: str, track: str, tmp_path: Path
) -> None:
    """Inserts, updates and deletes by each index; compacted, where there are logs, the rows are the same."""
    from benchmarks.cdc_ch.systems import hudi

    contender = hudi.on(spark, track, kind)
    assert played(contender, cases[track], tmp_path) == []
    contender.upkeep(cases[track], tmp_path / "home")
    contender.export(cases[track], tmp_path / "home", tmp_path / "out")
    assert gate.problems(cases[track], tmp_path / "out") == []
