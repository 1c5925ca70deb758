"""B3, Flink SQL: ``debezium-json`` from Kafka into PostgreSQL by the JDBC connector (T5), and into Paimon (T3).

A cluster of one JobManager and one TaskManager with two slots stays in a JVM; a run is a job over topics that are
filled before, bounded by their ends: from the statement until the job is finished, its submission included. Flink takes
changes as they come: it knows no order but that of a partition, and drops tombstones. Nothing is checkpointed: such a
job commits when it ends.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from benchmarks.cdc_ch import environments, reads, topics
from benchmarks.cdc_ch.contender import CORES, PUBLISH, Case, Contender, events, tables
from benchmarks.cdc_ch.systems.postgres import Served
from benchmarks.cdc_ch.tables import TIME, WIDE, Kept
from infra.local import Stack
from replicator.environment import variable
from replicator.jvm.ivy import pyspark_jars
from replicator.jvm.java import java_home

NAME = "flink"
PARTITIONS = 3
"""Of the events' topics, as they were made."""

CLUSTER = {
    "taskmanager.memory.network.min": "256mb",
    "taskmanager.memory.network.max": "256mb",
    "parallelism.default": str(CORES),
    "table.local-time-zone": "UTC",
}
JDBC = {"sink.buffer-flush.max-rows": "5000", "sink.buffer-flush.interval": "1s"}
PAIMON = {"bucket": str(CORES), "write-buffer-size": "64 mb", "file.compression": "zstd"}
"""A buffer's default is 256 MB: of nine tables, two writers each, more than the heap."""

_URL = "reWriteBatchedInserts=true"
_OPENED = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent")
"""Packages of Java that Flink reaches into."""

_KINDS = {"string": "STRING", TIME: "TIMESTAMP(6)"}
_NULL = "null!"


def made(track: str, work: Path, heap: str) -> Contender:
    """One of the tracks. Raises Missing where the environment is not built."""
    cluster = Cluster(heap)
    return _Publish(work, cluster) if track == PUBLISH else _Refine(work, cluster)


class Cluster:
    """Flink in a JVM that ends with us."""

    def __init__(self, heap: str) -> None:
        [home] = environments.made(NAME).parents[1].glob("lib/python*/site-packages/pyflink")
        jars = [*sorted((home / "lib").glob("*.jar")), *environments.jars(NAME)]
        self.version = next(jar.stem.rpartition("-")[2] for jar in jars if jar.name.startswith("flink-dist"))
        self._gateway = _gateway(heap, jars)
        self._java = self._gateway.jvm.org.apache.flink
        self._flink = self._mini()
        self.streaming, self.batch = self._tables("inStreamingMode"), self._tables("inBatchMode")

    def close(self) -> None:
        """Jobs and JVM."""
        self._flink.close()
        self._gateway.shutdown()

    def _mini(self) -> Any:
        settings = self._java.runtime.minicluster.MiniClusterConfiguration.Builder()
        settings.setConfiguration(self._configuration(CLUSTER)).setNumSlotsPerTaskManager(CORES)
        settings.setCommonBindAddress("127.0.0.1").withRandomPorts()
        flink = self._java.runtime.minicluster.MiniCluster(settings.build())
        flink.start()
        return flink

    def _tables(self, mode: str) -> Any:
        """What takes SQL and hands its jobs to the cluster."""
        at, given = self._flink.getRestAddress().get(), self._configuration(CLUSTER)
        jars = self._gateway.new_array(self._gateway.jvm.String, 0)
        environment = self._java.streaming.api.environment.StreamExecutionEnvironment
        remote = environment.createRemoteEnvironment(at.getHost(), at.getPort(), given, jars)
        settings = getattr(self._java.table.api.EnvironmentSettings.newInstance(), mode)().build()
        made_of = self._java.table.api.bridge.java.StreamTableEnvironment.create(remote, settings)
        made_of.getConfig().addConfiguration(given)
        return made_of

    def _configuration(self, told: Mapping[str, str]) -> Any:
        return self._java.configuration.Configuration.fromMap(dict(told))


