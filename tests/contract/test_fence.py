"""Who lost the lease writes nothing: not to tables, not to the serving database (reliability.md F-W1, F-W2)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from psycopg2 import sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.errors import LeaseLost
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.formats.fencing import FencedFormat
from replicator.formats.hudi import HudiFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.leases.lease import seconds_since_boot
from replicator.operate.lock import LeaseOptions, break_lease, exclusive
from replicator.protocols import UNFENCED, Fence
from replicator.sinks.postgres import PostgresConnection, PostgresSink
from replicator.spec import Evolution, Progress, Table, Token
from tests.builders import SILVER, exact_session, made
from tests.contract.s3_server import BUCKET, S3Server
from tests.contract.sleeper_process import STAGES, at, difference, rows

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 2.0


@dataclass
class ShutOut:
    """``Fence`` of a process that loses its lease right before a look at it, the ``last`` one that matters."""

    lake: Lake
    inner: Fence = UNFENCED
    last: int = 0
    looks: int = 0

    @property
    def token(self) -> Token | None:
        return self.inner.token

    def check(self) -> None:
        self.looks += 1
        if self.looks == self.last:
            break_lease(self.lake, "silver", LeaseOptions())
            time.sleep(0.2)  # what was heard of the lease a tenth of its length ago is not asked for again
        self.inner.check()

    def refuse_if_lost(self) -> None:
        self.inner.refuse_if_lost()

    def losing(self, last: int, write: Callable[[], Any]) -> None:
        """Write under a lease that is lost at that look."""
        with exclusive(self.lake, ("silver",), LeaseOptions(1.5)) as self.inner:
            self.looks, self.last = 0, last
            write()


FORMATS: dict[str, tuple[Callable[[Fence], Any], tuple[str, ...]]] = {
    "delta": (lambda fence: DeltaFormat(fence=fence), ("apply", "put", "append", "replace", "evolve", "maintain")),
    "delta by MERGE": (
        lambda fence: DeltaFormat(MergeThresholds(rewritten_bytes=0, marked_files=0), fence=fence),
        ("apply",),
    ),
    "delta by marks": (lambda fence: DeltaFormat(MergeThresholds(rewritten_bytes=0), fence=fence), ("apply",)),
    "memory": (lambda fence: MemoryFormat(fence=fence), ("apply", "put", "append", "replace", "evolve")),
    "hudi": (lambda fence: HudiFormat(fence=fence), ("apply", "maintain")),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.hudi if n == "hudi" else ()) for n in FORMATS])
def test_a_format_asks_before_the_work_and_again_before_the_commit(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Whoever loses the lease before, or while the work is done, leaves the table as it was, whatever the write."""
    exact, fence = exact_session(spark), ShutOut(Lake(str(tmp_path)))
    make, writes = FORMATS[name]
    format_ = FencedFormat(make(fence), fence)
    table, first = Table("t", f"{tmp_path}/silver/s/t", ("k",)), states(exact, (1, "10"))
    with exclusive(fence.lake, ("silver",), LeaseOptions()) as fence.inner:
        format_.apply(first, table, Progress("bronze", 0))
        if name.startswith("delta"):
            assert _token_of(f"{table.location}/_delta_log/{0:020}.json") == {"lake": fence.token.lake, "number": 1}
    before = format_.version(exact, table)
    more, difference_ = states(exact, (2, "20")), states(exact, (2, "20")).withColumn("_op", F.lit("upsert"))
    acts: dict[str, Callable[[], Any]] = {
        "apply": lambda: format_.apply(more, table, Progress("bronze", 1)),
        "put": lambda: format_.put(difference_, table, Progress("bronze", 1)),
        "append": lambda: format_.append(more, table, Progress("bronze", 1)),
        "replace": lambda: format_.replace(more, table, Progress("bronze", 1)),
        "evolve": lambda: format_.evolve(exact, table, Evolution(widened=(("a", "BIGINT"),))),
        "maintain": lambda: format_.maintain(exact, table, 168),
    }
    for write in writes:
        for last in (1, 2) if name == "memory" else (2,):
            with pytest.raises(LeaseLost):
                fence.losing(last, acts[write])
            assert (fence.looks, format_.version(exact, table)) == (last, before), write
    assert [(row["k"], row["_seq"]) for row in format_.read(exact, table).collect()] == [(1, "10")]


def states(spark: SparkSession, *keys: tuple[int, str]) -> DataFrame:
    return made(spark, [(k, k, "X", seq, False, None, int(seq)) for k, seq in keys], SILVER)


