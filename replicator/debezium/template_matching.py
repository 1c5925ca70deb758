"""Description of records by templates: the columns of :func:`replicator.debezium.envelope.describe` without parsing.

A match costs one pass over the text, whereas ``envelope.describe`` needs a dozen parsers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import classification, envelope, position, template
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.source_block import SOURCE_FIELDS
from replicator.debezium.template import CAPTURED_FIELDS, CONSTANT_FIELDS, IMAGE_SLOT, Template
from replicator.debezium.type_inference import raw_fields
from replicator.jvm import expressions, java_udfs

TEMPLATE = "_template"
_PARTS, _SOURCE, _NUMBERS, _OP = "_parts", "_source", "_numbers", "_op"
_MAX_KINDS, _MAX_CACHED_BYTES, _MAX_BATCH_CHARACTERS = 512, 64 << 20, 4 << 20
"""Limits: kinds of records in the cache, bytes of their templates and examples, and characters of a batch's templates.
Templates contain each schema block at least twice, and are sent to the JVM with every batch, and from there to every
task.
"""

_FIELDS = dict(field.split(" ") for field in SOURCE_FIELDS.split(", "))

_TOPIC, _TEMPLATE = "\x1e", "\x1d"
"""Separators for ``Alike.java``: after the topic of a template, and between templates."""

_SHARED_COLUMNS = {
    "flat": "BOOLEAN",
    "bare": "BOOLEAN",
    "rule": "STRING",
    "source_name": "STRING",
    "table": "STRING",
    "wrapped": "BOOLEAN",
    "key_wrapped": "BOOLEAN",
    "form": "BIGINT",
    "held": "BOOLEAN",
}
"""Columns with the same value for all records of a template."""

_RECORD_COLUMNS = ("op", "source_ts_ms", "is_snapshot", "position", "stream", "transaction")
"""Columns whose value comes from each record itself."""

EXAMPLE_COLUMNS = ("key_names", "row_names", "value", "key")
"""Columns that are needed of one record per form only."""


@dataclass(frozen=True)
class KnownTemplate:
    """A template for records of a topic, with ``facts``, the description of its example. ``whole``: matching records
    keep their whole value, since more than their image is read.
    """

    topic: str
    template: Template
    facts: Mapping[str, Any]
    whole: bool = False


def derive_templates(described: Mapping[str, Any], placeholder: Placeholder) -> list[KnownTemplate]:
    """Derive templates from one record: its ``topic``, ``value``, ``key`` and its columns of ``envelope.describe``.
    Empty if it is neither a plain envelope of a row's change nor a tombstone.
    """
    key, key_wrapped = described["key"], described["key_wrapped"]
    if described["rule"] == classification.TOMBSTONE:
        found = {False: template.tombstone(key, key_wrapped=key_wrapped)}
    elif described["rule"] or described["reason"] or described["shape"] or described["flat"]:
        return []
    else:
        build = partial(template.build, described["value"], key, wrapped=described["wrapped"], key_wrapped=key_wrapped)
        found = {False: build(without=placeholder.marks()), True: build()}
    facts = {name: described[name] for name in _SHARED_COLUMNS if name != "held"}
    return [KnownTemplate(described["topic"], each, {**facts, "held": held}) for held, each in found.items() if each]


class TemplateCache:
    """Templates that a process has learned for the records of a source, within limits of number and size. Records
    beyond the limits are described by ``envelope.describe`` each time.
    """

    def __init__(self) -> None:
        self._learned: dict[tuple[Any, ...], list[KnownTemplate]] = {}
        self._examples: dict[tuple[str, int], dict[str, Any]] = {}
        self._held = 0

    def learn(self, described: Iterable[Mapping[str, Any]], placeholder: Placeholder) -> None:
        """Derive templates from those records that are the first of their kind."""
        for record in described:
            kind = tuple(record[name] for name in ("topic", "source_name", "table", "form", "rule", "reason"))
            if kind not in self._learned and len(self._learned) < _MAX_KINDS:
                self._learned[kind] = self._fitting(record, derive_templates(record, placeholder))

    def _fitting(self, record: Mapping[str, Any], found: list[KnownTemplate]) -> list[KnownTemplate]:
        """The templates found, after storing the example for them; empty if they would exceed the cache's size."""
        place, example = (record["topic"], record["form"]), _example(record) if found else {}
        size = _size(example) + sum(each.template.size for each in found)
        if not found or self._held + size > _MAX_CACHED_BYTES:
            return []
        self._held += size
        self._examples.setdefault(place, example)
        return found

    def example(self, topic: str, form: int) -> Mapping[str, Any]:
        """EXAMPLE_COLUMNS of a record of the form, which must be a template's; its value has the schema block only."""
        return self._examples[topic, form]

    def of(self, topics: Collection[str]) -> list[KnownTemplate]:
        """The templates of some topics; none if together they are too long to be sent with a batch."""
        found = [each for known in self._learned.values() for each in known if each.topic in topics]
        return found if sum(len(each.template.to_text) for each in found) <= _MAX_BATCH_CHARACTERS else []

    def unknown(self, topics: Iterable[str]) -> list[str]:
        """Topics without any learned record; empty once the cache is full."""
        if len(self._learned) >= _MAX_KINDS:
            return []
        seen = {kind[0] for kind in self._learned}
        return [topic for topic in topics if topic not in seen]


