"""The long sweep: ``python -m tests.torture.long``, or ``make torture``.

Four parts, each with a lake of its own. In the process of the sweep, over Delta and PostgreSQL with whole
transactions, a table that is masked and filtered and a feed of it, then over Hudi: for n = 1, 2, ... a run dies at its
n-th hit, the next at one of its first n while it recovers, the third comes to its end, and everything is compared;
until n is more than a run has. The same with rebuilds of damaged tables. With real drivers over Kafka, objects and
PostgreSQL: every point is armed in turn, and SIGKILL takes driver and JVM there.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from infra.local import Stack
from replicator import session, settings
from replicator.failpoints import POINTS
from replicator.jvm import jvm_options
from replicator.operate.rebuilding.rebuild_result import EQUAL
from tests.builders import exact_session
from tests.torture.compare import differences, half_shown, unlike_rebuilt
from tests.torture.origin import EVOLVES_EVERY, PEOPLE, TABLES, Origin
from tests.torture.reaper import at_hit
from tests.torture.world import LAYERS, World

OF_HUDI = ("hudi.", "twins.")
OF_LEASES, OF_REBUILDS, OF_CHECKPOINTS = ("lease.",), ("rebuild.",), ("checkpoint.",)
REBUILT = ("orders", "people", "dim_buyers", "fact_sales")
VERBS: dict[str, tuple[str, ...]] = {"delta.optimized": ("maintain",), "purge.horizon_saved": ("purge",)}
VERBS |= {name: ("rebuild", *REBUILT) for name in POINTS if name.startswith(OF_REBUILDS)}
"""What comes to points that ``replicator run`` does not come to; what was damaged for it is made anew."""
GROWS_EVERY = 4
"""In each of so many batches a model gets a column."""

RUNNING = (*LAYERS[:-1], "canonical")
EVERY = (*RUNNING, LAYERS[-1])
_GOES_ON = 0.3


@dataclass
class Sweep:
    """What the options say, and what was found: sentences of what differs, and points that were not come to."""

    seed: int
    first: int
    rounds: int
    until: float
    folder: Path
    servers: Stack
    differences: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.until

    def world(self, name: str, *, whole: bool = False, **more: Any) -> World:
        """A lake with a source of its own; where its transactions are ``whole``, with people and the feed of them."""
        place = self.folder / name
        place.mkdir()
        tables = (*TABLES, PEOPLE) if whole else TABLES
        return World(place, Origin(self.seed, whole=whole, tables=tables), **more)

    def compare(self, spark: SparkSession, world: World, when: str) -> None:
        """Note what differs."""
        self.differences += [f"{when}: {found}" for found in differences(exact_session(spark), world)]

    def look(self, spark: SparkSession, world: World, when: str | None) -> None:
        """Note transactions that are shown in part behind a death."""
        if when is not None and world.origin.whole:
            [at] = (each for each in world.pipeline(spark).refinements if each.source.whole_transactions)
            found = half_shown(exact_session(spark), at, world.origin.states)
            self.differences += [f"killed at {when}: {each}" for each in found]

    def finish(self, spark: SparkSession, world: World, layers: Sequence[str]) -> None:
        """Bring what is under way still, and make silver once more of all of bronze."""
        world.rest()
        assert world.run(spark, layers=layers) is None
        self.compare(spark, world, "in the end")
        self.differences += unlike_rebuilt(exact_session(spark), world)


def by_number(sweep: Sweep, spark: SparkSession, world: World, layers: Sequence[str]) -> bool:
    """Deaths at the n-th hit of a run, and once more while the next recovers; whether n went beyond the last hit."""
    dice = random.Random(f"{sweep.seed} deaths")
    for number in range(sweep.first, sweep.first + sweep.rounds):
        if sweep.is_over:
            break
        world.feed()
        if world.origin.batches % GROWS_EVERY == 0:
            world.grow()
        died = world.run(spark, at_hit(number), layers)
        sweep.look(spark, world, died)
        again = world.run(spark, at_hit(dice.randint(1, number)), layers, recovering=True) if died else None
        sweep.look(spark, world, again)
        assert not again or world.run(spark, layers=layers, recovering=True) is None
        sweep.compare(spark, world, f"killed at hit {number} ({died}), then at {again}")
        _tell(f"  hit {number}: {died}, then {again}")
        if died is None:
            return True
    return False


def rebuilds_by_number(sweep: Sweep, spark: SparkSession, world: World) -> bool:
    """The same with rebuilds of damaged tables; now and then a run goes on over one that died. One rebuild more finds
    nothing to do.
    """
    dice = random.Random(f"{sweep.seed} rebuilds")
    for number in range(sweep.first, sweep.first + sweep.rounds):
        if sweep.is_over:
            break
        world.feed()
        assert world.run(spark, layers=RUNNING) is None
        world.damage(spark)
        died = world.run(spark, at_hit(number), ("rebuild",))
        if died and dice.random() < _GOES_ON:
            world.feed()
            assert world.run(spark, layers=RUNNING) is None
        again = world.run(spark, at_hit(dice.randint(1, number)), ("rebuild",), recovering=True) if died else None
        for _ in range(2):
            assert world.run(spark, layers=("rebuild",), recovering=again is not None) is None
        when = f"rebuild killed at hit {number} ({died}), then at {again}"
        sweep.differences += [f"{when}: {each}" for each in world.rebuilt if each.verdict != EQUAL]
        assert world.run(spark, layers=RUNNING) is None
        sweep.compare(spark, world, when)
        _tell(f"  hit {number}: {died}, then {again}")
        if died is None:
            return True
    return False


def by_sigkill(sweep: Sweep, world: World, spark: SparkSession) -> list[str]:
    """Every point with a batch that makes the tables, and with one that changes them; those that were never come to."""
    every = [name for name in POINTS if not name.startswith((*OF_HUDI, *OF_CHECKPOINTS))]
    points = every[sweep.first - 1 : sweep.first - 1 + sweep.rounds]
    left = set(points)
    for _ in range(EVOLVES_EVERY):
        if not left or sweep.is_over:
            break
        world.feed()
        wanted = [name for name in points if name in left or world.origin.batches <= 2]
        for verb in (("run",), *dict.fromkeys(VERBS.values())):
            mine = [name for name in wanted if VERBS.get(name, ("run",)) == verb]
            if mine and verb[0] == "rebuild":
                world.damage(spark)
            if mine or verb == ("run",):  # without a point, too: the others are asked of tables that are there
                left -= set(world.sigkill(mine, *verb, is_over=lambda: sweep.is_over))
        world.driver(None, "run")  # what else moved the versions of gold, Postgres follows
        sweep.compare(spark, world, f"SIGKILL, batch {world.origin.batches}")
    return sorted(left)


def _in_delta(sweep: Sweep) -> bool:
    at = sweep.servers.up(["postgres"], owner=os.getpid())
    world = sweep.world("delta", whole=True, postgres=at.postgres, at_once=1)
    return _by_number(sweep, world, ("delta",), EVERY, but=(*OF_HUDI, *OF_LEASES, *OF_REBUILDS, *OF_CHECKPOINTS))


def _in_hudi(sweep: Sweep) -> bool:
    but = tuple(name for name in POINTS if not name.startswith(OF_HUDI))
    return _by_number(
        sweep, sweep.world("hudi", mixed=True, at_once=1), ("delta", "hudi"), ("bronze", "silver", "upkeep"), but
    )


def _by_number(
    sweep: Sweep, world: World, formats: tuple[str, ...], layers: Sequence[str], but: tuple[str, ...]
) -> bool:
    spark = _spark(formats)
    is_whole = by_number(sweep, spark, world, layers)
    return _told(sweep, spark, world, layers, is_whole=is_whole, but=but)


def _in_rebuilds(sweep: Sweep) -> bool:
    at = sweep.servers.up(["postgres"], owner=os.getpid())
    spark, world = _spark(("delta",)), sweep.world("rebuilds", whole=True, postgres=at.postgres, rebuilds=REBUILT)
    is_whole = rebuilds_by_number(sweep, spark, world)
    but = tuple(name for name in POINTS if not name.startswith(OF_REBUILDS))
    return _told(sweep, spark, world, RUNNING, is_whole=is_whole, but=but)


def _told(
    sweep: Sweep, spark: SparkSession, world: World, layers: Sequence[str], *, is_whole: bool, but: tuple[str, ...]
) -> bool:
    sweep.finish(spark, world, layers)
    _tell(world.toll.table())
    missed = world.toll.never_hit(but=but)
    return _verdict(sweep, missed, "" if is_whole else "the last hit of a run was not reached: give more time")


def _in_drivers(sweep: Sweep) -> bool:
    at = sweep.servers.up(["kafka", "postgres"], owner=os.getpid())
    spark, world = _spark(("delta",)), sweep.world("drivers", whole=True, kafka=at.kafka, postgres=at.postgres)
    missed = by_sigkill(sweep, world, spark)
    world.rest()
    world.driver(None, "run")
    sweep.compare(spark, world, "in the end")
    _tell(world.toll.table())
    return _verdict(sweep, missed, "")


def _verdict(sweep: Sweep, missed: Sequence[str], unfinished: str) -> bool:
    told = [*sweep.differences, *(f"never hit: {name}" for name in missed), *([unfinished] if unfinished else [])]
    _tell("\n".join(told) or "nothing differs, every point was hit")
    return not told


PARTS: dict[str, Callable[[Sweep], bool]] = {
    "delta": _in_delta,
    "hudi": _in_hudi,
    "rebuilds": _in_rebuilds,
    "drivers": _in_drivers,
}


def main() -> int:
    """Run the parts that are named, each in a process of its own: a JVM has its extensions for life."""
    options = _options()
    if len(options.parts) > 1:
        told = [f"--{name}={getattr(options, name)}" for name in ("seed", "first", "rounds", "minutes")]
        command = [sys.executable, "-m", "tests.torture.long", *told]
        return max(subprocess.run([*command, part], check=False).returncode for part in options.parts)
    [part] = options.parts
    from_to = f"n from {options.first}, {options.rounds} of them at most, {options.minutes} minutes"
    _tell(f"{part}: seed {options.seed}, {from_to}")
    folder = Path(tempfile.mkdtemp(prefix=f"replicator-torture-{part}-"))
    servers = Stack(folder / "stack")
    until = time.monotonic() + 60 * options.minutes
    try:
        return 0 if PARTS[part](Sweep(options.seed, options.first, options.rounds, until, folder, servers)) else 1
    finally:
        servers.down()
        shutil.rmtree(folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.long", description="The long sweep of crashes.")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}; all without one")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the source and of the second deaths")
    parser.add_argument("--first", type=int, default=1, help="the first n of the n-th hits, or the n-th point")
    parser.add_argument("--rounds", type=int, default=1_000, help="so many hits, or points")
    parser.add_argument("--minutes", type=float, default=60, help="for each part")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {min(unknown)!r}: {', '.join(PARTS)}")
    return options


def _spark(formats: tuple[str, ...]) -> Any:
    """As tests have it: small and quick."""
    quick = {"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    quick |= {"spark.driver.extraJavaOptions": jvm_options.SHORT_LIVED}
    return session.session(settings.bare(None).model_copy(update={"spark": quick, "formats": formats}))


def _tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - for people


if __name__ == "__main__":
    sys.exit(main())
