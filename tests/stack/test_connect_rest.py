"""The life of a connector, against a real Kafka Connect."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from infra.local.endpoints import Endpoints
from infra.sample_source import connector
from infra.sources.classicmodels.load import load, log_in
from infra.sources.classicmodels.rows import generate
from replicator.connect.rest import Connect
from replicator.errors import ConfigError, ConnectorFailed

pytestmark = pytest.mark.stack

NAME = "resttest"
DATABASE = "classicmodels_rest"
OFFICES = f"{NAME}.{DATABASE}.offices"
BROKEN = {
    "transforms": "pick",
    "transforms.pick.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.pick.field": "nowhere",
}
"""Accepted by the validation, fails at the first record."""


@pytest.fixture(scope="module")
def config(endpoints: Endpoints) -> Iterator[dict[str, str]]:
    """A connector for the seven offices of an own database, which goes away with its topics."""
    with closing(log_in(endpoints.mariadb)) as source:
        load(source, generate(), DATABASE)
        whole = connector(endpoints, prefix=NAME, database=DATABASE)
        yield {**whole, "table.include.list": f"{DATABASE}.offices"}
        source.cursor().execute(f"DROP DATABASE {DATABASE}")
    admin = AdminClient({"bootstrap.servers": endpoints.kafka})
    topics = [topic for topic in admin.list_topics(timeout=20).topics if NAME in topic]
    for deleted in admin.delete_topics(topics).values():
        deleted.result(20)


@pytest.fixture
def connect(endpoints: Endpoints) -> Iterator[Connect]:
    rest = Connect(endpoints.connect)
    rest.forget(NAME)
    yield rest
    rest.forget(NAME)


def end_of_offices(consumer: Consumer) -> int:
    """The end of the topic; -1 where it does not exist."""
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(OFFICES, 0), timeout=20, cached=False)
    except KafkaException as error:
        if error.args[0].code() in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART):
            return -1
        raise
    return end


def records_of_offices(endpoints: Endpoints, at_least: int) -> int:
    """The end of the topic, once it has been reached and is quiet; the topic itself appears with its first record."""
    consumer = Consumer({"bootstrap.servers": endpoints.kafka, "group.id": NAME})
    deadline, seen = time.monotonic() + 180, -1
    try:
        while time.monotonic() < deadline:
            end = end_of_offices(consumer)
            if end == seen and end >= at_least:
                return end
            seen = end
            time.sleep(2)
    finally:
        consumer.close()
    raise AssertionError(f"{seen} records of {at_least}")


def test_a_connector_is_applied_again_and_again(connect: Connect, config: dict[str, str]) -> None:
    """The second time nothing changes; it is listed once and runs."""
    for _ in range(2):
        connect.apply(NAME, config)
        status = connect.wait_running(NAME)
        assert (status.connector, status.tasks, status.trace) == ("RUNNING", ("RUNNING",), "")
    assert connect.list().count(NAME) == 1


def test_a_stopped_connector_has_no_tasks_and_is_still_known(connect: Connect, config: dict[str, str]) -> None:
    """STOPPED is reached before the call returns; the connector is still listed."""
    connect.apply(NAME, config)
    connect.wait_running(NAME)
    connect.stop(NAME)
    status = connect.status(NAME)
    assert (status.connector, status.tasks, status.running, status.failed) == ("STOPPED", (), False, False)
    assert NAME in connect.list()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"connector.class": "com.example.Nope"}, "no plugin with connector.class 'com.example.Nope'.*MariaDb"),
        ({"connector.class": ""}, "no plugin"),
        ({"topic.prefix": ""}, "topic.prefix: .*A value is required"),
        ({"poll.interval.ms": "soon", "decimal.handling.mode": "guess"}, "poll.interval.ms: .*decimal.handling.mode: "),
        ({"database.password": "wrong"}, "database.hostname: .*Access denied"),
    ],
)
def test_a_refused_configuration_says_which_property_and_why(
    connect: Connect, config: dict[str, str], change: dict[str, str], told: str
) -> None:
    """Before anything is created; the password is not in the message."""
    with pytest.raises(ConfigError, match=told) as raised:
        connect.apply(NAME, {**config, **change})
    assert "wrong" not in str(raised.value)
    assert NAME not in connect.list()


def test_a_task_that_fails_at_once_is_told_with_its_innermost_cause(connect: Connect, config: dict[str, str]) -> None:
    """It shows RUNNING for a moment; the trace is one short line without Java frames."""
    connect.apply(NAME, {**config, **BROKEN})
    with pytest.raises(ConnectorFailed, match=r"Unknown field: nowhere") as raised:
        connect.wait_running(NAME)
    assert "\tat " not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_failed_task_fails_again_without_a_cure_and_runs_with_one(connect: Connect, config: dict[str, str]) -> None:
    """A restart alone repeats the failure; applying the fixed configuration is enough."""
    connect.apply(NAME, {**config, **BROKEN})
    for _ in range(2):
        with pytest.raises(ConnectorFailed):
            connect.wait_running(NAME)
        connect.restart(NAME)
    connect.apply(NAME, config)
    assert connect.wait_running(NAME).running


def test_an_unknown_connector_has_no_status_and_cannot_be_stopped_or_restarted(connect: Connect) -> None:
    """None for the status; a mistake for the rest; deleting and forgetting what is absent is fine."""
    assert connect.status("absent") is None
    for verb in (connect.stop, connect.restart):
        with pytest.raises(ConfigError, match="absent"):
            verb("absent")
    connect.delete("absent")
    connect.forget("absent")


def test_offsets_outlive_a_deleted_connector_but_not_a_forgotten_one(
    connect: Connect, config: dict[str, str], endpoints: Endpoints
) -> None:
    """Deleted: the same name goes on without a snapshot. Forgotten: the seven offices come again. Of neither has
    Connect a status left when the call returns.
    """
    connect.apply(NAME, config)
    connect.wait_running(NAME)
    first = records_of_offices(endpoints, at_least=7)
    connect.delete(NAME)
    assert connect.status(NAME) is None
    connect.apply(NAME, config)
    connect.wait_running(NAME)
    assert records_of_offices(endpoints, at_least=first) == first
    connect.forget(NAME)
    assert connect.status(NAME) is None
    connect.apply(NAME, config)
    connect.wait_running(NAME)
    assert records_of_offices(endpoints, at_least=first + 7) == first + 7
