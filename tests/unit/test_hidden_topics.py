"""What is said of topics that Kafka does not show, as it hides those that a login may not describe, and of requests
that it refuses.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from replicator.brokers import client_error, missing_topic
from replicator.errors import ConfigError, ReplicatorError, TopicDeleted, Unreachable
from replicator.sources.kafka import KafkaSource


def test_a_topic_that_is_not_listed_may_be_hidden_from_the_login() -> None:
    """Without the right to DESCRIBE it, an existing topic is in no listing: nobody should have to create it again."""
    assert "may not DESCRIBE" in str(missing_topic("t", ["u"], "host:9092"))


def test_a_topic_that_was_read_may_have_been_hidden_since() -> None:
    """Whoever took a right away has deleted nothing: excluding the table is not the first advice."""
    with pytest.raises(TopicDeleted, match=r"t was deleted, or is hidden from this login.* DESCRIBE .* `exclude`"):
        KafkaSource("host:9092", "t")._refuse_deleted(["t"])


KAFKAS = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        (f"{KAFKAS}RecordTooLargeException", ConfigError, "refused the request: too large"),
        (f"{KAFKAS}TimeoutException", Unreachable, "does not answer"),
        (f"{KAFKAS}UnknownServerException", Unreachable, "does not answer"),
        ("java.io.IOException", Unreachable, "does not answer"),
    ],
)
def test_a_request_that_kafka_refuses_for_good_is_told_by_its_message(
    kind: str, error: type[ReplicatorError], said: str
) -> None:
    """Kafka has answered: neither the broker nor its address is to be looked at."""

    def java(name: str, cause: SimpleNamespace | None) -> SimpleNamespace:
        kinds = SimpleNamespace(getName=lambda: name)
        return SimpleNamespace(getClass=lambda: kinds, getCause=lambda: cause, getMessage=lambda: "too large")

    class Java(Exception):
        java_exception = java("java.util.concurrent.ExecutionException", java(kind, None))

    with pytest.raises(error, match=said):
        raise client_error(Java(), "host:9092")