def _example(record: Mapping[str, Any]) -> dict[str, Any]:
    block = raw_fields(record["value"], ())["schema"] if record["wrapped"] else None
    value = None if block is None else f'{{"schema":{block},"payload":{{}}}}'
    return {**{name: record[name] for name in EXAMPLE_COLUMNS}, "value": value}


def _size(example: Mapping[str, Any]) -> int:
    """Bytes of the example's texts."""
    named = [name for each in ("key_names", "row_names") for name in example.get(each) or ()]
    return sum(map(sys.getsizeof, (*named, *(example.get(each) or "" for each in ("value", "key")))))


def match_records(records: DataFrame, templates: Sequence[KnownTemplate], binlog: str) -> DataFrame:
    """Add to records the columns that :func:`describe` needs: TEMPLATE, the number of the template that the record
    matches, NULL if none does, and those that come from the record itself. The ``value`` of a matching record is
    reduced to what is yet to be read (``Template.image``), unless the template is ``whole``: the rest of an envelope,
    most of its text, would only take memory (decision 0059).
    """
    captured = frozenset[str]().union(*(each.template.captured for each in templates))
    parts = {name: _captured(slot) for slot, name in enumerate(CAPTURED_FIELDS, 1) if name in captured}
    parts |= {"sequence": parts["flushed"]} if "flushed" in parts else {}
    number = _captured(0).cast("int")
    matched = records.withColumn(_PARTS, _match_column(records, templates))
    left = F.coalesce(_captured(IMAGE_SLOT), "value")
    whole = [at for at, each in enumerate(templates) if each.whole]
    if whole:
        left = F.when(number.isin(*whole), F.col("value")).otherwise(left)
    taken = matched.select(
        *[left.alias(name) if name == "value" else name for name in records.columns],
        number.alias(TEMPLATE),
        _captured_source(parts).alias(_SOURCE),
        _numbers(parts).alias(_NUMBERS),
        parts.get("op", F.lit(None).cast("string")).alias(_OP),
    )
    own = _record_columns(binlog, _source_columns(templates, parts.keys()))
    return taken.select(*records.columns, TEMPLATE, *[value.alias(name) for name, value in own.items()])


def describe(kept: DataFrame, templates: Sequence[KnownTemplate]) -> DataFrame:
    """Replace the columns of :func:`match_records` by those of ``envelope.describe``. ``form`` is NULL for a record
    that no template matches; its other columns are then meaningless. ``told`` is TRUE. ``key_names`` and ``row_names``
    are NULL: ``TemplateCache.example`` has them. The facts of a template, half of all columns, are not stored per
    record.
    """
    facts = {
        name: _shared_column([each.facts[name] for each in templates], kind) for name, kind in _SHARED_COLUMNS.items()
    }
    values = {
        **{name: F.col(name) for name in _RECORD_COLUMNS},
        **facts,
        "rewritten": F.lit(False),
        "told": F.lit(True),
        **dict.fromkeys(("shape", "reason", "happened"), F.lit(None).cast("string")),
        **dict.fromkeys(("key_names", "row_names"), F.lit(None).cast("array<string>")),
    }
    columns = [name for name in kept.columns if name not in (TEMPLATE, *_RECORD_COLUMNS)]
    return kept.select(*columns, *[values[name].alias(name) for name in (*envelope.DESCRIPTION_COLUMNS, "reason")])


