"""T6: from Kafka to PostgreSQL at a rate, with all that is between as users run it.

The stack's own Kafka and PostgreSQL, `replicator run --continuous` with the defaults of ``conf/base.yaml``, and a
process that sends TPC-C's events at a steady rate, all on one machine. The tables are there before, by the same way.
How far PostgreSQL is behind is asked of PostgreSQL: each row has the time at which what it is made of was sent, and the
server notes when a transaction committed, so that the lag is known of every row in its last state, not of samples.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg2
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.cdc_ch import dataset, driver, gate, lag, plans, process, served
from benchmarks.cdc_ch.dataset import Dataset, Parameters
from benchmarks.cdc_ch.driver import Driver, Stopped, Work
from benchmarks.cdc_ch.lag import Lag, Second, Seen
from benchmarks.cdc_ch.records import SOURCE, topic
from benchmarks.cdc_ch.served import ENV, SENT, STAR, TARGET_SCHEMA, Served
from benchmarks.cdc_ch.tables import TPCC
from benchmarks.cdc_ch.tpcc import Scale
from infra.local import Database, Endpoints, Stack

TRACK = "T6"

PATIENCE = 900
"""Seconds in which the tables must be there, and after the last event at most until PostgreSQL has it all."""

STEADY, BEHIND = 0.05, 30
"""A rate is held where the lag grows by less than so many seconds a second, and what was sent last is there after no
more than so many: what one-node tools publish of themselves.
"""

_IDLE = 10
"""Seconds in which nothing is sent, to see what that costs."""

_QUIET = 5
"""Seconds without a commit after which all may be there."""

_LEDGER = f"{TARGET_SCHEMA}._replicator_ledger"
_SEEN = """
SELECT (extract(epoch FROM sent AT TIME ZONE 'UTC') * 1000)::bigint,
  (extract(epoch FROM pg_xact_commit_timestamp(x)) * 1000)::bigint, rows
FROM (SELECT {sent} AS sent, xmin AS x, count(*) AS rows FROM {table} GROUP BY 1, 2) s
WHERE sent >= to_timestamp(%s) AT TIME ZONE 'UTC'
"""


@dataclass(frozen=True)
class Given:
    """Where inputs are kept and what was said goes, how large the driver's heap may be, and who is told."""

    data: Path
    heap: str
    tell: Callable[[str], None]


@dataclass(frozen=True)
class Flow:
    """One rate: ``rate`` events a second for some ``seconds``, of which the first ``warm`` do not count.

    ``served`` is how many a second were in PostgreSQL, from the first sending to the last commit; ``drained`` how long
    that came after the last sending. ``cores`` is CPU seconds per second while it was sent, by process, ``idle`` before
    anything was; ``passes`` seconds by stage of each pass, ``work`` what stages did, ``batches`` those of bronze while
    it was sent and their ``files``. With a ``problem`` there are no figures.
    """

    rate: int
    seconds: float = 0.0
    records: int = 0
    warm: int = 0
    served: float = 0.0
    drained: float = 0.0
    commits: int = 0
    lag: Lag | None = None
    series: tuple[Second, ...] = ()
    cores: Mapping[str, float] = field(default_factory=dict)
    idle: Mapping[str, float] = field(default_factory=dict)
    batches: int = 0
    files: int = 0
    passes: tuple[Mapping[str, float], ...] = ()
    work: tuple[Work, ...] = ()
    problem: str = ""

    @property
    def is_held(self) -> bool:
        """Whether as much is seen as is sent."""
        return self.lag is not None and self.lag.growth < STEADY and self.drained <= BEHIND

    def value(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "is_held": self.is_held}


def parameters(rate: int, seconds: int, scale: Scale) -> Parameters:
    """The workload of so long at that rate."""
    return Parameters(rate * seconds, scale)


