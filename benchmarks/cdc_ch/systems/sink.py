"""B7 sink: Debezium's JDBC sink on a Kafka Connect of its own, from a topic into PostgreSQL (T5).

The topic has the changes, and the connector and its tasks are there but paused, when the clock starts; it resumes, and
the clock ends when the last upsert and the last delete of each partition can be seen in the table: a task keeps a
partition's order, and what it writes together is one transaction. Connect's start is not in it, a round trip through
its configuration is.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import duckdb

from benchmarks.cdc_ch import environments, topics
from benchmarks.cdc_ch.contender import CORES, Case, Contender
from benchmarks.cdc_ch.systems.postgres import Served
from benchmarks.cdc_ch.tables import MONEY, RATE, TIME, WIDE, Kept
from infra.local import jvm
from infra.local.connect import WORKER
from infra.local.connect import Connect as Worker
from infra.local.home import Home
from infra.local.parts import Parts
from infra.local.processes import Process, identity
from replicator.connect.rest import Connect
from replicator.errors import ConnectorFailed, Unreachable
from replicator.settings import cache_dir

NAME = "sink"
TOPIC = "changes"
BATCH = 5_000
SETTINGS = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "tasks.max": str(CORES),
    "topics": TOPIC,
    "table.name.format": f"bench.{WIDE.name}",
    "insert.mode": "upsert",
    "delete.enabled": "true",
    "primary.key.mode": "record_key",
    "schema.evolution": "none",
    "use.reduction.buffer": "true",
    "batch.size": str(BATCH),
    "consumer.override.max.poll.records": str(BATCH),
    "consumer.override.fetch.max.bytes": str(64 << 20),
    "consumer.override.max.partition.fetch.bytes": str(16 << 20),
}
"""The rest is where the database is, and the schema, which the converter has once instead of each record."""

_URL = "reWriteBatchedInserts=true"
_IMAGES = ("before", "after")
_KINDS: dict[str, dict[str, Any]] = {
    "int": {"type": "int32"},
    "bigint": {"type": "int64"},
    "string": {"type": "string"},
    TIME: {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
}
_SECONDS, _RUN = 60, 1_200
_LOOK = 0.005


def made(work: Path, heap: str) -> Contender:
    """The system. Raises Missing where its JARs are not there."""
    return _Sink(work, heap, environments.jars(NAME))


class _Sink(Served):
    def __init__(self, work: Path, heap: str, jars: list[Path]) -> None:
        super().__init__(work)
        self._servers = self._stack.up(["kafka"], owner=os.getpid()).kafka
        self._last: list[tuple[int, str | None]] = []
        home = Home(self._place)
        self._process = _started(home, self._servers, heap, jars, work.with_name(f"{work.name} {Worker.name}.log"))
        self._connect = Connect(f"http://127.0.0.1:{home.port(Worker.name)}")

    def about(self) -> Mapping[str, Any]:
        [plugin] = [each for each in self._connect.plugins() if each.name == SETTINGS["connector.class"]]
        address = f"URL parameters {_URL}"
        return {**super().about(), "debezium-connector-jdbc": plugin.version, "url": address, **SETTINGS}

    def ready(self, case: Case) -> None:  # noqa: ARG002 - a connector for all
        if NAME not in self._connect.list():
            topics.create(self._servers, TOPIC, CORES)
            self._connect.apply(NAME, SETTINGS | _schemas(WIDE) | self._database())
            self._connect.wait_running(NAME)

    def arrive(self, case: Case, home: Path, batch: int) -> None:
        self._connect.pause(NAME)
        _until(self._is_paused, _SECONDS, "a paused connector")
        super().arrive(case, home, batch)
        topics.send(self._servers, TOPIC, topics.changes(case, CORES, before=False))
        self._last = _last(case)

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        self._connect.resume(NAME)
        with closing(self._at.open()) as session:
            session.autocommit = True
            with session.cursor() as cursor:
                _until(lambda: all(_is_there(cursor, *each) for each in self._last), _RUN, "changes", self._is_well)
        return {}

    def servers(self) -> Sequence[int]:
        pid = self._process.pid()
        return [*super().servers(), *([] if pid is None else [pid])]

    def _database(self) -> dict[str, str]:
        at = self._at
        return {
            "connection.url": f"jdbc:postgresql://{at.host}:{at.port}/{at.database}?{_URL}",
            "connection.username": at.user,
            "connection.password": at.password,
        }

    def _is_paused(self) -> bool:
        status = self._connect.status(NAME)
        return status is not None and {status.connector, *status.tasks} == {"PAUSED"}

    def _is_well(self) -> None:
        status = self._connect.status(NAME)
        if status is not None and status.failed:
            raise ConnectorFailed(f"connector {NAME} failed: {status.trace}")


def _until(is_so: Callable[[], bool], seconds: float, what: str, look: Callable[[], None] = lambda: None) -> None:
    """Ask until it is; every second ``look`` whether it can still come. Raises Unreachable with ``what`` it is."""
    deadline, looked = time.monotonic() + seconds, time.monotonic()
    while not is_so():
        if time.monotonic() > deadline:
            raise Unreachable(f"{what}: not there after {seconds:.0f} s")
        if time.monotonic() > looked + 1:
            look()
            looked = time.monotonic()
        time.sleep(_LOOK)


def _last(case: Case) -> list[tuple[int, str | None]]:
    """Of each partition the keys that are upserted and deleted last, with the note that they have then: None where the
    row is gone.
    """
    newest = "arg_max(id, lsn), arg_max([CASE WHEN op <> 'd' THEN note END], lsn)"  # in a list NULL counts, too
    query = f"SELECT {newest} FROM '{case.input}/changes.parquet' GROUP BY id % {CORES}, op = 'd'"
    with duckdb.connect() as db:
        return [(key, note) for key, [note] in db.sql(query).fetchall()]


def _is_there(cursor: Any, key: int, note: str | None) -> bool:
    cursor.execute(f"SELECT note FROM bench.{WIDE.name} WHERE id = %s", [key])
    return [row[0] for row in cursor.fetchall()] == ([] if note is None else [note])


def _started(home: Home, servers: str, heap: str, jars: list[Path], log: Path) -> Process:
    """A worker with this plugin alone, compiled for speed where the stack's is for a quick start. Raises Unreachable
    where it does not become ready; its ``log`` is outside of ``home``, which is thrown away.
    """
    server = Worker(home, {})
    folder, address = home.folder(server.name), f"http://127.0.0.1:{home.port(server.name)}"
    (folder / "log").symlink_to(log.resolve())
    plugin = folder / "plugins" / "debezium-jdbc"
    plugin.mkdir(parents=True)
    for jar in jars:
        (plugin / jar.name).symlink_to(jar)
    places = {"bootstrap.servers": servers, "listeners": address, "plugin.path": str(plugin.parent)}
    jvm.write_properties(folder / "worker.properties", {**WORKER, **places})
    parts, main = Parts(cache_dir()), "org.apache.kafka.connect.cli.ConnectDistributed"
    command = jvm.command(parts.java, folder, parts.jars("kafka"), [f"-Xmx{heap}"], main, folder / "worker.properties")
    return bound(home, [part for part in command if part not in jvm.QUICK], server.ready, _SECONDS)


def bound(home: Home, command: Sequence[str | Path], ready: Callable[[], bool], seconds: float) -> Process:
    """Kafka Connect among the servers of a stack's ``home``: whoever stops those, their watchdog included, stops it.
    Raises Unreachable, and leaves nothing, where it is not ``ready`` after so many seconds.
    """
    process = home.process(Worker.name)
    try:
        with home.alone():
            home.own([process.name], identity(os.getpid()))
            process.start(command)
        process.wait(ready, Event(), seconds)
    except BaseException:
        process.stop()
        raise
    return process


def _schemas(table: Kept) -> dict[str, str]:
    """The converters with the schemas of the table's events."""
    key = {"type": "struct", "name": "Key", "fields": [_field(name, table) for name in table.keys]}
    rows = [_field(name, table) for name in table.names]
    source = [{"field": name, "type": "string"} for name in ("version", "connector", "name", "db", "schema", "table")]
    source += [{"field": name, "type": "int64"} for name in ("ts_ms", "lsn")]
    fields = [{"field": name, "type": "struct", "name": "Value", "optional": True, "fields": rows} for name in _IMAGES]
    fields.append({"field": "source", "type": "struct", "name": "Source", "fields": source})
    fields += [{"field": "op", "type": "string"}, {"field": "ts_ms", "type": "int64"}]
    value = {"type": "struct", "name": f"{TOPIC}.Envelope", "fields": fields}
    told = {}
    for side, schema in (("key", key), ("value", value)):
        told[f"{side}.converter"] = "org.apache.kafka.connect.json.JsonConverter"
        told[f"{side}.converter.schemas.enable"] = "true"
        told[f"{side}.converter.schema.content"] = json.dumps(schema, separators=(",", ":"))
    return told


def _field(name: str, table: Kept) -> dict[str, Any]:
    kind = dict(table.columns)[name]
    told = _KINDS.get(kind) or _decimal(kind)
    return {"field": name, "optional": name not in table.keys, **told}


def _decimal(kind: str) -> dict[str, Any]:
    precision, scale = {MONEY: (12, 2), RATE: (4, 4)}[kind]
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1, "parameters": parameters}
