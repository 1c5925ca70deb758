"""Record headers: Debezium's about a change of the key (debezium.md C3), and the object a record was read from.

``__debezium.newkey`` is on the delete of the old key and on its tombstone, ``__debezium.oldkey`` on the insert of the
new one. Both hold the other key as JSON, with decimals as numbers where the record's own key has base64 (measured
Z2.4).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator import landing_objects

_NEW, _OLD = "__debezium.newkey", "__debezium.oldkey"


def is_key_change(headers: Column) -> Column:
    """Whether the record has one of the two headers."""
    return F.exists(F.coalesce(headers, F.array()), lambda header: header["key"].isin(_NEW, _OLD))


def new_key(headers: Column) -> Column:
    """The key that the row gets, as JSON; NULL unless this is the delete half of a key change."""
    return _text(headers, _NEW)


def old_key(headers: Column) -> Column:
    """The key that the row had before, as JSON; NULL unless this is the insert half of a key change."""
    return _text(headers, _OLD)


def key_text(json: Column) -> Column:
    """A key without a converter's wrapper and white space, so that keys from records and from headers compare equal.
    Decimals of many digits are rounded.
    """
    return _unwrapped(json, F.get_json_object(json, "$.payload"), compact(json))


def compact(json: Column) -> Column:
    """A key from a header without white space, still in its wrapper. Decimals of many digits are rounded."""
    return F.get_json_object(json, "$")


def is_wrapped(json: Column, schema: Column, payload: Column) -> Column:
    """Whether a key is in a converter's wrapper. ``schema`` and ``payload`` are its members of these names; ``schema``
    is null in a wrapper around data without a schema (A1).
    """
    alone = F.array_sort(F.json_object_keys(json)) == F.array(F.lit("payload"), F.lit("schema"))
    is_one = schema.isNotNull() | (payload.startswith("{") & alone)
    return F.coalesce(payload.isNotNull() & is_one, F.lit(False))


def folder(headers: Column) -> Column:
    """The folder of the object in which the record was a line; '' for a record from Kafka.

    Such records are in Kafka's order within a folder only (``replicator/landing_objects.py``).
    """
    path = F.get(F.filter(headers, lambda header: header["key"] == landing_objects.OBJECT)["value"], F.lit(0)).cast(
        "string"
    )
    return F.coalesce(F.regexp_extract(path, "^(.*)/", 1), F.lit(""))


def _text(headers: Column, name: str) -> Column:
    found = F.filter(headers, lambda header: header["key"] == name)
    json = F.get(found, F.lit(0))["value"].cast("string")
    return _unwrapped(json, _payload_as_written(json), F.when(compact(json).isNotNull(), json))


def _unwrapped(json: Column, inside: Column, bare: Column) -> Column:
    """The key ``inside`` a converter's wrapper, or ``bare`` where there is none."""
    schema, payload = F.get_json_object(json, "$.schema"), F.get_json_object(json, "$.payload")
    return F.when(is_wrapped(json, schema, payload), inside).otherwise(bare)


def _payload_as_written(json: Column) -> Column:
    """The text of a wrapper's payload with every digit, if Kafka's converter wrote the wrapper; else with the numbers
    that a double cannot hold rounded, as Spark writes them.
    """
    payload = F.get_json_object(json, "$.payload")
    text = F.regexp_extract(json, r'^\{"schema":.*?,"payload":(.*)\}$', 1)
    return F.when(compact(text) == payload, text).otherwise(payload)
