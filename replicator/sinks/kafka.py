"""Events into topics: at least once, those of one key in their order.

One producer per Spark partition, which holds whole keys and sends its events in their order, with Kafka's own
idempotence so that a retry of the client's neither doubles nor reorders them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from replicator import brokers
from replicator.errors import TargetRefused
from replicator.jvm import causes, gateway
from replicator.jvm.failures import FAILURES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PINNED = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.max.block.ms": str(brokers.TIMEOUT_MS),
    "kafka.request.timeout.ms": str(brokers.TIMEOUT_MS),
    "kafka.delivery.timeout.ms": str(2 * brokers.TIMEOUT_MS),
    "includeHeaders": "true",
}
# in Spark's text of a failed job; no class of its own comes through
_OUT_OF_REACH = ("errors.TimeoutException", "errors.DisconnectException", "errors.NotEnoughReplicas")


@dataclass(frozen=True)
class KafkaOutlet:
    """``Outlet`` of a cluster; ``options`` are client settings without the ``kafka.`` prefix."""

    spark: SparkSession
    bootstrap_servers: str
    options: Mapping[str, str] = field(default_factory=dict)

    def identity(self, topic: str) -> str | None:
        """As Kafka gives it."""
        jvm = gateway.of(self.spark)
        with self._having(topic) as admin:
            wanted = jvm.java.util.ArrayList()
            wanted.add(topic)
            return brokers.topic_id(admin.describeTopics(wanted).allTopicNames().get()[topic])

    def send(self, events: DataFrame, topic: str) -> None:
        """A job that writes; the topic is looked for first, since a producer might make it."""
        with self._having(topic):
            pass
        client = {f"kafka.{name}": value for name, value in self.options.items()}
        in_order = events.repartition("key").sortWithinPartitions("key", "place").select("key", "value", "headers")
        writer = in_order.write.format("kafka").options(**client, **_PINNED)
        try:
            writer.option("kafka.bootstrap.servers", self.bootstrap_servers).option("topic", topic).save()
        except FAILURES as error:
            if any(name in str(error) for name in _OUT_OF_REACH):
                raise brokers.unreachable_error(self.bootstrap_servers) from error
            what = f"topic {topic} did not take the events: {causes.summarize(error)}"
            mend = "Check the topic's settings (max.message.bytes) and what this client may write."
            raise TargetRefused(what, where=self.bootstrap_servers, mend=mend) from error

    @contextmanager
    def _having(self, topic: str) -> Iterator[Any]:
        """An admin client of the cluster, which has the topic. Raises Unreachable."""
        brokers.check_reachable(self.bootstrap_servers)
        with brokers.admin(gateway.of(self.spark), self.bootstrap_servers, self.options) as admin:
            known = admin.listTopics().names().get()
            if not known.contains(topic):
                raise brokers.missing_topic(topic, known, self.bootstrap_servers)
            yield admin