def done(flink: Any, inserts: Sequence[str]) -> None:
    """One job of all of them, until it is finished."""
    together = flink.createStatementSet()
    for insert in inserts:
        together.addInsertSql(insert)
    getattr(together.execute(), "await")()


def source(table: Kept, topic: str, servers: str) -> str:
    """A topic's events as a changing table of that name: times as the events have them."""
    columns = ", ".join(f"{column} {'BIGINT' if kind == TIME else _kind(kind)}" for column, kind in table.columns)
    told = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "debezium-json",
    }
    return f"CREATE TEMPORARY TABLE `{topic}` ({columns}, {_key(table)}) {_with(told)}"


def insert(table: Kept, into: str, topic: str) -> str:
    """From a source, times made of microseconds: Flink itself makes them of milliseconds at most."""
    return f"INSERT INTO {into} SELECT {', '.join(_value(*column) for column in table.columns)} FROM `{topic}`"


class _Publish(Served):
    def __init__(self, work: Path, cluster: Cluster) -> None:
        super().__init__(work)
        self._servers, self._cluster = self._stack.up(["kafka"], owner=os.getpid()).kafka, cluster
        at = self._at
        url = f"jdbc:postgresql://{at.host}:{at.port}/{at.database}?{_URL}"
        login = {"username": at.user, "password": at.password}
        told = {"connector": "jdbc", "url": url, **login, "table-name": f"bench.{WIDE.name}", **JDBC}
        cluster.streaming.executeSql(f"CREATE TEMPORARY TABLE target ({_columns(WIDE)}, {_key(WIDE)}) {_with(told)}")

    def about(self) -> Mapping[str, Any]:
        own = {"flink": self._cluster.version, "url": f"URL parameters {_URL}"}
        return {**super().about(), **own, **CLUSTER, **JDBC}

    def ready(self, case: Case) -> None:
        topic = Path(case.input).name
        topics.create(self._servers, topic, CORES)
        topics.send(self._servers, topic, topics.changes(case, CORES, before=True))
        self._cluster.streaming.executeSql(source(WIDE, topic, self._servers))

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        done(self._cluster.streaming, [insert(WIDE, "target", Path(case.input).name)])
        return {}

    def close(self) -> None:
        self._cluster.close()
        super().close()


class _Refine(Contender):
    """Tables of Paimon below ``home``, which is the warehouse of a catalog of that name."""

    def __init__(self, work: Path, cluster: Cluster) -> None:
        self._stack, self._cluster = Stack(work / "server"), cluster
        self._servers = self._stack.up(["kafka"], owner=os.getpid()).kafka

    def about(self) -> Mapping[str, Any]:
        return {"flink": self._cluster.version, **CLUSTER, **PAIMON}

    def start(self, case: Case, home: Path) -> None:
        lake = _lake(self._cluster.streaming, home)
        for table in tables(case):
            made_of = f"({_columns(table)}, {_key(table)}) {_with(PAIMON)}"
            self._cluster.streaming.executeSql(f"CREATE TABLE {lake}.{table.name} {made_of}")
        given = {table: [f"{case.input}/snapshot/{table.name}.parquet"] for table in tables(case)}
        self._send("snapshot", case, given)
        done(
            self._cluster.streaming,
            [insert(each, f"{lake}.{each.name}", _topic("snapshot", case, each)) for each in given],
        )

    def ready(self, case: Case) -> None:
        self._send("events", case, {table: events(case, table) for table in tables(case)})

    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:  # noqa: ARG002 - there is one
        lake, given = _lake(self._cluster.streaming, home), [table for table in tables(case) if events(case, table)]
        done(
            self._cluster.streaming,
            [insert(each, f"{lake}.{each.name}", _topic("events", case, each)) for each in given],
        )
        return {}

    def ask(self, case: Case, home: Path, query: str) -> Iterator[Sequence[Any]]:  # noqa: ARG002 - it names its tables
        lake = _lake(self._cluster.batch, home)
        named = {name: f"{lake}.{name}" for name in reads.sources(query)}
        rows = self._cluster.batch.executeSql(query.format(**named)).collect()
        while rows.hasNext():
            row = rows.next()
            yield [row.getField(at) for at in range(row.getArity())]

    def export(self, case: Case, home: Path, out: Path) -> None:
        flink, lake, written = self._cluster.batch, _lake(self._cluster.batch, home), out / "csv"
        for table in tables(case):
            told = {"connector": "filesystem", "path": f"{written}/{table.name}", "format": "csv"}
            columns = f"({_columns(table)}) {_with({**told, 'csv.null-literal': _NULL})}"
            flink.executeSql(f"DROP TEMPORARY TABLE IF EXISTS {table.name}")
            flink.executeSql(f"CREATE TEMPORARY TABLE {table.name} {columns}")
        done(flink, [f"INSERT INTO {each.name} SELECT * FROM {lake}.{each.name}" for each in tables(case)])
        for table in tables(case):
            _save(table, written / table.name, out / table.name)
        shutil.rmtree(written)

    def close(self) -> None:
        self._cluster.close()
        self._stack.down()

    def _send(self, what: str, case: Case, given: Mapping[Kept, Sequence[str]]) -> None:
        for table, files in given.items():
            topic = _topic(what, case, table)
            topics.create(self._servers, topic, PARTITIONS)
            topics.send(self._servers, topic, topics.events(files))
            self._cluster.streaming.executeSql(source(table, topic, self._servers))


