"""Translates the properties of Hudi's streaming tool into a source file, and lists those without an equivalent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from replicator.config import kafka_options
from replicator.config.tablekeys import TableType
from replicator.debezium.avro_columns import columns
from replicator.errors import ConfigError

_WRITE = "hoodie.datasource.write."
_TOPIC = "hoodie.streamer.source.kafka.topic"
_S3 = re.compile("^s3n?://")
_SERVERS, _ROOT = "bootstrap.servers", "hoodie.streamer.source.dfs.root"
SCHEMA_FILE = "hoodie.streamer.schemaprovider.source.schema.file"
"""The property that names a file with an Avro schema."""

_GENERATORS = {f"org.apache.hudi.keygen.{kind}KeyGenerator" for kind in ("Complex", "Simple", "Nonpartitioned")}
_SAME = {
    f"{_WRITE}hive_style_partitioning": {"true"},
    f"{_WRITE}keygenerator.class": _GENERATORS,
    f"{_WRITE}operation": {"upsert"},
    "hoodie.parquet.small.file.limit": {str(128 << 20)},
    "auto.offset.reset": {"earliest"},
}
"""Properties that have no effect here because their value is the fixed behaviour, with these values."""

_FITTED = ("shuffle.parallelism",)
"""Suffixes of properties whose values are chosen for each batch."""

_SECRET = ("sasl.jaas.config", "ssl.truststore.password", "ssl.keystore.password", "ssl.key.password")
_ORDERED = (f"{_WRITE}precombine.field", "hoodie.table.precombine.field", "hoodie.table.ordering.fields")
_REASONS = {
    "hoodie.datasource.hive_sync.": "tables are not registered in a catalog",
    "hoodie.streamer.source.dfs.": "records are read from Kafka, by bootstrap servers",
    SCHEMA_FILE: "the schema was not found at this path, nor beside this file: columns are not declared",
    "hoodie.streamer.schemaprovider.": "records are decoded by their own schema or by declared columns",
    "hoodie.streamer.transformer.": "rows are transformed in gold models",
}


@dataclass(frozen=True)
class Translation:
    """``document`` is the source file; ``same`` are properties whose value is the behaviour anyway, ``untold`` those
    without an equivalent, both with the reason.
    """

    document: Mapping[str, Any]
    same: Mapping[str, str] = field(default_factory=dict)
    untold: Mapping[str, str] = field(default_factory=dict)


def normalize(properties: Mapping[str, str]) -> dict[str, str]:
    """Rename properties to the names that the tool uses today."""
    return {name.replace("hoodie.deltastreamer.", "hoodie.streamer."): text for name, text in properties.items()}


def translate(properties: Mapping[str, str], topic: str | None = None, schema: str | None = None) -> Translation:
    """Translate normalized properties into a source file. ``topic`` is required where they do not name one; ``schema``
    is the content of the file that SCHEMA_FILE names. Raises ConfigError.
    """
    topic_name = topic or properties.get(_TOPIC, "")
    prefix, dot, table = topic_name.partition(".")
    if not dot or table.count(".") != 1:
        raise ConfigError(
            f"topic {topic_name!r} is not a Debezium topic" if topic_name else "no topic is given",
            fix="Give --topic <prefix>.<database or schema>.<table>.",
        )
    table_keys: dict[str, Any] = {"format": "hudi"}
    document: dict[str, Any] = {"name": prefix, "include": [table]}
    location_key = next((name for name in (_SERVERS, _ROOT) if name in properties), None)
    if location_key is not None:
        value = properties[location_key]
        document |= {"bootstrap_servers": value} if location_key == _SERVERS else {"objects": _S3.sub("s3a://", value)}
    same, untold, options = dict[str, str](), dict[str, str](), dict[str, str]()
    for name, text in properties.items():
        if name == f"{_WRITE}recordkey.field":
            table_keys["keys"] = _split_list(text)
        elif name == f"{_WRITE}partitionpath.field":
            table_keys["partition_by"] = _partition_columns(name, text, untold)
        elif name == f"{_WRITE}table.type" and text.lower() in get_args(TableType):
            table_keys["table_type"] = text.lower()
        elif name == SCHEMA_FILE and schema is not None:
            table_keys["columns"] = columns(schema)
        elif name not in (_TOPIC, location_key):
            _translate_other(name, text, same, untold, options)
    _add_options(document, same, untold, options)
    return Translation(document | {"tables": {table: {k: v for k, v in table_keys.items() if v != []}}}, same, untold)


def _add_options(
    document: dict[str, Any], same: dict[str, str], untold: dict[str, str], options: Mapping[str, str]
) -> None:
    """Add the options of Kafka's client, which a source with objects does not have."""
    if "objects" not in document:
        document |= {"options": options} if options else {}
        return
    for name in options:
        same.pop(name, None)
        untold[name] = "records are read from objects, without a client of Kafka"


def _partition_columns(name: str, text: str, untold: dict[str, str]) -> list[str]:
    """Return the partition columns. A column with a transformation of its values (``created:TIMESTAMP``) has no
    equivalent.
    """
    transformed = [part for part in _split_list(text) if ":" in part]
    if transformed:
        untold[name] = f"partitions are unchanged column values, which {', '.join(transformed)} is not"
    return [part for part in _split_list(text) if part not in transformed]


def _translate_other(
    name: str, text: str, same: dict[str, str], untold: dict[str, str], options: dict[str, str]
) -> None:
    if name in _SECRET:
        variable = name.upper().replace(".", "_")
        options[name] = f"${{{variable}}}"
        same[name] = f"a secret: read from the environment variable {variable}"
    elif text.lower() in {each.lower() for each in _SAME.get(name, ())}:
        same[name] = "always done"
    elif name.endswith(_FITTED):
        same[name] = "adapted to each batch"
    elif name in _ORDERED:
        same[name] = "changes are ordered by their positions"
    elif not name.startswith("hoodie.") and _is_allowed(name, text):
        options[name] = text.replace("${", "$${")
    else:
        reason = next((why for start, why in _REASONS.items() if name.startswith(start)), "no setting for this")
        untold[name] = reason


def _is_allowed(name: str, text: str) -> bool:
    try:
        return bool(kafka_options.validate({name: text}))
    except ValueError:
        return False


def _split_list(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
