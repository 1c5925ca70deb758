"""The lab end to end, against real servers: the same numbers and the same content after every step (scenarios.md 1)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from infra import lab
from infra.demo import warehouse
from infra.sample_source import CONNECTOR, connector
from infra.sources.classicmodels import load, rows
from infra.sources.classicmodels.load import log_in
from infra.truth import check_star
from replicator.connect.rest import Connect
from replicator.jvm.jvm_options import SHORT_LIVED
from tests.cli import said

pytestmark = [pytest.mark.stack, pytest.mark.spark]

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 300
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def source(endpoints: Any) -> Iterator[Any]:
    """The sample source with its first rows, captured by the connector."""
    with closing(log_in(endpoints.mariadb)) as connection:
        load.load(connection, rows.generate())
        connection.select_db("classicmodels")
        connect = Connect(endpoints.connect)
        connect.apply(CONNECTOR, connector(endpoints))
        connect.wait_running(CONNECTOR, 60)
        yield connection
        connect.forget(CONNECTOR)


def variables(endpoints: Any, **more: str) -> dict[str, str]:
    """The environment of a user who has the stack running."""
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": SHORT_LIVED}  # no driver lives for long here
    return {**os.environ, **endpoints.env(), **own, **more}


def replicate(env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """``replicator run --continuous`` in a process group of its own, as a user starts it."""
    command = [str(BIN / "replicator"), "run", "--continuous", "--env", "demo"]
    with log.open("ab") as out:
        return subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=out, stderr=out, start_new_session=True)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill -9 of the driver with its JVM."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until_equal(source: Any, endpoints: Any, log: Path) -> dict[str, int]:
    """Wait until Postgres equals the source by content; the rows of each star table.

    The rows are compared when the ledger has moved: comparing takes the processor from the driver.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    found: Any = "nothing was published"
    seen = 0.0
    with closing(warehouse.connect(endpoints.postgres)) as target:
        while time.monotonic() < until:
            newest = warehouse.last_commit(target)
            if newest != seen:
                seen = newest
                found = check_star(source, target)
                if all(difference.equal for difference in found.values()):
                    return {table: difference.actual_rows for table, difference in found.items()}
            time.sleep(0.2)
    pytest.fail(f"{found}\n{log.read_text(errors='replace')[-3000:]}")


def verify_every_layer(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command finds what the test found: the live source, silver, gold and Postgres are equal. In the JVM of the
    tests.
    """
    monkeypatch.chdir(REPOSITORY)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    told = json.loads(said("verify", "--env", "demo", "--json"))
    assert {(each["verdict"], *each["not_compared"]) for each in told} == {("equal",)}
    assert Counter(each["layer"] for each in told) == {"source": 8, "gold": 3, "target": 3}


def test_every_step_of_the_lab_arrives_although_the_driver_is_killed_between_steps(
    spark: SparkSession, source: Any, endpoints: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promises A to C: kill -9 of the driver loses nothing, doubles nothing and undoes nothing.

    Each driver dies while a step is on its way, perhaps half applied, and the next one finds one more step. That each
    step by itself arrives is what the demo shows (test_readme_commands.py).
    """
    assert spark
    env = variables(endpoints, REPLICATOR_LAKE=str(tmp_path / "lake"))
    log = tmp_path / "run.log"
    driver = replicate(env, log)
    try:
        assert wait_until_equal(source, endpoints, log) == dict(lab.SNAPSHOT)
        for number, (on_its_way, step) in enumerate(zip(lab.STEPS[::2], lab.STEPS[1::2], strict=True)):
            lab.run(source, on_its_way)
            time.sleep(1.4 * number)
            kill(driver)
            lab.run(source, step)
            driver = replicate(env, log)
            assert wait_until_equal(source, endpoints, log) == dict(step.rows), step.name
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(60) == 0, log.read_text(errors="replace")[-3000:]
        verify_every_layer(env, monkeypatch)
    finally:
        if driver.poll() is None:
            kill(driver)
