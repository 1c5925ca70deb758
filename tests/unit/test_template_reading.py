"""Records are described by a template where one is known and matches, by parsers else: what is said is the same."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.debezium import envelope, template_matching
from replicator.debezium.placeholder import Placeholder
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver, tuning
from replicator.stages.refinement import Refinement
from replicator.stages.tick import template_reading
from tests.builders import UNSENT, Record, bronze, record, said_alike, wrapped
from tests.builders import envelope as change

pytestmark = pytest.mark.spark

TOPIC = "s.shop.orders"
COLUMNS = (Column("id", "int"), Column("v", "string"))


def at(folder: Path) -> Refinement:
    """A driver that has just started."""
    tables = MemoryFormat()
    declared = (Declaration("shop.orders", COLUMNS),)
    return Refinement(SourceSpec("s", ".*", tables=declared), tables, tables, MemoryControl(), Lake(str(folder)), 1.0)


def sent(offset: int, v: Any, op: str = "u", **source: Any) -> Record:
    row: dict[str, Any] = {"id": offset, "v": v}
    images: dict[str, Any] = {"before": row} if op == "d" else {"after": row}
    return record(TOPIC, offset, {"id": offset}, change(op, pos=4 + offset, **images, **source))


def described(spark: SparkSession, known: Refinement, records: list[Record]) -> tuple[list[Any], list[int]]:
    """What is said of the records in a later batch, and the offsets of those of which parsers say it."""
    with template_reading.describe(known, bronze(spark, records), [TOPIC]) as found:
        rows = [row.asDict() for row in found.drop("headers").orderBy("offset").collect()]
        templates = known.templates.of([TOPIC])
        unlike = said_alike(bronze(spark, records), templates, "file_pos").where("form IS NULL").collect()
    return rows, sorted(row["offset"] for row in unlike)


def parsed(spark: SparkSession, records: list[Record]) -> list[Any]:
    found = envelope.describe(bronze(spark, records), envelope.DEFAULT_READING)
    return [row.asDict() for row in found.drop("headers").orderBy("offset").collect()]


def without_held(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "held"} for row in rows]


def images(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The rows, the first of which a template tells: nothing but the image is left that is yet to be read."""

    def image(row: dict[str, Any]) -> str | None:
        name = "before" if row["op"] == "d" else "after"
        told: Any = row["value"] and {name: json.loads(row["value"])[name]}
        return json.dumps(told, separators=(",", ":")) if told else told

    of_all: dict[str, Any] = {"key_names": None, "row_names": None, "told": True}
    return [{**row, "value": image(row), **of_all} for row in rows[:count]] + rows[count:]


LATER = {
    "alike": ([sent(5, "a"), sent(6, 'ä "quoted" \\ \n'), sent(7, None)], 0),
    "another value": ([sent(5, 7), sent(6, 1.5), sent(7, True)], 0),
    "inserted, read": ([sent(5, "a", "c"), sent(6, "a", "r", snapshot="true")], 0),
    "deleted": ([sent(5, "a", "d"), record(TOPIC, 6, {"id": 5}, None)], 0),
    "left out": ([sent(5, UNSENT)], 0),
    "another column": ([record(TOPIC, 5, {"id": 5}, change("u", {"id": 5, "v": "a", "w": 1}))], 1),
    "nested": ([sent(5, {"x": 1}), sent(6, [1, 2])], 2),
    "another table": ([sent(5, "a", table="shop.others")], 1),
    "wrapped": ([record(TOPIC, 5, {"id": 5}, wrapped(change("u", {"id": 5, "v": "a"})))], 1),
    "damaged": ([Record(TOPIC, 5, '{"id":5}', '{"before":null'), Record(TOPIC, 6, '{"id":6', "{}")], 2),
    "truncated": ([record(TOPIC, 5, None, change("t"))], 1),
    "no key": ([record(TOPIC, 5, None, change("u", {"id": 5, "v": "a"}))], 1),
}