@pytest.fixture
def served(serving: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """How the stack's Postgres is reached, and a schema there."""
    server = serving.postgres
    reached = {name: getattr(server, name) for name in ("host", "port", "database", "user", "password")}
    reached["sslmode"] = "disable"
    schema = f"fence_{uuid4().hex[:12]}"
    yield reached, schema
    with closing(PostgresConnection(**reached).open()) as session, session, session.cursor() as cursor:
        cursor.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


@pytest.mark.spark
@pytest.mark.stack
@pytest.mark.timeout(300)
def test_a_driver_that_slept_over_its_lease_commits_nothing(
    spark: SparkSession, s3: S3Server, tmp_path: Path, served: tuple[dict[str, Any], str]
) -> None:
    """A process is stopped (SIGSTOP) between its last look at the lease and its commit to Delta, for longer than the
    lease; a second one takes over and commits the same progress. Woken, the first is refused by Delta, by its lease,
    and by Postgres, where its token is behind. Asleep in the midst of publishing, its lock does not last.
    """
    roots = [str(tmp_path), f"s3a://{BUCKET}/{uuid4().hex}"]
    postgres, schema = served
    told = {"roots": roots, "endpoint": s3.endpoint, "seconds": LENGTH, "postgres": postgres, "schema": schema}
    here = spark.newSession()
    for key, value in {"endpoint": s3.endpoint, "access.key": "key", "secret.key": "secret"}.items():
        here.conf.set(f"fs.s3a.{key}", value)
    here.conf.set("fs.s3a.path.style.access", "true")
    command = [sys.executable, "-m", "tests.contract.sleeper_process", json.dumps(told)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as sleeper:
        try:
            assert sleeper.stdout.readline() == "ready\n"
            for root in roots:
                _until_stopped(sleeper.pid)
                began = seconds_since_boot()
                with exclusive(Lake(root), STAGES, LeaseOptions(LENGTH, s3=s3.keys)) as fence:
                    assert seconds_since_boot() - began >= LENGTH
                    assert fence.token.number == 2
                    _take_over(here, root, fence)
                    if root == roots[0]:
                        sink = PostgresSink(PostgresConnection(**postgres), fence=fence)
                        assert sink.publish([difference(here, schema, 1, "second")])["star"].inserted == 1
                    os.kill(sleeper.pid, signal.SIGCONT)
                    assert sleeper.stdout.readline().startswith("StaleWriter STALE_WRITER: another writer has changed")
            said = [sleeper.stdout.readline() for _ in range(4)]
            _until_stopped(sleeper.pid)  # it holds the schema's lock now
            last = difference(here, schema, 10, "last")
            assert PostgresSink(PostgresConnection(**postgres)).publish([last])["star"].updated == 1
            os.kill(sleeper.pid, signal.SIGCONT)
            said += list(sleeper.stdout or ())
        finally:
            sleeper.kill()
    nothing = "{'star': Applied(inserted=0, updated=0, deleted=0, version=10)}\n"
    assert [line.split()[0] for line in (*said[:4], said[-1])] == ["LeaseLost"] * 3 + ["StaleWriter", "LeaseLost"]
    assert said[4:-1] == [nothing]
    assert said[3].startswith("StaleWriter STALE_WRITER: a writer of this lake later than number 1 has published")
    for root in roots:
        kept = DeltaFormat().read(here, Lake(root).silver("s", "t.x")).collect()
        assert sorted(map(tuple, kept)) == [(0, "sleeper"), (1, "second")]
    assert PostgresSink(PostgresConnection(**postgres)).progress(last.model) == Progress("gold", 10)


def _take_over(spark: SparkSession, root: str, fence: Fence) -> None:
    """What the first has committed is there, and its next batch is not."""
    format_, table = FencedFormat(DeltaFormat(fence=fence), fence), Lake(root).silver("s", "t.x")
    assert [tuple(row) for row in format_.read(spark, table).collect()] == [(0, "sleeper")]
    format_.append(rows(spark, 1, "second"), table, at(1))


def _token_of(commit: str) -> Any:
    [told] = [json.loads(line)["commitInfo"] for line in Path(commit).read_text().splitlines() if "commitInfo" in line]
    return json.loads(told["userMetadata"])


def _until_stopped(pid: int) -> None:
    give_up = time.monotonic() + 120
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < give_up
        time.sleep(0.05)
