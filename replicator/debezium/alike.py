"""What :func:`replicator.debezium.envelope.read` says of records, told by templates of how they are written.

A match costs a pass over the text; to describe a record by its own takes a dozen parsers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import envelope, position, template
from replicator.debezium.template import BETWEEN, CAPTURED, CONSTANT, MATCHED, SEPARATOR, Template

_TOLD, _PARTS, _FACTS, _SOURCE, _NUMBERS = "_told", "_parts", "_facts", "_source", "_numbers"
_LONGEST = 8 << 20
"""Bytes of a text beyond which a parser may refuse what JSON allows."""

_AT_MOST = 512
"""Forms."""

TOMBSTONE = "tombstone"
"""The rule of a record without a value."""

_SHARED = {
    "flat": "BOOLEAN",
    "bare": "BOOLEAN",
    "rule": "STRING",
    "source_name": "STRING",
    "table": "STRING",
    "wrapped": "BOOLEAN",
    "key_wrapped": "BOOLEAN",
    "key_names": "ARRAY<STRING>",
    "row_names": "ARRAY<STRING>",
    "form": "BIGINT",
}
"""What is the same of all records of a template."""


@dataclass(frozen=True)
class Known:
    """A template of records of a topic, with what was said of its example."""

    topic: str
    template: Template
    facts: Mapping[str, Any]


def known(described: Mapping[str, Any]) -> Known | None:
    """What one record says of others: its ``topic``, ``value``, ``key`` and what ``envelope.read`` said of it. None where
    it is neither a plain envelope of a row's change nor a tombstone.
    """
    key, key_wrapped = described["key"], described["key_wrapped"]
    if described["rule"] == TOMBSTONE:
        found = template.tombstone(key, key_wrapped=key_wrapped)
    elif described["rule"] or described["reason"] or described["shape"] or described["flat"]:
        return None
    else:
        found = template.template(described["value"], key, wrapped=described["wrapped"], key_wrapped=key_wrapped)
    return None if found is None else Known(described["topic"], found, {name: described[name] for name in _SHARED})


class Templates:
    """What a process has learned of how the records of a source are written: of each form one template, while there
    are not too many.
    """

    def __init__(self) -> None:
        self._by_form: dict[tuple[str, int], Known | None] = {}

    def learn(self, described: Iterable[Mapping[str, Any]]) -> None:
        """Take records for examples that are the first of their form."""
        for record in described:
            form = record["topic"], record["form"]
            if form not in self._by_form and len(self._by_form) < _AT_MOST:
                self._by_form[form] = known(record)

    def of(self, topics: Collection[str]) -> list[Known]:
        """Those of some topics."""
        return [each for each in self._by_form.values() if each is not None and each.topic in topics]

    def unknown(self, topics: Iterable[str]) -> list[str]:
        """Topics of which no record was seen."""
        seen = {topic for topic, _ in self._by_form}
        return [topic for topic in topics if topic not in seen]


def read(records: DataFrame, templates: Sequence[Known], binlog: str) -> DataFrame:
    """The columns of ``envelope.read``; ``form`` is NULL of a record that no template matches, and the others
    say nothing then.
    """
    told = records.withColumn(_TOLD, _told(templates))
    parts = F.when(F.col(_TOLD).startswith(MATCHED), F.split(F.substr(_TOLD, F.lit(2)), SEPARATOR))
    split = told.withColumn(_PARTS, parts)
    taken = split.withColumn(_FACTS, _facts(templates)[F.col(_PARTS)[0].cast("int")])
    sourced = taken.withColumn(_SOURCE, _source(templates))
    numbered = sourced.select("*", position.numbers(F.col(_SOURCE)).alias(_NUMBERS))
    return numbered.select(*records.columns, *_said(binlog))


def _said(binlog: str) -> list[Column]:
    source, op = F.col(_SOURCE), _part("op")
    is_row, is_snapshot = op.isNotNull(), F.coalesce(op == "r", F.lit(False))
    told = {
        "op": F.coalesce(op, F.lit("u")),
        "source_ts_ms": source["ts_ms"],
        "is_snapshot": is_snapshot,
        "position": position.position(source, is_snapshot, binlog, F.col(_NUMBERS)),
        "stream": F.when(is_row, position.stream(source, binlog)),
        "transaction": source["txId"],
        **{name: F.col(_FACTS)[name] for name in _SHARED},
        "rewritten": F.lit(False),
        **dict.fromkeys(("shape", "reason"), F.lit(None).cast("string")),
    }
    return [told[name].alias(name) for name in (*envelope.SAID, "reason")]


def _told(templates: Sequence[Known]) -> Column:
    """MATCHED, the number of the template and what it captured; else any other text, or none."""
    text = F.concat(F.lit(BETWEEN), "key", F.lit(BETWEEN), F.coalesce("value", F.lit("")))
    by_topic: dict[str, Column] = {}
    for number, each in enumerate(templates):
        found = f"{MATCHED}{number}{SEPARATOR}{each.template.captured}"
        by_topic[each.topic] = F.regexp_replace(by_topic.get(each.topic, text), each.template.pattern, found)
    usable = F.col("undecodable").isNull() & (F.coalesce(F.octet_length("value"), F.lit(0)) <= _LONGEST)
    return F.coalesce(*[F.when(usable & (F.col("topic") == topic), told) for topic, told in by_topic.items()])


def _part(name: str) -> Column:
    """What was captured by this name; NULL where nothing was."""
    told = F.get(F.col(_PARTS), F.lit(1 + CAPTURED.index(name)))
    return F.when(told != "", told)


def _facts(templates: Sequence[Known]) -> Column:
    """ARRAY of what each template says, a constant."""
    ddl = ", ".join(f"{name} {kind}" for name, kind in _SHARED.items())
    constants = ", ".join(f"{name} STRING" for name in CONSTANT)
    rows = [{**each.facts, "source": each.template.constants} for each in templates]
    told = json.dumps(rows)
    return F.from_json(F.lit(told), f"ARRAY<STRUCT<{ddl}, source STRUCT<{constants}>>>")


def _source(templates: Sequence[Known]) -> Column:
    """A struct of ``position.SOURCE_FIELDS``; what all templates share is a constant, which spares to ask for it."""
    fields = [field.split(" ") for field in position.SOURCE_FIELDS.split(", ")]
    told = []
    for name, kind in fields:
        if name in CAPTURED:
            part = F.replace(_part(name), F.lit('\\"'), F.lit('"')) if name == "sequence" else _part(name)
            told.append(part.cast(kind).alias(name))
            continue
        shared = {each.template.constants.get(name) for each in templates if each.template.constants}
        one = F.lit(shared.pop()).cast(kind) if len(shared) == 1 else F.col(_FACTS)["source"][name]
        told.append(one.alias(name))
    return F.struct(*told)
