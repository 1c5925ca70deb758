"""A workload at work: statements on a real database, and its connector, with marks that show how far that has got."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from infra.local import Endpoints
from infra.truth import Difference, compare
from replicator.connect.rest import Connect
from replicator.errors import Unreachable
from tests.golden.servers import SERVERS, Server
from tests.workload.generate import Statement, Workload
from tests.workload.tables import SCHEMA, Table, select

MARKS = "workload_marks"
"""A table beside the workload's own, whose rows show how far the connector has got; nobody replicates it."""
PATIENCE_SECONDS, QUIET_SECONDS = 120.0, 1.0

Rows = list[dict[str, Any]]


class Site:
    """One database with a workload and a connector of the same name."""

    def __init__(self, endpoints: Endpoints, work: Workload, **settings: str) -> None:
        self.work = work
        self.name = f"living_{work.dialect}"
        server = SERVERS[work.dialect]
        self._sessions: tuple[Server, ...] = (server(endpoints, SCHEMA), server(endpoints, SCHEMA, fresh=False))
        self._connect = Connect(endpoints.connect, patience=PATIENCE_SECONDS)
        self._connect_url = endpoints.connect
        self._settings = settings
        self._topics = Topics(endpoints.kafka, f"{self.name}.{SCHEMA}.")
        self._marks = 0

    @property
    def tables(self) -> list[str]:
        """Names of the tables, as silver calls them."""
        return [f"{SCHEMA}.{table.shape.name}" for table in self.work.tables[0]]

    def set_up(self) -> None:
        """Make the tables and wait until the connector has seen them, and will not look again.

        A connector that is killed before it has stored that its snapshot is over begins it anew, without the rows that
        are gone since: nobody could know of those (debezium.md D7).
        """
        first = self._sessions[0]
        first.run([f"CREATE TABLE {MARKS} (id int PRIMARY KEY)", *self.work.setup])
        if self.work.dialect == "mariadb":  # else gaps between keys are locked, also those that others want to fill
            for session in self._sessions:
                session.run(["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"])
        self._connect.forget(self.name)
        self._connect.apply(self.name, first.connector(self.name) | _TYPED | self._settings)
        self._connect.wait_running(self.name)
        self.mark()
        _wait("the snapshot is not stored as done", self._is_past_snapshot)

    def run(self, statement: Statement) -> None:
        """Execute one statement."""
        try:
            self._sessions[statement.session].run([statement.sql])
        except Exception as error:
            raise AssertionError(f"{self.work.dialect} refuses {statement.sql}") from error

    def mark(self) -> None:
        """Return when everything committed so far is in Kafka."""
        self._marks += 1
        self._sessions[0].run([f"INSERT INTO {MARKS} VALUES ({self._marks})"])
        _wait(f"mark {self._marks} of {self.name} does not arrive", lambda: self._topics.has_mark(self._marks))

    def ends(self) -> dict[tuple[str, int], int]:
        """(topic, partition) -> end offset, of the workload's tables, once nothing new comes."""
        return self._topics.ends()

    def compare(self, tables: tuple[Table, ...], silver: Callable[[str], Rows]) -> dict[str, Difference]:
        """Table -> how its rows in silver differ from those of the database now."""
        found = {}
        for table in tables:
            expected = [_plain(row) for row in self._sessions[0].rows(select(table, self.work.dialect))]
            key = [column.name for column in table.shape.key]
            name = f"{SCHEMA}.{table.shape.name}"
            columns = [column.name for column in (*table.shape.key, *table.columns)]
            # a column that came by DDL is NULL until an event brings it: silver cannot have it before
            rows = [dict.fromkeys(columns) | _plain(row) for row in silver(name)]
            found[name] = compare(expected, rows, key)
        return found

    def close(self) -> None:
        """Remove the connector and log out."""
        self._connect.forget(self.name)
        self._topics.close()
        for session in self._sessions:
            session.close()

    def _is_past_snapshot(self) -> bool:
        url = f"{self._connect_url}/connectors/{self.name}/offsets"
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - an address of our own
            stored = [each["offset"] for each in json.load(answer)["offsets"]]
        unfinished = [one for one in stored if one.get("snapshot") or one.get("last_snapshot_record") is False]
        return bool(stored) and not unfinished


class Topics:
    """The topics of one connector whose names begin with ``prefix``."""

    def __init__(self, servers: str, prefix: str) -> None:
        self._prefix = prefix
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": prefix, "enable.auto.commit": False}
            | {"allow.auto.create.topics": False, "auto.offset.reset": "earliest"}
        )
        self._seen: set[int] = set()
        self._read = 0

    def has_mark(self, number: int) -> bool:
        """Whether the row of this mark has come."""
        topic = self._prefix + MARKS
        if topic not in self._consumer.list_topics(timeout=20).topics:
            return False
        self._consumer.assign([TopicPartition(topic, 0, self._read)])
        for message in self._consumer.consume(1000, timeout=0.3):
            self._read = message.offset() + 1
            self._seen.add(json.loads(message.value() or b"")["payload"]["after"]["id"])
        return number in self._seen

    def ends(self) -> dict[tuple[str, int], int]:
        """The end offsets, unchanged for a while."""
        ends, since = self._ends(), time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            time.sleep(0.2)
            if (now := self._ends()) != ends:
                ends, since = now, time.monotonic()
        return ends

    def records(self) -> list[Any]:
        """Every record, by topic, partition and offset."""
        ends = {place: end for place, end in self.ends().items() if end}
        self._consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in ends])
        found: list[Any] = []
        while len(found) < sum(ends.values()):
            found += self._consumer.consume(1000, timeout=1.0)
        return sorted(found, key=lambda message: (message.topic(), message.partition(), message.offset()))

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def _ends(self) -> dict[tuple[str, int], int]:
        known = self._consumer.list_topics(timeout=20).topics
        ours = [t for t in known if t.startswith(self._prefix) and t != self._prefix + MARKS]
        places = [(topic, partition) for topic in ours for partition in known[topic].partitions]
        return {(t, p): self._consumer.get_watermark_offsets(TopicPartition(t, p))[1] for t, p in places}


_TYPED = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true",
    "value.converter.replace.null.with.default": "false",  # else a NULL comes as the column's default (debezium.md G1)
    "decimal.handling.mode": "precise",
    "skipped.operations": "none",
}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Bytes of any kind as bytes."""
    return {name: bytes(v) if isinstance(v, (bytearray, memoryview)) else v for name, v in row.items()}


def _wait(otherwise: str, done: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        with suppress(OSError):
            if done():
                return
        if time.monotonic() > until:
            raise Unreachable(otherwise)
        time.sleep(0.2)
