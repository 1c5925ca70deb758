"""What :func:`replicator.debezium.envelope.describe` says of records, told by templates of how they are written.

A match costs a pass over the text; to describe a record by its own takes a dozen parsers.
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
"""Kinds of records that are remembered, bytes of what is remembered of them, and characters of a batch's templates:
they have each schema block twice or more, and go to the JVM with every batch, and from there to every task.
"""

_FIELDS = dict(field.split(" ") for field in SOURCE_FIELDS.split(", "))

_TOPIC, _TEMPLATE = "\x1e", "\x1d"
"""Behind the topic of a template, and between templates: what ``Alike.java`` parts them by."""

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
"""What is the same of all records of a template, and asked of each of them."""

_RECORD_COLUMNS = ("op", "source_ts_ms", "is_snapshot", "position", "stream", "transaction")
"""What each record says itself."""

EXAMPLE_COLUMNS = ("key_names", "row_names", "value", "key")
"""What is asked of one record of a form alone."""


@dataclass(frozen=True)
class KnownTemplate:
    """A template of records of a topic, with what was said of its example. ``whole``: of records that match more is to
    be read than their image.
    """

    topic: str
    template: Template
    facts: Mapping[str, Any]
    whole: bool = False


def derive_templates(described: Mapping[str, Any], placeholder: Placeholder) -> list[KnownTemplate]:
    """What one record says of others: its ``topic``, ``value``, ``key`` and what ``envelope.describe`` said of it.
    Nothing where it is neither a plain envelope of a row's change nor a tombstone.
    """
    key, key_wrapped = described["key"], described["key_wrapped"]
    if described["rule"] == classification.TOMBSTONE:
        found = {False: template.tombstone(key, key_wrapped=key_wrapped)}
    elif described["rule"] or described["reason"] or described["shape"] or described["flat"]:
        return []
    else:
        of = partial(template.build, described["value"], key, wrapped=described["wrapped"], key_wrapped=key_wrapped)
        found = {False: of(without=placeholder.marks()), True: of()}
    facts = {name: described[name] for name in _SHARED_COLUMNS if name != "held"}
    return [KnownTemplate(described["topic"], each, {**facts, "held": held}) for held, each in found.items() if each]


class TemplateCache:
    """What a process has learned of how the records of a source are written, while there are not too many forms, and
    not too much text of them: others are described by their own words, each time.
    """

    def __init__(self) -> None:
        self._learned: dict[tuple[Any, ...], list[KnownTemplate]] = {}
        self._examples: dict[tuple[str, int], dict[str, Any]] = {}
        self._held = 0

    def learn(self, described: Iterable[Mapping[str, Any]], placeholder: Placeholder) -> None:
        """Take records for examples that are the first of their kind."""
        for record in described:
            kind = tuple(record[name] for name in ("topic", "source_name", "table", "form", "rule", "reason"))
            if kind not in self._learned and len(self._learned) < _MAX_KINDS:
                self._learned[kind] = self._fitting(record, derive_templates(record, placeholder))

    def _fitting(self, record: Mapping[str, Any], found: list[KnownTemplate]) -> list[KnownTemplate]:
        """What was found, with an example beside it; nothing where that would be too much to hold."""
        place, example = (record["topic"], record["form"]), _example(record) if found else {}
        size = _size(example) + sum(each.template.size for each in found)
        if not found or self._held + size > _MAX_CACHED_BYTES:
            return []
        self._held += size
        self._examples.setdefault(place, example)
        return found

    def example(self, topic: str, form: int) -> Mapping[str, Any]:
        """EXAMPLE of a record of the form, of one of which a template told some record; of its value the schema block
        alone.
        """
        return self._examples[topic, form]

    def of(self, topics: Collection[str]) -> list[KnownTemplate]:
        """Those of some topics; none where they are too long to be sent with a batch."""
        found = [each for told in self._learned.values() for each in told if each.topic in topics]
        return found if sum(len(each.template.spelled) for each in found) <= _MAX_BATCH_CHARACTERS else []

    def unknown(self, topics: Iterable[str]) -> list[str]:
        """Topics of which no record was seen, while more can be learned."""
        if len(self._learned) >= _MAX_KINDS:
            return []
        seen = {kind[0] for kind in self._learned}
        return [topic for topic in topics if topic not in seen]


def _example(record: Mapping[str, Any]) -> dict[str, Any]:
    block = raw_fields(record["value"], ())["schema"] if record["wrapped"] else None
    value = None if block is None else f'{{"schema":{block},"payload":{{}}}}'
    return {**{name: record[name] for name in EXAMPLE_COLUMNS}, "value": value}


def _size(example: Mapping[str, Any]) -> int:
    """Bytes of its texts."""
    named = [name for each in ("key_names", "row_names") for name in example.get(each) or ()]
    return sum(map(sys.getsizeof, (*named, *(example.get(each) or "" for each in ("value", "key")))))


def match_records(records: DataFrame, templates: Sequence[KnownTemplate], binlog: str) -> DataFrame:
    """Records with what is to be kept of them for :func:`describe`: the number of the TEMPLATE that each matches, NULL
    where none does, and what it says itself. Of one that matches ``value`` is what is yet to be read of it
    (``Template.image``): the rest of an envelope, most of its text, would only take memory (decision 0059), unless the
    template is ``whole``.
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
    """The columns of ``envelope.describe`` of records of which :func:`match_records` says this; ``form`` is NULL of one
    that no template matches, and the others say nothing then. ``told`` is TRUE, and the names of a record's columns
    are NULL: ``TemplateCache.example`` has them. What is the same of all that match a template need not be kept for
    each of them: half of all columns.
    """
    facts = {
        name: _shared_column([each.facts[name] for each in templates], kind) for name, kind in _SHARED_COLUMNS.items()
    }
    said = {
        **{name: F.col(name) for name in _RECORD_COLUMNS},
        **facts,
        "rewritten": F.lit(False),
        "told": F.lit(True),
        **dict.fromkeys(("shape", "reason", "happened"), F.lit(None).cast("string")),
        **dict.fromkeys(("key_names", "row_names"), F.lit(None).cast("array<string>")),
    }
    columns = [name for name in kept.columns if name not in (TEMPLATE, *_RECORD_COLUMNS)]
    return kept.select(*columns, *[said[name].alias(name) for name in (*envelope.DESCRIPTION_COLUMNS, "reason")])


