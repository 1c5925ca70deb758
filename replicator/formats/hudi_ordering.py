"""Record ordering in Hudi: of two rows of one key the last committed one is kept, since rows arrive merged (decision
0016).

A table may have been created with ``_seq`` as Hudi's ordering field: Hudi would then silently ignore a row with a lower
``_seq``, although a rebuild or the table of a twin has decided so.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from replicator.jvm import gateway

_BY_COMMIT = {
    "hoodie.record.merge.strategy.id": "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
}
"""Hudi's table properties without an ordering field."""

_ORDERING_FIELDS = ("hoodie.table.ordering.fields", "hoodie.table.precombine.field")


def order_by_commit(spark: SparkSession, client: Any) -> None:
    """Remove the ordering field from a table that has one, so that its logs, too, are merged in commit order.
    ``client`` is Hudi's meta client of the table. A crash between the two updates leaves the field, and the next write
    repeats them.
    """
    noted = client.getTableConfig().getProps()
    if not any(noted.containsKey(name) for name in _ORDERING_FIELDS):
        return
    jvm: Any = gateway.of(spark)
    changed, dropped = jvm.java.util.Properties(), jvm.java.util.HashSet()
    for name, value in _BY_COMMIT.items():
        changed.setProperty(name, value)
    for name in (*_ORDERING_FIELDS, "hoodie.record.merge.mode"):
        dropped.add(name)
    config, storage = jvm.org.apache.hudi.common.table.HoodieTableConfig, client.getStorage()
    config.update(storage, client.getMetaPath(), changed)
    config.delete(storage, client.getMetaPath(), dropped)
