"""What every outlet of events promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from replicator import brokers
from replicator.debezium.event_reader import StartingOffset
from replicator.errors import LoginRefused, TargetRefused, Unreachable
from replicator.jvm import gateway
from replicator.sinks.kafka import KafkaOutlet
from replicator.sinks.memory_outlet import MemoryOutlet, SentEvent
from replicator.sources.consumer import Topic
from replicator.sources.kafka import KafkaSource
from tests.builders import made

pytestmark = pytest.mark.spark

EVENTS = "key STRING, value STRING, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, place STRING"


@dataclass
class Place:
    """An outlet under test with a topic of its own, and what a consumer gets of that."""

    outlet: Any
    topic: str
    servers: str = ""

    def got(self) -> list[SentEvent]:
        if isinstance(self.outlet, MemoryOutlet):
            return self.outlet.topics[self.topic]
        from tests.kafka import consumed

        return [SentEvent(key, value, dict(headers)) for key, value, headers in consumed(self.servers, self.topic)]


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.stack)])
def place(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Place]:
    topic = f"outlet.{uuid4().hex}"
    if request.param == "memory":
        yield Place(MemoryOutlet(topic), topic)
        return
    from tests.kafka import create

    servers = request.getfixturevalue("broker")
    create(servers, topic, partitions=3)
    yield Place(KafkaOutlet(spark, servers), topic, servers)


def event(key: str, value: str | None, at: int, **headers: bytes) -> tuple[Any, ...]:
    return key, value, [(name, bytearray(held)) for name, held in headers.items()], f"{at:03d}"


def test_events_come_whole_and_those_of_a_key_in_their_order(spark: SparkSession, place: Place) -> None:
    """Text, headers and nulls as they are; a second call comes behind the first, whatever the order of the rows."""
    rows = [event("a", f"é{at}", at, ce_id=b"\x00x") for at in (3, 1, 2)] + [event("b", None, 4)]
    place.outlet.send(made(spark, rows, EVENTS).repartition(3), place.topic)
    place.outlet.send(made(spark, [event("a", "last", 0)], EVENTS), place.topic)
    got = place.got()
    assert [(each.value, each.headers) for each in got if each.key == "a"] == [
        ("é1", {"ce_id": b"\x00x"}), ("é2", {"ce_id": b"\x00x"}), ("é3", {"ce_id": b"\x00x"}), ("last", {}),
    ]  # fmt: skip
    assert [each for each in got if each.key == "b"] == [SentEvent("b", None, {})]


def test_a_topic_that_is_not_there_is_named_and_not_made(spark: SparkSession, place: Place) -> None:
    """Exit code 3: it may come. The nearest name helps."""
    place.outlet.send(made(spark, [], EVENTS), place.topic)
    assert place.outlet.identity(place.topic) == place.outlet.identity(place.topic) is not None
    with pytest.raises(Unreachable, match="does not exist"):
        place.outlet.identity(f"{place.topic}x")
    for _ in range(2):
        with pytest.raises(
            Unreachable, match=f"topic '{place.topic}x' does not exist; did you mean '{place.topic}'"
        ) as caught:
            place.outlet.send(made(spark, [event("a", "1", 0)], EVENTS), f"{place.topic}x")
    assert caught.value.exit_code == 3


@pytest.mark.stack
@pytest.mark.parametrize(
    "options", [{"request.timeout.ms": "60000"}, {"request.timeout.ms": "5000"}, {"default.api.timeout.ms": "5000"}]
)
def test_a_timeout_that_is_set_alone_is_no_mistake(
    spark: SparkSession, request: pytest.FixtureRequest, options: dict[str, str]
) -> None:
    """It was ours that it did not go with: no client started, or events ended with a stack trace."""
    from tests.kafka import create

    servers, topic = request.getfixturevalue("broker"), f"outlet.{uuid4().hex}"
    create(servers, topic, partitions=1)
    KafkaOutlet(spark, servers, options).send(made(spark, [event("k", "v", 1)], EVENTS), topic)
    assert KafkaSource(servers, topic, options=options).end_offsets(spark) == {(topic, 0): 1}


@pytest.mark.stack
def test_a_login_that_kafka_refuses_is_configuration(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    """A broker that answers is not out of reach: exit code 2, in its own words, for a feed, a source and a look at a
    topic alike; a broker without logins is one that lets nobody in with one.
    """
    servers = request.getfixturevalue("broker")
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hidden";'
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    for ask in (
        lambda: KafkaOutlet(spark, servers, options).identity("any"),
        lambda: KafkaSource(servers, ".*", options).topic_ids(spark),
        lambda: list(Topic("any", servers, options).records(gateway.of(spark), StartingOffset(), follow=False)),
    ):
        with pytest.raises(LoginRefused, match=r"Kafka refused the client: .*PLAIN") as caught:
            ask()
        assert (caught.value.exit_code, caught.value.where) == (2, servers)
        assert "hidden" not in str(caught.value)
    for odd in ({"security.protocol": "SSL", "ssl.truststore.location": "/no/such/file"}, {"security.protocol": "no"}):
        for ask in (
            lambda odd=odd: KafkaSource(servers, ".*", odd).topic_ids(spark),
            lambda odd=odd: list(Topic("any", servers, odd).records(gateway.of(spark), StartingOffset(), follow=False)),
        ):
            with pytest.raises(LoginRefused, match="the Kafka client does not start with these options: "):
                ask()


def test_a_broker_whose_name_is_unknown_is_out_of_reach(spark: SparkSession) -> None:
    """As one is that is away where names come and go with machines: its client does not start, and a retry may help."""
    with pytest.raises(Unreachable) as caught:
        KafkaSource("nowhere.invalid:9092", ".*", {}).topic_ids(spark)
    assert caught.value.exit_code == 3


def test_a_login_that_came_too_fast_is_worth_another_try(spark: SparkSession) -> None:
    """MSK refuses it as it does a wrong one, with other words: a small broker takes one a second."""
    jvm = gateway.of(spark)
    kinds, answer = jvm.org.apache.kafka.common.errors, jvm.java.util.concurrent.CompletableFuture()
    answer.completeExceptionally(kinds.SaslAuthenticationException("[1a2b3c]: Too many connects"))
    with pytest.raises(Py4JJavaError) as caught:
        answer.get()
    told = brokers.client_error(caught.value, "b-1:9098")
    assert (type(told), told.exit_code) == (Unreachable, 3)
    assert "Kafka is busy: [1a2b3c]: Too many connects" in str(told)


@pytest.mark.stack
def test_an_event_that_is_too_large_is_refused_for_good(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    """No retry helps (a producer takes a megabyte); nothing of it is in the message."""
    from tests.kafka import create

    servers, topic = request.getfixturevalue("broker"), f"outlet.{uuid4().hex}"
    create(servers, topic)
    with pytest.raises(TargetRefused, match="RecordTooLarge") as caught:
        KafkaOutlet(spark, servers).send(made(spark, [event("a", "x" * 2**21, 0)], EVENTS), topic)
    assert "xxxx" not in str(caught.value)
