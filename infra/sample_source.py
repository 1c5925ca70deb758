"""The sample source on a running stack: ``python -m infra.sample_source`` fills it and registers its connector."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql
from confluent_kafka import Consumer, KafkaException, TopicPartition

from infra.local import Stack
from infra.local.ending import exit_code_of, tell
from infra.sources.classicmodels import load, rows
from infra.sources.classicmodels.load import DATABASE, log_in
from replicator import settings
from replicator.connect.configuration import configuration
from replicator.connect.rest import Connect
from replicator.errors import ConfigError, Unreachable

if TYPE_CHECKING:
    from infra.local.endpoints import Endpoints
    from replicator.spec import Connector

CONNECTOR = "dbserver1"
"""Name of the connector and prefix of its topics."""

_PATIENCE_SECONDS = 120
_CONF = Path(__file__).parents[1] / "conf"


def described(endpoints: Endpoints, source: str, conf: Path = _CONF) -> Connector:
    """The connector that a source's file describes, on that stack."""
    found = settings.load(conf, "local", endpoints.env()).source(source).connector
    if found is None:
        raise ConfigError(f"the source {source} describes no connector", where=str(conf))
    return found


def connector(endpoints: Endpoints, *, prefix: str = CONNECTOR, database: str = DATABASE) -> dict[str, str]:
    """The MariaDB connector for one database of the stack.

    Another ``prefix`` makes another connector beside the first: own topics, schema history and server id.
    """
    own = described(endpoints, CONNECTOR)
    if prefix != CONNECTOR:
        own = replace(own, server_id=(own.server_id or 0) + 1 + sum(prefix.encode()) % 10_000)
    return configuration(replace(own, prefix=prefix, databases=(database,)))


def delivered(kafka: str, prefix: str) -> int:
    """How many records the topics of that prefix have had. Raises Unreachable."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": prefix})
    try:
        topics = [topic for topic in consumer.list_topics(timeout=20).topics if topic.startswith(prefix)]
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1] for topic in topics)
    except KafkaException as error:
        raise Unreachable(f"Kafka does not answer: {error.args[0].str()}", where=kafka) from error
    finally:
        consumer.close()


def wait_delivered(kafka: str, prefix: str, rows: int) -> None:
    """Until the topics of that prefix hold as many records as the source has rows. Raises Unreachable."""
    deadline, found = time.monotonic() + _PATIENCE_SECONDS, 0
    while time.monotonic() < deadline:
        found = delivered(kafka, prefix)
        if found >= rows:
            return
        time.sleep(0.5)
    raise Unreachable(
        f"{found} of {rows} rows are in Kafka after {_PATIENCE_SECONDS} s",
        where=prefix,
        fix="Look into Connect's log (`python -m infra.local status` names it).",
    )


def main() -> int:
    """Fill the source of the stack in ``--home`` anew and wait until its rows are in Kafka; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.sample_source", description="Fill the sample source.")
    parser.add_argument("--home", type=Path, default=Path(".cache/stack"), help="folder of the running stack")
    home = parser.parse_args().home
    return exit_code_of(lambda: _fill(Stack(home).endpoints()), prefix="error: ")


def _fill(endpoints: Endpoints) -> None:
    try:
        with closing(log_in(endpoints.mariadb)) as source:
            count = load.load(source, rows.generate())
    except pymysql.Error as error:
        told = f"MariaDB does not answer: {error.args[-1]}"
        raise Unreachable(told, fix="Start it with `make stack`.") from error
    connect = Connect(endpoints.connect)
    connect.apply(CONNECTOR, connector(endpoints))
    connect.wait_running(CONNECTOR)
    wait_delivered(endpoints.kafka, f"{CONNECTOR}.{DATABASE}.", count)
    tell(f"{count:,} rows of {DATABASE} are in Kafka; connector {CONNECTOR} is RUNNING")


if __name__ == "__main__":
    sys.exit(main())
