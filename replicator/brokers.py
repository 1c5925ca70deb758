"""What a Kafka cluster says about itself, through the admin client of the JVM: the Kafka client that we have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from replicator.endpoint import one_must_answer, ports
from replicator.errors import Unreachable
from replicator.spelling import nearest

TIMEOUT_MS = 15_000
_PATIENCE = {"default.api.timeout.ms": str(TIMEOUT_MS), "request.timeout.ms": str(TIMEOUT_MS)}
MEND = "Check that the broker runs and `bootstrap_servers` is right, then run again."


@contextmanager
def admin(jvm: Any, bootstrap_servers: str, options: Mapping[str, str]) -> Iterator[Any]:
    """An admin client for the time of the block. Raises Unreachable where Kafka does not answer in it, ConfigError for
    what is no address.
    """
    ports(bootstrap_servers, "Kafka", MEND)
    settings = jvm.java.util.Properties()
    for name, value in {**_PATIENCE, **options, "bootstrap.servers": bootstrap_servers}.items():
        settings.put(name, value)
    client = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    try:
        yield client
    except Py4JJavaError as error:
        raise unanswered(bootstrap_servers) from error
    finally:
        client.close(jvm.java.time.Duration.ofSeconds(1))


def must_listen(bootstrap_servers: str) -> None:
    """Raise Unreachable where nothing accepts a connection at any of the addresses: Kafka's clients find out later."""
    one_must_answer(bootstrap_servers, "Kafka", MEND)


def unanswered(bootstrap_servers: str) -> Unreachable:
    """Said of a cluster that does not answer."""
    return Unreachable("Kafka does not answer", where=bootstrap_servers, mend=MEND)


def topic_id(described: Any) -> str | None:
    """The id of a topic as the admin client describes it (J5). Brokers before 2.8 give none, which the client tells as
    an id of zeros: those who are updated give the topic one, and it is the same topic.
    """
    told = described.topicId()
    return None if told.getMostSignificantBits() == told.getLeastSignificantBits() == 0 else str(told)


def missing(topic: str, known: Any, bootstrap_servers: str) -> Unreachable:
    """Said of a topic that a cluster does not have among those that are ``known``."""
    mend = "Create it, or start what writes it, then run again."
    return Unreachable(
        f"there is no topic {topic!r}{nearest(topic, map(str, known))}", where=bootstrap_servers, mend=mend
    )
