"""Against the living: a random workload on real databases through real Debezium, with kills, ends in equal tables.

``pytest tests/stack/test_living.py -s --workload-seed N --workload-size M`` plays another one, or a longer one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from infra.local import Stack
from replicator.jvm.jvm_options import SHORT_LIVED
from replicator.lake import Lake
from tests.workload.drained import Source
from tests.workload.generate import Workload, workload
from tests.workload.play import Site

pytestmark = [pytest.mark.stack, pytest.mark.spark]

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 600
TURN_SECONDS = 0.015
"""How long the databases rest after a statement each, so that what is killed is in the midst of reading them."""
TRANSACTIONS_A_ROUND = 40
"""In each round Connect and the driver are killed once, and every table is compared once."""
CONFIGURATION = """
lake: {{root: {lake}}}
kafka: {{bootstrap_servers: "{kafka}"}}
spark:
  spark.master: local[2]
  spark.driver.extraJavaOptions: {jvm}
bronze: {{trigger_seconds: 0.2}}
"""


class Driver:
    """``replicator run bronze silver --continuous`` as a process that is killed with its JVM."""

    def __init__(self, env: dict[str, str], conf: Path, log: Path) -> None:
        self.log, self._env, self._conf = log, env, conf
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it in a process group of its own."""
        verb = ["run", "bronze", "silver", "--continuous", "--env", "living", "--conf", str(self._conf)]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).parent / "replicator"), *verb],
                cwd=REPOSITORY,
                env=self._env,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def kill(self) -> bool:
        """End it with kill -9; whether there was something alive to be killed."""
        if self._process is None or self._process.poll() is not None:
            return False
        os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait() == -signal.SIGKILL

    def stop(self) -> int:
        """SIGTERM: the pass at hand is finished first. Its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(120)

    def told(self) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-4000:]


class Play:
    """A workload on every site, a driver, and what happened."""

    def __init__(self, servers: Stack, sites: list[Site], driver: Driver, lake: Lake, dice: random.Random) -> None:
        self.servers, self.sites, self.driver, self.dice = servers, sites, driver, dice
        self.sources = {site.name: Source(lake, site.name) for site in sites}
        self.counts: Counter[str] = Counter()

    def round(self, number: int) -> None:
        """The statements of one round, on all databases in turn; in their midst Connect and the driver are killed."""
        turns = list(zip_longest(*[site.work.rounds[number] for site in self.sites]))
        connect_dies, connect_lives, driver_dies = sorted(self.dice.sample(range(len(turns) // 4, len(turns)), 3))
        for turn, statements in enumerate(turns):
            if turn == connect_dies:
                self._kill_connect()
            if turn == connect_lives:
                self.servers.up(["connect"], owner=os.getpid())
            if turn == driver_dies:
                self._kill_driver()
            for site, statement in zip(self.sites, statements, strict=True):
                if statement is not None:
                    site.run(statement)
            time.sleep(TURN_SECONDS)

    def quiet(self, number: int, spark: SparkSession) -> None:
        """Wait until silver has read everything, then compare it with the databases."""
        for site in self.sites:
            site.mark()
        ends = {site.name: site.ends() for site in self.sites}
        until = time.monotonic() + PATIENCE_SECONDS
        while not all(self.sources[name].has(places) for name, places in ends.items()):
            assert time.monotonic() < until, f"silver does not come to bronze's end\n{self.driver.told()}"
            time.sleep(0.3)
        self.counts["events"] = sum(sum(places.values()) for places in ends.values())
        for site in self.sites:
            source = self.sources[site.name]
            differences = site.compare(site.work.tables[number], lambda table, of=source: of.rows(spark, table))
            unlike = {f"{site.name} {table}": str(found) for table, found in differences.items() if not found.equal}
            assert (unlike, source.letters()) == ({}, [])
            self.counts["tables compared"] += len(differences)
            self.counts["rows compared"] += sum(found.expected_rows for found in differences.values())

    def _kill_connect(self) -> None:
        pid = next(one.pid for one in self.servers.status() if one.name == "connect")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        self.counts["kills of Connect"] += 1

    def _kill_driver(self) -> None:
        self.counts["kills of the driver"] += self.driver.kill()
        self.driver.start()


@pytest.fixture(scope="module")
def play(servers: Stack, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """Both databases with their tables, their connectors past the snapshot, and a driver."""
    seed, size = request.config.getoption("--workload-seed"), request.config.getoption("--workload-size")
    endpoints, folder = servers.endpoints(), tmp_path_factory.mktemp("living")
    lake = Lake(str(folder / "lake"))
    rounds = max(1, size // TRANSACTIONS_A_ROUND)
    works: list[Workload] = [workload(seed, "postgres", size, rounds), workload(seed, "mariadb", size, rounds)]
    with ExitStack() as opened:
        sites = [opened.enter_context(closing(Site(endpoints, work))) for work in works]
        conf = folder / "conf"
        (conf / "sources").mkdir(parents=True)
        (conf / "living.yaml").write_text(CONFIGURATION.format(lake=lake.root, kafka=endpoints.kafka, jvm=SHORT_LIVED))
        for site in sites:
            told = f"name: {site.name}\ninclude: [{', '.join(site.tables)}]\n"
            (conf / "sources" / f"{site.name}.yaml").write_text(told)
        opened.callback(servers.up, ["connect"], owner=os.getpid())
        driver = Driver({**os.environ, "PYSPARK_PYTHON": sys.executable}, conf, folder / "run.log")
        opened.callback(driver.kill)
        driver.start()
        for site in sites:
            site.set_up()
        yield Play(servers, sites, driver, lake, random.Random(f"{seed} kills"))


@contextmanager
def crash_told(servers: Stack) -> Iterator[None]:
    """A PostgreSQL that died of itself says nothing about us: its walsender was seen to (signal 11) when a killed
    Connect came back, and then at every try, so that the workload cannot go on.
    """
    try:
        yield
    except Exception:
        log = next(one.log for one in servers.status() if one.name == "postgres")
        lines = Path(log).read_text(errors="replace").splitlines()
        died = next((line for line in lines if "was terminated by signal 11" in line), None)
        if died is not None:
            pytest.skip(f"PostgreSQL crashed: {died}")
        raise


def test_silver_equals_its_sources_whatever_is_killed(
    play: Play, spark: SparkSession, capsys: Any, request: Any
) -> None:
    """Promises A, B and D: every record is in bronze once, every table equals its source, nothing is a dead letter."""
    rounds = len(play.sites[0].work.rounds)
    with crash_told(play.servers):
        for number in range(rounds):
            play.round(number)
            play.quiet(number, spark)
    assert play.driver.stop() == 0, play.driver.told()
    for site in play.sites:
        play.counts.update({f"{site.work.dialect}: {what}": count for what, count in site.work.counts.items()})
    with capsys.disabled():
        print(f"\nseed {request.config.getoption('--workload-seed')}: {dict(sorted(play.counts.items()))}")  # noqa: T201 - for people
    assert play.counts["kills of Connect"] == play.counts["kills of the driver"] == rounds
    assert play.counts["events"] > 5 * request.config.getoption("--workload-size")