def _topic(what: str, case: Case, table: Kept) -> str:
    return f"{what}-{Path(case.input).name}-{table.name}"


def _lake(flink: Any, home: Path) -> str:
    told = {"type": "paimon", "warehouse": str(home)}
    flink.executeSql(f"CREATE CATALOG IF NOT EXISTS `{home.name}` {_with(told)}")
    return f"`{home.name}`.`default`"


def _save(table: Kept, folder: Path, out: Path) -> None:
    """What Flink wrote, as the gate reads it."""
    out.mkdir()
    pq.write_table(table.batch([]), out / "none.parquet")
    if any(folder.glob("*")):
        columns = {name: table.duck(name) for name in table.names}
        told = f"auto_detect = false, header = false, quote = '\"', nullstr = '{_NULL}', columns = {columns}"
        with duckdb.connect() as db:
            db.execute(f"COPY (FROM read_csv('{folder}/*', {told})) TO '{out}/all.parquet' (FORMAT parquet)")


def _gateway(heap: str, jars: Sequence[Path]) -> JavaGateway:
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
    port, token = launch_gateway(
        jarpath=str(next(pyspark_jars().glob("py4j-*.jar"))),
        classpath=":".join(map(str, jars)),
        javaopts=[f"-Xmx{heap}", *opened],
        java_path=str(java_home(variable("JAVA_HOME")) / "bin" / "java"),
        redirect_stdout=sys.stderr,
        redirect_stderr=sys.stderr,
        die_on_exit=True,
        enable_auth=True,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))


def _columns(table: Kept) -> str:
    return ", ".join(f"{name} {_kind(kind)}" for name, kind in table.columns)


def _key(table: Kept) -> str:
    return f"PRIMARY KEY ({', '.join(table.keys)}) NOT ENFORCED"


def _kind(kind: str) -> str:
    return _KINDS.get(kind, kind.upper())


def _value(name: str, kind: str) -> str:
    if kind != TIME:
        return name
    micros = f"LPAD(CAST(MOD({name}, 1000000) AS STRING), 6, '0')"
    return f"CAST(CONCAT(FROM_UNIXTIME({name} / 1000000), '.', {micros}) AS TIMESTAMP(6))"


def _with(told: Mapping[str, str]) -> str:
    return "WITH (" + ", ".join(f"'{name}' = '{value}'" for name, value in told.items()) + ")"