def _record_columns(binlog: str, source: Mapping[str, Column]) -> dict[str, Column]:
    op = F.col(_OP)
    is_row, is_snapshot = op.isNotNull(), F.coalesce(op == "r", F.lit(False))
    place = position.build(source, is_snapshot, binlog, F.col(_NUMBERS))
    stream = F.when(is_row, position.stream(source, binlog))
    values = (F.coalesce(op, F.lit("u")), source["ts_ms"], is_snapshot, place, stream, source["txId"])
    return dict(zip(_RECORD_COLUMNS, values, strict=True))


def _match_column(records: DataFrame, templates: Sequence[KnownTemplate]) -> Column:
    """ARRAY<BINARY>: the number of the matching template and its captures, by slot; NULL if none matches."""
    spelled = _TEMPLATE.join(f"{each.topic}{_TOPIC}{each.template.to_text}" for each in templates)
    like = java_udfs.create(
        records.sparkSession, "replicator.debezium.Alike", "array<binary>", spelled, IMAGE_SLOT + 1, uses=java_udfs.JSON
    )
    texts = (F.col(name).cast("binary") for name in ("key", "value"))
    return F.when(F.col("undecodable").isNull(), like(F.col("topic"), *texts))


def _captured(slot: int) -> Column:
    """The text captured for a slot; NULL if nothing was."""
    return F.get(F.col(_PARTS), F.lit(slot)).cast("string")


def _shared_column(values: Sequence[Any], kind: str) -> Column:
    """The value for a record's TEMPLATE, out of one per template; NULL for a record that matches none."""
    number = F.col(TEMPLATE)
    if len(set(values)) == 1:
        return F.when(number.isNotNull(), F.lit(values[0]).cast(kind))
    return F.get(F.from_json(F.lit(json.dumps(values)), f"ARRAY<{kind}>"), number)


def _captured_source(parts: Mapping[str, Column]) -> Column:
    """STRUCT of the captured fields of ``source`` in the types of SOURCE_FIELDS; NULL for tombstones alone."""
    fields = {name: part.cast(_FIELDS[name]) for name, part in parts.items() if name in _FIELDS}
    return expressions.struct(fields) if fields else F.lit(None).cast("string")


def _source_columns(templates: Sequence[KnownTemplate], captured: Collection[str]) -> dict[str, Column]:
    """The fields of ``source`` for :mod:`replicator.debezium.position`. A value that all templates share is a constant,
    so that Spark optimizes away the branches of other connectors: two of the five microseconds that a match took.
    """
    source = {name: F.lit(None).cast(kind) for name, kind in _FIELDS.items()}
    source |= {name: F.col(_SOURCE)[name] for name in captured if name in _FIELDS}
    for name in CONSTANT_FIELDS:
        values = [each.template.constants.get(name) for each in templates]
        shared = {value for each, value in zip(templates, values, strict=True) if each.template.constants}
        source[name] = F.lit(shared.pop()).cast("string") if len(shared) == 1 else _shared_column(values, "STRING")
    return source


def _numbers(parts: Mapping[str, Column]) -> Column:
    """The struct of ``position.parse_numbers``, from the captured parts."""
    parsers = {"file": position.file_number, "gtid": position.gtid_number, "commit": _number}
    nothing = F.lit(None).cast("bigint")
    return expressions.struct(
        {name: parse(parts[name]) if name in parts else nothing for name, parse in parsers.items()}
    )


def _number(part: Column) -> Column:
    return part.cast("bigint")