@dataclass
class Later:
    """Records by case, what is said of them, of which parsers said it, and what parsers would say of all."""

    cases: dict[str, list[Record]]
    rows: list[dict[str, Any]]
    unlike: list[int]
    parsed: list[dict[str, Any]]

    def of(self, name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of a case."""
        offsets = {each.offset for each in self.cases[name]}
        return [row for row in rows if row["offset"] in offsets]


@pytest.fixture(scope="module")
def later(exact: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Later:
    """All of them in one batch, behind one that two forms of records are known from."""
    known = at(tmp_path_factory.mktemp("later"))
    first = [sent(1, "a"), sent(2, "b", "d"), record(TOPIC, 3, {"id": 2}, None)]
    known.bronze.append(bronze(exact, first), known.lake.bronze("s"), None)
    assert [account.residue for account in silver.refine(exact, known)] == [0]
    cases = {
        name: [replace(each, offset=100 * number + each.offset) for each in records]
        for number, (name, (records, _)) in enumerate(LATER.items())
    }
    records = [each for case in cases.values() for each in case]
    rows, unlike = described(exact, known, records)
    return Later(cases, rows, unlike, parsed(exact, records))


@pytest.mark.parametrize("name", LATER)
def test_only_what_is_written_like_a_known_record_is_told_by_a_template(later: Later, name: str) -> None:
    """And what it says is what parsers would say."""
    by_parsers, count = LATER[name][1], len(later.cases[name])
    assert len({each.offset for each in later.cases[name]}.intersection(later.unlike)) == by_parsers
    wanted = images(later.of(name, later.parsed), count - by_parsers)
    assert without_held(later.of(name, later.rows)) == without_held(wanted)


def blocks(offset: int, row: dict[str, Any], op: str = "u") -> Record:
    """A record with schema blocks of its key and its value."""
    kinds = {"id": "int64", "v": "string", "w": "int32"}
    fields = [{"field": name, "type": kinds[name], "optional": name != "id"} for name in row]
    images = [{"type": "struct", "optional": True, "fields": fields, "field": side} for side in ("before", "after")]
    image: dict[str, Any] = {"before" if op == "d" else "after": row}
    told = change(op, pos=4 + offset, **image)
    key = wrapped({"id": row["id"]}, {"type": "struct", "fields": fields[:1]})
    return record(
        TOPIC, offset, key, wrapped(told, {"type": "struct", "fields": [*images, {"type": "string", "field": "op"}]})
    )


def test_of_a_record_with_a_schema_block_the_row_alone_is_kept(exact: SparkSession, tmp_path: Path) -> None:
    """One example of each form tells the types (A2): the block is most of such a record, and is not read again."""
    known = replace(at(tmp_path), source=SourceSpec("s", ".*"))
    batches = (
        [blocks(1, {"id": 1, "v": "a"}), blocks(2, {"id": 2, "v": "b"})],
        [blocks(3, {"id": 3, "v": "c"}), blocks(4, {"id": 1, "v": "a"}, "d")],
        [blocks(5, {"id": 5, "v": "e"}), blocks(6, {"id": 6, "v": "f", "w": 6})],
        [blocks(7, {"id": 7, "v": "g", "w": None}), blocks(8, {"id": 2, "v": "h"})],
    )
    for batch in batches:
        known.bronze.append(bronze(exact, batch), known.lake.bronze("s"), None)
        assert [(account.error, account.residue) for account in silver.refine(exact, known)] == [(None, 0)]
    rows = known.silver.read(exact, known.lake.silver("s", "shop.orders"))
    assert {name: kind for name, kind in rows.dtypes if not name.startswith("_")} == {
        "id": "bigint",
        "v": "string",
        "w": "int",
    }
    live = rows.where("NOT _deleted").select("id", "v", "w").orderBy("id").collect()
    assert list(map(tuple, live)) == [(2, "h", None), (3, "c", None), (5, "e", None), (6, "f", 6), (7, "g", None)]
    kept, unlike = described(exact, known, [blocks(9, {"id": 9, "v": "i"}), blocks(10, {"id": 9, "v": "i"}, "d")])
    assert (unlike, [row["value"] for row in kept]) == (
        [10],
        ['{"payload":{"after":{"id":9,"v":"i"}}}', blocks(10, {"id": 9, "v": "i"}, "d").value],
    )


def test_a_driver_that_knows_no_record_yet_parses_all(exact: SparkSession, tmp_path: Path) -> None:
    with template_reading.describe(at(tmp_path), bronze(exact, [sent(1, "a")]), [TOPIC]) as found:
        assert [row["table"] for row in found.collect()] == ["shop.orders"]
    assert at(tmp_path).templates.of([TOPIC]) == []


def test_a_driver_that_has_just_started_looks_at_first_records_where_some_are_to_come(
    exact: SparkSession, tmp_path: Path
) -> None:
    """To look takes a job, as few records do; of what is known nothing is looked at again (decision 0060)."""
    known, records = at(tmp_path), bronze(exact, [sent(1, "a"), sent(2, "b", "d"), sent(3, "c")])
    template_reading.learn_from_first(known, records, [TOPIC], tuning.PARALLEL_RECORD_BYTES - 1)
    assert known.templates.of([TOPIC]) == []
    template_reading.learn_from_first(known, records, [TOPIC], tuning.PARALLEL_RECORD_BYTES)
    assert {each.facts["table"] for each in known.templates.of([TOPIC])} == {"shop.orders"}
    learned = known.templates.of([TOPIC])
    template_reading.learn_from_first(
        known, records.where(F.expr("assert_true(false) IS NULL")), [TOPIC], tuning.PARALLEL_RECORD_BYTES
    )
    assert known.templates.of([TOPIC]) == learned


def test_a_row_of_very_many_columns_and_a_very_long_text_do_not_overflow_the_stack(exact: SparkSession) -> None:
    row: dict[str, Any] = {f"column number {n}": "x" * (2_000_000 if n == 7 else 20) for n in range(400)} | {
        "quotes": '"' * 50_000
    }
    records = [record(TOPIC, n, {"id": n}, change("u", row, row, pos=n)) for n in range(2)]
    said = envelope.describe(bronze(exact, records), envelope.DEFAULT_READING)
    templates = template_matching.TemplateCache()
    templates.learn([row.asDict() for row in said.collect()], Placeholder())
    assert len(templates.of([TOPIC])) == 2
    told = said_alike(bronze(exact, records), templates.of([TOPIC]), "file_pos")
    assert told.where("form IS NULL").count() == 0


ODD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "half a pair in a name": ({"v\ud800": "a"}, {}),
    "half a pair in the source": ({}, {"name": "s\ud800"}),
    "a number": ({}, {"name": 1e-5}),
    "a position's part": ({}, {"commit": 77, "flushed": 78}),
}
"""What a row, and what its source has besides."""


def test_what_no_connector_writes_teaches_nothing(exact: SparkSession, tmp_path: Path) -> None:
    """Half a surrogate pair cannot be sent to the JVM, and parsers spell numbers in their own way: such records are
    parsed, and so are those behind them. Each kind has a table of its own.
    """
    topics = {f"s.shop.odd_{number}": odd for number, odd in enumerate(ODD.values())}
    known, tables = at(tmp_path), tuple(Declaration(topic[2:], COLUMNS) for topic in topics)
    known = replace(known, source=replace(known.source, tables=tables))

    def odd(topic: str, n: int) -> Record:
        first, more = topics[topic]
        told = change("u", {"id": n, "v": "a", **first}, pos=n, table=topic[2:], **more)
        return record(topic, n, {"id": n}, json.dumps(told, separators=(",", ":")))

    for n in (1, 2, 3):
        known.bronze.append(bronze(exact, [odd(topic, n) for topic in topics]), known.lake.bronze("s"), None)
        accounts = silver.refine(exact, known)
        assert [(account.error, account.residue) for account in accounts] == [(None, 0)] * len(topics)
    assert {name: known.templates.of([topic]) for name, topic in zip(ODD, topics, strict=True)} == {
        name: [] for name in ODD
    }


def test_no_number_of_a_transaction_is_less_than_none(exact: SparkSession, tmp_path: Path) -> None:
    """What a parser says of -0 is 0."""
    known = at(tmp_path)
    known.bronze.append(bronze(exact, [sent(1, "a", txId=7)]), known.lake.bronze("s"), None)
    silver.refine(exact, known)
    odd = sent(2, "a", txId=7)
    rows, unlike = described(exact, known, [replace(odd, value=(odd.value or "").replace('"txId":7', '"txId":-0'))])
    assert unlike == [2]
    assert [row["transaction"] for row in rows] == ["0"]


def test_templates_of_very_many_topics_are_told_apart(exact: SparkSession) -> None:
    """Each record is compared with those of its own topic, however many there are."""
    topics = [f"s.shop.t{number}" for number in range(100)]
    records = [
        record(topic, n, {"id": n}, change("u", {"id": n, f"of {topic}": "a"}, pos=n))
        for n, topic in enumerate(topics * 2)
    ]
    said = [row.asDict() for row in envelope.describe(bronze(exact, records), envelope.DEFAULT_READING).collect()]
    templates = template_matching.TemplateCache()
    templates.learn(said[:100], Placeholder())
    assert len(templates.of(topics[:50])) == 100
    told = said_alike(bronze(exact, records), templates.of(topics), "file_pos")
    assert {(row["topic"], row["form"]) for row in told.collect()} == {(row["topic"], row["form"]) for row in said}
    strangers = said_alike(bronze(exact, records), templates.of(topics[1:]), "file_pos")
    assert {row["topic"] for row in strangers.where("form IS NULL").collect()} == {topics[0]}


def test_a_batch_whose_templates_are_very_long_is_parsed() -> None:
    """They have each schema block twice, and go to the JVM with every batch and to every task."""
    nothing = ("rule", "reason", "shape", "flat", "bare", "source_name", "key_names", "row_names")
    said: dict[str, Any] = dict.fromkeys(nothing)
    value = wrapped(change("u", {"id": 1, "v": "a"}), {"type": "struct", "doc": "d" * 12_000})
    said |= {"key": '{"id":1}', "value": json.dumps(value), "wrapped": True, "key_wrapped": False, "form": 1}
    topics = [f"s.shop.t{number}" for number in range(300)]
    templates = template_matching.TemplateCache()
    templates.learn([{**said, "topic": topic, "table": topic} for topic in topics], Placeholder())
    assert len(templates.of(topics[:150])) == 300
    assert templates.of(topics) == []


def test_what_is_held_of_kinds_of_records_has_a_bound() -> None:
    """However large their schemas are: some are remembered, and smaller ones behind them. Nobody asks for the topics of
    the others again.
    """
    nothing = ("rule", "reason", "shape", "flat", "bare", "source_name", "key_names", "row_names")
    templates, topics = template_matching.TemplateCache(), [f"s.shop.t{number}" for number in range(100)]

    def said(topic: str, doc: int) -> dict[str, Any]:
        value = wrapped(change("u", {"id": 1, "v": "a"}), {"type": "struct", "doc": "d" * doc})
        told: dict[str, Any] = {
            "key": '{"id":1}',
            "value": json.dumps(value),
            "wrapped": True,
            "key_wrapped": False,
            "form": 1,
        }
        return {**dict.fromkeys(nothing), **told, "topic": topic, "table": topic}

    templates.learn((said(topic, 1_000_000) for topic in topics), Placeholder())
    held = [topic for topic in topics if templates.of([topic])]
    assert held == topics[: len(held)]
    assert 1 < len(held) <= (64 << 20) // 5_000_000  # two templates, each of them twice, and an example
    assert templates.unknown([*topics, "s.shop.small"]) == ["s.shop.small"]
    templates.learn([said("s.shop.small", 10)], Placeholder())
    assert len(templates.of(["s.shop.small"])) == 2
    assert templates.unknown(topics) == []
