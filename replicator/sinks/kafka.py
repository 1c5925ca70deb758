"""Events into topics: at least once, those of one key in their order.

There is one producer per Spark partition; a partition has all events of its keys and sends them in their order. Kafka's
own idempotence ensures that a client's retry neither duplicates nor reorders them.
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
# matched in Spark's text of a failed job, since the exception's own class is not passed on
_OUT_OF_REACH = ("errors.TimeoutException", "errors.DisconnectException", "errors.NotEnoughReplicas")


@dataclass(frozen=True)
class KafkaOutlet:
    """``Outlet`` of a cluster; ``options`` are client settings without the ``kafka.`` prefix."""

    spark: SparkSession
    bootstrap_servers: str
    options: Mapping[str, str] = field(default_factory=dict)

    def identity(self, topic: str) -> str | None:
        """The topic's id as Kafka assigned it."""
        jvm = gateway.of(self.spark)
        with self._having(topic) as admin:
            wanted = jvm.java.util.ArrayList()
            wanted.add(topic)
            return brokers.topic_id(admin.describeTopics(wanted).allTopicNames().get()[topic])

    def send(self, events: DataFrame, topic: str) -> None:
        """Write the events in a Spark job. The topic is checked first, since a producer might create it."""
        with self._having(topic):
            pass
        client = {f"kafka.{name}": value for name, value in self.options.items()}
        in_order = events.repartition("key").sortWithinPartitions("key", "place").select("key", "value", "headers")
        writer = in_order.write.format("kafka").options(**{**client, **_PINNED})
        try:
            writer.option("kafka.bootstrap.servers", self.bootstrap_servers).option("topic", topic).save()
        except FAILURES as error:
            if any(name in str(error) for name in _OUT_OF_REACH):
                raise brokers.unreachable_error(self.bootstrap_servers) from error
            what = f"topic {topic} did not accept the events: {causes.summarize(error)}"
            fix = "Check the topic's settings (max.message.bytes) and this client's write permissions."
            raise TargetRefused(what, where=self.bootstrap_servers, fix=fix) from error

    @contextmanager
    def _having(self, topic: str) -> Iterator[Any]:
        """An admin client of a cluster that has the topic. Raises Unreachable."""
        brokers.check_reachable(self.bootstrap_servers)
        with brokers.admin(gateway.of(self.spark), self.bootstrap_servers, self.options) as admin:
            known = admin.listTopics().names().get()
            if not known.contains(topic):
                raise brokers.missing_topic(topic, known, self.bootstrap_servers)
            yield admin
