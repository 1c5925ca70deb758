"""Record cases from real Debezium: ``python -m tests.golden.record [CASE ...]``, from the repository's root.

It starts a local stack of its own in a temporary folder, runs the script of each case, and writes what Kafka and the
database hold in the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from infra.local import Endpoints, Stack
from replicator.connect.rest import Connect
from tests.golden.cases import Case, cases, exact
from tests.golden.servers import SCHEMA, SERVERS, Server

SERVICES = ("kafka", "connect", "mariadb", "postgres")
EVERY_CASE = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "extended.headers.enabled": "false",
    "include.schema.changes": "false",
}
"""Settings that a case may override: no schema blocks, and nothing that every record repeats."""
LARGEST = 60_000
PATIENCE_SECONDS, QUIET_SECONDS = 60.0, 1.0
_MARKS = "recorder_marks"
"""A table beside the case's own whose rows show how far the connector has got; its topic is not kept."""


def main() -> int:
    """Record the named cases, or all."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = set(sys.argv[1:])
    chosen = [case for case in cases() if not wanted or case.name in wanted]
    if unknown := wanted - {case.name for case in chosen}:
        sys.exit(f"There is no case {', '.join(sorted(unknown))}.")
    with tempfile.TemporaryDirectory(prefix="replicator-golden-", ignore_cleanup_errors=True) as folder:
        stack = Stack(Path(folder) / "stack")
        stack.fetch(SERVICES)
        try:
            endpoints = stack.up(SERVICES, owner=os.getpid(), tell=_tell)
            for case in chosen:
                record(case, endpoints)
        finally:
            stack.delete()
    return 0


def record(case: Case, endpoints: Endpoints) -> None:
    """Run one case and write its events and its rows."""
    before, after = case.statements
    connect, kafka = Connect(endpoints.connect), Topics(endpoints.kafka, case.name)
    with closing(SERVERS[case.told["database"]](endpoints)) as server, closing(kafka):
        server.run([f"CREATE TABLE {_MARKS} (id int PRIMARY KEY)", f"INSERT INTO {_MARKS} VALUES (1)", *before])
        connect.apply(case.name, server.connector(case.name) | EVERY_CASE | case.told.get("connector", {}))
        connect.wait_running(case.name)
        kafka.wait_for_marks(1)
        _mark(server, kafka, 2)  # streamed: the snapshot is over
        server.run(after)
        _mark(server, kafka, 3)
        events = [as_kcat(message) for message in kafka.read()]
        expected = {f"{SCHEMA}.{table}": exact(server.rows(sql)) for table, sql in _selects(case, server).items()}
        connect.delete(case.name)
    _write(case, events, expected)


class Topics:
    """The topics of one connector, each with one partition."""

    def __init__(self, servers: str, prefix: str) -> None:
        self._prefix = prefix
        self._marks = f"{prefix}.{SCHEMA}.{_MARKS}"
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": prefix, "enable.auto.commit": False}
            | {"allow.auto.create.topics": False, "auto.offset.reset": "earliest"}
        )

    def wait_for_marks(self, count: int) -> None:
        """Wait until the connector has written so many rows of the table of marks."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._ends(marks=True).get(self._marks, 0) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"mark {count} of {self._prefix} does not arrive")
            time.sleep(0.2)

    def read(self) -> list[Message]:
        """Every record once nothing new comes, by topic and offset."""
        ends, since = self._ends(), time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            time.sleep(0.2)
            if (now := self._ends()) != ends:
                ends, since = now, time.monotonic()
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in ends])
        found: list[Message] = []
        while len(found) < sum(ends.values()):
            found += self._consumer.consume(1000, timeout=1.0)
        return sorted(found, key=lambda message: (message.topic(), message.offset()))

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def _ends(self, *, marks: bool = False) -> dict[str, int]:
        topics = [topic for topic in self._consumer.list_topics(timeout=20).topics if self._is_kept(topic, marks)]
        return {topic: self._consumer.get_watermark_offsets(TopicPartition(topic, 0))[1] for topic in topics}

    def _is_kept(self, topic: str, marks: bool) -> bool:
        return topic == self._marks if marks else topic.startswith(f"{self._prefix}.") and topic != self._marks


def as_kcat(message: Message) -> dict[str, Any]:
    """One record as ``kcat -C -J`` prints it."""
    key, value = message.key(), message.value()
    headers: Any = message.headers() or ()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "tstype": "create",
        "ts": message.timestamp()[1],
        "headers": [text for name, told in headers for text in (name, told.decode())],
        "key": None if key is None else key.decode(),
        "payload": None if value is None else value.decode(),
    }


def _mark(server: Server, kafka: Topics, count: int) -> None:
    server.run([f"INSERT INTO {_MARKS} VALUES ({count})"])
    kafka.wait_for_marks(count)


def _selects(case: Case, server: Server) -> dict[str, str]:
    """Table -> the SELECT that reads it."""
    found = server.rows(
        "SELECT table_name AS name FROM information_schema.tables "
        f"WHERE table_schema = '{SCHEMA}' AND table_name <> '{_MARKS}' ORDER BY 1"
    )
    told = case.told.get("rows", {})
    return {row["name"]: told.get(f"{SCHEMA}.{row['name']}", f"SELECT * FROM {row['name']}") for row in found}


def _write(case: Case, events: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    lines = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
    if len(lines) > LARGEST:
        raise ValueError(f"{case.name} has {len(lines)} characters of events, more than {LARGEST}")
    (case.folder / "events.jsonl").write_text(lines, encoding="utf-8")
    (case.folder / "expected.json").write_text(_readable(expected), encoding="utf-8")
    rows = sum(len(found) for found in expected.values())
    _tell(f"{case.name}: {len(events)} events, {len(lines)} characters, {rows} rows")


def _readable(expected: dict[str, Any]) -> str:
    """One row a line."""
    tables = []
    for table, rows in expected.items():
        lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
        tables.append(f"  {json.dumps(table)}: [" + (f"\n{lines}\n  ]" if rows else "]"))
    return "{\n" + ",\n".join(tables) + "\n}\n"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a program for people


if __name__ == "__main__":
    sys.exit(main())
