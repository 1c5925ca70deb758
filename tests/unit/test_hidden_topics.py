"""What is said of topics that Kafka does not show: it hides those that a login may not describe."""

from __future__ import annotations

import pytest

from replicator.brokers import missing_topic
from replicator.errors import TopicDeleted
from replicator.sources.kafka import KafkaSource


def test_a_topic_that_is_not_listed_may_be_hidden_from_the_login() -> None:
    """Without the right to DESCRIBE it, an existing topic is in no listing: nobody should have to create it again."""
    assert "may not DESCRIBE" in str(missing_topic("t", ["u"], "host:9092"))


def test_a_topic_that_was_read_may_have_been_hidden_since() -> None:
    """Whoever took a right away has deleted nothing: excluding the table is not the first advice."""
    with pytest.raises(TopicDeleted, match=r"t was deleted, or is hidden from this login.* DESCRIBE .* `exclude`"):
        KafkaSource("host:9092", "t")._refuse_deleted(["t"])
