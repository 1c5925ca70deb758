"""Records whose personal data a policy keeps out of bronze (``mask_before_bronze``)."""

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
    """Kafka records as they may be kept; as they are where no table of the source has a policy."""
    if not source.masks:
        return records
    masks = {mask.table: mask for mask in source.masks}
    digest = partial(hashing.digest, source.hash_key)
    redaction = Redaction(source.name, masks, digest, Placeholder(source.placeholder))

    def kept(topic: str, key: Any, value: Any, headers: Any) -> tuple[Any, Any, Any]:
        told = [(name, _bytes(held)) for name, held in headers or ()]
        new_key, new_value, new_headers = redaction.record(topic, _bytes(key), _bytes(value), told)
        return new_key, new_value, None if headers is None else new_headers

    made = F.udf(kept, _KEPT, useArrow=False)(*[F.col(name) for name in ("topic", "key", "value", "headers")])
    others = [name for name in records.columns if name not in ("key", "value", "headers")]
    return records.withColumn("_kept", made).select(*others, "_kept.key", "_kept.value", "_kept.headers")


def _bytes(held: Any) -> bytes | None:
    return None if held is None else bytes(held)