def run(rates: Sequence[int], seconds: int, warm: int, size: str, given: Given) -> Iterator[Flow]:
    """Rate after rate, each as it ends."""
    for rate in rates:
        given.tell(f"the data of {rate:,} events a second, for {seconds} s")
        made = dataset.made(parameters(rate, seconds, plans.PLANS[size].trade.scale), given.data)
        home = Path(tempfile.mkdtemp(prefix="cdc-ch-flow-", dir=given.data))
        try:
            flow = measured(made, rate, warm, home, given)
        finally:
            _keep_logs(home, given.data / "logs", rate)
            shutil.rmtree(home, ignore_errors=True)
        given.tell(f"{rate:,} a second: {flow.problem or flow.lag}")
        yield flow


def measured(made: Dataset, rate: int, warm: int, home: Path, given: Given) -> Flow:
    """One rate, with servers, lake and driver of its own below ``home``. What ends it too early, whatever that is, is
    its ``problem``.
    """
    stack = Stack(home / "stack")
    try:
        at = _servers(stack)
        running = Driver(served.configured(home, at, given.heap), ENV, home)
        flow = _Flow(made, rate, warm, home, stack, at, running)
        try:
            flow.load()
            given.tell(f"{rate:,} a second: the tables are there")
            flow.send()
        finally:
            running.stop()
        return flow.figures(running.lines())
    except Stopped as stopped:
        return Flow(rate, problem=str(stopped))
    except Exception as error:  # noqa: BLE001 - other rates are still to be measured
        traceback.print_exception(error)
        return Flow(rate, problem=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    finally:
        stack.delete()


def _keep_logs(home: Path, folder: Path, rate: int) -> None:
    folder.mkdir(exist_ok=True)
    for log in home.glob("*.log"):
        shutil.copy(log, folder / f"{TRACK} {rate} {log.name}")


def _servers(stack: Stack) -> Endpoints:
    """Kafka with the topics, and a PostgreSQL that notes when transactions commit."""
    owner = os.getpid()
    at = stack.up(("kafka", "postgres"), owner=owner)
    with _session(at.postgres_admin) as cursor:
        cursor.execute("ALTER SYSTEM SET track_commit_timestamp = on")
    stack.down(("postgres",))
    at = stack.up(("postgres",), owner=owner)
    admin = AdminClient({"bootstrap.servers": at.kafka})
    for each in admin.create_topics([NewTopic(topic(table), 3) for table in TPCC]).values():
        each.result(60)
    return at


@dataclass
class _Flow:
    """What happens at one rate, in the order of its methods."""

    made: Dataset
    rate: int
    warm: int
    home: Path
    stack: Stack
    at: Endpoints
    driver: Driver
    told: Mapping[str, Any] = field(default_factory=dict)
    cores: Mapping[str, float] = field(default_factory=dict)
    idle: Mapping[str, float] = field(default_factory=dict)
    stored: tuple[int, int] = (0, 0)
    seen: list[Seen] = field(default_factory=list)

    def load(self) -> None:
        """The rows that are there before, on the same way."""
        self._produced("snapshot", 0)
        self._await("start")

    def send(self) -> None:
        """The events, until PostgreSQL has what the oracle has."""
        with self._counted() as idle:
            time.sleep(_IDLE)
        before = self._bronze()
        with self._counted() as cores:
            self.told = self._produced("batch-0000", self.rate)
            seconds = (self.told["until"] - self.told["since"]) / 1000
        after = self._bronze()
        self.idle, self.stored = idle, (after[0] - before[0], after[1] - before[1])
        self.cores = {**cores, "producer": round(self.told["cpu"] / seconds, 3)}
        self._await("state")
        with _session(self.at.postgres) as cursor:
            for model in STAR:
                cursor.execute(_SEEN.format(sent=SENT, table=_place(model)), [self.told["since"] / 1000])
                self.seen += [Seen(*row) for row in cursor.fetchall()]

    def figures(self, lines: list[dict[str, Any]]) -> Flow:
        """What came of it. Raises Stopped where no row counts."""
        since, until = self.told["since"], self.told["until"]
        found = lag.told(self.seen, since, self.warm)
        if found is None:
            raise Stopped(f"no row of the star is of what was sent after the first {self.warm} s")
        last = max(each.shown for each in self.seen)
        return Flow(
            self.rate,
            (until - since) / 1000,
            self.told["records"],
            self.warm,
            round(self.told["records"] / (last - since) * 1000, 1),
            (last - until) / 1000,
            len({each.shown for each in self.seen}),
            found,
            tuple(lag.by_second(self.seen, since)),
            self.cores,
            self.idle,
            *self.stored,
            tuple(driver.phases(self.driver.said, since / 1000 + self.warm)),
            tuple(driver.work(lines, self.made.meta["snapshot"])),
        )

    def _produced(self, part: str, rate: int) -> dict[str, Any]:
        """What the producer told. Raises Stopped with the last that it said where it failed."""
        command = [
            sys.executable,
            "-m",
            "benchmarks.cdc_ch.producer",
            str(self.made.folder / part),
            self.at.kafka,
            str(rate),
        ]
        log = self.home / "producer.log"
        with log.open("a") as said:
            done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=said, text=True)
        if done.returncode:
            # the client's threads, whose lines begin so, may speak after the last word
            own = [line for line in log.read_text().splitlines() if not line.startswith("%")]
            last = own[-1] if own else "nothing"
            raise Stopped(f"what sends the events ended with {done.returncode} and said: {last}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _await(self, state: str) -> None:
        """Until PostgreSQL holds the star of that state. Raises Stopped."""
        until, before, problems = time.monotonic() + PATIENCE, None, ["nothing is there"]
        while problems:
            time.sleep(_QUIET)
            if self.driver.is_over or time.monotonic() > until:
                raise Stopped("; ".join(problems))
            with _session(self.at.postgres) as cursor:
                now = _versions(cursor)
                if now and now == before:
                    problems = [each for model in STAR for each in self._differing(cursor, model, state)]
                before = now

    def _differing(self, cursor: Any, model: Served, state: str) -> list[str]:
        table, file = model.table, self.home / f"{model.table.name}.csv"
        with file.open("wb") as written:
            cursor.copy_expert(f"COPY (SELECT {', '.join(table.names)} FROM {_place(model)}) TO STDOUT CSV", written)
        kinds = {name: table.duck(name) for name in table.names}
        rows = f"SELECT * FROM read_csv('{file}', header = false, columns = {kinds})"
        return gate.differing(table, model.oracle(self.made.folder / state), rows)

    def _bronze(self) -> tuple[int, int]:
        """Commits and data files of bronze so far."""
        place = self.home / "lake" / "bronze" / SOURCE
        return len(list(place.glob("_delta_log/*.json"))), len(list(place.glob("topic=*/*.parquet")))

    @contextmanager
    def _counted(self) -> Iterator[dict[str, float]]:
        """CPU seconds per second of the block, by what works; there when the block is over."""
        cores: dict[str, float] = {}
        before, began = self._cpu(), time.monotonic()
        yield cores
        seconds, after = time.monotonic() - began, self._cpu()
        cores |= {name: round((after[name] - before[name]) / seconds, 3) for name in after}

    def _cpu(self) -> dict[str, float]:
        """CPU seconds until now, by what works."""
        pids = {each.name: each.pid for each in self.stack.status() if each.pid is not None}
        own = self.driver.pid
        groups = {"driver's Python": [own], "driver's JVM": [pid for pid in process.tree(own) if pid != own]}
        groups |= {"Kafka": [pids["kafka"]], "PostgreSQL": process.tree(pids["postgres"])}
        return {name: process.used(found).cpu for name, found in groups.items()}


def _place(model: Served) -> str:
    return f"{TARGET_SCHEMA}.{model.table.name}"


def _versions(cursor: Any) -> list[Any]:
    """What the ledger says; nothing while there is none, or not all of the star is in it."""
    cursor.execute("SELECT to_regclass(%s)", [_LEDGER])
    if cursor.fetchone()[0] is None:
        return []
    cursor.execute(f"SELECT * FROM {_LEDGER} ORDER BY 1")
    found = cursor.fetchall()
    return found if len(found) >= len(STAR) else []


@contextmanager
def _session(at: Database) -> Iterator[Any]:
    session = psycopg2.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database)
    with closing(session):
        session.autocommit = True
        with session.cursor() as cursor:
            yield cursor
