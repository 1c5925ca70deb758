"""Table properties and protocol features of Delta tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from replicator import names
from replicator.formats import delta_fencing, delta_files, validation
from replicator.formats.delta_log import Log, partition_columns
from replicator.protocols import UNFENCED, Fence
from replicator.spec import Table

_FEED, _VECTORS = "delta.enableChangeDataFeed", "delta.enableDeletionVectors"
_TIMESTAMP_NTZ = "timestampNtz"

WITH_FEED = {_FEED: "true", _VECTORS: "false"}
WITH_VECTORS = {_FEED: "true", _VECTORS: "true"}
"""The properties of new tables; both enable the change data feed from creation (architecture section 4)."""


def has_vectors(snapshot: Any) -> bool:
    """Whether the table has deletion vectors enabled: silver's, and those of models that ask for it."""
    return _property(snapshot, _VECTORS) == "true"


def has_feed(snapshot: Any) -> bool:
    """Whether the table has the change data feed enabled."""
    return _property(snapshot, _FEED) == "true"


def is_ordered_by_key(snapshot: Any) -> bool:
    """Whether the table is clustered by key, as silver and gold are, or is read as if it were. Bronze is partitioned by
    topic.
    """
    return has_vectors(snapshot) or not partition_columns(snapshot)


def set_missing(
    spark: SparkSession, table: Table, properties: Mapping[str, str], log: Log, fence: Fence = UNFENCED
) -> None:
    """Set those properties that the table lacks: a writer's options accept only Delta's own."""
    snapshot = log.snapshot(spark) if properties else None
    if snapshot is None:
        return
    missing = {name: value for name, value in properties.items() if _property(snapshot, name) != value}
    if missing:
        _set(spark, table, missing, fence)


def enable_features(
    spark: SparkSession, table: Table, wanted: StructType, snapshot: Any, fence: Fence = UNFENCED
) -> bool:
    """Enable the protocol features that these columns need; return whether that took a commit. TIMESTAMP_NTZ is a
    feature that Delta enables by itself on a new table, but on an existing one only on request.
    """
    if not validation.has_timestamp_ntz(wanted) or _TIMESTAMP_NTZ in delta_files.features(snapshot):
        return False
    _set(spark, table, {f"delta.feature.{_TIMESTAMP_NTZ}": "supported"}, fence)
    return True


def _set(spark: SparkSession, table: Table, properties: Mapping[str, str], fence: Fence) -> None:
    assignments = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    with delta_fencing.fenced_commit(spark, fence, table.location):
        spark.sql(f"ALTER TABLE delta.{names.quote_spark(table.location)} SET TBLPROPERTIES ({assignments})")


def _property(snapshot: Any, name: str) -> str | None:
    found = snapshot.metadata().configuration().get(name)
    return str(found.get()) if found.isDefined() else None
