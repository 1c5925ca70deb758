"""The sink that writes a source's records as objects (docs/objects.md): Stream Reactor's for S3, on MSK Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replicator.errors import ConfigError
from replicator.spec import sanitize_for_topic

FLUSH_SECONDS, FLUSH_RECORDS = 60, 50
"""An object is closed after so many seconds, or with so many records (scenarios.md section 3)."""

_JSON = "org.apache.kafka.connect.json.JsonConverter"


def connector_config(
    source: str, tables: Mapping[str, Sequence[str]], bucket: str, prefix: str, region: str
) -> dict[str, str]:
    """Return the sink's configuration. *tables*: ``<database or schema>.<table>`` of the source -> the columns by whose
    values its records are divided; objects are written to ``s3://bucket/prefix``. Raises ConfigError if no table is
    named: a sink reads topics, not patterns.
    """
    if not tables:
        fix = "List them under `tables` in its file in conf/sources."
        raise ConfigError(f"source {source} lists no tables, and a sink reads topics by name", fix=fix)
    topics = {f"{source}.{sanitize_for_topic(table)}": columns for table, columns in tables.items()}
    return {
        "connector.class": "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
        "tasks.max": "1",
        "topics": ",".join(topics),
        "connect.s3.kcql": ";".join(_statement(f"{bucket}:{prefix}", *each) for each in topics.items()),
        "connect.s3.aws.auth.mode": "Default",
        "connect.s3.aws.region": region,
        "key.converter": _JSON,
        "key.converter.schemas.enable": "true",
        "value.converter": _JSON,
        "value.converter.schemas.enable": "true",
        "errors.log.enable": "true",
    }


def _statement(target: str, topic: str, columns: Sequence[str]) -> str:
    divided = f" PARTITIONBY {', '.join(columns)}" if columns else ""
    flush = f"PROPERTIES('flush.interval'={FLUSH_SECONDS}, 'flush.count'={FLUSH_RECORDS})"
    return f"INSERT INTO {target} SELECT * FROM `{topic}`{divided} STOREAS `JSON` {flush}"  # noqa: S608 - no database
