"""Mask personal data that a policy keeps out of bronze (``mask_before_bronze``)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.debezium.placeholder import Placeholder
from replicator.debezium.redaction import Redaction
from replicator.spec import SourceSpec
from replicator.transforms.table_transform import hashing

_KEPT = "STRUCT<key: BINARY, value: BINARY, headers: ARRAY<STRUCT<key: STRING, value: BINARY>>>"


def mask_records(records: DataFrame, source: SourceSpec) -> DataFrame:
    """Return Kafka records as they may be stored; unchanged if no table of the source has a policy."""
    if not source.masks:
        return records
    masks = {mask.table: mask for mask in source.masks}
    digest = partial(hashing.digest, source.hash_key)
    redaction = Redaction(source.name, masks, digest, Placeholder(source.placeholder))

    def kept(topic: str, key: Any, value: Any, headers: Any) -> tuple[Any, Any, Any]:
        pairs = [(name, _bytes(content)) for name, content in headers or ()]
        new_key, new_value, new_headers = redaction.record(topic, _bytes(key), _bytes(value), pairs)
        return new_key, new_value, None if headers is None else new_headers

    masked = F.udf(kept, _KEPT, useArrow=False)(*[F.col(name) for name in ("topic", "key", "value", "headers")])
    others = [name for name in records.columns if name not in ("key", "value", "headers")]
    return records.withColumn("_kept", masked).select(*others, "_kept.key", "_kept.value", "_kept.headers")


def _bytes(content: Any) -> bytes | None:
    return None if content is None else bytes(content)
