"""Normalization of records of unusual shapes, so that all other code meets envelopes and flattened rows only.

Covers CloudEvents, JSON made from Avro, MongoDB's records and those of the outbox event router (debezium.md A5, A6, I,
K). Python functions over exact JSON: ``from_json`` and ``get_json_object`` were tried, but rewrite numbers (types.md
section 7). They run only over the records that need them, which :func:`replicator.debezium.envelope.describe` marks in
its column ``shape``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import cloudevents, envelope, mongodb, outbox
from replicator.debezium.envelope import CLOUDEVENT, DEFAULT_READING, MONGODB, UNIONS
from replicator.debezium.jsontext import dumps, loads
from replicator.debezium.outbox import RouterRecord
from replicator.debezium.schema import declared_types
from replicator.debezium.unions import Types, Unions, is_from_avro, table_of
from replicator.spec import Outbox, Reading, SourceSpec

_CONTROL = "__debezium"
_NO_RECORD = "[]"
_Texts = tuple[str | None, str | None]


@dataclass(frozen=True)
class Normalizer:
    """Rewrites the records of one source that are not plain ones.

    ``routers`` maps topics of the event router to their table and its settings. With ``default_router`` every other
    topic of at least three parts is the router's too, except ``others`` and Debezium's own.
    """

    unions: Unions = field(default_factory=Unions)
    routers: Mapping[str, tuple[str, Outbox]] = field(default_factory=dict)
    default_router: Outbox | None = None
    others: frozenset[str] = frozenset()
    reading: Reading = DEFAULT_READING

    def router(self, topic: str) -> tuple[str, Outbox] | None:
        """Table and settings of a topic that the event router writes; None for any other topic."""
        if topic in self.routers:
            return self.routers[topic]
        parts = topic.split(".")
        is_other = topic in self.others or topic.startswith(_CONTROL) or len(parts) < 3
        return None if self.default_router is None or is_other else (".".join(parts[-2:]), self.default_router)

    def texts(self, topic: str, shape: str, routed: RouterRecord) -> _Texts | None:
        """Key and value of the equivalent plain record; None if the record stays as it is.

        A record that cannot be interpreted gets a value that is rejected as ``unknown_shape``.
        """
        try:
            router = self.router(topic)
            if router is not None:
                return outbox.flatten(replace(routed, table=router[0]), router[1])
            return self._plain(topic, shape, routed.key, loads(routed.value or ""))
        except json.JSONDecodeError:
            return None
        except (ValueError, TypeError, AttributeError, RecursionError):
            return routed.key, _NO_RECORD

    def _plain(self, topic: str, shape: str, key: str | None, record: Any) -> _Texts | None:
        if not isinstance(record, dict):
            return None
        if shape == CLOUDEVENT:
            event = cloudevents.to_envelope(record)
            return None if event is None else (key, dumps(event))
        if shape == MONGODB:
            identity, document = mongodb.to_envelope(_parse_key(key), record)
            return _text(identity, key), dumps(document)
        plain = self.unions.record(record, topic)
        is_wrapped = set(record) == {"schema", "payload"} and isinstance(record["payload"], dict)
        body, was = (plain["payload"], record["payload"]) if is_wrapped else (plain, record)
        identity = self.unions.key(_parse_key(key), table_of(body, topic), from_avro=is_from_avro(was))
        return _text(identity, key), dumps(plain)


def _parse_key(key: str | None) -> Any:
    """The key's value, None if it is not JSON."""
    try:
        return None if key is None else loads(key)
    except json.JSONDecodeError:
        return None


def _text(value: Any, otherwise: str | None) -> str | None:
    return otherwise if value is None else dumps(value)


def for_source(source: SourceSpec, stored: Mapping[str, Types]) -> Normalizer:
    """The Normalizer of a source, as its file declares it; ``stored`` are the types of its existing tables' columns."""
    types = dict(stored)
    routers = {}
    others = set()
    for declared in source.tables:
        own = declared_types(declared.columns)
        types[declared.table] = {**stored.get(declared.table, {}), **own}
        topic = source.topic(declared.table)
        if declared.outbox is not None and declared.outbox.mode == "router":
            routers[declared.outbox.topic or topic] = (declared.table, declared.outbox)
        else:
            others.add(topic)
    default = source.default.outbox
    any_router = default if default is not None and default.mode == "router" else None
    return Normalizer(
        Unions(types, source.latin1_bytes),
        routers,
        any_router,
        frozenset(others),
        source.reading,
    )


def needs_normalizing(source: SourceSpec, forms: Sequence[int] = ()) -> Column:
    """Whether a described record must be rewritten. Never NULL.

    ``forms`` are the forms whose example must be. Records described by a template are exempt: they have no unions.
    """
    shapes = for_source(source, {})
    routed = F.col("topic").isin(*shapes.routers)
    if shapes.default_router is not None:
        is_other = F.col("topic").startswith(_CONTROL) | F.col("topic").isin(*shapes.others)
        routed = routed | (~is_other & (F.size(F.split("topic", r"\.")) > 2))
    return F.col("shape").isNotNull() | (F.col("form").isin(*forms) & ~F.col("told")) | routed


def normalize(records: DataFrame, shapes: Normalizer) -> DataFrame:
    """Rewrite described records of unusual shapes and describe them again: one row per record, its ``shape`` kept."""
    own = [column for column in records.columns if column not in (*envelope.DESCRIPTION_COLUMNS, "reason")]
    shape = F.coalesce("shape", F.lit(UNIONS))
    plain = F.udf(_normalizing_udf(shapes), "struct<key: string, value: string>", useArrow=False)(
        "topic", shape, "key", "value", "headers", "undecodable"
    )
    rewritten = records.select(*own, shape.alias("_was"), plain.alias("_plain")).select(
        *[column for column in own if column not in ("key", "value", "undecodable")],
        "_was",
        *[
            F.when(F.col("_plain").isNull(), F.col(name)).otherwise(F.col(f"_plain.{name}")).alias(name)
            for name in _TEXT
        ],
        F.when(F.col("_plain").isNull(), F.col("undecodable")).alias("undecodable"),
    )
    described = envelope.describe(rewritten, shapes.reading)
    columns = [F.col("_was").alias("shape") if name == "shape" else F.col(name) for name in records.columns]
    return described.select(*columns)


_TEXT = ("key", "value")


def _normalizing_udf(shapes: Normalizer) -> Any:
    def write(
        topic: str, shape: str, key: str | None, value: str | None, headers: Sequence[Any] | None, raw: Any
    ) -> _Texts | None:
        bad_key, bad_value = raw if raw is not None else (None, None)
        if bad_key is not None:
            return None
        pairs = tuple((name, None if held is None else bytes(held)) for name, held in headers or ())
        undecodable = None if bad_value is None else bytes(bad_value)
        return shapes.texts(topic, shape, RouterRecord("", key, value, pairs, undecodable))

    return write