def _record_columns(binlog: str, source: Mapping[str, Column]) -> dict[str, Column]:
    op = F.col(_OP)
    is_row, is_snapshot = op.isNotNull(), F.coalesce(op == "r", F.lit(False))
    place = position.build(source, is_snapshot, binlog, F.col(_NUMBERS))
    stream = F.when(is_row, position.stream(source, binlog))
    values = (F.coalesce(op, F.lit("u")), source["ts_ms"], is_snapshot, place, stream, source["txId"])
    return dict(zip(_RECORD_COLUMNS, values, strict=True))


def _match_column(records: DataFrame, templates: Sequence[KnownTemplate]) -> Column:
    """ARRAY<BINARY>: the number of the template and what it captured, by slots; NULL where none matches."""
    spelled = _TEMPLATE.join(f"{each.topic}{_TOPIC}{each.template.spelled}" for each in templates)
    like = java_udfs.create(
        records.sparkSession, "replicator.debezium.Alike", "array<binary>", spelled, IMAGE_SLOT + 1, uses=java_udfs.JSON
    )
    texts = (F.col(name).cast("binary") for name in ("key", "value"))
    return F.when(F.col("undecodable").isNull(), like(F.col("topic"), *texts))


def _captured(slot: int) -> Column:
    """What was captured; NULL where nothing was."""
    return F.get(F.col(_PARTS), F.lit(slot)).cast("string")


def _shared_column(values: Sequence[Any], kind: str) -> Column:
    """Of what each template says that of a record's TEMPLATE; NULL of one that matches none."""
    number = F.col(TEMPLATE)
    if len(set(values)) == 1:
        return F.when(number.isNotNull(), F.lit(values[0]).cast(kind))
    return F.get(F.from_json(F.lit(json.dumps(values)), f"ARRAY<{kind}>"), number)


def _captured_source(parts: Mapping[str, Column]) -> Column:
    """What was captured of ``source``, of the types that :mod:`position` asks for; tombstones have none."""
    told = {name: part.cast(_FIELDS[name]) for name, part in parts.items() if name in _FIELDS}
    return expressions.struct(told) if told else F.lit(None).cast("string")


def _source_columns(templates: Sequence[KnownTemplate], captured: Collection[str]) -> dict[str, Column]:
    """What :mod:`position` asks of ``source``. What all templates share is a constant, so that Spark leaves out what is
    asked of other connectors: two of the five microseconds that a match took.
    """
    source = {name: F.lit(None).cast(kind) for name, kind in _FIELDS.items()}
    source |= {name: F.col(_SOURCE)[name] for name in captured if name in _FIELDS}
    for name in CONSTANT_FIELDS:
        said = [each.template.constants.get(name) for each in templates]
        shared = {value for each, value in zip(templates, said, strict=True) if each.template.constants}
        source[name] = F.lit(shared.pop()).cast("string") if len(shared) == 1 else _shared_column(said, "STRING")
    return source


def _numbers(parts: Mapping[str, Column]) -> Column:
    """What ``position.parse_numbers`` says."""
    read = {"file": position.file_number, "gtid": position.gtid_number, "commit": _number}
    nothing = F.lit(None).cast("bigint")
    return expressions.struct({name: of(parts[name]) if name in parts else nothing for name, of in read.items()})


def _number(part: Column) -> Column:
    return part.cast("bigint")
